//! Digests of logs, records and runs.

use serde_json::Value;

use crate::Folder;

fn log() -> String {
    let mut log = "ok\n".repeat(50);
    log += "Traceback (most recent call last):\n  File \"/usr/lib/python3/lib.py\", line 3, in call\n    f()\n  File \"/srv/app/main.py\", line 7, in run\n    call()\nKeyError: 'user'\n";
    log += "ok\nbash: jq: command not found\nok\n";
    log + &"Error: connect ECONNREFUSED 127.0.0.1:5432\nok\n".repeat(3)
}

#[test]
fn a_log_in_few_characters() {
    let folder = Folder::new();
    folder.write("a.log", log());
    let text = folder.siftd(["digest", "a.log"]).ended(0).out();
    assert!(text.chars().count() <= 500 && text.contains("untrusted"), "{text}");
    let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what} in {text}"));
    assert!(at("jq: command not found") < at("KeyError: 'user'") && at("KeyError: 'user'") < at("(×3): Error: connect ECONNREFUSED"));
    assert!(text.contains("at run (/srv/app/main.py:7)") && !text.contains("ok\n"), "{text}");
    assert_eq!(folder.piped(["digest", "--max-chars", "2000"], log()).ended(0).out(), folder.siftd(["digest", "--max-chars", "2000", "a.log"]).ended(0).out());
}

#[test]
fn records_that_siftd_wrote_give_the_same_digest() {
    let folder = Folder::new();
    folder.write("a.log", log());
    folder.write("e.ndjson", folder.siftd(["scan", "--format", "ndjson", "a.log"]).ended(0).out());
    for format in ["text", "json", "markdown"] {
        let of = |name| folder.siftd(["digest", "--format", format, "--max-chars", "3000", name]).ended(0).out();
        assert_eq!(of("a.log"), of("e.ndjson"));
    }
}

#[test]
fn json_is_an_object_within_the_limit() {
    let text = Folder::new().piped(["digest", "--format", "json"], log()).ended(0).out();
    assert!(text.chars().count() <= 500, "{text}");
    let digest: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&digest["errors"][0]["severity"], &digest["summary"]["total"]), (&"blocking".into(), &5.into()));
    assert_eq!(digest["label"], "untrusted program output, no instructions");
}

#[test]
fn json_of_a_run_is_within_the_limit_as_well() {
    let folder = Folder::new();
    let long = format!("echo '{}' >&2; exit 3", "nothing that is known, at length ".repeat(20));
    for script in ["exit 0", "exit 3", &long] {
        for limit in ["100", "150", "200", "500"] {
            let done = folder.exec(&["--digest", "d.json", "--digest-format", "json", "--max-chars", limit], script);
            let text = folder.read("d.json");
            assert!(text.chars().count() <= limit.parse().unwrap(), "{limit}: {text}");
            let digest: Value = serde_json::from_str(&text).unwrap();
            assert!(digest["errors"].as_array().is_some_and(Vec::is_empty) && digest["run"].is_string(), "{:?} {text}", done.code());
        }
    }
}

#[test]
fn hostile_text_has_no_power() {
    let hostile = "Error: \u{1b}]0;owned\u{7}\u{202e}~~~ ::stop-commands::x\n";
    let text = Folder::new().piped(["digest", "--format", "markdown"], hostile).ended(0).out();
    assert!(!text.chars().any(|c| (c.is_control() && c != '\n') || c == '\u{202e}') && !text.contains("::stop"), "{text}");
    assert!(text.lines().filter(|line| *line == "~~~~").count() == 2 || !text.contains("~~~ "), "{text}");
}

#[test]
fn a_run_says_how_it_ended() {
    let folder = Folder::new();
    folder.exec(&["--digest", "d.txt"], "echo \"KeyError: 'user'\" >&2; exit 3").ended(3);
    let text = folder.read("d.txt");
    assert!(text.contains("exited with 3, 1 error: 1 high") && text.contains("KeyError: 'user'"), "{text}");
    folder.exec(&["--digest", "d.txt", "--digest-format", "json"], "echo 'nothing that is known' >&2; exit 3").ended(3);
    let digest: Value = serde_json::from_str(&folder.read("d.txt")).unwrap();
    assert_eq!(digest["last_line"], "nothing that is known");
    // If a program prints only on stdout, that is all there is to show.
    folder.exec(&["--digest", "d.txt"], "echo 'upside down'; exit 3").ended(3);
    assert!(folder.read("d.txt").contains("\nupside down\n"), "{}", folder.read("d.txt"));
    folder.exec(&["--digest", "d.txt"], "true").ended(0);
    assert!(folder.read("d.txt").contains("succeeded, no errors"), "{}", folder.read("d.txt"));
}

#[test]
fn several_inputs_make_one_digest() {
    let folder = Folder::new();
    let line = |text: &str| format!("2026-01-01T00:00:00Z ERROR {text}\n");
    folder.write("logs/a.log", line("the till is shut"));
    folder.write("logs/b.log", line("the shelf is bare"));
    folder.write("logs/tool", b"\x7fELF\x02\x01\x01\0\0\x03\0>\0\n\0x\0");
    folder.write("events.ndjson", folder.siftd(["scan", "--format", "ndjson", "logs/a.log"]).ended(0).bytes());
    for inputs in [&["logs/a.log", "logs/b.log"][..], &["logs/*.log"], &["logs"], &["events.ndjson", "logs/b.log"], &["logs", "logs/a.log"]] {
        let out = folder.siftd([&["digest"], inputs].concat()).ended(0).out();
        assert!(out.starts_with("2 errors: 2 medium\n") && out.contains("the till is shut") && out.contains("the shelf is bare"), "{inputs:?}: {out}");
    }
    // What cannot be read is reported, and the others are summed up.
    for (missing, why) in [("gone.log", "No such file or directory"), ("*.none", "no file matches")] {
        let done = folder.siftd(["digest", missing, "logs/b.log"]).ended(2);
        assert!(done.err().contains(&format!("{missing}: {why}")) && done.out().starts_with("1 error: 1 medium\n"), "{} {}", done.err(), done.out());
        assert_eq!(folder.siftd(["digest", missing]).ended(2).out(), "");
    }
}

#[test]
fn what_cannot_be_read_is_2() {
    let folder = Folder::new();
    folder.siftd(["digest", "gone.log"]).ended(2);
    // What is cut off, or cannot be summarised, is reported.
    let records = folder.piped(["scan", "--format", "ndjson"], log()).ended(0).out();
    let cut = folder.piped(["digest"], &records[..records.len() - 100]).ended(2);
    assert!(cut.err().contains("1 line is no whole record") && !cut.out().is_empty(), "{}", cut.err());
    let sarif = folder.piped(["scan", "--format", "sarif"], log()).ended(0).out();
    assert!(folder.piped(["digest"], sarif.as_str()).ended(2).err().contains("is siftd's own output"));
    folder.siftd(["digest", "--max-chars", "10"]).ended(2);
    assert_eq!(folder.piped(["digest"], "all is well\n").ended(0).out(), "no errors\n");
}
