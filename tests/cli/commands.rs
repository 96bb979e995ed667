//! All commands except `scan` and `run`.

use std::io::Write;
use std::path::Path;

use super::{Done, Folder, error};

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

/// What a warning shows below itself goes with it; the same below an error stays.
#[test]
fn filter_takes_a_warning_with_the_source_that_it_shows() {
    let folder = Folder::new();
    for (warned, kept) in [
        (
            "a.c:3:5: warning: unused variable 'x' [-Wunused-variable]\n    3 |   int x;\n      |       ^\n",
            "a.c:4:5: error: 'y' undeclared\n    4 |   y = 1;\n",
        ),
        ("a.c:3:5: warning: unused variable 'x' [-Wunused-variable]\n  int x;\n      ^\n", "ok\n"),
        (
            "warning: unused variable: `x`\n --> src/main.rs:2:9\n  |\n2 |     let x = 1;\n  |         ^ help: `_x`\n  |\n  = note: on by default\n",
            "error[E0425]: x\n --> src/main.rs:3:9\n  |\n",
        ),
        ("a.py:3: DeprecationWarning: invalid escape sequence '\\d'\n  x = '\\d'\n", "  done\n"),
        ("", "\u{2718} [ERROR] Could not resolve \"./x\"\n      1 │ import \"./x\"\n        ╵        ~~~~~\n"),
    ] {
        assert_eq!(folder.piped(["filter"], [warned, kept].concat()).ended(0).out(), kept);
    }
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
    // What a test logged is all that says why it failed.
    let failed = "--- FAIL: TestAdd (0.00s)\n    calc_test.go:9: Add(-1, 1) = 0; want 1\nFAIL\n";
    assert_eq!(folder.piped(["filter"], failed).ended(0).out(), failed);
}

const TOKEN: &str = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";

#[test]
fn no_secret_is_shown_by_what_explains_a_line() {
    let folder = Folder::new();
    let plain = format!("2026-01-01T00:00:00Z ERROR web: token={TOKEN} refused by postgres://u:pw12345@h/db");
    let json = format!("{{\"level\":\"error\",\"msg\":\"token={TOKEN} refused by postgres://u:pw12345@h/db\"}}");
    let key = "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEAsecretsecretsecret\n-----END RSA PRIVATE KEY-----";
    let text = format!("{plain}\n{json}\npassword: hunter2secret99\n{key}\n");
    folder.write("a.log", &text);
    let lines: Vec<String> = (1..=6).map(|line| folder.siftd(["explain", &format!("a.log:{line}")]).ended(0).out()).collect();
    let piped = folder.piped(["explain"], &text).ended(0).out();
    let signed = folder.piped(["signature", "--why"], &text).ended(0).out();
    for page in lines.iter().chain([&piped, &signed]) {
        for secret in ["ghp_", "pw12345", "hunter2", "MIIE"] {
            assert!(!page.contains(secret), "{page}");
        }
    }
    assert!(lines[0].contains("message    web: token=[redacted:github-token] refused by postgres://[redacted:url-credentials]@h/db"), "{}", lines[0]);
    assert!(lines[4].contains("text       [redacted:private-key]"), "{}", lines[4]);
    // The signature is that of the event.
    let event = &folder.piped(["scan"], format!("ERROR: token={TOKEN} refused\n")).records()[0];
    let signed = folder.piped(["signature"], format!("ERROR: token={TOKEN} refused\n")).out();
    assert_eq!(signed.split_once('\t').unwrap().0, event["signature"]);
}

#[test]
fn no_secret_is_shown_by_what_siftd_says_of_itself() {
    let folder = Folder::new();
    let source =
        format!("[[source]]\nname = \"c\"\ntype = \"command\"\nargv = [\"curl\", \"-H\", \"Authorization: Bearer {TOKEN}\", \"https://u:pw12345@h/\"]\n");
    let sink = format!("[[sink]]\nname = \"s\"\ntype = \"http\"\nurl = \"https://localhost:1/x?key={TOKEN}\"\n");
    folder.write("c.toml", format!("state_dir = \"state\"\n{source}{sink}"));
    folder.write("bad.toml", format!("{source}{sink}heeders = {{ Authorization = \"Bearer {TOKEN}\" }}\n"));
    let said = |args: &[&str], stdin: &str| {
        let done = folder.piped(args, stdin);
        done.out() + &done.err()
    };
    let task = format!("{{\"message\":\"ECONNREFUSED\",\"task\":\"token={TOKEN}\"}}\n");
    for (args, stdin, wanted) in [
        (&["run", "--config", "c.toml", "--dry-run"][..], "", "source c: curl -H "),
        (&["check", "--config", "bad.toml"], "", "did you mean `headers`"),
        (&["classify"], &task, "\"task\":\"token=[redacted"),
        (&["exec", "--", &format!("./no-{TOKEN}")], "", "command not found"),
        (&["scan", &format!("token={TOKEN}")], "", "No such file"),
    ] {
        let said = said(args, stdin);
        assert!(said.contains(wanted) && !said.contains("ghp_") && !said.contains("pw12345"), "{args:?}: {said}");
    }
}

#[test]
fn explain_reads_what_scan_reads() {
    let folder = Folder::new();
    let text = "fine\nTypeError: x is not a function\nfine\n";
    let wide = |mark: &str| -> Vec<u8> { format!("{mark}{text}").encode_utf16().flat_map(u16::to_le_bytes).collect() };
    folder.write("plain/a.log", text);
    let explained = |name: &str| folder.siftd(["explain", &format!("{name}/a.log:2")]).ended(0).out().replace(name, "");
    for (name, mark) in [("marked", "\u{feff}"), ("unmarked", "")] {
        folder.write(&format!("{name}/a.log"), wide(mark));
        assert_eq!(explained(name), explained("plain"));
        assert_eq!(folder.siftd(["scan", &format!("{name}/a.log")]).ended(0).records().len(), 1);
        assert_eq!(folder.piped(["scan"], wide(mark)).ended(0).records().len(), 1);
    }
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
    for (line, said) in [
        (1, "generic.listed-marks covers it: text that is listed"),
        (3, "joined     python.traceback, as line 2 of 3"),
        (5, "generic.zero covers it: a count of zero"),
    ] {
        let out = folder.siftd(["explain", &format!("b.log:{line}")]).ended(0).out();
        assert!(out.contains(said) && !out.contains(": holds\n  event      none"), "{line}: {out}");
    }
    assert!(folder.piped(["explain"], error("\u{1b}[31mx")).ended(0).out().contains("line 1"));
    for place in ["a.log:2:1", "a.log:2:", "a.log:2:1:", "a.log:2-3"] {
        assert_eq!(folder.siftd(["explain", place]).ended(0).out(), yes, "{place}");
    }
    let whole = folder.siftd(["explain", "a.log:1-2"]).ended(0).out();
    assert_eq!(whole, folder.siftd(["explain", "a.log:1"]).ended(0).out() + "\n" + &yes);
    for place in ["a.log:2-1", "a.log:1-1001"] {
        assert!(folder.siftd(["explain", place]).ended(2).err().contains("FILE:FIRST-LAST"), "{place}");
    }
    folder.write("a.log:2", "fine\n");
    assert!(folder.siftd(["explain", "a.log:2:1"]).ended(0).out().starts_with("a.log:2:1\n"));
    for nothing in ["", "\n \n"] {
        assert!(folder.piped(["explain"], nothing).ended(2).err().contains("nothing on stdin"));
    }
    for (place, said) in [("a.log:9", "no line 9"), ("gone.log:1", "No such file"), ("a.log", "which line?")] {
        assert!(folder.siftd(["explain", place]).ended(2).err().contains(said));
    }
}

