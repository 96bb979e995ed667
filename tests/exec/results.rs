//! What is reported of a run: verdict, records, raw output, and the hook that is called.

use std::os::unix::fs::PermissionsExt;

use crate::{Folder, until};

const BUG: &str = "echo 'TypeError: x is not a function' >&2";

#[test]
fn a_verdict_goes_where_it_is_wanted() {
    let folder = Folder::new();
    folder.write("v.json", "an older and much longer verdict");
    folder.exec(&["--verdict", "v.json"], "exit 3").ended(3);
    assert_eq!(folder.records("v.json")[0]["exit_code"], 3);
    let done = folder.exec(&["--verdict", "-"], "echo out; exit 3").ended(3);
    assert!(done.out().starts_with("out\n{\"success\":false,\"status\":\"failure\","), "{}", done.out());
    folder.shell("$SIFTD exec --verdict fd:9 -- sh -c 'exit 3' 9> nine");
    assert_eq!(folder.records("nine")[0]["exit_code"], 3);
    folder.shell("echo before > nine; $SIFTD exec --verdict fd:9 -- true 9>> nine");
    assert!(folder.read("nine").starts_with("before\n{"), "what the caller wrote before stays");
    folder.shell("{ $SIFTD exec --verdict fd:9 -- true; echo behind >&9; } 9> nine");
    assert!(folder.read("nine").ends_with("}\nbehind\n"), "one position for both: {}", folder.read("nine"));
    assert!(folder.shell("$SIFTD exec --verdict fd:9 -- true 9< nine").ended(125).err().contains("for reading only"));
    let piped = folder.shell("$SIFTD exec --verdict fd:9 -- echo out 9>&1 >/dev/null | cat");
    assert_eq!(piped.records()[0]["success"], true);
}

#[test]
fn records_do_not_continue_a_line_that_is_left_unfinished() {
    let folder = Folder::new();
    folder.write("half.ndjson", "{\"schema\":1,\"kind\":\"err");
    folder.exec(&["--events", "half.ndjson"], &format!("{BUG}; exit 1")).ended(1);
    folder.exec(&["--events", "half.ndjson"], &format!("{BUG}; exit 1")).ended(1);
    let written = folder.read("half.ndjson");
    let kinds: Vec<bool> = written.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()).collect();
    assert_eq!(kinds, [false, true, true, true, true], "{written}");
}

/// siftd's own descriptors have numbers, too: those of the state, of other files, of duplicates and of signals.
#[test]
fn a_descriptor_that_the_caller_has_not_opened_is_refused() {
    // Closes the descriptors that the test was started with.
    let closed: String = (3..=9).map(|number| format!("{number}>&- ")).collect();
    for number in 3..=9 {
        let folder = Folder::new();
        folder.shell("$SIFTD exec --breaker q --state-dir st -- false").ended(1);
        let state = std::fs::read(folder.at("st/siftd.db")).unwrap();
        let other = if number == 9 { 8 } else { 9 };
        for name in ["fd:", "/dev/fd/", "/proc/self/fd/"].map(|kind| format!("{kind}{number}")) {
            for flags in [
                format!("--verdict {name} --events e.ndjson --digest digest"),
                format!("--digest {name} --events fd:{other} --verdict fd:{other}"),
                format!("--events {name} --verdict v.json --digest fd:{other}"),
            ] {
                let script = format!("exec {closed} {other}> given; $SIFTD exec {flags} --breaker q --state-dir st -- touch ran");
                let done = folder.shell(&script).ended(125);
                let why = if name.starts_with("fd:") { "Bad file descriptor" } else { "No such file or directory" };
                assert!(done.err().contains(&format!(" {name}: {why}")), "{flags}: {}", done.err());
                assert!(!folder.at("ran").exists() && !folder.at("e.ndjson").exists() && folder.read("given").is_empty(), "{flags}");
            }
        }
        let done = folder.shell(&format!("exec {closed}; $SIFTD breaker record q --failure --events fd:{number} --state-dir st")).ended(2);
        assert!(done.err().contains("Bad file descriptor"), "{}", done.err());
        assert!(std::fs::read(folder.at("st/siftd.db")).unwrap() == state, "{number}: the state has changed");
    }
}

