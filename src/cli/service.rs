//! `siftd service`: the program contains its systemd units and related files, installs
//! them where systemd looks for them, and removes them again. With `--root` it only writes
//! files, as a package needs them; with `--dry-run` it only reports what it would do.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::geteuid;

use super::args::{ServiceArgs, ServiceCommand, ServicePlace};
use super::{Exit, Failure, out};

/// The path of the program in the units.
const PROGRAM: &str = "/usr/local/bin/siftd";
/// The first version of systemd that supports everything in the drop-in for newer ones.
const NEWER: u32 = 254;

/// Files that belong to siftd: path, content.
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
/// Belongs to the user as soon as it is installed.
const CONFIGURATION: (&str, &str) = ("/etc/siftd/siftd.toml", include_str!("../../systemd/siftd.toml"));
const KEPT: [&str; 3] = ["/etc/siftd", "/var/lib/siftd", "/var/log/siftd"];

pub fn service(args: &ServiceArgs) -> Result<Exit, Failure> {
    match &args.command {
        ServiceCommand::Install { place } => install(place),
        ServiceCommand::Uninstall { place, purge } => uninstall(place, *purge),
    }
}

/// Where a distribution's packages put their files; an administrator's files in /etc override them.
const OF_PACKAGES: [(&str, &str); 3] =
    [("/etc/systemd/", "/usr/lib/systemd/"), ("/etc/sysusers.d/", "/usr/lib/sysusers.d/"), ("/etc/tmpfiles.d/", "/usr/lib/tmpfiles.d/")];
const SYSUSERS: &str = "/etc/sysusers.d/siftd.conf";
const TMPFILES: &str = "/etc/tmpfiles.d/siftd.conf";

/// Returns all files to write, in order, with the program's path inserted.
fn files(place: &ServicePlace, with_newer: bool) -> Vec<(PathBuf, String)> {
    let program = place.prefix.join("bin/siftd").display().to_string();
    let newer = with_newer.then_some((NEWER_TEMPLATE, NEWER_UNIT));
    let all = FILES.iter().copied().filter(|(_, text)| with_newer || *text != NEWER_UNIT).chain(newer);
    all.map(|(path, text)| (below(place, home(place, path)), text.replace(PROGRAM, &program))).collect()
}

/// Returns the path of a file that belongs to siftd.
fn home(place: &ServicePlace, path: &str) -> String {
    let of_packages = OF_PACKAGES.iter().filter(|_| place.prefix == Path::new("/usr"));
    let moved = of_packages.filter_map(|(from, to)| Some(format!("{to}{}", path.strip_prefix(from)?))).next();
    moved.unwrap_or_else(|| path.to_owned())
}

fn below(place: &ServicePlace, path: impl AsRef<Path>) -> PathBuf {
    let path = path.as_ref();
    place.root.as_ref().map_or_else(|| path.to_owned(), |root| root.join(path.strip_prefix("/").unwrap_or(path)))
}

fn check_prefix(place: &ServicePlace) -> Result<(), Failure> {
    match place.prefix.is_absolute() {
        true => Ok(()),
        false => Err(Failure::new(format!("--prefix {}: write it from the root on, such as /usr/local", place.prefix.display()))),
    }
}

fn install(place: &ServicePlace) -> Result<Exit, Failure> {
    check_prefix(place)?;
    let mut hand = Hand::new(place);
    // A package works for any version; the drop-in is added when it is installed.
    let with_newer = place.root.is_none() && version() >= Some(NEWER);
    hand.copy_program(&below(place, place.prefix.join("bin/siftd")))?;
    for (path, text) in files(place, with_newer) {
        hand.write(&path, &text, "")?;
    }
    let configuration = below(place, CONFIGURATION.0);
    if !configuration.exists() {
        hand.write(&configuration, CONFIGURATION.1, ": a first configuration, for you to change")?;
    }
    if place.root.is_none() {
        hand.run("systemd-sysusers", &[&home(place, SYSUSERS)])?;
        hand.run("systemd-tmpfiles", &["--create", &home(place, TMPFILES)])?;
        hand.run("systemctl", &["daemon-reload"])?;
        hand.said += "Start it, now and at each boot: systemctl enable --now siftd\n";
    }
    out::print(&hand.said)
}

