//! `siftd service`: the program carries its units and all that goes with them, writes them where systemd looks, and
//! takes them away again. With `--root` it only writes files, as a package needs them.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::args::{ServiceArgs, ServiceCommand, ServicePlace};
use super::{Exit, Failure, out};

/// What the units call the program.
const PROGRAM: &str = "/usr/local/bin/siftd";
/// The first systemd that knows all of the drop-in for newer ones.
const NEWER: u32 = 254;

/// Files that are siftd's own: place, content.
const FILES: [(&str, &str); 8] = [
    ("/etc/systemd/system/siftd.service", include_str!("../../systemd/siftd.service")),
    ("/etc/systemd/system/siftd@.service", include_str!("../../systemd/siftd@.service")),
    ("/etc/systemd/system/siftd.socket", include_str!("../../systemd/siftd.socket")),
    ("/etc/sysusers.d/siftd.conf", include_str!("../../systemd/sysusers.conf")),
    ("/etc/tmpfiles.d/siftd.conf", include_str!("../../systemd/tmpfiles.conf")),
    ("/etc/logrotate.d/siftd", include_str!("../../systemd/logrotate.conf")),
    ("/etc/siftd/siftd.toml.example", include_str!("../../config/siftd.toml")),
    ("/etc/systemd/system/siftd.service.d/newer.conf", NEWER_UNIT),
];
const NEWER_UNIT: &str = include_str!("../../systemd/siftd.service.d/newer.conf");
const NEWER_TEMPLATE: &str = "/etc/systemd/system/siftd@.service.d/newer.conf";
/// The user's own from the first moment on.
const CONFIGURATION: (&str, &str) = ("/etc/siftd/siftd.toml", include_str!("../../systemd/siftd.toml"));
const KEPT: [&str; 3] = ["/etc/siftd", "/var/lib/siftd", "/var/log/siftd"];

pub fn service(args: &ServiceArgs) -> Result<Exit, Failure> {
    match &args.command {
        ServiceCommand::Install { place } => install(place),
        ServiceCommand::Uninstall { place, purge } => uninstall(place, *purge),
    }
}

/// All files that are written, in order, with the name of the program in them.
fn files(place: &ServicePlace, with_newer: bool) -> Vec<(PathBuf, String)> {
    let program = place.prefix.join("bin/siftd").display().to_string();
    let newer = with_newer.then_some((NEWER_TEMPLATE, NEWER_UNIT));
    let all = FILES.iter().copied().filter(|(_, text)| with_newer || *text != NEWER_UNIT).chain(newer);
    all.map(|(path, text)| (below(place, path), text.replace(PROGRAM, &program))).collect()
}

fn below(place: &ServicePlace, path: impl AsRef<Path>) -> PathBuf {
    let path = path.as_ref();
    place.root.as_ref().map_or_else(|| path.to_owned(), |root| root.join(path.strip_prefix("/").unwrap_or(path)))
}

fn install(place: &ServicePlace) -> Result<Exit, Failure> {
    if !place.prefix.is_absolute() {
        return Err(Failure::new(format!("--prefix {}: write it from the root on, such as /usr/local", place.prefix.display())));
    }
    let program = below(place, place.prefix.join("bin/siftd"));
    // A package is for any version; the drop-in is added where it is installed.
    let with_newer = place.root.is_none() && version() >= Some(NEWER);
    let mut said = copy_program(&program)?;
    for (path, text) in files(place, with_newer) {
        write(&path, &text)?;
        said += &format!("wrote {}\n", path.display());
    }
    let configuration = below(place, CONFIGURATION.0);
    if !configuration.exists() {
        write(&configuration, CONFIGURATION.1)?;
        said += &format!("wrote {}: a first configuration, for you to change\n", configuration.display());
    }
    if place.root.is_none() {
        run("systemd-sysusers", &["/etc/sysusers.d/siftd.conf"])?;
        run("systemd-tmpfiles", &["--create", "/etc/tmpfiles.d/siftd.conf"])?;
        run("systemctl", &["daemon-reload"])?;
        said += "Start it, now and at each boot: systemctl enable --now siftd\n";
    }
    out::print(&said)
}

fn uninstall(place: &ServicePlace, purge: bool) -> Result<Exit, Failure> {
    if place.root.is_none() {
        run("systemctl", &["disable", "--now", "siftd.service", "siftd.socket"])?;
        run("systemctl", &["stop", "siftd@*.service"])?;
    }
    let mut said = String::new();
    let mut gone: Vec<PathBuf> = files(place, true).into_iter().map(|(path, _)| path).collect();
    gone.push(below(place, place.prefix.join("bin/siftd")));
    for path in gone {
        match fs::remove_file(&path) {
            Ok(()) => said += &format!("removed {}\n", path.display()),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(fault(&path, &error)),
        }
        // Only a folder of ours, and only when nothing else is in it.
        if let Some(folder) = path.parent().filter(|folder| folder.extension().is_some_and(|end| end == "d") && folder.to_string_lossy().contains("siftd")) {
            let _ = fs::remove_dir(folder);
        }
    }
    for path in KEPT.map(|path| below(place, path)) {
        match purge {
            true => match fs::remove_dir_all(&path) {
                Ok(()) => said += &format!("removed {}\n", path.display()),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(fault(&path, &error)),
            },
            false if path.exists() => said += &format!("kept {}\n", path.display()),
            false => {}
        }
    }
    if place.root.is_none() {
        run("systemctl", &["daemon-reload"])?;
    }
    out::print(&said)
}

/// This very program, as a whole or not at all: the old one may be running.
fn copy_program(to: &Path) -> Result<String, Failure> {
    let own = std::env::current_exe()?;
    if own.canonicalize().ok() == to.canonicalize().ok() && to.exists() {
        return Ok(String::new());
    }
    let new = to.with_extension("new");
    make_folder(to)?;
    fs::copy(&own, &new).and_then(|_| fs::set_permissions(&new, fs::Permissions::from_mode(0o755))).map_err(|error| fault(&new, &error))?;
    fs::rename(&new, to).map_err(|error| fault(to, &error))?;
    Ok(format!("wrote {}\n", to.display()))
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    make_folder(path)?;
    fs::write(path, text).and_then(|()| fs::set_permissions(path, fs::Permissions::from_mode(0o644))).map_err(|error| fault(path, &error))
}

fn make_folder(path: &Path) -> Result<(), Failure> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder).map_err(|error| fault(folder, &error))
}

fn fault(path: &Path, error: &std::io::Error) -> Failure {
    let mend = if error.kind() == ErrorKind::PermissionDenied { ": run it as root, or write elsewhere with --root" } else { "" };
    Failure::new(format!("{}: {error}{mend}", path.display()))
}

/// The number of the systemd that is here.
fn version() -> Option<u32> {
    let said = Command::new("systemctl").arg("--version").stdin(Stdio::null()).output().ok()?;
    String::from_utf8_lossy(&said.stdout).split_whitespace().nth(1)?.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

fn run(program: &str, arguments: &[&str]) -> Result<(), Failure> {
    let shown = || format!("{program} {}", arguments.join(" "));
    let done = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let done = done.map_err(|error| Failure::new(format!("{}: {error}: is systemd there? With --root only files are written", shown())))?;
    if done.status.success() {
        return Ok(());
    }
    Err(Failure::new(format!("{}: {}", shown(), String::from_utf8_lossy(&done.stderr).trim())))
}
