//! The output formats of `siftd scan`, and that log text cannot control those meant for people.

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
        assert!(out.lines().all(|line| !line.trim_start().starts_with("::") || (format == "github" && line.starts_with("::warning file="))), "{format}: {out}");
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
    assert_eq!(out, "::warning file=a%3Ab%2Cc.log,line=1,title=unknown_error (medium)::ERROR 100%25 sure\n");
}

#[test]
fn github_says_how_severe_it_is_and_names_no_file_that_there_is_not() {
    let folder = Folder::new();
    let command = |text: &str| {
        let out = folder.piped(["scan", "--format", "github"], text).ended(0).out();
        out.split_once(' ').map(|(command, rest)| (command.to_owned(), rest.to_owned())).unwrap()
    };
    let (word, rest) = command("./src/a.c:3:5: error: expected ';'\n");
    assert!(word == "::error" && rest.starts_with("file=src/a.c,line=3,col=5,title="), "{word} {rest}");
    let (word, rest) = command("ERROR no\n");
    assert!(word == "::warning" && rest.starts_with("title="), "{word} {rest}");
    let (_, rest) = command(&format!("ERROR {}\n", "x".repeat(100_000)));
    assert!(rest.len() < 5_000, "{}", rest.len());
}

/// Checks what the schema of SARIF 2.1.0 requires of the parts that are used.
fn sarif(text: &str) -> Value {
    let document: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!((&document["version"], document["runs"].as_array().map(Vec::len)), (&Value::from("2.1.0"), Some(1)));
    let run = &document["runs"][0];
    let driver = &run["tool"]["driver"];
    assert_eq!(driver["name"], "siftd");
    let rules: Vec<&str> = driver["rules"].as_array().unwrap().iter().map(|rule| rule["id"].as_str().unwrap()).collect();
    assert!(rules.is_sorted() && driver["rules"].as_array().unwrap().iter().all(|rule| rule["shortDescription"]["text"].is_string()));
    for result in run["results"].as_array().unwrap() {
        assert!(rules.contains(&result["ruleId"].as_str().unwrap()), "{result}");
        assert!(["error", "warning", "note"].contains(&result["level"].as_str().unwrap()), "{result}");
        assert!(!result["message"]["text"].as_str().unwrap().is_empty(), "{result}");
        let prints = result["partialFingerprints"].as_object().unwrap();
        assert!(prints.values().all(|print| print.as_str().unwrap().len() == 32) && prints.len() == 1, "{result}");
        for place in ["locations", "relatedLocations"].iter().filter_map(|key| result[key].as_array()).flatten() {
            let place = &place["physicalLocation"];
            let uri = place["artifactLocation"]["uri"].as_str().unwrap();
            assert!(!uri.is_empty() && uri.bytes().all(|b| b.is_ascii_graphic() && !b"\\\"<>^`{|}".contains(&b)), "{uri}");
            assert!(place["region"].as_object().is_none_or(|region| region.values().all(|value| value.as_u64() != Some(0))), "{result}");
        }
    }
    document
}

#[test]
fn sarif_is_one_valid_document() {
    let folder = Folder::new();
    folder.write("b c.log", "src\\a b.c:3:5: error: expected '{0}'\nERROR see [this](http://x)\n");
    folder.write("a.log", "Traceback (most recent call last):\n  File \"/srv/a.py\", line 7, in f\n    g()\nKeyError: 'x'\n");
    let document = sarif(&folder.siftd(["scan", "--format", "sarif", "a.log", "b c.log"]).ended(0).out());
    let results = document["runs"][0]["results"].as_array().unwrap();
    assert_eq!(results.len(), 3);
    let place = |result: &Value| result["locations"][0]["physicalLocation"].clone();
    assert_eq!(place(&results[0])["artifactLocation"]["uri"], "file:///srv/a.py");
    assert_eq!(place(&results[0])["region"]["startLine"], 7);
    assert_eq!(results[0]["stacks"][0]["frames"][0]["location"]["logicalLocations"][0]["fullyQualifiedName"], "f");
    assert_eq!(results[0]["relatedLocations"][0]["physicalLocation"]["region"]["endLine"], 4);
    assert_eq!(place(&results[2])["artifactLocation"]["uri"], "b%20c.log");
    assert_eq!(results[2]["message"]["text"], "ERROR see \\[this](http://x)");
    assert_eq!(document["runs"][0]["invocations"][0]["executionSuccessful"], true);
}

#[test]
fn sarif_without_results_from_a_stream_and_with_what_cannot_be_read() {
    let folder = Folder::new();
    let empty = sarif(&folder.piped(["scan", "--format", "sarif"], "fine\n").ended(0).out());
    assert_eq!(empty["runs"][0]["results"], serde_json::json!([]));
    let hostile = sarif(&folder.piped(["scan", "--format", "sarif"], error(HOSTILE)).ended(0).out());
    assert_eq!(hostile["runs"][0]["results"][0]["locations"], Value::Null);
    folder.write("a.log", error("boom"));
    let partial = sarif(&folder.siftd(["scan", "--format", "sarif", "a.log", "gone.log"]).ended(2).out());
    assert_eq!(partial["runs"][0]["results"].as_array().unwrap().len(), 1);
    assert_eq!(partial["runs"][0]["invocations"][0]["executionSuccessful"], false);
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
