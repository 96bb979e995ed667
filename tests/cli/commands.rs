//! All commands but `scan` and `run`.

use super::{Folder, error};

const RULES: &str = r#"[family]
id = "mine"
title = "Mine"
depth = "head"

# Said by the reactor.
[[rule]]
id = "mine.breach"
literals = ["core breach"]
regex = 'core breach'
examples = { match = ["core breach in sector 7"], no_match = ["all is well"] }

[[noise]]
id = "mine.chatter"
regex = '^chatter:'
reason = "the reactor talks"

[[noise]]
id = "mine.dump"
literals = ["DUMP ERROR BEGIN"]
regex = '^DUMP ERROR BEGIN'
block = { regex = '^  ', max_lines = 2 }
reason = "a dump"
"#;

#[test]
fn signature_answers_line_for_line() {
    let folder = Folder::new();
    let out = folder.piped(["signature"], "lost 10.0.0.3:5432\n\nlost 10.9.9.9:1\nred \u{1b}[31m").ended(0).out();
    let lines: Vec<(&str, &str)> = out.lines().map(|line| line.split_once('\t').unwrap()).collect();
    assert_eq!(lines.len(), 4);
    assert!(lines.iter().all(|(md5, _)| md5.len() == 32));
    assert_eq!(lines[0], lines[2]);
    assert_eq!(lines[1].1, "");
    assert!(!out.contains('\u{1b}'));
    assert_eq!(folder.piped(["signature"], "").ended(0).out(), "");
    let why = folder.piped(["signature", "--why"], "took 31 s\n").ended(0).out();
    assert!(why.lines().count() > 1 && why.contains("→"), "{why}");
}

#[test]
fn filter_takes_noise_and_leaves_every_other_byte() {
    let folder = Folder::new();
    folder.write("mine.toml", RULES);
    let input = b"a\r\nchatter: ERROR\n2026-01-01T00:00:00Z chatter: x\r\n\xff\xfe b\nDUMP ERROR BEGIN\n  1\n  2\n  3\nchatter: y\nlast";
    let done = folder.piped(["filter", "--rules", "mine.toml"], input).ended(0);
    assert_eq!(done.bytes(), b"a\r\n\xff\xfe b\n  3\nlast");
    let long = "x".repeat(3 << 20);
    assert_eq!(folder.piped(["filter"], &long).ended(0).out(), long);
}

#[test]
fn explain_says_why() {
    let folder = Folder::new();
    folder.write("a.log", format!("fine\n{}", error("boom 42")));
    let yes = folder.siftd(["explain", "a.log:2"]).ended(0).out();
    for part in ["level.tag", "holds", "severity medium", "retry", "ERROR boom N"] {
        assert!(yes.contains(part), "{part} in {yes}");
    }
    assert!(folder.siftd(["explain", "a.log:1"]).ended(0).out().contains("no error"));
    folder.write(
        "b.log",
        "c8259e6 Fix TypeError: x is not a function\nTraceback (most recent call last):\n  File \"a.py\", line 1, in f\nValueError: x\nerrors: 0, error: 0\n",
    );
    for (line, said) in
        [(1, "could begin here, but no frame follows"), (3, "joined     python.traceback, as line 2 of 3"), (5, "generic.zero covers it: a count of zero")]
    {
        let out = folder.siftd(["explain", &format!("b.log:{line}")]).ended(0).out();
        assert!(out.contains(said) && !out.contains(": holds\n  event      none"), "{line}: {out}");
    }
    assert!(folder.piped(["explain"], error("\u{1b}[31mx")).ended(0).out().contains("line 1"));
    for (place, said) in [("a.log:9", "no line 9"), ("gone.log:1", "No such file"), ("a.log", "which line?")] {
        assert!(folder.siftd(["explain", place]).ended(2).err().contains(said));
    }
}

