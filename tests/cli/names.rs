//! Names that are no text, and names that stand for stdin.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use super::{Done, Folder, error};

/// `café.log` as Latin-1 has it.
const NAME: &[u8] = b"caf\xe9.log";

fn place(more: &str) -> Vec<u8> {
    [NAME, more.as_bytes()].concat()
}

#[test]
fn a_file_whose_name_is_no_text_is_explained_shown_and_forgotten() {
    let folder = Folder::new();
    std::fs::write(folder.path().join(OsStr::from_bytes(NAME)), format!("fine\n{}", error("boom"))).unwrap();
    let run = |args: &[&[u8]]| folder.siftd(args.iter().map(|arg| OsStr::from_bytes(arg)));
    for more in [":2", ":1-2", ":2:7", ":2:"] {
        let page = run(&[b"explain", &place(more)]).ended(0).out();
        assert!(page.contains("caf\u{fffd}.log:2") && page.contains("level.tag"), "{page}");
    }
    let done = folder.command(["run", "--file", "caf*.log", "--state-dir", "state", "--output", "out.ndjson"]).spawn();
    let daemon = done.unwrap();
    super::wait::wait("its record", || (folder.records("out.ndjson").len() == 1).then_some(()));
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(daemon.id() as i32), nix::sys::signal::Signal::SIGTERM).unwrap();
    Done::of(daemon).ended(0);
    let shown = run(&[b"state", b"show", NAME, b"--state-dir", b"state"]).ended(0).out();
    assert!(shown.contains("caf\u{fffd}.log"), "{shown}");
    run(&[b"state", b"forget", NAME, b"--state-dir", b"state"]).ended(0);
    run(&[b"state", b"show", NAME, b"--state-dir", b"state"]).ended(2);
}

#[test]
fn a_uri_holds_the_bytes_of_a_name_that_is_no_text() {
    let folder = Folder::new();
    std::fs::write(folder.path().join(OsStr::from_bytes(NAME)), error("boom")).unwrap();
    let out = folder.siftd([&b"scan"[..], b"--format", b"sarif", NAME].map(OsStr::from_bytes)).ended(0).out();
    assert_eq!(out.matches("\"uri\":\"caf%E9.log\"").count(), 2, "{out}");
}

#[test]
fn a_hyphen_stands_for_stdin_when_a_line_is_explained() {
    let folder = Folder::new();
    let text = format!("fine\n\n{}fine\n", error("boom"));
    let all = folder.piped(["explain"], &text).ended(0).out();
    assert_eq!(folder.piped(["explain", "-"], &text).ended(0).out(), all);
    let one = folder.piped(["explain", "-:3"], &text).ended(0).out();
    assert!(one.starts_with("line 3\n") && one.contains("level.tag") && all.contains(&one), "{one}");
    assert!(folder.piped(["explain", "-:9"], &text).ended(2).err().contains("stdin: has no line 9"));
    assert!(folder.siftd(["explain", "--bogus"]).ended(2).err().contains("unexpected argument '--bogus'"));
}
