//! The forms of `siftd scan`, and that log text has no power in those for people.

use serde_json::Value;

use super::{Folder, error};

/// Everything that a hostile program might print.
const HOSTILE: &str = "a\u{1b}]0;owned\u{7}\u{1b}[2Jb \u{202e}gnp\u{2066} ::stop-commands::x ##[error]y ##vso[task.x]z \u{9b}31m \u{8}\u{0} 100%, a:b";

fn scan(format: &str, text: &str) -> String {
    let folder = Folder::new();
    folder.write("a.log", text);
    folder.siftd(["scan", "--color", "never", "--format", format, "a.log"]).ended(0).out()
}

#[test]
fn log_text_has_no_power_over_terminal_and_ci() {
    let text = error(HOSTILE) + "  at x\u{1b}[5m\n::error::forged\n##[endgroup]\n";
    for format in ["pretty", "github", "unix"] {
        let out = scan(format, &text);
        assert!(out.contains("gnp"), "{format}: {out}");
        for c in out.chars().filter(|&c| c != '\n') {
            assert!(!c.is_control() && !matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'), "{format}: {c:?} in {out}");
        }
        assert!(!out.contains("::stop-commands::") && !out.contains("##[") && !out.contains("##vso["), "{format}: {out}");
        assert!(out.lines().all(|line| !line.trim_start().starts_with("::") || (format == "github" && line.starts_with("::error file="))), "{format}: {out}");
    }
}

#[test]
fn a_hostile_file_name_has_no_power_either() {
    let folder = Folder::new();
    folder.write("::set-env name=x::y\u{1b}[31m,a:b%.log", error("boom"));
    for format in ["pretty", "github", "unix"] {
        let out = folder.siftd(["scan", "--color", "never", "--format", format, "."]).ended(0).out();
        assert!(!out.contains('\u{1b}') && !out.contains("::set-env"), "{format}: {out}");
    }
    let gone = folder.siftd(["scan", "::add-mask::\u{1b}[31mx"]).ended(2);
    assert!(!gone.err().contains('\u{1b}') && !gone.err().contains("::add-mask"), "{}", gone.err());
}

#[test]
fn github_escapes_text_and_properties() {
    let folder = Folder::new();
    folder.write("a:b,c.log", error("100% sure"));
    let out = folder.siftd(["scan", "--format", "github", "a:b,c.log"]).ended(0).out();
    assert_eq!(out, "::error file=a%3Ab%2Cc.log,line=1,title=unknown_error (medium)::ERROR 100%25 sure\n");
}

#[test]
fn unix_is_file_line_column_severity_text() {
    assert_eq!(scan("unix", &format!("x\n{}", error("boom"))), "a.log:2:1: medium: ERROR boom\n");
}

#[test]
fn report_is_one_document_with_a_summary() {
    let read = |text: &str| -> Value { serde_json::from_str(&scan("report", text)).unwrap() };
    let report = read(&(error("one") + &error("two")));
    assert_eq!(report["errors"].as_array().unwrap().len(), 2);
    assert_eq!(report["errors"][1]["line_num"], 2);
    assert_eq!(report["summary"], serde_json::json!({"total": 2, "blocking": 0, "high": 0, "medium": 2, "low": 0}));
    assert_eq!(read("fine\n")["errors"], serde_json::json!([]));
}

#[test]
fn pretty_shows_lines_with_numbers_and_a_sum() {
    let out = scan("pretty", &format!("before\n{}after\n", error("boom")));
    assert!(out.starts_with("medium[unknown_error] ERROR boom\n  --> a.log:2\n1 │ before\n2 ▎ ERROR boom\n3 │ after\n"), "{out}");
    assert!(out.contains("\n1 error: 1 medium · 3 lines in 1 input"), "{out}");
}

#[test]
fn colours_only_where_they_are_wanted() {
    let folder = Folder::new();
    folder.write("a.log", error("boom"));
    let out = |color: &str| folder.command(["scan", "--color", color, "--format", "pretty", "a.log"]).env("NO_COLOR", "1").output().unwrap().stdout;
    assert!(out("always").contains(&0x1b));
    assert!(!out("auto").contains(&0x1b) && !out("never").contains(&0x1b));
    assert!(folder.siftd(["scan", "a.log"]).ended(0).out().starts_with('{'), "no terminal: ndjson");
}