/// If stdout accepts nothing, a command reports it; if its reader has gone, the command is silent.
#[test]
fn an_output_that_takes_nothing_is_no_panic() {
    let folder = Folder::new();
    folder.write("mine.toml", RULES);
    folder.write("siftd.toml", "");
    let commands = [
        &["check", "--config", "siftd.toml"][..],
        &["rules", "test"],
        &["rules", "check", "mine.toml"],
        &["rules", "list"],
        &["man"],
        &["completions", "bash"],
        &["explain", "mine.toml:1"],
        &["scan", "fault.log"],
    ];
    folder.write("fault.log", error("boom"));
    for args in commands {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let done = super::folder::Done(folder.command(args).stdout(full).output().unwrap()).ended(2);
        assert!(done.err().starts_with("siftd: stdout: No space left"), "{args:?}: {}", done.err());
        let (reader, closed) = std::io::pipe().unwrap();
        drop(reader);
        let done = super::folder::Done(folder.command(args).stdout(closed).output().unwrap()).ended(0);
        assert_eq!(done.err(), "", "{args:?}");
    }
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let done = folder.command(["check", "--config", "gone.toml"]).stderr(full).output().unwrap();
    assert_eq!(done.status.code(), Some(2));
}

#[test]
fn judge_and_classify_say_what_is_wrong_with_a_line() {
    let folder = Folder::new();
    let lines = "{\"run_status\":\"crashed\"}\n{\"exit_code\":0,\"run_status\":\"odd\"}\n{\"exit_code\":1,\"run_status\":\"done\"}\n{\"exit_cod\":1}\n{}\nx\n7\n\
         {\"exit_code\":0,\"runStatus\":\"failed\"}\n{\n";
    let answers = folder.piped(["judge"], lines).ended(0).records();
    let status: Vec<_> = answers.iter().map(|answer| (answer["success"].clone(), answer["status"].as_str().unwrap())).collect();
    let want = ["failure", "malformed", "failure", "malformed", "malformed", "malformed", "malformed", "malformed", "malformed"];
    assert_eq!(status, want.map(|status| (serde_json::Value::Bool(false), status)));
    for (at, said) in [
        (1, "\"odd\""),
        (3, "did you mean `exit_code`?"),
        (4, "exit_code, stderr"),
        (5, "no JSON"),
        (6, "is an object"),
        (7, "did you mean `run_status`?"),
        (8, "a line of its own"),
    ] {
        assert!(answers[at]["error"].as_str().unwrap().contains(said), "{}", answers[at]);
        assert_eq!(answers[at]["error_message"], "Malformed response");
    }
    let verdict = folder.piped(["judge"], "{\"exit_code\":1}\n").ended(0).out();
    let again = folder.piped(["judge"], verdict).ended(0).records().remove(0);
    assert_eq!((&again["status"], &again["success"]), (&"malformed".into(), &false.into()), "a verdict is no result: {again}");
    let done = folder.piped(["classify"], "{\"status\":500}\n{}\n{\"response\":{\"status\":500}}\n").ended(0);
    let answer = done.records().remove(0);
    assert_eq!((&answer["retryable"], &answer["retry"]["retryable"]), (&true.into(), &true.into()));
    let limited = "{\"response\":{\"status\":429,\"headers\":{\"Retry-After\":\"7\"}}}\n{\"response\":{\"status\":503,\"headers\":{\"retry-after\":[9]}}}\n\
                   {\"message\":\"try again in 3s\",\"response\":{\"status\":429,\"headers\":{\"retry-after\":\"7\"}}}\n\
                   {\"response\":{\"status\":404,\"headers\":{\"retry-after\":\"7\"}}}\n";
    let waits = folder.piped(["classify"], limited).ended(0).records();
    let asked: Vec<_> = waits.iter().map(|answer| answer["retry"]["reset_at"].as_str()).collect();
    assert_eq!(asked, [Some("7"), Some("9"), Some("3s"), None]);
    assert!(waits[0]["delay_ms"].as_u64() >= Some(7000), "{}", waits[0]);
    let directory = std::fs::File::open(folder.path()).unwrap();
    let unread = Done(folder.command(["classify"]).stdin(directory).output().unwrap()).ended(2);
    assert!(unread.err().starts_with("siftd: stdin: Is a directory"), "{}", unread.err());
    assert!(done.err().starts_with("siftd: line 1: none of the fields that are looked at: name, code"), "{}", done.err());
    assert!(done.err().contains("(of `status`: did you mean `response.status`?)"), "{}", done.err());
    assert!(done.err().ends_with("siftd: 1 object more was answered so\n"), "{}", done.err());
    let slip = folder.piped(["classify"], "\n{\"respones\":{}}\n").ended(0).err();
    assert!(slip.starts_with("siftd: line 2: ") && slip.contains("did you mean `response`?") && slip.lines().count() == 1, "{slip}");
}

