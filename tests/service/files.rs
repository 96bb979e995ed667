//! The files of `systemd/`: systemd verifies them, and `siftd service` installs them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn unit(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("systemd").join(name)
}

pub fn is_there(tool: &str) -> bool {
    std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).any(|folder| folder.join(tool).exists())
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn siftd(arguments: &[&str]) -> String {
    let done = Command::new(env!("CARGO_BIN_EXE_siftd")).args(arguments).output().unwrap();
    assert!(done.status.success(), "{}", text(&done));
    String::from_utf8(done.stdout).unwrap()
}

/// Writes the units as they are installed, with the path of the program under test.
fn installed(folder: &Path) -> PathBuf {
    siftd(&["service", "install", "--root", folder.to_str().unwrap()]);
    let units = folder.join("etc/systemd/system");
    for name in ["siftd.service", "siftd@.service"] {
        let text = fs::read_to_string(units.join(name)).unwrap();
        fs::write(units.join(name), text.replace("/usr/local/bin/siftd", env!("CARGO_BIN_EXE_siftd"))).unwrap();
    }
    fs::copy(units.join("siftd@.service"), units.join("siftd@x.service")).unwrap();
    units
}

#[test]
fn systemd_has_nothing_to_say_against_the_units() {
    if !is_there("systemd-analyze") {
        crate::skip::skipped("systemd-analyze");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let units = installed(folder.path());
    for name in ["siftd.service", "siftd@x.service", "siftd.socket"] {
        let done = Command::new("systemd-analyze").args(["verify", "--recursive-errors=no"]).arg(units.join(name)).output().unwrap();
        let said = text(&done);
        assert!(done.status.success() && !said.contains("siftd"), "{name}: {said}");
    }
    for name in ["siftd.service", "siftd@x.service"] {
        let done = Command::new("systemd-analyze").args(["security", "--offline=true", "--threshold=15"]).arg(units.join(name)).output().unwrap();
        let said = text(&done);
        assert!(done.status.success() && said.contains("Overall exposure level"), "{name} is exposed by more than 1.5: {said}");
    }
}

/// Returns the version of the installed systemd.
pub fn version() -> Option<u32> {
    let said = Command::new("systemd-analyze").arg("--version").output().ok()?;
    String::from_utf8_lossy(&said.stdout).split_whitespace().nth(1)?.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// An older systemd accepts the unit without the drop-in; its only objection to the drop-in is that it is newer.
#[test]
fn the_drop_in_is_what_a_newer_systemd_understands() {
    let Some(version) = version() else {
        crate::skip::skipped("systemd-analyze");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let units = installed(folder.path());
    fs::create_dir(units.join("siftd.service.d")).unwrap();
    fs::copy(unit("siftd.service.d/newer.conf"), units.join("siftd.service.d/newer.conf")).unwrap();
    let done = Command::new("systemd-analyze").args(["verify", "--recursive-errors=no"]).arg(units.join("siftd.service")).output().unwrap();
    let said = text(&done);
    if version >= 254 {
        assert!(done.status.success() && !said.contains("siftd"), "{said}");
        return;
    }
    println!("systemd is {version}: it says which settings of newer.conf it does not know; what they do was not tried");
    let unknown: Vec<&str> = said.lines().filter(|line| line.contains("newer.conf")).collect();
    assert_eq!(unknown.len(), if version == 253 { 2 } else { 3 }, "{said}");
    assert!(unknown.iter().all(|line| ["notify-reload", "RestartSteps", "RestartMaxDelaySec"].iter().any(|name| line.contains(name))), "{said}");
}

#[test]
fn the_template_is_as_confined_as_the_unit() {
    let settings = |name: &str| -> BTreeSet<String> {
        let text = fs::read_to_string(unit(name)).unwrap();
        text.lines().filter(|line| line.contains('=') && !line.starts_with('#')).map(|line| line.replace("siftd-%i", "siftd")).collect()
    };
    let (one, template) = (settings("siftd.service"), settings("siftd@.service"));
    let differ: Vec<&str> = one.symmetric_difference(&template).map(|line| line.split('=').next().unwrap()).collect();
    assert_eq!(differ.iter().collect::<BTreeSet<_>>(), BTreeSet::from([&"Description", &"ExecStart"]), "{differ:?}");
    for wanted in ["Type=notify", "WatchdogSec=", "User=siftd", "StateDirectory=", "LogsDirectory=", "RuntimeDirectory=", "StartLimitBurst=", "ExecReload="] {
        assert!(one.iter().any(|line| line.starts_with(wanted)), "{wanted}");
    }
}

#[test]
fn a_package_has_its_units_where_packages_have_them_and_what_would_be_done_can_be_seen() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().to_str().unwrap();
    let place = ["--root", root, "--prefix", "/usr"];
    let say = |words: &[&str]| siftd(&[&["service"], words, &place[..]].concat()).replace(root, "");
    let would = say(&["install", "--dry-run"]);
    assert!(walkdir::WalkDir::new(folder.path()).into_iter().count() == 1, "{would}");
    let wrote = say(&["install"]);
    assert_eq!(would.replace("would write", "wrote"), wrote);
    for path in
        ["usr/bin/siftd", "usr/lib/systemd/system/siftd.service", "usr/lib/sysusers.d/siftd.conf", "usr/lib/tmpfiles.d/siftd.conf", "etc/siftd/siftd.toml"]
    {
        assert!(folder.path().join(path).exists() && wrote.contains(path), "{path}: {wrote}");
    }
    assert!(!folder.path().join("etc/systemd").exists());
    let would = say(&["uninstall", "--dry-run"]);
    assert!(
        would.contains("would remove /usr/bin/siftd\n") && would.contains("would keep /etc/siftd\n") && folder.path().join("usr/bin/siftd").exists(),
        "{would}"
    );
    assert_eq!(would.replace("would remove", "removed").replace("would keep", "kept"), say(&["uninstall"]));
    assert!(!folder.path().join("usr/bin/siftd").exists());
}

#[test]
fn what_was_installed_elsewhere_is_said_and_nothing_is_no_silence() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().to_str().unwrap();
    let uninstall =
        |more: &[&str]| Command::new(env!("CARGO_BIN_EXE_siftd")).args([&["service", "uninstall", "--root", root][..], more].concat()).output().unwrap();
    assert_eq!(text(&uninstall(&[])), "nothing of siftd's service is there\n");
    for (prefix, left) in
        [("/usr", &["usr/lib/systemd/system/siftd.service", "usr/bin/siftd", "usr/lib/sysusers.d/siftd.conf"][..]), ("/opt/siftd", &["opt/siftd/bin/siftd"])]
    {
        siftd(&["service", "install", "--root", root, "--prefix", prefix]);
        let said = text(&uninstall(&[]));
        for path in left {
            assert!(said.contains(&format!("left {root}/{path}: it was installed with --prefix {prefix}, name that\n")), "{said}");
        }
        assert!(!said.contains("removed /usr/bin"), "{said}");
        uninstall(&["--prefix", prefix]);
        if prefix == "/usr" {
            assert!(!folder.path().join("usr/bin/siftd").exists());
        }
    }
    let gone = Command::new(env!("CARGO_BIN_EXE_siftd")).args(["service", "uninstall", "--root", "/no/such/root"]).output().unwrap();
    assert_eq!((gone.status.code(), text(&gone).as_str()), (Some(2), "siftd: --root /no/such/root: there is no such folder\n"));
}

#[test]
fn what_is_installed_can_be_removed_and_what_is_the_users_stays() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().to_str().unwrap();
    let said = siftd(&["service", "install", "--root", root, "--prefix", "/opt/siftd"]);
    let program = folder.path().join("opt/siftd/bin/siftd");
    let own = fs::metadata(env!("CARGO_BIN_EXE_siftd")).unwrap().len();
    assert_eq!(fs::metadata(&program).unwrap().len(), own);
    let service = fs::read_to_string(folder.path().join("etc/systemd/system/siftd.service")).unwrap();
    assert!(service.contains("ExecStart=/opt/siftd/bin/siftd run\n"), "{service}");
    assert!(said.contains("siftd.socket") && said.contains("logrotate.d/siftd") && said.contains("a first configuration"), "{said}");
    assert!(!folder.path().join("etc/systemd/system/siftd.service.d").exists(), "the drop-in depends on the machine");
    let configuration = folder.path().join("etc/siftd/siftd.toml");
    let checked = Command::new(&program).args(["check", "--config"]).arg(&configuration).output().unwrap();
    assert!(text(&checked).contains("ok (1 source, 1 sink") || text(&checked).contains("/var/log/siftd"), "{}", text(&checked));

    fs::write(&configuration, "# mine\n").unwrap();
    siftd(&["service", "install", "--root", root, "--prefix", "/opt/siftd"]);
    assert_eq!(fs::read_to_string(&configuration).unwrap(), "# mine\n");
    let said = siftd(&["service", "uninstall", "--root", root, "--prefix", "/opt/siftd"]);
    assert!(said.contains("kept ") && configuration.exists() && !program.exists(), "{said}");
    siftd(&["service", "uninstall", "--root", root, "--prefix", "/opt/siftd", "--purge"]);
    let left: Vec<_> = walkdir::WalkDir::new(folder.path()).into_iter().flatten().filter(|entry| entry.file_type().is_file()).collect();
    assert!(left.is_empty(), "{left:?}");
}