#[test]
fn rules_are_listed_shown_and_tested() {
    let folder = Folder::new();
    folder.write("mine.toml", RULES);
    let table = folder.siftd(["rules", "list", "--rules", "mine.toml"]).ended(0).out();
    assert!(table.contains("level.tag") && table.contains("mine.breach"), "{table}");
    let json: serde_json::Value = serde_json::from_str(&folder.siftd(["rules", "list", "--format", "json"]).ended(0).out()).unwrap();
    assert!(json.as_array().unwrap().iter().any(|row| row["id"] == "level.tag" && row["kind"] == "fact" && row["depth"] == "full"));
    let shown = folder.siftd(["rules", "show", "mine.breach", "--rules", "mine.toml"]).ended(0).out();
    assert!(shown.contains("# Said by the reactor.\n[[rule]]\nid = \"mine.breach\"") && !shown.contains("chatter"), "{shown}");
    assert!(folder.siftd(["rules", "show", "no.such"]).ended(2).err().contains("rules list"));
    let tested = folder.siftd(["rules", "test", "mine.toml"]);
    assert!(tested.out().contains("examples hold") && !tested.err().contains("mine."), "{}", tested.err());
    folder.write("mine.toml", RULES.replace("core breach in sector", "all quiet in sector"));
    assert!(folder.siftd(["rules", "test", "mine.toml"]).ended(2).err().contains("mine.breach: an example does not hold"));
}

#[test]
fn rules_check_points_at_the_mistake() {
    let folder = Folder::new();
    folder.write("mine.toml", RULES);
    assert!(folder.siftd(["rules", "check", "mine.toml"]).ended(0).out().contains("ok"));
    for (from, to, said) in [
        ("regex = 'core breach'", "regex = 'core (breach'", "mine.toml:10:9: "),
        ("regex = 'core breach'", "regex = 'core b?reach'", "literal"),
        ("no_match = [\"all is well\"]", "no_match = [\"core breach\"]", "mine.breach: an example does not hold"),
        ("id = \"mine.dump\"", "id = \"mine.chatter\"", "`mine.chatter` is there twice"),
        ("reason = \"a dump\"", "raison = \"a dump\"", "raison"),
    ] {
        folder.write("wrong.toml", RULES.replace(from, to));
        let err = folder.siftd(["rules", "check", "wrong.toml"]).ended(2).err().replace("wrong.toml", "mine.toml");
        assert!(err.contains(said), "{said} in {err}");
    }
    assert!(folder.siftd(["rules", "check", "gone.toml"]).ended(2).err().contains("cannot be read"));
}

#[test]
fn rules_import_converts_the_older_files() {
    let folder = Folder::new();
    folder.write("noise.yaml", "noise_patterns:\n  - pattern: punycode\n    type: substring\n    reason: noisy\n");
    let toml = folder.siftd(["rules", "import", "noise.yaml"]).ended(0).out();
    folder.write("siftd.toml", &toml);
    assert!(toml.contains("punycode"), "{toml}");
    folder.siftd(["check", "--config", "siftd.toml"]).ended(0);
    folder.write("bad.yaml", "noise_patterns: 7\n");
    folder.siftd(["rules", "import", "bad.yaml"]).ended(2);
}

#[test]
fn check_judges_a_configuration() {
    let folder = Folder::new();
    folder.write("good.toml", "[limits]\ntrace_idle = \"1s\"\n");
    folder.write("bad.toml", "[limits]\ntrace_idel = \"1s\"\n");
    folder.write("weak.toml", "[error_detection]\ncustom_patterns = [{ pattern = '^\\d+$', type = \"regex\" }]\n");
    assert!(folder.siftd(["check", "--config", "good.toml"]).ended(0).out().contains("good.toml: ok"));
    let bad = folder.siftd(["check", "--config", "bad.toml"]).ended(2).err();
    assert!(bad.contains("bad.toml:2:1") && bad.contains("trace_idle"), "{bad}");
    assert!(folder.siftd(["check", "--config", "weak.toml"]).ended(2).err().contains("at least 3 bytes"));
}

#[test]
fn completions_and_manual_pages() {
    let folder = Folder::new();
    for shell in ["bash", "zsh", "fish"] {
        assert!(folder.siftd(["completions", shell]).ended(0).out().contains("siftd"));
    }
    assert!(folder.siftd(["man"]).ended(0).out().contains(".TH siftd"));
    folder.siftd(["man", "--dir", "pages"]).ended(0);
    assert!(folder.path().join("pages/siftd-scan.1").exists());
}

#[test]
fn usage_is_exit_2_and_help_has_examples() {
    let folder = Folder::new();
    for args in [&["no-such"][..], &["scan", "--no-such"], &["run", "--file"], &[]] {
        folder.siftd(args).ended(2);
    }
    for args in [&["--help"][..], &["scan", "--help"], &["run", "--help"], &["explain", "--help"], &["signature", "--help"], &["filter", "--help"]] {
        assert!(folder.siftd(args).ended(0).out().contains("Example"));
    }
    assert!(folder.siftd(["--version"]).ended(0).out().starts_with("siftd 0."));
}
