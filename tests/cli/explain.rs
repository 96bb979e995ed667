//! What `explain` says of lines, against what `scan` makes of them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::folder::Folder;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")
}

/// Returns the page of each line, without the line that shows the text.
fn pages(folder: &Folder, path: &Path, lines: usize) -> Vec<String> {
    let whole = folder.siftd(["explain", &format!("{}:1-{lines}", path.display())]).ended(0).out();
    whole.split("\n\n").map(|page| page.lines().filter(|line| !line.starts_with("  text  ")).collect::<Vec<_>>().join("\n")).collect()
}

/// Of each transcript, `explain` finds the events of `scan`, and calls no rule the reason of what is no text for rules.
#[test]
fn of_transcripts_explain_says_what_scan_decides() {
    let folder = Folder::new();
    let cases = fs::read_dir(fixtures().join("agents")).unwrap().map(|case| case.unwrap().path().join("input.log"));
    for path in cases.chain([fixtures().join("session.jsonl")]) {
        let lines = fs::read_to_string(&path).unwrap().lines().count();
        let scanned = folder.siftd([Path::new("scan"), &path]).ended(0).records();
        let mut wanted: BTreeSet<(u64, u64)> =
            scanned.iter().map(|record| (record["line_num"].as_u64().unwrap(), record["line_end"].as_u64().unwrap())).collect();
        for page in pages(&folder, &path, lines) {
            let is_record = page.contains("  record     of a transcript");
            assert!(!is_record || page.contains("\n  said ") && !page.contains("\n  hit"), "{page}");
            let events = page.lines().filter_map(|line| line.strip_prefix("  event      line").and_then(|rest| rest.split_once(" by ")));
            for (num, _) in events {
                let (first, last) = num.trim_start_matches('s').trim().split_once('-').unwrap_or((num.trim(), num.trim()));
                let found = (first.parse().unwrap(), last.parse().unwrap());
                assert!(scanned.iter().any(|record| record["line_num"] == found.0 && record["line_end"] == found.1), "{page}");
                wanted.remove(&found);
            }
        }
        assert!(wanted.is_empty(), "{}: {wanted:?}", path.display());
    }
}

#[test]
fn the_reason_is_that_of_a_transcript() {
    let folder = Folder::new();
    let say = |case: &str, line: usize, part: &str| {
        let path = fixtures().join(case);
        let page = &pages(&folder, &path, line)[line - 1];
        assert!(page.contains(part), "{part:?} in {page}");
    };
    for (line, part) in [
        (1, "said       by the user"),
        (2, "said       the agent calls Read (/srv/shop/till.log)"),
        (3, "said       result of Read (/srv/shop/till.log): states no failure"),
        (5, "said       by a tool that still works: its result decides"),
        (6, "said       result of Bash (python3 till.py): a failure, flagged by is_error and exit code 1"),
        (8, "severity low (refused)"),
        (9, "said       fault of the model's API: a failure, flagged by isApiErrorMessage"),
    ] {
        say("session.jsonl", line, part);
    }
    say("agents/messages/input.log", 6, "result of read_file (till.py): only shows what is written somewhere");
    say("agents/codex-rollout/input.log", 6, "copy of what line 5 reported");
    say("agents/claude-stream/input.log", 2, "by the agent's program");
    say("agents/claude-stream/input.log", 9, "end of the run: copy of what line 8 reported");
    say("agents/claude-stream/input.log", 5, "generic.error (rule)");
    say("agents/claude-hidden/input.log", 2, "its command line hides the exit code, but its text is an error");
    say("agents/claude-hidden/input.log", 4, "states no failure");
    say("agents/claude-hidden/input.log", 8, "its command line hides the exit code, and no line of its text is an error");
    say("agents/openhands/input.log", 1, "by the user");
    say("agents/broken/input.log", 2, "the record is damaged");
    say("agents/aider/input.log", 2, "not what a tool printed");
    say("agents/aider/input.log", 16, "nothing flags it, but its text is an error");
}

