//! Results that nobody flags, whose text decides: behind a command line that hides its exit code, and line by line as in a log.

use super::scan;
use crate::core::event::Severity;

/// A call of a shell and its successful result, in the formats that flag results.
fn passed(command: &str, said: &str) -> [String; 5] {
    let json = |value: serde_json::Value| value.to_string();
    let claude = [
        json(
            serde_json::json!({"type": "assistant", "sessionId": "s", "message": {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_0123456789abcdef", "name": "Bash", "input": {"command": command}}]}}),
        ),
        json(
            serde_json::json!({"type": "user", "sessionId": "s", "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_0123456789abcdef", "is_error": false, "content": said}]}}),
        ),
    ];
    let arguments = json(serde_json::json!({"cmd": command}));
    let output = format!("Chunk ID: 1\nProcess exited with code 0\nOutput:\n{said}");
    let rollout = [
        json(
            serde_json::json!({"timestamp": "2026-11-20T10:00:00Z", "type": "response_item", "payload": {"type": "function_call", "name": "exec_command", "call_id": "call_0123456789abcdef", "arguments": arguments}}),
        ),
        json(
            serde_json::json!({"timestamp": "2026-11-20T10:00:00Z", "type": "response_item", "payload": {"type": "function_call_output", "call_id": "call_0123456789abcdef", "output": output}}),
        ),
    ];
    let exec = [
        json(serde_json::json!({"type": "thread.started", "thread_id": "t"})),
        json(
            serde_json::json!({"type": "item.completed", "item": {"id": "item_1", "type": "command_execution", "command": command, "aggregated_output": said, "exit_code": 0, "status": "completed"}}),
        ),
    ];
    let pi = [
        json(
            serde_json::json!({"type": "message", "id": "1", "message": {"role": "assistant", "content": [{"type": "toolCall", "id": "call_0123456789abcdef", "name": "bash", "arguments": {"command": command}}]}}),
        ),
        json(
            serde_json::json!({"type": "message", "id": "2", "message": {"role": "toolResult", "toolCallId": "call_0123456789abcdef", "toolName": "bash", "isError": false, "content": [{"type": "text", "text": said}]}}),
        ),
    ];
    let droid = [
        json(
            serde_json::json!({"type": "tool_call", "id": "call_0123456789abcdef", "toolId": "Execute", "toolName": "Execute", "parameters": {"command": command}}),
        ),
        json(serde_json::json!({"type": "tool_result", "id": "call_0123456789abcdef", "toolId": "Execute", "isError": false, "value": said})),
    ];
    [claude, rollout, exec, pi, droid].map(|records| records.join("\n") + "\n")
}

#[test]
fn an_exit_code_that_says_nothing_leaves_it_to_the_output() {
    let failed = "tests/test_cart.py F\nE   NameError: name 'w' is not defined\n1 failed in 0.08s";
    let written = format!("cat > a.py <<'EOF'\n{}EOF\npytest -q | tail -3", "print(1)\n".repeat(100));
    for (command, said, want) in [
        (written.as_str(), failed, 1),
        ("pytest -q 2>&1 | tail -3", failed, 1),
        ("pytest -q || true", failed, 1),
        ("pytest -q; echo rc=$?", failed, 1),
        ("pytest -q 2>&1 | tail -3", "3 passed in 0.08s", 0),
        ("pytest -q", failed, 0),
        ("cat pytest.log | tail -3", failed, 0),
        ("grep -rn NameError src | head", failed, 0),
    ] {
        for session in passed(command, said) {
            let lines: Vec<_> = scan(&session).iter().map(|event| event.line_num).collect();
            assert_eq!(lines, vec![2; want], "{session}");
        }
    }
}

/// Claude Code repeats what a successful command wrote to stderr: a warning there does not speak for the rest.
#[test]
fn stderr_does_not_speak_for_the_whole_output() {
    let session = |stderr: &str, said: &str| {
        let [call, result] = [
            serde_json::json!({"type": "assistant", "sessionId": "s", "message": {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_0123456789abcdef", "name": "Bash", "input": {"command": "npm test | tail"}}]}}),
            serde_json::json!({"type": "user", "sessionId": "s", "toolUseResult": {"stdout": said, "stderr": stderr}, "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_0123456789abcdef", "is_error": false, "content": format!("{said}\n{stderr}")}]}}),
        ];
        scan(&format!("{call}\n{result}\n")).into_iter().map(|event| event.text).collect::<Vec<_>>()
    };
    let failed = "TypeError: cart is undefined\n    at total (/srv/till.js:3:7)";
    for (stderr, said, want) in [
        ("npm notice a new version", failed, vec!["TypeError: cart is undefined"]),
        (failed, "ok", vec!["TypeError: cart is undefined"]),
        ("npm notice", "ok", vec![]),
    ] {
        assert_eq!(session(stderr, said), want, "{stderr}");
    }
}

