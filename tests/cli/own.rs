//! `run` and what it would read: its own output, and files that are not there yet.

use super::{Folder, error};

#[test]
fn its_own_output_alone_is_nothing_to_follow() {
    let folder = Folder::new();
    folder.write("demo.log", error("boom"));
    std::os::unix::fs::symlink("demo.log", folder.at("link.log")).unwrap();
    for (args, name) in [
        (&["run", "--file", "demo.log", "--output", "demo.log"][..], "demo.log"),
        (&["run", "--file", "link.log", "--output", "demo.log"], "link.log"),
        (&["run", "--file", "demo.log", "--output", "link.log", "--dry-run"], "demo.log"),
    ] {
        let done = folder.siftd(args).ended(2);
        assert!(done.err().contains(&format!("{name}: is siftd's own output, and nothing else is to be read")), "{}", done.err());
    }
    let script = format!("timeout 60 {} run --file demo.log >> demo.log", crate::folder::siftd().display());
    let done = super::Done(folder.run("sh", ["-c", &script]).output().unwrap()).ended(2);
    assert!(done.err().contains("is siftd's own output"), "{}", done.err());
    assert_eq!(folder.read("demo.log"), error("boom"));
}

#[test]
fn a_dry_run_finds_no_fault_with_files_that_may_still_come() {
    let folder = Folder::new();
    let missing = folder.siftd(["run", "--dry-run", "--file", "nosuch.log"]).ended(0);
    assert!(missing.err().contains("nosuch.log: is not there; waiting for it"), "{}", missing.err());
    folder.siftd(["run", "--dry-run", "--file", "no/*.log"]).ended(0);
    std::fs::create_dir(folder.at("folder")).unwrap();
    folder.siftd(["run", "--dry-run", "--file", "folder", "--file", "nosuch.log"]).ended(2);
}