fn uninstall(place: &ServicePlace, purge: bool) -> Result<Exit, Failure> {
    check_prefix(place)?;
    if let Some(root) = place.root.as_ref().filter(|root| !root.is_dir()) {
        return Err(Failure::new(format!("--root {}: there is no such folder", root.display())));
    }
    // Otherwise systemctl would first complain about its bus.
    if place.root.is_none() && !place.dry_run && !geteuid().is_root() {
        return Err(Failure::new("service uninstall: run it as root, or name with --root the folder that it was written below"));
    }
    let (gone, others) = (written(place), of_other_prefixes(place));
    let mut hand = Hand::new(place);
    if place.root.is_none() {
        hand.run("systemctl", &["disable", "--now", "siftd.service", "siftd.socket"])?;
        hand.run("systemctl", &["stop", "siftd@*.service"])?;
    }
    for path in gone {
        hand.remove(&path, |path| fs::remove_file(path))?;
        // Removes a folder only if it is siftd's own and empty.
        if let Some(folder) = path.parent().filter(|folder| folder.extension().is_some_and(|end| end == "d") && folder.to_string_lossy().contains("siftd"))
            && !hand.is_dry
        {
            let _ = fs::remove_dir(folder);
        }
    }
    for path in KEPT.map(|path| below(place, path)) {
        match purge {
            true => hand.remove(&path, |path| fs::remove_dir_all(path))?,
            false if path.exists() => hand.say("kept", "would keep", &path, ""),
            false => {}
        }
    }
    for (path, prefix) in others {
        hand.say("left", "would leave", &path, &format!(": it was installed with --prefix {prefix}, name that"));
    }
    if hand.said.is_empty() {
        hand.said += "nothing of siftd's service is there\n";
    }
    if place.root.is_none() {
        hand.run("systemctl", &["daemon-reload"])?;
    }
    out::print(&hand.said)
}

/// Returns everything that `install` writes and `uninstall` removes.
fn written(place: &ServicePlace) -> Vec<PathBuf> {
    let files = files(place, true).into_iter().map(|(path, _)| path);
    files.chain([below(place, place.prefix.join("bin/siftd"))]).collect()
}

/// Returns files that exist from an installation with another prefix,
/// each with that prefix: a unit names the path of its program.
fn of_other_prefixes(place: &ServicePlace) -> Vec<(PathBuf, String)> {
    let own = written(place);
    let mut found: Vec<(PathBuf, String)> = Vec::new();
    for folder in ["/etc", "/usr/lib"] {
        let unit = fs::read_to_string(below(place, format!("{folder}/systemd/system/siftd.service"))).unwrap_or_default();
        let program = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")?.split_whitespace().next());
        let Some(prefix) = program.and_then(|program| program.strip_suffix("/bin/siftd")) else { continue };
        let there = ServicePlace { prefix: prefix.into(), root: place.root.clone(), dry_run: place.dry_run };
        let others = written(&there).into_iter().filter(|path| path.exists() && !own.contains(path));
        found.extend(others.map(|path| (path, prefix.to_owned())));
    }
    found
}

/// Changes the system, or only reports how it would.
struct Hand {
    is_dry: bool,
    /// What was done, one action per line.
    said: String,
}

impl Hand {
    fn new(place: &ServicePlace) -> Self {
        Self { is_dry: place.dry_run, said: String::new() }
    }

    fn say(&mut self, done: &str, would: &str, path: &Path, more: &str) {
        self.said += &format!("{} {}{more}\n", if self.is_dry { would } else { done }, path.display());
    }

    fn write(&mut self, path: &Path, text: &str, more: &str) -> Result<(), Failure> {
        if !self.is_dry {
            make_folder(path)?;
            fs::write(path, text).and_then(|()| fs::set_permissions(path, fs::Permissions::from_mode(0o644))).map_err(|error| fault(path, &error))?;
        }
        self.say("wrote", "would write", path, more);
        Ok(())
    }

    /// Copies this program atomically: the old one may be running.
    fn copy_program(&mut self, to: &Path) -> Result<(), Failure> {
        let own = std::env::current_exe()?;
        if own.canonicalize().ok() == to.canonicalize().ok() && to.exists() {
            return Ok(());
        }
        if !self.is_dry {
            let new = to.with_extension("new");
            make_folder(to)?;
            fs::copy(&own, &new).and_then(|_| fs::set_permissions(&new, fs::Permissions::from_mode(0o755))).map_err(|error| fault(&new, &error))?;
            fs::rename(&new, to).map_err(|error| fault(to, &error))?;
        }
        self.say("wrote", "would write", to, "");
        Ok(())
    }

    fn remove(&mut self, path: &Path, remove: impl FnOnce(&Path) -> std::io::Result<()>) -> Result<(), Failure> {
        let removed = if self.is_dry { path.symlink_metadata().map(drop) } else { remove(path) };
        match removed {
            Ok(()) => self.say("removed", "would remove", path, ""),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(fault(path, &error)),
        }
        Ok(())
    }

    fn run(&mut self, program: &str, arguments: &[&str]) -> Result<(), Failure> {
        if self.is_dry {
            self.said += &format!("would run {program} {}\n", arguments.join(" "));
            return Ok(());
        }
        run(program, arguments)
    }
}

fn make_folder(path: &Path) -> Result<(), Failure> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder).map_err(|error| fault(folder, &error))
}

fn fault(path: &Path, error: &std::io::Error) -> Failure {
    let mend = if error.kind() == ErrorKind::PermissionDenied { ": run it as root, or write elsewhere with --root" } else { "" };
    Failure::new(format!("{}: {error}{mend}", path.display()))
}

/// Returns the version of the installed systemd.
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