/// A document is one value over many lines: each line belongs to a record of it, or stands between them.
#[test]
fn a_line_of_a_document_is_explained_by_its_record() {
    let folder = Folder::new();
    let step = |role: &str, content: &str| format!("  {{\n    \"role\": \"{role}\",\n    \"content\": \"{content}\"\n  }}");
    folder.write("chat.json", format!("[\n{},\n{}\n]\n", step("user", "TypeError: x is not a function"), step("tool", "TypeError: y is not a function")));
    assert_eq!(folder.siftd(["scan", "chat.json"]).ended(0).shown(), ["chat.json:6 TypeError: y is not a function"]);
    let page = |line: u32| folder.siftd(["explain", &format!("chat.json:{line}")]).ended(0).out();
    assert!(page(1).contains("between the records") && page(1).contains("no error"));
    assert!(page(4).contains("by the user") && page(4).contains("no error"), "{}", page(4));
    assert!(page(8).contains("lines 6-9") && page(8).contains("event      line 6 by "), "{}", page(8));
}

#[test]
fn a_transcript_can_be_explained_as_text() {
    let folder = Folder::new();
    let place = format!("{}:1", fixtures().join("session.jsonl").display());
    let is_record = |flags: &[&str]| {
        let explained = folder.siftd([&["explain", &place], flags].concat()).ended(0).out();
        explained.contains("record     of a transcript")
    };
    assert!(is_record(&[]) && is_record(&["--mode", "records"]) && !is_record(&["--mode", "text"]));
}

/// The text is read once, and no further than needed.
#[test]
fn explain_reads_once_and_not_to_the_end() {
    let explained = |before: &str, line: u32| {
        let script = format!("{{ printf '{before}'; yes 'fine again'; }} | {} explain /dev/stdin:{line}", env!("CARGO_BIN_EXE_siftd"));
        let done = Command::new("sh").args(["-c", &script]).stderr(Stdio::null()).output().unwrap();
        String::from_utf8(done.stdout).unwrap()
    };
    let trace = "Traceback (most recent call last):\\n  File \"a.py\", line 1, in f\\n    g()\\nValueError: x\\n";
    assert!(explained(trace, 1).contains("event      lines 1-4 by python.traceback: ValueError: x"));
    assert!(explained(trace, 70_000).contains("event      none"));
    assert!(explained("", 1).contains("text       fine again"));
}

/// A runner's or container's envelope is judged by what it wraps, and so are the rules that are listed.
#[test]
fn an_envelope_is_explained_by_what_it_wraps() {
    let folder = Folder::new();
    let go = |output: &str| {
        format!("{{\"Time\":\"2026-11-20T14:00:00Z\",\"Action\":\"output\",\"Package\":\"shop/calc\",\"Test\":\"TestAdd\",\"Output\":\"{output}\\n\"}}\n")
    };
    folder.write("go.json", go("    calc_test.go:9: Add(-1, 1) = 0; want 1") + &go("--- FAIL: TestAdd (0.00s)"));
    let page = folder.siftd(["explain", "go.json:2"]).ended(0).out();
    assert!(page.contains("envelope   --- FAIL: TestAdd (0.00s)\n"), "{page}");
    assert!(page.contains("gotest.fail (trace) by \"--- FAIL: \" at byte 1 of what it wraps: holds\n"), "{page}");
    assert!(page.contains("event      lines 1-2 by gotest.fail"), "{page}");
    folder.write("docker.json", "{\"log\":\"bash: kubectll: command not found\\n\",\"stream\":\"stderr\",\"time\":\"2026-11-20T14:00:00Z\"}\n");
    let page = folder.siftd(["explain", "docker.json:1"]).ended(0).out();
    assert!(page.contains("shell.not-found (rule) by \": command not found\" at byte 15 of what it wraps: holds\n"), "{page}");
}
