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
    let bodies: Vec<String> = (10..50).map(|number| format!("{BODY}{number}")).collect();
    let long: Vec<&str> = bodies.iter().map(String::as_str).chain(errors).collect();
    let part = |what: &str| format!("-----{what} RSA {key}");
    let traced = format!(
        "Traceback (most recent call last):\n  File \"a.py\", line 3, in f\n    load(key)\nValueError: bad key {}\n{BODY}\n{BODY}\nshort\n",
        part("BEGIN")
    );
    let encrypted = |prefix: &str| {
        let lines = [&*part("BEGIN"), "Proc-Type: 4,ENCRYPTED", "DEK-Info: AES-128-CBC,00", "", BODY, BODY, BODY, BODY, BODY, BODY];
        lines.map(|text| format!("{prefix}{text}\n")).concat() + "Error: one\n"
    };
    let other = "-----BEGIN CERTIFICATE-----MIIB-----END CERTIFICATE-----";
    let mixed = ["[web] ", "[web] ", "[db] ready to accept ", "[web] ", "[web] "].map(str::to_owned);
    let mixed = [format!("{}{}", mixed[0], part("BEGIN")), format!("{}{BODY}", mixed[1]), mixed[2].clone(), format!("{}{BODY}", mixed[3])].join("\n");
    vec![
        (traced, BODY.into()),
        (encrypted(""), BODY.into()),
        (encrypted("2026-11-20 10:00:00 INFO keys "), BODY.into()),
        (format!("x {other}{}\n{BODY}\n{BODY}\nError: one\n", part("BEGIN")), BODY.into()),
        (format!("{mixed}\n[web] Error: one\n"), BODY.into()),
        (format!("---- BEGIN SSH2 ENCRYPTED {} KEY ----\n{BODY}\n{BODY}\nError: one\n", "PRIVATE"), BODY.into()),
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

/// What only resembles a key, or a text that names one, hides no error.
#[test]
fn no_error_is_taken_for_a_secret() {
    let folder = Folder::new();
    let path = "/Users/me/Projects/App2/Sources/Networking/Http2Client.swift";
    let named = format!("expected -----BEGIN {} KEY----- in key.pem", "PRIVATE");
    let logs = [
        (format!("CompileSwift normal {path}\n{path}:3:5: error: cannot find Foo in scope\n"), "cannot find Foo"),
        (format!("CompileSwift normal {path}\n").repeat(40) + &format!("{path}:3:5: error: cannot find Foo in scope\n"), "cannot find Foo"),
        (format!("{named}\nError: Http2ConnectionHandler timed out\n"), "Http2ConnectionHandler timed out"),
        (format!("{named}\nFAILED\nError: no till\n"), "FAILED"),
        ("Error: Http2ConnectionHandlerOfTheShopAndItsTillsInTheCellar7\n".repeat(12), "InTheCellar7"),
    ];
    for (log, shown) in logs {
        folder.write("till.log", &log);
        let done = folder.siftd(["scan", "--format", "ndjson", "till.log"]);
        let is_whole = done.out().contains(shown) && !done.out().contains(r#""text":"[redacted"#);
        assert!(is_whole, "{log}\n{}", done.out());
    }
}