/// An exit code of 1 is the answer of a comparison, whatever the lines that differ say.
#[test]
fn a_difference_is_no_fault() {
    let session = |command: &str, said: &str| {
        let [call, result] = [
            serde_json::json!({"type": "assistant", "sessionId": "s", "message": {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_0123456789abcdef", "name": "Bash", "input": {"command": command}}]}}),
            serde_json::json!({"type": "user", "sessionId": "s", "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_0123456789abcdef", "is_error": true, "content": said}]}}),
        ];
        scan(&format!("{call}\n{result}\n")).into_iter().map(|event| (event.severity, event.text)).collect::<Vec<_>>()
    };
    for (command, said) in [
        ("diff want got", "Exit code 1\n3c3\n< Error: no till\n---\n> Error: no row"),
        ("cd /srv && diff -u want got", "Exit code 1\n--- want\n+++ got\n@@ -1 +1 @@\n-KeyError: 'a'\n+KeyError: 'b'"),
        ("cmp a b", "Exit code 1\na b differ: byte 1, line 1"),
        ("diff -q a b", "Exit code 1\nFiles a/x and b/x differ"),
    ] {
        assert_eq!(session(command, said), [(Severity::Low, "exited with code 1".to_owned())], "{command}");
    }
    for (command, said) in [
        ("cd nope && diff a b", "Exit code 1\nbash: line 1: cd: nope: No such file or directory"),
        ("diff a nope", "Exit code 2\ndiff: nope: No such file or directory"),
        ("make && diff a b", "Exit code 1\n1c1\n< Error: no till"),
    ] {
        assert!(session(command, said)[0].0 > Severity::Low, "{command}");
    }
}

/// The lines of a result know those before them, as in a plain log; only a flagged result says `Error: ` of itself.
#[test]
fn a_result_is_read_as_a_log() {
    let told = |said: &str| scan(&format!("{}\n", serde_json::json!({"role": "tool", "tool_call_id": "c", "content": said})));
    let placed = |said: &str| told(said).iter().map(|event| (event.record.as_ref().map_or(0, |record| record.line), event.text.clone())).collect::<Vec<_>>();
    assert_eq!(placed("Error: boom\n    at x (a.js:1:2)"), [(1, "Error: boom".into())]);
    assert_eq!(placed("checking\nF821 Undefined name `w`\n --> a.py:2:5\n  |\n2 | w()\n  | ^\n"), [(2, "F821 Undefined name `w`".into())]);
}

/// A text is read at both ends, however long it is, and so that what it makes of a line shows where the line is.
#[test]
fn an_error_deep_in_a_long_result_is_found() {
    const ERROR: &str = "E   NameError: name 'w' is not defined";
    let text = |before: usize, after: usize| format!("{}{ERROR}\n{}", "ok\n".repeat(before), "ok\n".repeat(after));
    for (before, after, is_cut) in [(2010, 3000, false), (10, 50_000, true), (50_000, 10, true)] {
        for session in passed("pytest -q 2>&1 | tail -5000", &text(before, after)) {
            let events = scan(&session);
            assert!(events.len() == 1 && events[0].text.contains("NameError") && events[0].truncated == is_cut, "{before} {after} {events:?}");
        }
        let flagged = super::flagged("t", &text(before, after));
        let event = &scan(&flagged)[0];
        let line = event.record.as_ref().map(|record| record.line as usize);
        assert!(event.text.contains("NameError") && line == Some(before + 1), "{event:?}");
        let record = serde_json::json!({"level": "error", "msg": text(before, after)}).to_string() + "\n";
        assert_eq!(scan(&record)[0].truncated, is_cut);
    }
    assert!(scan(&super::flagged("t", &text(50_000, 50_000)))[0].truncated);
}