#[test]
fn all_descriptors_that_the_caller_has_opened_get_what_is_theirs() {
    let folder = Folder::new();
    let flags = "--events fd:3 --digest fd:4 --verdict fd:5 --breaker q --state-dir st";
    folder.shell(&format!("$SIFTD exec {flags} -- sh -c 'echo theirs >&4; exit 3' 3> events 4> digest 5> verdict")).ended(3);
    assert_eq!(folder.records("events")[0]["kind"], "exit");
    assert!(folder.read("digest").starts_with("theirs\n`sh -c"), "the command has it, too: {}", folder.read("digest"));
    assert_eq!(folder.records("verdict")[0]["exit_code"], 3);
    folder.siftd(["breaker", "check", "q", "--state-dir", "st"]).ended(0);
}

#[test]
fn two_results_in_one_file_are_refused() {
    let folder = Folder::new();
    folder.write("old", "before");
    std::os::unix::fs::symlink("old", folder.at("link")).unwrap();
    for flags in [["--verdict", "v", "--events", "./v"], ["--digest", "old", "--verdict", "link"]] {
        let done = folder.exec(&flags, "touch ran").ended(125);
        assert!(done.err().contains("writes this file already: give each its own"), "{}", done.err());
    }
    assert!(!folder.at("ran").exists() && !folder.at("v").exists() && folder.read("old") == "before");
    folder.exec(&["--verdict", "/dev/null", "--digest", "/dev/null", "--events", "-"], "touch ran").ended(0);
}

#[test]
fn a_verdict_has_the_errors_of_both_outputs() {
    let folder = Folder::new();
    folder.exec(&["--verdict", "v.json"], &format!("echo 'bash: foo: command not found'; {BUG}; exit 2")).ended(2);
    let verdict = &folder.records("v.json")[0];
    let shown: Vec<_> =
        verdict["errors"].as_array().unwrap().iter().map(|error| (error["source"]["io"].as_str().unwrap(), error["category"].as_str().unwrap())).collect();
    assert_eq!(shown, [("stderr", "type_error"), ("stdout", "dependency_error")]);
    assert_eq!((&verdict["error_message"], &verdict["cause"]), (&"TypeError: x is not a function".into(), &"code_bug".into()));
    assert_eq!((&verdict["summary"]["total"], &verdict["summary"]["blocking"]), (&2.into(), &1.into()));
    assert!(verdict["duration_ms"].is_u64());
}

#[test]
fn strict_and_fail_on_change_only_a_zero() {
    let folder = Folder::new();
    for (flags, script, code) in [
        (&["--strict"][..], BUG.to_owned(), 65),
        (&["--strict"], format!("{BUG}; exit 3"), 3),
        (&["--strict"], "echo fine >&2".to_owned(), 0),
        (&["--strict"], "echo '(node:1) [DEP0040] DeprecationWarning: The punycode module is deprecated.' >&2".to_owned(), 0),
        (&["--fail-on", "high"], BUG.to_owned(), 1),
        (&["--fail-on", "blocking"], BUG.to_owned(), 0),
        (&["--fail-on", "high"], "echo 'TypeError: x is not a function'".to_owned(), 1),
        (&["--fail-on", "high"], format!("{BUG}; exit 3"), 3),
        (&["--strict", "--fail-on", "high"], BUG.to_owned(), 65),
    ] {
        let done = folder.exec(flags, &script).ended(code);
        assert_eq!(done.err().contains("siftd: the command exited with 0, but "), code == 65 || code == 1, "{}", done.err());
    }
}

#[test]
fn secrets_are_in_nothing_that_is_written() {
    let folder = Folder::new();
    let secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    let flags = ["--verdict", "v.json", "--events", "e.ndjson", "--digest", "d.txt", "--keep-output", "kept", "--task", secret];
    let done = folder.exec(&flags, &format!("echo 'Error: token {secret} was refused' >&2; exit 1")).ended(1);
    assert!(done.err().contains(secret), "what passes through is unchanged");
    let mut written = folder.read("v.json") + &folder.read("e.ndjson") + &folder.read("d.txt");
    for entry in std::fs::read_dir(folder.at("kept")).unwrap() {
        written += &std::fs::read_to_string(entry.unwrap().path()).unwrap();
    }
    assert!(!written.contains(secret) && written.matches("[redacted:").count() >= 4, "{written}");
}

