//! `exec` behaves as if siftd were not there: bytes, end of output, exit codes.

use std::io::Read;

use crate::{Folder, until};

#[test]
fn outputs_stay_apart_and_unchanged() {
    let folder = Folder::new();
    let script = r"printf 'a\0b\377\r\nno end'; printf '\033[31mred' >&2";
    let done = folder.exec(&["--verdict", "v.json"], script).ended(0);
    assert_eq!(done.0.stdout, b"a\0b\xff\r\nno end");
    assert_eq!(done.0.stderr, b"\x1b[31mred");
}

#[test]
fn stdin_is_the_commands() {
    let done = Folder::new().piped(["exec", "--", "wc", "-c"], vec![b'x'; 300_000]).ended(0);
    assert_eq!(done.out().trim(), "300000");
}

#[test]
fn exit_codes_are_the_commands() {
    let folder = Folder::new();
    for code in [0, 1, 2, 42, 255] {
        folder.exec(&[], &format!("exit {code}")).ended(code);
    }
    folder.exec(&[], "kill -TERM $$").ended(143);
    folder.exec(&["--verdict", "v.json"], "kill -KILL $$").ended(137);
    let verdict = &folder.records("v.json")[0];
    assert_eq!((&verdict["signal"], &verdict["retry"]["reason"]), (&9.into(), &"container_oom".into()));
    assert!(verdict.get("exit_code").is_none());
}

#[test]
fn what_cannot_be_run_has_the_shells_codes() {
    let folder = Folder::new();
    folder.write("plain.txt", "x");
    let missing = folder.siftd(["exec", "--verdict", "-", "--", "no-such-program"]).ended(127);
    assert!(missing.err().contains("no-such-program: command not found"));
    assert_eq!(missing.records()[0]["cause"], "environment_error");
    let plain = folder.siftd(["exec", "--", "./plain.txt"]).ended(126);
    assert!(plain.err().contains("cannot be run: Permission denied"), "{}", plain.err());
    folder.siftd(["exec"]).ended(125);
    folder.siftd(["--color", "never", "exec", "--max-chars", "x", "--", "true"]).ended(125);
    folder.siftd(["exec", "--help"]).ended(0);
    folder.siftd(["exec", "--strcit", "--", "true"]).ended(125);
    folder.siftd(["exec", "true", "--strcit", "--", "-x"]).ended(0);
    folder.siftd(["exec", "--events", "no/such/folder", "--", "true"]).ended(125);
    folder.siftd(["exec", "--verdict", "fd:77", "--", "true"]).ended(125);
}

#[test]
fn flags_of_the_command_are_its_own() {
    let folder = Folder::new();
    assert_eq!(folder.siftd(["exec", "echo", "--help", "-n"]).ended(0).out(), "--help -n\n");
    assert_eq!(folder.siftd(["exec", "--retries", "--", "echo", "3"]).ended(0).out(), "3\n");
}

