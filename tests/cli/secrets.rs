//! Secrets leave with no record and no page, wherever in a log they stand.

use super::Folder;

const BODY: &str = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ";

/// Logs, and what must not be in any output about them.
fn logs() -> Vec<(String, String)> {
    let key = format!("{} KEY-----", "PRIVATE");
    let token = format!("gh{}{}", "p_", "Ab1".repeat(12));
    let lines = |prefix: &str| {
        ["-----BEGIN ".to_owned() + &key, BODY.to_owned(), BODY.repeat(3), "-----END ".to_owned() + &key].map(|text| format!("{prefix}{text}\n")).concat()
    };
    let block = |form: &dyn Fn(&str) -> String, last: &[&str]| {
        let begin = "-----BEGIN ".to_owned() + &key;
        ["start", &begin, BODY, BODY].iter().chain(last).map(|text| form(text) + "\n").collect::<String>()
    };
    let docker = |text: &str| format!(r#"{{"log":"{text}\n","stream":"stderr","time":"2026-11-20T10:00:00.000000001Z"}}"#);
    let json = |text: &str| format!(r#"{{"level":"{}","msg":"{text}"}}"#, if text.starts_with("Error") { "error" } else { "info" });
    let logfmt = |text: &str| format!(r#"time=2026-11-20T10:00:00Z level={} msg="{text}" app=till"#, if text.starts_with("Error") { "error" } else { "info" });
    let bare = |text: &str| text.to_owned();
    let errors = ["Error: one", "Error: two", "Error: three", "Error: four"];
    let long = [&[BODY; 40][..], &errors].concat();
    vec![
        (block(&docker, &errors), BODY.into()),
        (block(&json, &errors), BODY.into()),
        (block(&logfmt, &errors), BODY.into()),
        (block(&bare, &errors), BODY.into()),
        (block(&bare, &long), BODY.into()),
        (format!("2026-11-20 10:00:00 ERROR -----BEGIN {key}\n2026-11-20 10:00:00 ERROR {BODY}\n{}", errors.join("\n")), BODY.into()),
        (format!("Error: cannot read the key\n{}", lines("")), BODY.into()),
        (format!("ERROR the key is bad:\n{}", lines("web_1  | ")), BODY.into()),
        (lines("2026-11-20 10:00:00 ERROR "), BODY.into()),
        (format!("2026-11-20 10:00:00 ERROR key -----BEGIN {key}\n{BODY}\n{BODY}\n"), BODY.into()),
        (format!("/srv/{token}/a.js\n  3:7  error  'till' is not defined  no-undef\n\n✖ 1 problem (1 error, 0 warnings)\n"), token),
        ("Error: bad password: db_password=hunter2abc\n".into(), "hunter2abc".into()),
        ("Error: redis://:p@ssw0rd1@cache is gone\n".into(), "ssw0rd1".into()),
    ]
}

#[test]
fn no_secret_leaves() {
    let folder = Folder::new();
    let scans = ["ndjson", "pretty", "report", "github", "unix", "sarif"].map(|format| vec!["scan", "--format", format, "till.log"]);
    for (log, secret) in logs() {
        folder.write("till.log", &log);
        for way in scans.iter().chain([&vec!["digest", "till.log"], &vec!["explain", "till.log"]]) {
            let done = folder.siftd(way);
            let shown = done.out() + &done.err();
            assert!(shown.len() > 20 && !shown.contains(&secret), "{way:?} of {log}\n{shown}");
        }
        let run = folder.siftd(["exec", "--verdict", "verdict.json", "--", "cat", "till.log"]);
        assert!(!folder.read("verdict.json").contains(&secret), "{log}\n{}", run.err());
        assert!(!folder.read("verdict.json").is_empty());
    }
}