#[test]
fn the_output_of_a_run_that_failed_for_good_is_kept() {
    let folder = Folder::new();
    let kept = || -> Vec<(String, Vec<u8>)> {
        let Ok(entries) = std::fs::read_dir(folder.at("kept")) else { return Vec::new() };
        let mut files: Vec<_> = entries
            .map(|entry| entry.unwrap().path())
            .map(|path| (path.extension().unwrap().to_str().unwrap().to_owned(), std::fs::read(path).unwrap()))
            .collect();
        files.sort();
        files
    };
    folder.write("file", "mine");
    for taken in ["file", "file/below"] {
        let done = folder.exec(&["--keep-output", taken], "touch ran").ended(125);
        assert!(done.err().contains(&format!("--keep-output {taken}: ")) && !folder.at("ran").exists(), "{}", done.err());
    }
    folder.exec(&["--keep-output", "kept"], "echo fine").ended(0);
    assert!(kept().is_empty() && !folder.at("kept").exists());
    folder.exec(&["--keep-output", "new/kept"], "exit 0").ended(0);
    folder.exec(&["--keep-output", "kept", "--task", "../t 1"], r"printf 'raw\377\n'; echo oops >&2; exit 1").ended(1);
    assert_eq!(kept(), [("stderr".to_owned(), b"oops\n".to_vec()), ("stdout".to_owned(), b"raw\xff\n".to_vec())]);
    let name = std::fs::read_dir(folder.at("kept")).unwrap().next().unwrap().unwrap();
    assert_eq!(name.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    std::fs::remove_dir_all(folder.at("kept")).unwrap();
    folder.exec(&["--keep-output", "kept"], "echo first; yes | head -c 12000000; echo last; exit 1").ended(1);
    let (_, bytes) = &kept()[0];
    let text = String::from_utf8_lossy(bytes);
    assert!(bytes.len() < (8 << 20) + 100 && text.starts_with("first\n") && text.ends_with("last\n") && text.contains("bytes are not kept"));
}

#[test]
fn a_blocking_error_calls_the_users_command_once() {
    let folder = Folder::new();
    folder.write("hook.sh", "#!/bin/sh\ncat >> calls\necho \"$1\" >> args\necho from the hook\n");
    std::fs::set_permissions(folder.at("hook.sh"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let script = "echo 'bash: $(touch${IFS}pwned): command not found' >&2; echo 'bash: $(touch${IFS}pwned): command not found' >&2; echo 'TypeError: x is not a function' >&2";
    let done = folder.exec(&["--on-blocking", "./hook.sh 'two words'"], script).ended(0);
    assert_eq!(folder.records("calls").len(), 1, "{}", folder.read("calls"));
    assert_eq!((folder.records("calls")[0]["severity"].as_str(), folder.read("args").as_str()), (Some("blocking"), "two words\n"));
    assert!(!folder.at("pwned").exists() && done.out().is_empty() && done.err().contains("from the hook"));
    let missing = folder.exec(&["--on-blocking", "./no-such-hook"], "echo 'bash: foo: command not found' >&2").ended(0);
    assert!(missing.err().contains("--on-blocking ./no-such-hook"), "{}", missing.err());
    assert!(folder.exec(&["--on-blocking", "'open"], "true").ended(125).err().contains("quotes closed"));
}

/// The hook is called while the command is still running.
#[test]
fn the_call_does_not_wait_for_the_end() {
    let folder = Folder::new();
    let mut child = folder
        .command(["exec", "--on-blocking", "tee called", "--", "sh", "-c", "echo 'bash: foo: command not found' >&2; read line"])
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    until("the call", || folder.read("called").contains("command not found"));
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success() || !folder.read("called").is_empty());
}

/// What a parent such as Node.js calls a pipe is a socket.
#[test]
fn a_verdict_goes_into_a_socket() {
    let (mut ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    let folder = Folder::new();
    let mut command = folder.command(["exec", "--verdict", "fd:0", "--", "echo", "out"]);
    let done = command.stdin(std::os::fd::OwnedFd::from(theirs)).output().unwrap();
    drop(command);
    assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
    let mut said = String::new();
    std::io::Read::read_to_string(&mut ours, &mut said).unwrap();
    assert!(said.starts_with("{\"success\":true"), "{said}");
}

/// One rule for all results: a failed one is reported, the others are written, and a success becomes 74.
#[test]
fn a_result_that_cannot_be_written_is_said_and_no_success() {
    let folder = Folder::new();
    for (flag, other) in [("--events", "--verdict"), ("--verdict", "--digest"), ("--digest", "--events")] {
        for (script, code) in [("echo hi", 74), ("echo hi; exit 3", 3), ("echo 'KeyError: x' >&2", 74)] {
            folder.write("other", "");
            let done = folder.exec(&[flag, "/dev/full", other, "other"], script).ended(code);
            assert_eq!(done.err().matches(&format!("siftd: {flag}: /dev/full: No space left on device")).count(), 1, "{script}: {}", done.err());
            assert!(!folder.read("other").is_empty(), "{flag} {script}");
            assert!(done.out().is_empty() || done.out() == "hi\n");
        }
    }
    folder.write("file", "");
    let done = folder.exec(&["--keep-output", "file/folder", "--verdict", "v.json"], "touch ran").ended(125);
    assert!(done.err().contains("--keep-output file/folder: not a directory") && !folder.at("ran").exists(), "{}", done.err());
    // Requested failures take precedence.
    folder.exec(&["--strict", "--events", "/dev/full"], "echo 'KeyError: x' >&2").ended(65);
    // A reader that has closed its pipe wants nothing more.
    folder.shell("{ $SIFTD exec --verdict - -- sh -c 'until [ -e gone ]; do sleep 0.01; done'; echo $? > code; } | { exec <&-; touch gone; }").ended(0);
    assert_eq!(folder.read("code"), "0\n");
}

/// Writes a program that tests call, and returns the command that runs it.
fn program(folder: &Folder, name: &str, script: &str) -> String {
    use std::os::unix::fs::PermissionsExt;
    folder.write(name, format!("#!/bin/sh\n{script}\n"));
    std::fs::set_permissions(folder.at(name), std::fs::Permissions::from_mode(0o755)).unwrap();
    format!("./{name}")
}

/// A test runner's verdict comes after what its tests print.
#[test]
fn what_a_passing_test_prints_is_no_error() {
    let folder = Folder::new();
    let run = |words: &[&str], end: &str, code: i32| {
        let program = program(&folder, words[0], &format!("echo 'ERROR:root:the shelf is locked'\necho .\necho '{end}'\nexit {code}"));
        let command = [program].into_iter().chain(words[1..].iter().map(|word| (*word).to_owned()));
        folder.siftd(["exec", "--events", "e.ndjson", "--"].map(str::to_owned).into_iter().chain(command)).ended(code);
        let is_error = folder.records("e.ndjson").iter().any(|record| record["text"].as_str().is_some_and(|text| text.contains("the shelf is locked")));
        folder.write("e.ndjson", "");
        is_error
    };
    assert!(!run(&["pytest", "-q"], "1 passed in 0.01s", 0));
    assert!(run(&["pytest", "-q"], "1 failed in 0.01s", 1));
    assert!(!run(&["bash", "-c", "pytest -q"], "1 passed in 0.01s", 0));
    // Any command may run tests.
    assert!(!run(&["check"], "1 passed in 0.01s", 0));
    assert!(run(&["check"], "1 failed in 0.01s", 0));
    // If it fails although they passed, and nothing else says why, that is the reason.
    assert!(run(&["check"], "1 passed in 0.01s", 1));
    assert!(run(&["pytest", "-q"], "1 passed in 0.01s", 1));
    // A status line says that it failed, not why.
    assert!(run(&["check"], "1 passed in 0.01s\nmake: *** [Makefile:4: test] Error 1", 2));
}

/// Test runners give their verdict on stdout; what tests print on stderr has none of its own.
#[test]
fn a_verdict_on_one_output_is_about_both() {
    let folder = Folder::new();
    let traceback = "Traceback (most recent call last):\n  File \"till.py\", line 3, in pay\n    charge()\nshop.Declined: no card";
    let run = |name: &str, says: &str, code: i32, ended: i32| {
        let program = program(&folder, name, &format!("echo 'KeyError: x' >&2\necho '{traceback}' >&2\necho '{says}'\nexit {code}"));
        folder.siftd(["exec", "--strict", "--verdict", "v.json", "--", &program]).ended(ended);
        folder.records("v.json")[0]["errors"].as_array().unwrap().len()
    };
    assert_eq!(run("pytest", "8 passed in 0.10s", 0, 0), 0);
    assert_eq!(run("mocha", "  2 passing (4ms)", 0, 0), 0);
    assert_eq!(run("agent", "running 1 test\ntest cart ... ok\n\ntest result: ok. 1 passed; 0 failed", 0, 0), 0);
    assert_eq!(run("pytest", "8 passed in 0.10s", 3, 3), 2);
    assert_eq!(run("pytest", "collected 8 items", 0, 65), 2);
    // Nor does a pass say anything of what comes after it on the same output.
    let both = program(&folder, "upload", "printf 'PASS src/a.test.js\\nTests: 5 passed, 5 total\\nKeyError: x\\n' >&2");
    folder.siftd(["exec", "--strict", "--verdict", "v.json", "--", &both]).ended(65);
    // That a command was allowed to fail says nothing of tests.
    assert_eq!(run("deploy", "$ diff a b || true\nerror: no a\n$ make", 0, 65), 2);
}
