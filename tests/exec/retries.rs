//! Which failures are retried, how often, and what is reported of it.

use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::process::{Output, Stdio};

use serde_json::Value;

use crate::{Folder, until};

const FLAKY: &str = "echo run >> runs; [ $(wc -l < runs) -ge 3 ] && exit 0; echo 'Error: connect ETIMEDOUT 10.1.2.3:443' >&2; exit 1";
const DOWN: &str = "echo 'Error: connect ECONNREFUSED 10.1.2.3:443' >&2; exit 1";

fn of_kind(records: &[Value], kind: &str) -> Vec<Value> {
    records.iter().filter(|record| record["kind"] == kind).cloned().collect()
}

#[test]
fn a_transient_failure_is_tried_again_until_it_passes() {
    let folder = Folder::new();
    let done = folder.exec(&["--retries", "--base-delay", "1ms", "--events", "e.ndjson", "--verdict", "v.json", "--task", "t7"], FLAKY).ended(0);
    assert!(done.err().contains("run 1 failed (network_timeout); retry 1 of 3 in 1 ms"), "{}", done.err());
    let verdict = &folder.records("v.json")[0];
    assert_eq!((&verdict["success"], &verdict["attempts"], &verdict["failures"], &verdict["task"]), (&true.into(), &3.into(), &0.into(), &"t7".into()));
    let records = folder.records("e.ndjson");
    let retries = of_kind(&records, "retry");
    assert_eq!(retries.len(), 2);
    for (index, retry) in retries.iter().enumerate() {
        assert_eq!((&retry["attempt"], &retry["max_attempts"]), (&(index + 1).into(), &3.into()));
        assert_eq!((&retry["task"], &retry["reason"], &retry["delay_ms"]), (&"t7".into(), &"network_timeout".into(), &(1 << index).into()));
        assert!(retry["id"].as_str().unwrap().len() == 32 && retry["schema"] == 1 && retry["source"]["type"] == "command");
    }
    let exit = &of_kind(&records, "exit")[0];
    assert_eq!((&exit["code"], &exit["outcome"], &exit["attempts"], &exit["task"]), (&0.into(), &"success".into(), &3.into(), &"t7".into()));
    let ids: std::collections::BTreeSet<&str> = records.iter().map(|record| record["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), records.len(), "each record has an id of its own");
}

#[test]
fn when_no_retry_is_left_it_is_75() {
    let folder = Folder::new();
    let done = folder.exec(&["--retries", "2", "--base-delay", "1ms", "--events", "e.ndjson", "--verdict", "v.json", "--task", "t8"], DOWN).ended(75);
    assert!(done.err().contains("gave up after 3 runs (network)"), "{}", done.err());
    let verdict = &folder.records("v.json")[0];
    assert_eq!(
        (&verdict["status"], &verdict["attempts"], &verdict["failures"], &verdict["task"]),
        (&"transient_exhausted".into(), &3.into(), &1.into(), &"t8".into())
    );
    assert_eq!((&verdict["retry"]["class"], &verdict["exit_code"]), (&"transient".into(), &1.into()));
    let exit = &of_kind(&folder.records("e.ndjson"), "exit")[0];
    assert_eq!((&exit["outcome"], &exit["failures"], &exit["verdict"]["status"]), (&"transient_exhausted".into(), &1.into(), &"transient_exhausted".into()));
}

#[test]
fn without_the_flag_nothing_is_tried_again() {
    let folder = Folder::new();
    folder.exec(&["--verdict", "v.json"], DOWN).ended(1);
    let verdict = &folder.records("v.json")[0];
    assert_eq!((&verdict["status"], &verdict["attempts"], &verdict["failures"]), (&"failure".into(), &1.into(), &0.into()));
}

#[test]
fn permanent_and_unmatched_failures_are_not_tried_again() {
    let folder = Folder::new();
    for text in [
        "AssertionError: expected ETIMEDOUT",
        "Error: something broke",
        "SessionError: PIPELINE_SESSION_LOAD_FAILED: gone",
        "Error: read ECONNRESET\\n\\nAssertionError: no",
    ] {
        folder.write("runs", "");
        folder.exec(&["--retries", "3", "--base-delay", "1ms"], &format!("echo run >> runs; printf '{text}\\n' >&2; exit 1")).ended(1);
        assert_eq!(folder.read("runs"), "run\n", "{text}");
    }
    folder.exec(&["--retries", "1", "--base-delay", "1ms", "--retry-on", "unmatched"], "echo 'Error: something broke' >&2; exit 1").ended(75);
    assert!(folder.exec(&["--retries", "--retry-on", "no_such"], "true").ended(125).err().contains("there are agent_llm_failed,"));
}

/// Such a flag would do nothing, and nobody would notice.
#[test]
fn a_flag_needs_the_one_that_it_is_about() {
    let folder = Folder::new();
    for (flag, value, other) in [
        ("--retry-on", "timed_out", "--retries"),
        ("--base-delay", "1s", "--retries"),
        ("--max-delay", "1s", "--retries"),
        ("--max-reset-wait", "1s", "--retries"),
        ("--kill-after", "1s", "--timeout"),
        ("--max-chars", "100", "--digest"),
    ] {
        let done = folder.exec(&[flag, value], "touch ran").ended(125);
        assert!(done.err().contains("required arguments") && done.err().contains(other), "{flag}: {}", done.err());
    }
    assert!(!folder.at("ran").exists());
}

/// A run that succeeded is not repeated, whatever it printed.
#[test]
fn success_is_not_tried_again() {
    let folder = Folder::new();
    folder.exec(&["--retries", "3", "--base-delay", "1ms"], "echo run >> runs; echo 'Error: read ECONNRESET' >&2").ended(0);
    assert_eq!(folder.read("runs"), "run\n");
    folder.exec(&["--retries", "2", "--base-delay", "1ms", "--strict"], "echo run >> strict; echo 'Error: read ECONNRESET' >&2").ended(75);
    assert_eq!(folder.read("strict"), "run\n".repeat(3));
}

#[test]
fn the_policy_is_the_configurations() {
    let folder = Folder::new();
    folder.write("c.toml", "[retry]\nbase_delay = \"1ms\"\nmax_delay = \"2ms\"\nmax_retries = 1\n[retry.api_rate_limit]\nmax_retries = 4\n");
    folder.exec(&["--config", "c.toml", "--retries", "--events", "network.ndjson"], DOWN).ended(75);
    assert_eq!(of_kind(&folder.records("network.ndjson"), "retry").len(), 1);
    folder.exec(&["--config", "c.toml", "--retries", "--events", "rate.ndjson"], "echo 'API Error: 429 Too Many Requests' >&2; exit 1").ended(75);
    let delays: Vec<u64> = of_kind(&folder.records("rate.ndjson"), "retry").iter().map(|retry| retry["delay_ms"].as_u64().unwrap()).collect();
    assert_eq!(delays, [1, 2, 2, 2]);
}

#[test]
fn a_time_that_the_failure_names_is_waited_for() {
    let folder = Folder::new();
    let script = "echo 'API Error: 429 Too Many Requests (retry after 30 ms)' >&2; exit 1";
    folder.exec(&["--retries", "1", "--base-delay", "1ms", "--events", "e.ndjson"], script).ended(75);
    assert_eq!(of_kind(&folder.records("e.ndjson"), "retry")[0]["delay_ms"], 30);
}

#[test]
fn a_time_that_is_too_far_off_ends_it_at_once_and_is_said() {
    for (words, reset_at) in [
        ("429 Too Many Requests (retry after 1 hour)", "1 hour"),
        ("429 Too Many Requests, Retry-After: 3600", "3600"),
        ("You have hit your limit: usage limit reached, try again in 60 minutes", "60 minutes"),
    ] {
        let folder = Folder::new();
        let script = format!("echo run >> runs; echo 'API Error: {words}' >&2; exit 1");
        let done = folder.exec(&["--retries", "2", "--max-reset-wait", "2s", "--events", "e.ndjson", "--verdict", "v.json"], &script).ended(75);
        assert_eq!(folder.read("runs"), "run\n");
        assert!(done.err().contains("siftd: gave up (api_rate_limit): it may be tried again at 20"), "{}", done.err());
        assert!(done.err().contains("in 1h; --max-reset-wait 3600s"), "{}", done.err());
        let records = folder.records("e.ndjson");
        assert_eq!((of_kind(&records, "retry").len(), &of_kind(&records, "exit")[0]["code"]), (0, &1.into()));
        assert_eq!(folder.records("v.json")[0]["retry"]["reset_at"], reset_at);
    }
}

#[test]
fn errors_on_stdout_lead_to_a_retry_when_stderr_has_none() {
    let folder = Folder::new();
    folder.exec(&["--retries", "1", "--base-delay", "1ms"], "echo 'Error: read ECONNRESET'; exit 1").ended(75);
}

#[test]
fn out_of_memory_is_tried_again() {
    let folder = Folder::new();
    folder.exec(&["--retries", "1", "--base-delay", "1ms", "--events", "e.ndjson"], "exit 137").ended(75);
    assert_eq!(of_kind(&folder.records("e.ndjson"), "retry")[0]["reason"], "container_oom");
}

/// Returns when the verdict says to retry; nothing is run.
fn reset_at(stdout: &str, stderr: &str) -> Value {
    let folder = Folder::new();
    folder.write("out", stdout);
    folder.write("err", stderr);
    folder.exec(&["--verdict", "v.json"], "cat out; cat err >&2; exit 1").ended(1);
    let of_exec = folder.records("v.json")[0]["retry"]["reset_at"].clone();
    let result = serde_json::json!({"exit_code": 1, "stdout": stdout, "stderr": stderr}).to_string();
    let of_judge = folder.piped(["judge"], result).ended(0).records()[0]["retry"]["reset_at"].clone();
    assert_eq!(of_exec, of_judge, "{stdout}{stderr}");
    of_exec
}

#[test]
fn what_the_server_asks_for_is_found_in_its_answer() {
    let fails = "curl: (22) The requested URL returned error: 503\n";
    let head = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 17\r\n\r\nbusy\n";
    let verbose = format!("> GET / HTTP/1.1\n> \n< HTTP/1.1 503 Service Unavailable\r\n< Retry-After: Fri, 27 Nov 2026 07:28:00 GMT\r\n< \r\n{fails}");
    let node = "RateLimitError: 429 Rate limit reached\n    at f (file:///srv/app/y.mjs:63:20) {\n  status: 429,\n  headers: Headers {\n    'retry-after': '41'\n  }\n}\n\nNode.js v22.1.0\n";
    for (stdout, stderr, wanted) in [
        (head, fails, Some("17")),
        ("", &*verbose, Some("Fri, 27 Nov 2026 07:28:00 GMT")),
        ("", node, Some("41")),
        ("", "openai.RateLimitError: Error code: 429 - {'error': {'message': 'Rate limit reached. Please try again in 1m30s. Visit us'}}\n", Some("1m30s")),
        // A different response from the one that it failed with.
        (head, "curl: (7) Failed to connect to db.example.com port 443 after 3 ms: Connection refused\n", None),
        ("HTTP/1.1 503 Service Unavailable\nRetry-After: 17\n\nHTTP/1.1 200 OK\n\nok\n", fails, None),
        ("", "HTTP 429 Too Many Requests, retry after 3600\ncurl: (7) Failed to connect to db.example.com port 443 after 3 ms: Connection refused\n", None),
    ] {
        assert_eq!(reset_at(stdout, stderr).as_str(), wanted, "{stdout}{stderr}");
    }
}

#[test]
fn the_pause_is_the_one_that_the_server_asks_for() {
    let folder = Folder::new();
    folder.write("out", "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\n\r\n");
    folder.exec(&["--retries", "1", "--base-delay", "1ms", "--events", "e.ndjson"], "cat out; exit 1").ended(75);
    assert_eq!(of_kind(&folder.records("e.ndjson"), "retry")[0]["delay_ms"], 1000);
    // The stated time in full, however long siftd itself would wait.
    let answer = folder.piped(["classify"], "{\"message\": \"429 Too Many Requests, retry after 2 hours\"}").ended(0).records();
    assert_eq!(answer[0]["delay_ms"], 7_200_000);
}

const FLAKY_READER: &str = "cat > got; echo run >> runs; [ $(wc -l < runs) -ge 2 ] && exit 0; echo 'Error: connect ETIMEDOUT 10.1.2.3:443' >&2; exit 1";

#[test]
fn a_retry_reads_the_same_part_of_a_file_again() {
    let folder = Folder::new();
    folder.write("flaky.sh", FLAKY_READER);
    folder.write("in", "head\nbody\n");
    let done = folder.shell("{ read -r first; $SIFTD exec --retries 1 --base-delay 1ms -- sh flaky.sh; } < in").ended(0);
    assert_eq!(folder.read("got"), "body\n", "{}", done.err());
    assert_eq!(folder.read("runs").lines().count(), 2);
}

/// Runs the command on a pipe that holds `input`, with its writer still there or gone.
fn piped(folder: &Folder, input: &str, has_ended: bool, args: &[&str]) -> Output {
    let (reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(input.as_bytes()).unwrap();
    let writer = Some(writer).filter(|_| !has_ended);
    let done = folder.command(args).stdin(reader).output().unwrap();
    drop(writer);
    done
}

/// A retry would find an empty stdin, and might succeed on that.
#[test]
fn a_pipe_that_was_read_is_not_tried_again() {
    let folder = Folder::new();
    folder.write("flaky.sh", "read -r line; echo $line > got; echo run >> runs; echo 'Error: connect ETIMEDOUT 10.1.2.3:443' >&2; exit 1");
    for has_ended in [false, true] {
        let done = piped(&folder, "body\n", has_ended, &["exec", "--retries", "1", "--base-delay", "1ms", "--verdict", "v.json", "--", "sh", "flaky.sh"]);
        let err = String::from_utf8(done.stderr).unwrap();
        assert!(err.contains("run 1 failed (network_timeout) and is not retried: its stdin is a pipe, of which it may have read"), "{err}");
        assert_eq!((folder.read("got").as_str(), done.status.code()), ("body\n", Some(75)));
        let verdict = &folder.records("v.json")[0];
        assert_eq!((&verdict["status"], &verdict["retry"]["reason"], &verdict["attempts"]), (&"transient_exhausted".into(), &"stdin_read".into(), &1.into()));
        std::fs::remove_file(folder.at("v.json")).unwrap();
    }
}

/// So is a pipe that many a program leaves open for those that it starts.
#[test]
fn a_pipe_of_which_nothing_was_read_is_no_obstacle() {
    let folder = Folder::new();
    folder.write("flaky.sh", FLAKY);
    for (input, has_ended) in [("", true), ("body\n", true), ("", false), ("body\n", false)] {
        let done = piped(&folder, input, has_ended, &["exec", "--retries", "--base-delay", "1ms", "--", "sh", "flaky.sh"]);
        assert_eq!((done.status.code(), folder.read("runs").lines().count()), (Some(0), 3), "{input:?} {has_ended}");
        std::fs::remove_file(folder.at("runs")).unwrap();
    }
    // An empty one that was read is as empty as before.
    folder.write("reader.sh", FLAKY_READER);
    assert_eq!(piped(&folder, "", true, &["exec", "--retries", "--base-delay", "1ms", "--", "sh", "reader.sh"]).status.code(), Some(0));
}

/// The pipe is open and empty before the run and after it, but the run has read what its writer wrote in between.
#[test]
fn what_came_during_the_run_does_not_come_again() {
    let script = "echo run >> runs; read -r line; [ -z \"$line\" ] && exit 0; echo 'Error: connect ETIMEDOUT 10.1.2.3:443' >&2; exit 1";
    let (reader, writer) = std::io::pipe().unwrap();
    let (theirs, ours) = std::os::unix::net::UnixStream::pair().unwrap();
    for (stdin, writer) in [(OwnedFd::from(reader), OwnedFd::from(writer)), (theirs.into(), ours.into())] {
        let folder = Folder::new();
        let mut command = folder.command(["exec", "--retries", "1", "--base-delay", "1ms", "--", "sh", "-c", script]);
        let mut child = command.stdin(stdin).stderr(Stdio::piped()).spawn().unwrap();
        drop(command);
        folder.wait_for("runs", "run");
        let mut writer = std::fs::File::from(writer);
        writer.write_all(b"body\n").unwrap();
        // A second run would wait for more, and find the end.
        until("the end", || child.try_wait().unwrap().is_some() || folder.read("runs").lines().count() == 2);
        drop(writer);
        let done = child.wait_with_output().unwrap();
        let err = String::from_utf8(done.stderr).unwrap();
        assert!(done.status.code() == Some(75) && err.contains("is not retried: its stdin is a pipe"), "{:?} {err}", done.status);
    }
}