/// With rules, a configuration is what both have in common; alone, it is what has changed.
#[test]
fn a_configuration_alone_is_replayed_against_the_defaults() {
    let folder = Folder::new();
    folder.write("a.log", error("boom"));
    folder.write("new.toml", "[error_detection]\nnoise_patterns = [{ pattern = \"boom\", reason = \"drill\" }]\n");
    folder.write("rules.toml", "[family]\nid = \"x\"\ntitle = \"X\"\ndepth = \"head\"\n[[rule]]\nid = \"x.y\"\nliterals = [\"zzzzzz\"]\nregex = \"zzzzzz\"\n");
    let counts = |more: &[&str]| folder.siftd([&["replay", "a.log", "--config", "new.toml"], more].concat()).ended(0).out().lines().last().unwrap().to_owned();
    assert_eq!(counts(&[]), "0 appear, 1 vanish, 0 change, 0 stay");
    for same in [&["--rules", "rules.toml"][..], &["--against", "rules.toml"], &["--against-config", "new.toml"]] {
        assert_eq!(counts(same), "0 appear, 0 vanish, 0 change, 0 stay", "{same:?}");
    }
}

/// What passes at its end, and how far it is indented as a whole, `replay` knows of a log as `scan` does.
#[test]
fn a_log_is_replayed_as_it_is_scanned() {
    let folder = Folder::new();
    folder.write("new.toml", "[error_detection]\nmax_context_lines = 3\n");
    let green = "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nValueError: wanted\n..\nRan 2 tests in 0.001s\n\nOK\n";
    let indented: String = error("boom").lines().chain(["ready", "steady"]).map(|line| format!("        {line}\n")).collect();
    for (log, errors) in [(green, 0), (&indented, 1)] {
        folder.write("a.log", log);
        assert_eq!(folder.siftd(["scan", "--format", "ndjson", "a.log"]).ended(0).records().len(), errors, "{log}");
        let counts = folder.siftd(["replay", "--config", "new.toml", "a.log"]).ended(0).out();
        assert_eq!(counts, format!("0 appear, 0 vanish, 0 change, {errors} stay\n"), "{log}");
    }
}

#[test]
fn what_is_kept_of_a_state_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    folder.write("a.log", error("boom"));
    folder.siftd(["scan", "--state-dir", "st", "a.log"]).ended(0);
    for entry in std::fs::read_dir(folder.at("st")).unwrap().map(Result::unwrap) {
        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{:?}", entry.file_name());
    }
}

/// `explain` and `replay` report what `scan` leaves out, and read what precedes a damaged part.
#[test]
fn what_scan_leaves_out_is_said_by_those_who_read_it() {
    let folder = Folder::new();
    folder.write("a.log", error("boom"));
    let own = folder.siftd(["scan", "--format", "ndjson", "a.log"]).ended(0).out();
    folder.write("own", &own);
    folder.write("new.toml", "[family]\nid = \"x\"\ntitle = \"X\"\ndepth = \"head\"\n[[rule]]\nid = \"x.y\"\nliterals = [\"zzzzzz\"]\nregex = \"zzzzzz\"\n");
    assert!(folder.siftd(["explain", "own:1"]).ended(0).err().contains("siftd's own records"));
    let replayed = folder.siftd(["replay", "own", "--rules", "new.toml"]).ended(2);
    assert!(replayed.err().contains("siftd's own records") && replayed.out().ends_with("0 stay\n"), "{}", replayed.err());
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    (0..2000_u32).for_each(|n| packer.write_all(error(&format!("{:x}", n.wrapping_mul(2_654_435_761))).as_bytes()).unwrap());
    let packed = packer.finish().unwrap();
    folder.write("cut.gz", &packed[..packed.len() / 2]);
    let found = folder.siftd(["scan", "cut.gz"]).ended(2).records().len();
    assert!(found > 100, "{found}");
    let replayed = folder.siftd(["replay", "cut.gz", "--rules", "new.toml"]).ended(2);
    assert_eq!(replayed.out(), format!("0 appear, 0 vanish, 0 change, {found} stay\n"));
    assert!(folder.siftd(["explain", "cut.gz:3"]).ended(0).out().contains("event"));
}

/// `scan` and `replay` report what they read only a part of.
#[test]
fn what_is_too_long_to_be_read_is_said() {
    let folder = Folder::new();
    let failed = serde_json::json!({"role": "tool", "tool_call_id": "c", "content": "TypeError: x is not a function", "is_error": true});
    let long: Vec<_> = (0..22).map(|_| "x".repeat(200_000)).collect();
    let messages = serde_json::json!({"messages": [failed, {"role": "tool", "tool_call_id": "d", "content": "boom", "is_error": true, "more": long}]});
    folder.write("chat.json", serde_json::to_string_pretty(&messages).unwrap());
    folder.write("small.toml", "[limits]\nmax_document_bytes = \"100KiB\"\n");
    folder.write("new.toml", "[family]\nid = \"x\"\ntitle = \"X\"\ndepth = \"head\"\n[[rule]]\nid = \"x.y\"\nliterals = [\"zzzzzz\"]\nregex = \"zzzzzz\"\n");
    for (config, said) in [(&[][..], "1 record is too long to be read"), (&["--config", "small.toml"], "is larger than limits.max_document_bytes")] {
        for command in [&["scan", "chat.json"][..], &["replay", "chat.json", "--rules", "new.toml"]] {
            let done = folder.siftd([command, config].concat()).ended(2);
            assert_eq!(done.err().matches(&format!("chat.json: {said}")).count(), 1, "{command:?} {}", done.err());
        }
    }
}