/// Output is passed on while the command is still running, and so are its errors.
#[test]
fn nothing_waits_for_the_end() {
    let folder = Folder::new();
    let script = "echo out; echo 'bash: foo: command not found' >&2; read line; echo got $line; exit 0";
    let mut child = folder.command(["exec", "--events", "e.ndjson", "--", "sh", "-c", script]).stdin(std::process::Stdio::piped()).spawn().unwrap();
    let mut first = [0; 4];
    child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    assert_eq!(&first, b"out\n");
    folder.wait_for("e.ndjson", "command not found");
    drop(child.stdin.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_flood_on_both_outputs_comes_through_whole() {
    let done = Folder::new().exec(&["--verdict", "v.json"], "yes out | head -c 3000000 & yes err | head -c 3000000 >&2; wait").ended(0);
    assert_eq!((done.0.stdout.len(), done.0.stderr.len()), (3_000_000, 3_000_000));
}

#[test]
fn outputs_may_be_closed_early() {
    let folder = Folder::new();
    folder.exec(&["--strict"], "exec >&- 2>&-; exit 7").ended(7);
    folder.exec(&["--strict"], "exec >&-; echo still here >&2; exit 0").ended(0);
    assert_eq!(folder.shell("$SIFTD exec --strict -- cat <&-; echo $?").out(), "0\n");
}

/// If the reader has gone, the command notices as it would without siftd.
#[test]
fn a_closed_pipe_ends_the_command() {
    let folder = Folder::new();
    folder.shell("{ $SIFTD exec --strict -- yes; echo $? > code; } | head -n 1");
    folder.wait_for("code", "141");
}

/// What nobody reads any more may still tell why the command fails.
#[test]
fn errors_that_nobody_reads_are_found() {
    let folder = Folder::new();
    let script = "until [ -e gone ]; do sleep 0.01; done; printf 'KeyError: 1\\nKeyError: 2\\n'";
    folder.shell(&format!("$SIFTD exec --events gone.ndjson -- sh -c \"{script}\" | {{ exec <&-; touch gone; }}"));
    let errors = |name: &str| folder.records(name).iter().filter(|record| record["kind"] == "error").count();
    assert_eq!(errors("gone.ndjson"), 2);
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    folder.command(["exec", "--events", "full.ndjson", "--", "sh", "-c", script]).stdout(full).output().unwrap();
    assert_eq!(errors("full.ndjson"), 2);
}

/// The prompt returns even though a grandchild holds the outputs,
/// and what the grandchild writes arrives, before and after that.
#[test]
fn who_is_left_behind_does_not_hold_it_up_and_goes_on() {
    let folder = Folder::new();
    let script = "(echo soon; until [ -e go ]; do sleep 0.01; done; echo late; echo late >&2; echo ended > ended) & echo $! > pid; echo early";
    let done = folder.shell(&format!("$SIFTD exec --strict -- sh -c '{script}' > out 2> err; echo $? > code; cat out"));
    assert_eq!((folder.read("code").as_str(), done.out().contains("early"), done.out().contains("soon")), ("0\n", true, true), "{}", done.out());
    assert!(crate::runs(&folder.read("pid")), "without a limit nobody ends it");
    folder.write("go", "");
    folder.wait_for("ended", "ended");
    folder.wait_for("out", "late");
    folder.wait_for("err", "late");
}

/// What others write to the same file is not overwritten, before and after a remaining process has written.
#[test]
fn who_is_left_behind_overwrites_nothing() {
    let late = "(until [ -e go ]; do sleep 0.01; done; echo late; echo late >&2; echo > ended) & echo first";
    let shared =
        "$SIFTD exec -- sh -c \"$LATE\" FIRST; echo between; $SIFTD exec -- echo second; echo > go; until [ -e ended ]; do sleep 0.01; done; echo last";
    for (first, both) in [("2>&1", true), ("2> err", false), ("2>&1 > out", false)] {
        let folder = Folder::new();
        folder.write("all", "");
        folder.shell(&format!("LATE='{late}'; {{ {}; }} > all", shared.replace("FIRST", first)));
        // The relays continue after that.
        let wanted = if both { 2 } else { 1 };
        until("what was written late", || folder.read("all").matches("late").count() >= wanted && folder.read("all").contains("last\n"));
        let all = folder.read("all");
        let mut lines: Vec<&str> = all.lines().collect();
        lines.sort_unstable();
        let own = if first.contains("> out") { &["between", "last"][..] } else { &["between", "first", "last"] };
        let mut expected = [own, &vec!["late"; wanted], &["second"]].concat();
        expected.sort_unstable();
        assert_eq!(lines, expected, "{first}");
    }
}

/// A reader sees the end of the output when the last possible writer has ended, as it would without siftd.
#[test]
fn an_output_ends_with_who_holds_it() {
    let folder = Folder::new();
    let done = folder
        .shell("$SIFTD exec --strict -- sh -c '(until [ -e go ]; do sleep 0.01; done; echo late) & echo early' | { read line; touch go; echo $line; cat; }");
    assert_eq!(done.out(), "early\nlate\n");
}

#[test]
fn without_questions_nothing_is_looked_at_and_only_mistakes_are_said() {
    let folder = Folder::new();
    assert_eq!(folder.exec(&[], "echo 'TypeError: x' >&2").ended(0).err(), "TypeError: x\n");
    folder.write("right.toml", "[retry]\nbase_delay = \"1s\"\n");
    assert_eq!(folder.exec(&["--config", "right.toml"], "exit 3").ended(3).err(), "");
    folder.write("wrong.toml", "[retry]\nbase_delai = 1\n");
    folder.write("rules.toml", "[family]\nid = 7\n");
    for (flag, name, place) in
        [("--config", "wrong.toml", "wrong.toml:2:1"), ("--rules", "rules.toml", "rules.toml:2:"), ("--config", "none.toml", "none.toml")]
    {
        let done = folder.exec(&[flag, name], "echo 'TypeError: x' >&2; exit 3").ended(3);
        assert!(done.err().contains(place) && done.err().contains("--strict-config would have stopped here"), "{}", done.err());
        assert!(done.err().contains("TypeError: x\n"), "{}", done.err());
    }
}

#[test]
fn a_wrong_configuration_is_one_warning() {
    let folder = Folder::new();
    folder.write("wrong.toml", "[retry]\nbase_delai = 1\n");
    let done = folder.exec(&["--config", "wrong.toml", "--verdict", "-"], "echo 'TypeError: x is not a function' >&2; exit 4").ended(4);
    assert!(done.err().contains("wrong.toml:2:1") && done.err().contains("built-in configuration"), "{}", done.err());
    assert_eq!(done.records()[0]["errors"][0]["category"], "type_error");
    let strict = folder.exec(&["--config", "wrong.toml", "--verdict", "-", "--strict-config"], "touch ran").ended(125);
    assert!(strict.err().contains("wrong.toml:2:1") && !folder.at("ran").exists());
}

#[test]
fn output_that_cannot_be_passed_on_is_no_success() {
    let folder = Folder::new();
    for (script, code) in [("echo hi", 74), ("echo hi; exit 3", 3), ("true", 0)] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = folder.command(["exec", "--", "sh", "-c", script]).stdout(full).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), said.contains("siftd: stdout: No space left")), (Some(code), code != 0), "{script}: {said}");
    }
}
