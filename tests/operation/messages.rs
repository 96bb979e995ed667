//! siftd's own messages: in the configured format, and without text from logs.

use nix::sys::signal::Signal;

use super::rig::{ONE, World, error};
use super::wait::wait;

const SECRET: &str = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
const WORD: &str = "moonshine";

/// Triggers everything that siftd reports: errors, a truncated file, a vanished file, a refused reload, the end.
fn played(form: &str, level: &str) -> String {
    let world = World::new();
    // A file named literally: its disappearance is reported.
    world.configure(&format!("[telemetry]\nlog_format = \"{form}\"\n{}", ONE.replace("a*.log", "a.log")));
    world.append("a.log", &error(&format!("{WORD}: token={SECRET}")));
    let daemon = world.start(&[("SIFTD_LOG", level)]);
    world.written("one.ndjson", 1);
    world.append("a.log", &format!("{WORD} {SECRET}"));
    std::fs::write(world.path("a.log"), format!("{WORD} {SECRET}\n{}", error(&format!("{WORD} again")))).unwrap();
    wait("the second one", || Some(world.texts("one.ndjson")).filter(|texts| texts.iter().any(|text| text.contains("again"))));
    std::fs::remove_file(world.path("a.log")).unwrap();
    wait("the message", || Some(()).filter(|()| world.said().contains("has vanished")));
    world.configure("x = 1");
    daemon.signal(Signal::SIGHUP);
    wait("the refusal", || Some(()).filter(|()| world.said().contains("the old one goes on")));
    daemon.stop();
    let records = std::fs::read_to_string(world.path("one.ndjson")).unwrap();
    assert!(records.contains(WORD) && !records.contains(SECRET), "{records}");
    world.said()
}

#[test]
fn no_message_holds_what_a_log_says() {
    for level in ["info", "debug"] {
        let said = played("text", level);
        assert!(!said.contains(SECRET), "{said}");
        assert!(level == "debug" || !said.contains(WORD), "{said}");
        assert!(said.contains(" ERROR the configuration was not read anew"), "{said}");
    }
}

#[test]
fn messages_are_objects_or_have_the_journals_priorities() {
    let said = played("json", "info");
    let all: Vec<serde_json::Value> = said.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|why| panic!("{why}: {line}"))).collect();
    assert!(all.iter().any(|one| one["level"] == "error" && one["message"].as_str().unwrap().contains("unknown key `x`")), "{said}");
    let said = played("journald", "info");
    assert!(said.lines().all(|line| ["<3>", "<4>", "<6>"].iter().any(|head| line.starts_with(head))), "{said}");
    assert!(said.contains("<3>the configuration was not read anew") && said.contains("<4>"), "{said}");
}