/// Messages name the stream that cannot be read or written.
#[test]
fn a_fault_names_the_stream_that_it_is_of() {
    let folder = Folder::new();
    for command in ["signature", "filter"] {
        let directory = std::fs::File::open(folder.path()).unwrap();
        let done = Done(folder.command([command]).stdin(directory).output().unwrap()).ended(2);
        assert!(done.err().starts_with("siftd: stdin: Is a directory"), "{}", done.err());
    }
    for args in [&["--help"][..], &["scan", "--help"], &["--version"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let done = Done(folder.command(args).stdout(full).output().unwrap()).ended(2);
        assert!(done.err().starts_with("siftd: stdout: No space left"), "{}", done.err());
    }
    // A reader that has closed its pipe wants nothing more.
    folder.write("a.log", error("boom"));
    let (reader, closed) = std::io::pipe().unwrap();
    drop(reader);
    let log = std::fs::File::open(folder.at("a.log")).unwrap();
    let done = Done(folder.command(["run"]).stdin(log).stdout(closed).output().unwrap()).ended(0);
    assert!(!done.err().contains("lost"), "{}", done.err());
    std::fs::create_dir(folder.at("out")).unwrap();
    folder.write("siftd.toml", "[[sink]]\nname = \"events\"\ntype = \"file\"\npath = \"out\"\n");
    for args in [&["check", "--config", "siftd.toml"][..], &["run", "--dry-run", "--config", "siftd.toml"]] {
        let done = folder.siftd(args).ended(2);
        assert_eq!(done.err(), "siftd: sink events: out is a folder: name a file in it\n", "{args:?}");
    }
}

/// Noise and sections hold JSON objects just as they hold lines of text.
#[test]
fn noise_and_sections_of_ones_own_hold_records() {
    const OWN: &str = r#"[family]
id = "own"
title = "Own"
depth = "head"
[[noise]]
id = "own.hook"
regex = '^\{"hook":'
reason = "what a hook was told"
[[region]]
id = "own.shown"
literals = ["-- shown --"]
open = '^-- shown --$'
close = '^-- end --$'
max_lines = 9
absorb = true
"#;
    let folder = Folder::new();
    folder.write("own.toml", OWN);
    let record = r#"{"type":"note","text":"Error: connect ECONNREFUSED 127.0.0.1:5432"}"#;
    let hook = record.replace("{\"type\"", "{\"hook\"");
    let found = |log: &str| {
        folder.write("a.log", log);
        folder.siftd(["scan", "--rules", "own.toml", "a.log"]).ended(0).records().len()
    };
    assert_eq!(found(&format!("{record}\n")), 1);
    assert_eq!(found(&format!("{hook}\n")), 0);
    assert_eq!(found(&format!("-- shown --\n{record}\n-- end --\nfine\n")), 0);
    assert_eq!(found(&format!("-- shown --\nfine\n-- end --\n{record}\n")), 1);
}

/// A message repeats the user's name for something once, and says what would be right.
#[test]
fn slips_are_answered_in_the_users_words() {
    let folder = Folder::new();
    folder.write("a.log", error("boom"));
    let said = |args: &[&str]| folder.siftd(args).ended(if args[0] == "exec" { 125 } else { 2 }).err();
    assert!(said(&["exec", "--retries", "make", "test"]).contains("siftd exec --retries -- make"));
    assert!(!said(&["exec", "--retries", "5000", "--", "x"]).contains("--retries -- "));
    assert_eq!(said(&["explain", "nope:3"]), "siftd: nope: No such file or directory\n");
    assert_eq!(said(&["digest", "nope"]), "siftd: nope: No such file or directory\n");
    assert_eq!(said(&["scan", "none/**/*.log"]).lines().count(), 1);
    folder.write("remote.toml", "[[source]]\nname = \"a\"\ntype = \"udp\"\naddress = \"0.0.0.0:5555\"\n");
    assert!(said(&["check", "--config", "remote.toml"]).contains("listen on 127.0.0.1 or [::1], or"));
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let done = folder.command(["scan", "a.log"]).stdout(full).output().unwrap();
    assert!(done.status.code() == Some(2) && String::from_utf8_lossy(&done.stderr).starts_with("siftd: stdout: "), "{done:?}");
    if !Path::new("/etc/siftd").exists() {
        let said = folder.siftd(["check"]).ended(0).out();
        assert!(said.starts_with("no file in /etc/siftd (siftd.toml, conf.d/*.toml), the defaults: ok (0 sources"), "{said}");
    }
}

/// A file that was named but does not exist is reported, even if it would not have been used.
#[test]
fn exec_misses_a_configuration_that_was_named() {
    let folder = Folder::new();
    for flags in [&["--config", "nope.toml"][..], &["--rules", "nope.toml"]] {
        let done = folder.siftd([&["exec"], flags, &["--", "echo", "hi"]].concat()).ended(0);
        assert_eq!(done.out(), "hi\n");
        assert!(done.err().starts_with("siftd: nope.toml: No such file or directory"), "{}", done.err());
        folder.siftd([&["exec", "--strict-config"], flags, &["--", "echo", "hi"]].concat()).ended(125);
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
    assert!(folder.siftd(["rules", "show", "javascript.eror"]).ended(2).err().contains("did you mean `javascript.error`?"));
    // A copy of a rule or of a family can be changed and tried.
    for rule in ["mine.breach", "shell.not-found"] {
        folder.write("one.toml", folder.siftd(["rules", "show", rule, "--rules", "mine.toml"]).ended(0).out());
        assert!(folder.siftd(["rules", "check", "one.toml"]).ended(0).out().contains("one.toml: ok, 1 rule\n"), "{rule}");
    }
    for family in ["shell", "javascript", "mine"] {
        folder.write("copy.toml", folder.siftd(["rules", "show", family, "--rules", "mine.toml"]).ended(0).out());
        assert!(folder.read("copy.toml").contains("\n[family]\nid ="), "{family}");
        folder.siftd(["rules", "check", "copy.toml"]).ended(0);
    }
    let tested = folder.siftd(["rules", "test", "mine.toml"]);
    assert!(tested.out().contains("examples hold") && !tested.err().contains("mine."), "{}", tested.err());
    let count = |args: &[&str]| folder.siftd(args).ended(0).out();
    assert_eq!(count(&["rules", "test", "--rules", "mine.toml"]), tested.out());
    assert_ne!(count(&["rules", "test"]), tested.out());
    folder.write("mine.toml", RULES.replace("core breach in sector", "all quiet in sector"));
    // As in a clone, where the file of warnings lies beside the others.
    let rules = concat!(env!("CARGO_MANIFEST_DIR"), "/config/rules");
    let cloned = folder.siftd(["rules", "test", rules]).ended(0);
    assert_ne!(cloned.out(), count(&["rules", "test"]), "those of the warnings are among them");
    assert!(folder.siftd(["rules", "test", "mine.toml"]).ended(2).err().contains("mine.breach: an example does not hold"));
}

#[test]
fn each_file_of_rules_is_checked_whatever_is_wrong_with_the_others() {
    let folder = Folder::new();
    folder.write("broken.toml", "[[rule]]\nid = ");
    folder.write("key.toml", RULES.replace("[[rule]]", "[[rule]]\nliteral = [\"x\"]"));
    folder.write("mine.toml", RULES);
    let checked = folder.siftd(["rules", "check", "broken.toml", "gone.toml", "key.toml", "mine.toml"]).ended(2);
    assert!(checked.out().contains("mine.toml: ok"), "{}", checked.out());
    for place in ["broken.toml:2", "gone.toml: cannot be read", "key.toml:"] {
        assert!(checked.err().contains(place), "{place}: {}", checked.err());
    }
}

#[test]
fn a_folder_of_rules_is_taken_as_its_files_and_the_rule_in_force_is_shown() {
    let folder = Folder::new();
    folder.write("rules/mine.toml", RULES);
    folder.write("rules/note.txt", "no rules");
    folder.write("empty/note.txt", "no rules");
    folder.write("a.log", "core breach in sector 7\n");
    for words in [&["scan", "a.log", "--rules", "rules"][..], &["explain", "a.log:1", "--rules", "rules"]] {
        assert!(folder.siftd(words).ended(0).out().contains("mine.breach"));
    }
    assert!(folder.siftd(["rules", "check", "rules"]).ended(0).out().contains("rules/mine.toml: ok"));
    let err = folder.siftd(["scan", "a.log", "--rules", "empty"]).ended(2).err();
    assert!(err.contains("empty: no .toml file in it") && err.contains("name a file of rules"), "{err}");
    let shell = folder.siftd(["rules", "show", "shell"]).ended(0).out();
    folder.write("shell.toml", shell.replace("Install the program, or correct its name or PATH.", "Ask Kim."));
    let shown = folder.siftd(["rules", "show", "shell.not-found", "--rules", "shell.toml"]).ended(0).out();
    assert!(shown.starts_with("# shell.toml, in place of the one in config/rules/shell.toml\n\n[family]\nid = \"shell\"\n"), "{shown}");
    assert!(shown.contains("Ask Kim.") && shown.matches("[[rule]]").count() == 1, "{shown}");
}

/// Changing a built-in rule starts with a copy of its file.
#[test]
fn a_copy_of_a_built_in_file_takes_its_place() {
    let folder = Folder::new();
    for name in ["generic.toml", "python.toml", "levels.toml"] {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/rules").join(name);
        folder.write(name, std::fs::read_to_string(source).unwrap());
        assert!(folder.siftd(["rules", "check", name]).ended(0).out().contains(&format!("{name}: ok")), "{name}");
        let order = |args: &[&str]| folder.siftd([&["rules", "list"], args].concat()).ended(0).out();
        assert_eq!(order(&["--rules", name]), order(&[]), "{name}");
    }
}

/// With the file of warnings, a warning is an event, which other files rightly deny.
#[test]
fn the_folder_of_built_in_rules_is_without_a_mistake() {
    let rules = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/rules");
    let done = Folder::new().siftd([Path::new("rules"), Path::new("check"), &rules]).ended(0);
    assert_eq!(done.err(), "");
    let files =
        std::fs::read_dir(&rules).unwrap().filter(|entry| entry.as_ref().unwrap().path().extension().is_some_and(|extension| extension == "toml")).count();
    assert_eq!(done.out().matches(": ok, ").count(), files, "{}", done.out());
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
        ("reason = \"a dump\"", "raison = \"a dump\"", "unknown key `raison`"),
        ("reason = \"a dump\"", "raison = \"a dump\"", "did you mean `reason`?"),
        ("reason = \"a dump\"", "quux = \"a dump\"", "Your own rules"),
    ] {
        folder.write("wrong.toml", RULES.replace(from, to));
        let err = folder.siftd(["rules", "check", "wrong.toml"]).ended(2).err().replace("wrong.toml", "mine.toml");
        assert!(err.contains(said), "{said} in {err}");
    }
    // Whatever their number, only the entry without a literal is tried on every line.
    let many: String = (1..=128).map(|n| format!("[[noise]]\nid = \"many.n{n}\"\nregex = '^hum {n}$'\nreason = \"a hum\"\n")).collect();
    let wordless = "[[noise]]\nid = \"many.wordless\"\nregex = '[a-z]+ \\d+'\nreason = \"a hum\"\n";
    folder.write("many.toml", format!("[family]\nid = \"many\"\ntitle = \"Many\"\ndepth = \"head\"\n{many}{wordless}"));
    let err = folder.siftd(["rules", "check", "many.toml"]).ended(0).err();
    assert!(err.contains("many.wordless: slow: ") && !err.contains("many.n1"), "{err}");
    // It accepts the same flags as every other command.
    folder.write("other.toml", "[family]\nid = \"other\"\ntitle = \"Other\"\ndepth = \"head\"\n[[rule]]\nid = \"other.hum\"\nliterals = [\"pump hums\"]\nregex = 'pump hums'\nexamples = { match = [\"the pump hums\"] }\n");
    folder.write("siftd.toml", "[rules]\nfiles = [\"other.toml\"]\n");
    let ok = |args: &[&str]| {
        folder.siftd([&["rules", "check"], args].concat()).ended(0).out().lines().filter(|line| line.contains(": ok")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(ok(&["--rules", "other.toml"]), ["other.toml: ok, 1 rule"]);
    assert_eq!(ok(&["--config", "siftd.toml"]), ["other.toml: ok, 1 rule"]);
    assert_eq!(ok(&["mine.toml", "--config", "siftd.toml"]).len(), 1);
    assert_eq!(ok(&["mine.toml", "other.toml"]).len(), 2);
    assert!(folder.siftd(["rules", "check"]).ended(2).err().contains("which file?"));
    assert!(folder.siftd(["rules", "check", "wrong.toml", "--rules", "other.toml"]).ended(2).err().contains("Your own rules"));
    assert!(folder.siftd(["rules", "check", "gone.toml"]).ended(2).err().contains("cannot be read"));
    let trace = "\n[[trace]]\nid = \"mine.trace\"\nliterals = [\"core dump\"]\nrows = [\n{ from = \"start\", regex = '^core dump', to = \"body\" },\n{ from = \"body\", regex = '^  at ', to = \"body\" },\n]\n";
    folder.write("trace.toml", format!("{RULES}{trace}"));
    folder.siftd(["rules", "check", "trace.toml"]).ended(0);
    for (from, to, said) in [
        ("dump', to = \"body\"", "dump', to = \"bod\"", "no row begins in the state `bod`"),
        ("dump', to = \"body\"", "dump', to = \"bod\"", "did you mean `body`?"),
        ("dump', to = \"body\"", "dump', to = \"end\"", ""),
        ("^  at '", "^  at (?P<func>.+)'", "nothing reads the group `func`"),
        ("^  at '", "^  at (?P<files>.+)'", "did you mean `file`?"),
        ("^  at '", "^  at (?<file>.+)'", "write `(?P<file>…)`"),
        ("^  at '", "^  at (?P<file>.+)'", ""),
        ("from = \"body\", regex = '^  at ', to = \"body\"", "from = \"boddy\", regex = '^  at ', to = \"end\"", "no row leads to the state `boddy`"),
    ] {
        folder.write("wrong.toml", format!("{RULES}{}", trace.replace(from, to)));
        let done = folder.siftd(["rules", "check", "wrong.toml"]);
        assert!(done.code() == Some(if said.is_empty() { 0 } else { 2 }) && done.err().contains(said), "{said} in {}", done.err());
    }
}

#[test]
fn a_digest_leaves_lesser_errors_out() {
    let folder = Folder::new();
    folder.write("a.log", error("boom") + "bash: jq: command not found\n");
    let digest = |args: &[&str]| folder.siftd([&["digest", "--format", "json"], args, &["a.log"]].concat()).ended(0).records().remove(0);
    let [all, worst] = [&[][..], &["--min-severity", "blocking"]].map(digest);
    assert_eq!((&all["summary"]["total"], &worst["summary"]["total"]), (&2.into(), &1.into()), "{worst}");
    assert!(worst["errors"][0]["text"].as_str().is_some_and(|text| text.contains("jq")), "{worst}");
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
fn rules_import_makes_rules_of_problem_matchers() {
    const MATCHERS: &str = r#"{"problemMatcher": [
      {"owner": "Acme lint", "pattern": [{"regexp": "^([^\\s].*\\.acme)$", "file": 1}, {"regexp": "^\\s+(\\d+):(\\d+)\\s+(bug|warning)\\s+(.*)$", "line": 1, "column": 2, "severity": 3, "message": 4, "loop": true}]},
      {"owner": "acmec", "pattern": [{"regexp": "^(warning|bug)\\[(\\w+)\\]: (.*)$", "severity": 1, "code": 2, "message": 3}, {"regexp": "^ +at (\\S+) line (\\d+)$", "file": 1, "line": 2}]},
      {"owner": "acme-style", "severity": "warning", "pattern": [{"regexp": "^style: (.*)$", "message": 1}]}]}"#;
    let folder = Folder::new();
    folder.write("matchers.json", MATCHERS);
    let done = folder.siftd(["rules", "import", "matchers.json"]).ended(0);
    assert_eq!(done.err(), "siftd: matchers.json: the matcher of \"acme-style\" is left out: its problems are no errors\n");
    let rules = done.out();
    assert!(rules.contains("# acme-style: left out"), "{rules}");
    let piped = folder.piped(["rules", "import", "-"], MATCHERS).ended(0).out();
    assert_eq!(piped, rules.replace("matchers.json", "stdin"));
    folder.write("acme.toml", &rules);
    folder.siftd(["rules", "check", "acme.toml"]).ended(0);
    folder.write("a.log", "shop.acme\n   3:7  bug  the price is odd\n   5:1  warning  dull\n  12:3  bug  no stock\n\nbug[A12]: the till is stuck\n  at src/till.acme line 9\nwarning[A3]: dust\n  at src/till.acme line 4\n");
    let found: Vec<_> = folder.siftd(["scan", "--rules", "acme.toml", "a.log"]).ended(0).records();
    let places: Vec<_> = found
        .iter()
        .map(|r| (r["rule"].as_str().unwrap(), r["line_num"].as_u64().unwrap(), r["line_end"].as_u64().unwrap(), r["location"].to_string()))
        .collect();
    let at = |file: &str, line: u32, column: u32| serde_json::json!({"file": file, "line": line, "column": column}).to_string();
    let till = serde_json::json!({"file": "src/till.acme", "line": 9}).to_string();
    assert_eq!(
        places,
        [("matcher.acme-lint", 2, 2, at("shop.acme", 3, 7)), ("matcher.acme-lint", 4, 4, at("shop.acme", 12, 3)), ("matcher.acmec", 6, 7, till),]
    );
    for (wrong, said) in [
        (r#"{"problemMatcher": 7}"#, "no file of problem matchers"),
        (r#"{"problemMatcher": [{"owner": "x", "pattern": [{"regexp": "^(.+):(\\d+)$", "file": 1}]}]}"#, "no fixed text"),
        (r#"{"problemMatcher": [{"owner": "x", "pattern": [{"regexp": "^(?!x)stuck", "file": 1}]}]}"#, "look-around"),
        (r#"{"problemMatcher": [{"owner": "x", "pattern": []}]}"#, "no pattern"),
    ] {
        folder.write("wrong.json", wrong);
        let done = folder.siftd(["rules", "import", "wrong.json"]).ended(2);
        assert!(done.err().contains(said), "{said} in {}", done.err());
    }
}

#[test]
fn classify_says_which_fields_it_cannot_use() {
    let folder = Folder::new();
    let lines = "{\"message\":3}\n{\"message\":4}\n{\"exit_code\":\"x\"}\n{\"timed_out\":\"yes\",\"name\":null}\n{\"code\":[]}\n";
    let done = folder.piped(["classify"], lines).ended(0);
    let said = [
        "`message` is no text: it is ignored",
        "`exit_code` is no whole number: it is ignored",
        "`timed_out` is neither true nor false: it is ignored",
        "`code` is neither a text nor a number: it is ignored",
    ];
    assert_eq!(done.err(), said.map(|line| format!("siftd: {line}\n")).concat());
    let same = folder.piped(["classify"], "{\"code\":404}\n{\"response\":{\"status\":404}}\n").ended(0);
    let answers = same.records();
    assert_eq!((same.err(), &answers[0]["category"], &answers[0]["retry"]), (String::new(), &answers[1]["category"], &answers[1]["retry"]));
    assert_eq!(answers[0]["retry"]["reason"], "http_client_error");
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

/// What `run` would refuse, or silently fail to do.
#[test]
fn check_refuses_what_cannot_work() {
    let folder = Folder::new();
    let sink = |name: &str, path: &str| format!("[[sink]]\nname = \"{name}\"\ntype = \"file\"\npath = \"{path}\"\n");
    for (text, said) in [
        (
            "[[source]]\nname = \"s\"\ntype = \"unix\"\npath = \"a.toml\"\n".to_owned(),
            "source \"s\": cannot listen on a.toml: something lies there that is no socket",
        ),
        ("[[source]]\nname = \"s\"\ntype = \"tcp\"\naddress = \"192.0.2.1:5514\"\nallow_remote = true\n".to_owned(), "this machine has no such address"),
        (
            ["a", "b"].map(|name| format!("[[source]]\nname = \"{name}\"\ntype = \"stdin\"\n")).concat(),
            "sources \"a\" and \"b\" both read stdin, which only one can",
        ),
        ("[[source]]\nname = \"s\"\ntype = \"file\"\ninclude = [\".\"]\n".to_owned(), "source \"s\": .: is a folder: name its files"),
        (
            "state_dir = \"a.toml/st\"\n[[source]]\nname = \"s\"\ntype = \"stdin\"\n".to_owned(),
            "state folder a.toml/st: a.toml is a file, no folder: name another one",
        ),
        ("[[source]]\nname = \"s\"\ntype = \"command\"\nargv = [\"no-such-program\"]\n".to_owned(), "there is no program \"no-such-program\" in PATH"),
        ("[rules]\ndisable = [\"shell.not-fuond\"]\n".to_owned(), "a.toml:2:13: `disable` names `shell.not-fuond`"),
        ("[rules]\ndisable = [\"shell.not-fuond\"]\n".to_owned(), "did you mean `shell.not-found`?"),
        ("[error_detection]\nseverity_overrides = { \"no.rule\" = \"low\" }\n".to_owned(), "`severity_overrides` names `no.rule`"),
        ("[error_detection]\nseverity_overrides = { netwrk = \"low\" }\n".to_owned(), "such as \"javascript.error\""),
        ("[rules]\nfiles = [\"nope.toml\"]\n".to_owned(), "nope.toml: cannot be read"),
        (sink("a", "x.ndjson") + &sink("b", "./x.ndjson"), "sink `a` writes this file already"),
    ] {
        folder.write("a.toml", text);
        let err = folder.siftd(["check", "--config", "a.toml"]).ended(2).err();
        assert!(err.contains(said), "{said} in {err}");
    }
    folder.write("a.toml", "[rules]\nfiles = [\"none/*.toml\"]\ndisable = [\"shell.not-found\", \"perl\"]\n".to_owned() + &sink("a", "x") + &sink("b", "y"));
    folder.siftd(["check", "--config", "a.toml"]).ended(0);
    let example = folder.siftd(["rules", "show", "javascript.error"]).ended(0).out();
    assert!(example.contains("id = \"javascript.error\""));
}

/// Whoever mends one thing need not come back for the next, and each thing is a message of siftd's.
#[test]
fn check_says_all_that_run_would_refuse() {
    let folder = Folder::new();
    let source = |name: &str, rest: &str| format!("[[source]]\nname = \"{name}\"\n{rest}\n");
    let sink = |name: &str, path: &str| format!("[[sink]]\nname = \"{name}\"\ntype = \"file\"\npath = \"{path}\"\n");
    let sources = source("c", "type = \"command\"\nargv = [\"no-such-program\"]") + &source("u", "type = \"unix\"\npath = \"none/a.sock\"");
    folder.write("a.toml", format!("[rules]\ndisable = [\"no.rule\"]\n{sources}{}{}", sink("deep", "none/out.ndjson"), sink("flat", ".")));
    let err = folder.siftd(["check", "--config", "a.toml"]).ended(2).err();
    let said = [
        "error: a.toml:2:13: `disable` names `no.rule`",
        "siftd: sink deep: there is no folder",
        "siftd: sink flat: . is a folder",
        "siftd: source \"c\": ",
        "siftd: source \"u\": ",
    ];
    let at: Vec<Option<usize>> = said.iter().map(|said| err.find(said)).collect();
    assert!(at.is_sorted() && at.iter().all(Option::is_some), "{at:?} {err}");
}

/// The address may be free when siftd starts; a dry run reports it as `check` does.
#[test]
fn an_address_that_is_taken_is_a_hint_and_a_program_that_is_not_there_is_none() {
    let folder = Folder::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    folder.write("a.toml", format!("state_dir = \"st\"\n[[source]]\nname = \"s\"\ntype = \"tcp\"\naddress = \"{address}\"\n"));
    for words in [&["check", "--config", "a.toml"][..], &["run", "--dry-run", "--config", "a.toml"]] {
        let err = folder.siftd(words).ended(0).err();
        assert!(err.contains("hint: source \"s\": ") && err.contains(&address.to_string()), "{err}");
    }
    folder.write("a.toml", "[[source]]\nname = \"s\"\ntype = \"command\"\nargv = [\"no-such-program\"]\n");
    let err = folder.siftd(["run", "--dry-run", "--config", "a.toml"]).ended(2).err();
    assert!(err.contains("there is no program \"no-such-program\" in PATH"), "{err}");
}

#[test]
fn what_a_configuration_says_in_vain_is_said() {
    let folder = Folder::new();
    for name in ["a.log", "b.log"] {
        folder.write(name, "ERROR boom\n");
    }
    let source = |name: &str, include: &str| format!("[[source]]\nname = \"{name}\"\ntype = \"file\"\ninclude = [\"{include}\"]\n");
    folder.write("a.toml", "state_dir = \"state\"\n".to_owned() + &source("all", "*.log") + &source("one", "b.log") + &source("other", "c.log"));
    let hints = folder.siftd(["check", "--config", "a.toml"]).ended(0).err();
    assert!(hints.contains("hint: source one: b.log is read for source all, which matches it first\n"), "{hints}");
    folder.write("a.toml", "[rules]\ndisable = [\"pyton\", \"python\"]\n");
    let done = folder.siftd(["scan", "--config", "a.toml", "a.log"]).ended(0);
    assert_eq!(
        (done.out().lines().count(), done.err().as_str()),
        (1, "siftd: `disable` names `pyton`, and no rule or family is called that: `siftd check` shows where\n")
    );
}

#[test]
fn the_catalogue_of_a_family() {
    let folder = Folder::new();
    let listed = |names: &[&str]| folder.siftd([&["rules", "list"], names].concat()).ended(0).out();
    let (one, all) = (listed(&["shell", "perl"]), listed(&[]));
    assert!(one.lines().count() > 5 && one.lines().count() < all.lines().count());
    let families: std::collections::BTreeSet<&str> =
        one.lines().skip(1).filter(|line| !line.contains(" literals")).filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(families.into_iter().collect::<Vec<_>>(), ["perl", "shell"]);
    assert_eq!(listed(&["python.traceback"]).lines().count(), 3);
    let err = folder.siftd(["rules", "list", "pyton"]).ended(2).err();
    assert!(err.contains("no rule or family \"pyton\": did you mean `python`?"), "{err}");
}

/// Checks the files that a sink names, their permissions, and whether its peer has an address. Makes no connection.
#[test]
fn check_tries_what_sinks_over_the_network_name() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let other = rcgen::KeyPair::generate().unwrap();
    folder.write("cert.pem", own.cert.pem());
    let secret = |name: &str, text: &str, mode| {
        std::fs::set_permissions(folder.write(name, text), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    secret("key.pem", &own.signing_key.serialize_pem(), 0o640);
    secret("other.pem", &other.serialize_pem(), 0o600);
    secret("open.pem", &own.signing_key.serialize_pem(), 0o644);
    secret("token", "a-very-secret-one\n", 0o600);
    secret("open.token", "a-very-secret-one\n", 0o604);
    secret("empty.token", "\n", 0o600);
    let http = |more: &str| {
        format!("[[sink]]\nname = \"a\"\ntype = \"http\"\nurl = \"https://localhost:9/in?key=a-very-secret-one\"\nca_file = \"cert.pem\"\n{more}\n")
    };
    let tcp = |address: &str, more: &str| format!("[[sink]]\nname = \"b\"\ntype = \"tcp\"\naddress = \"{address}\"\n{more}\n");
    for (text, said) in [
        (http("token_file = \"none\""), "token_file"),
        (http("token_file = \"empty.token\""), "it is to hold a token"),
        (http("cert_file = \"cert.pem\"\nkey_file = \"other.pem\""), "cert_file and key_file: "),
        (http("cert_file = \"key.pem\"\nkey_file = \"key.pem\""), "key.pem: holds no certificate"),
        (tcp("localhost:9", "tls = true\nca_file = \"none.pem\""), "none.pem: No such file"),
        (tcp("a..b:9", ""), "a..b:9: "),
    ] {
        folder.write("a.toml", &text);
        let err = folder.siftd(["check", "--config", "a.toml"]).ended(2).err();
        assert!(err.contains(said) && !err.contains("a-very-secret-one"), "{said} in {err}");
    }
    let good = http("token_file = \"token\"\ncert_file = \"cert.pem\"\nkey_file = \"key.pem\"") + &tcp("127.0.0.1:9", "");
    for (more, said) in [("token_file = \"open.token\"", "open.token"), ("cert_file = \"cert.pem\"\nkey_file = \"open.pem\"", "open.pem")] {
        folder.write("a.toml", http(more));
        let err = folder.siftd(["check", "--config", "a.toml"]).ended(0).err();
        assert!(err.contains("hint: sink a: ") && err.contains(&format!("{said}: everyone can read it: chmod 640 it")), "{err}");
    }
    folder.write("a.toml", http("token_file = \"open.token\""));
    let done = folder.siftd(["run", "--config", "a.toml", "--dry-run", "--file", "cert.pem"]).ended(0);
    assert!(done.err().contains("WARN sink a: token_file open.token: everyone can read it"), "{}", done.err());
    folder.write("a.toml", good);
    folder.siftd(["check", "--config", "a.toml"]).ended(0);
    let shown = folder.siftd(["run", "--config", "a.toml", "--dry-run", "--file", "cert.pem"]).ended(0).out();
    assert!(shown.contains("sink a: https://localhost:9/in\n") && shown.contains("sink b: tcp 127.0.0.1:9\n"), "{shown}");
}

#[test]
fn run_says_at_once_that_a_folder_is_not_there() {
    let folder = Folder::new();
    folder.write("a.log", "fine\n");
    let err = folder.siftd(["run", "--file", "a.log", "--output", "none/x.ndjson"]).ended(2).err();
    assert!(err.starts_with("siftd: sink output: there is no folder ") && err.lines().count() == 1, "{err}");
}

#[test]
fn a_usual_slip_gets_the_right_command() {
    let folder = Folder::new();
    for (args, said) in [
        (&["build.log"][..], "siftd scan build.log"),
        (&["logs/my app"], "siftd scan 'logs/my app'"),
        (&["run", "app.log"], "siftd run --file app.log"),
        (&["digest", "-o", "x"], "siftd digest … > FILE"),
        (&["digest", "--output=x", "a.log"], "siftd digest … > FILE"),
        (&["scan", "--json", "a.log"], "--format ndjson"),
        (&["signature", "a.log"], "siftd signature < a.log"),
        (&["filter", "a.log"], "siftd filter < a.log"),
        (&["check", "a.toml"], "siftd check --config a.toml"),
        (&["scna"], "'scan'"),
    ] {
        let err = folder.siftd(args).ended(2).err();
        assert!(err.contains(said) && err.matches("tip:").count() == 1, "{said} in {err}");
    }
}

/// `--format json` is what help and README say; `--json` is what many type.
#[test]
fn json_has_both_spellings() {
    let folder = Folder::new();
    folder.write("a.log", error("boom"));
    folder.write("mine.toml", RULES);
    folder.siftd(["run", "--file", "a.log", "--state-dir", "st", "--dry-run"]).ended(0);
    folder.siftd(["breaker", "record", "fix", "--failure", "--error", "boom", "--state-dir", "st"]).ended(0);
    for args in [
        &["rules", "list", "python"][..],
        &["state", "list", "--state-dir", "st"],
        &["digest", "a.log"],
        &["history", "--state-dir", "st"],
        &["history", "list", "--state-dir", "st"],
        &["breaker", "status", "--state-dir", "st"],
        &["replay", "a.log", "--rules", "mine.toml"],
    ] {
        let said = |more: &[&str]| folder.siftd([args, more].concat()).ended(0).out();
        let json = said(&["--format", "json"]);
        assert_eq!(said(&["--json"]), json, "{args:?}");
        assert!(json.lines().next().is_none_or(|line| line.starts_with(['{', '['])), "{args:?}: {json}");
    }
    for format in [&["--json"][..], &["--format", "json"]] {
        let said = folder.siftd([&["status", "--state-dir", "st"], format].concat()).ended(2).err();
        assert!(said.contains("no siftd runs"), "{said}");
    }
}

#[test]
fn completions_and_manual_pages() {
    let folder = Folder::new();
    for shell in ["bash", "zsh", "fish", "elvish", "PowerShell"] {
        assert!(folder.siftd(["completions", shell]).ended(0).out().contains("siftd"));
    }
    assert!(folder.siftd(["man"]).ended(0).out().contains(".TH siftd"));
    folder.siftd(["man", "--dir", "pages"]).ended(0);
    let page = |name: &str| std::fs::read_to_string(folder.path().join("pages").join(name)).unwrap();
    let scan = page("siftd-scan.1");
    assert!(scan.contains(".SH \"EXAMPLES\"\n.nf\n\\&  siftd scan build.log ") && !scan.contains("EXTRA"), "{scan}");
    let exec = page("siftd-exec.1");
    assert!(exec.contains(" \\-\\- <") && exec.contains(".SH \"EXIT STATUS\"\n"), "{exec}");
    for name in ["siftd.1", "siftd-run.1"] {
        assert!(page(name).contains(".SH \"ENVIRONMENT\"\n") && page(name).contains("SIFTD_LOG"), "{name}");
    }
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
