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
    vec![
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
