//! What holds for every format: recognition, roles, one event for each failure, resuming, and hostile input;
//! `documents` has the tests of single documents. The events of each format are in `fixtures/agents`.

use std::fmt::Write as _;
use std::sync::{Arc, OnceLock};

use super::{Format, Mode, recognise};
use crate::core::assemble::{Facts, Snapshot};
use crate::core::engine::{Engine, Limits};
use crate::core::event::{Event, RetryClass, Severity, Timestamp};
use crate::core::extract::Origin;
use crate::core::pipeline::Stream;
use crate::rules::RuleSet;

mod documents;

const NOW: Timestamp = Timestamp(1_795_183_200_000_000);

fn engine() -> Arc<Engine> {
    static ENGINE: OnceLock<Arc<Engine>> = OnceLock::new();
    ENGINE.get_or_init(|| Arc::new(Engine::new(RuleSet::builtin(), Limits::default()))).clone()
}

fn stream() -> Stream {
    Stream::new(engine(), Origin::default())
}

fn in_mode(mode: Mode) -> Stream {
    let limits = Limits { mode, ..Limits::default() };
    Stream::new(Arc::new(Engine::new(RuleSet::builtin(), limits)), Origin::default())
}

fn read(mut stream: Stream, input: &[u8], chunk: usize) -> Vec<Event> {
    let mut out = Vec::new();
    input.chunks(chunk.max(1)).for_each(|part| stream.push(part, NOW, &mut out));
    stream.finish(NOW, &mut out);
    out
}

fn scan(input: &str) -> Vec<Event> {
    read(stream(), input.as_bytes(), usize::MAX)
}

/// Transcripts of the formats, and a damaged one: name and bytes.
const FIXTURES: [(&str, &[u8]); 12] = [
    ("aider", include_bytes!("../../../fixtures/agents/aider/input.log")),
    ("broken", include_bytes!("../../../fixtures/agents/broken/input.log")),
    ("claude-session", include_bytes!("../../../fixtures/agents/claude-session/input.log")),
    ("claude-stream", include_bytes!("../../../fixtures/agents/claude-stream/input.log")),
    ("codex-exec", include_bytes!("../../../fixtures/agents/codex-exec/input.log")),
    ("codex-rollout", include_bytes!("../../../fixtures/agents/codex-rollout/input.log")),
    ("gemini", include_bytes!("../../../fixtures/agents/gemini/input.log")),
    ("messages", include_bytes!("../../../fixtures/agents/messages/input.log")),
    ("opencode", include_bytes!("../../../fixtures/agents/opencode/input.log")),
    ("openhands", include_bytes!("../../../fixtures/agents/openhands/input.log")),
    ("pi", include_bytes!("../../../fixtures/agents/pi/input.log")),
    ("specstory", include_bytes!("../../../fixtures/agents/specstory/input.log")),
];

/// A flagged result of Claude Code.
fn flagged(id: &str, text: &str) -> String {
    let result = serde_json::json!({"type": "tool_result", "tool_use_id": id, "is_error": true, "content": text});
    serde_json::json!({"type": "user", "sessionId": "s", "message": {"role": "user", "content": [result]}}).to_string() + "\n"
}

#[test]
fn records_may_stand_behind_what_their_transport_put_before_them() {
    let said = r#"{"type":"assistant","sessionId":"s","message":{"role":"assistant","content":[{"type":"text","text":"Error: as I said"}]}}"#;
    let records = format!("{said}\n{}", flagged("t", "Exit code 1\nmake: *** [Makefile:2: all] Error 2"));
    let texts = |input: &str| scan(input).into_iter().map(|event| (event.line_num, event.text)).collect::<Vec<_>>();
    let bare = texts(&records);
    assert_eq!(bare, [(2, "make: *** [Makefile:2: all] Error 2".to_owned())]);
    for before in ["2026-11-20T13:00:01.1234567Z ", "agent-1  | ", "2026-11-20T13:00:01.123456789Z stdout F "] {
        let input: String = records.lines().map(|line| format!("{before}{line}\n")).collect();
        assert_eq!(texts(&input), bare, "{before}");
    }
    // A program's own record, whatever it quotes.
    assert!(recognise(format!("2026-11-20 13:00:01 INFO {said}").as_bytes()).is_none());
}

#[test]
fn a_failed_result_of_droid_and_a_failed_run_of_gemini_are_told() {
    let droid = [
        r#"{"type":"system","subtype":"init","session_id":"s"}"#,
        r#"{"type":"tool_result","id":"a","toolId":"Read","isError":false,"value":"ValueError: shown","session_id":"s"}"#,
        r#"{"type":"tool_result","id":"b","toolId":"Execute","isError":true,"error":{"type":"tool_error","message":"bash: jq: command not found"},"session_id":"s"}"#,
    ];
    let gemini = r#"{"session_id":"s","error":{"type":"FatalAuthenticationError","message":"Please set an Auth method","code":41}}"#;
    for (input, told) in [(droid.join("\n"), (3, "bash: jq: command not found")), (gemini.to_owned(), (1, "Please set an Auth method"))] {
        let events = scan(&input);
        assert_eq!(events.iter().map(|event| (event.line_num, event.text.as_str())).collect::<Vec<_>>(), [told]);
    }
}

#[test]
fn a_format_is_known_by_one_record() {
    let table = [
        (r#"{"type":"user","sessionId":"s","message":{"role":"user","content":"x"}}"#, Some(Format::Claude)),
        (r#"{"type":"system","subtype":"init","session_id":"s","tools":[]}"#, Some(Format::Claude)),
        (r#"{"type":"summary","summary":"x","leafUuid":"u"}"#, Some(Format::Claude)),
        (r#"{"timestamp":"2026-11-20T13:00:00Z","type":"session_meta","payload":{"id":"x"}}"#, Some(Format::Codex)),
        (r#"{"type":"thread.started","thread_id":"x"}"#, Some(Format::Codex)),
        (r#"{"id":"0","msg":{"type":"task_started"}}"#, Some(Format::Codex)),
        (r#"{"type":"init","session_id":"x","model":"m","timestamp":"t"}"#, Some(Format::Gemini)),
        (r#"{"type":"session","id":"x","cwd":"/","timestamp":"t"}"#, Some(Format::Pi)),
        (r#"{"type":"step_start","timestamp":1,"sessionID":"s","part":{"id":"p","type":"step-start"}}"#, Some(Format::Opencode)),
        (r#"{"id":0,"source":"agent","action":"run","args":{}}"#, Some(Format::Openhands)),
        (r#"{"role":"tool","tool_call_id":"c","content":"x"}"#, Some(Format::Messages)),
        ("# aider chat started at 2026-11-20 13:00:00", Some(Format::Aider)),
        ("<!-- Generated by SpecStory, Markdown v2.1.0 -->", Some(Format::Specstory)),
        ("<!-- Claude Code Session 600c64d2 (2026-08-03 15:41:34Z) -->", Some(Format::Specstory)),
        (r#"{"id":"1","timestamp":"t","type":"gemini","content":"x","toolCalls":[]}"#, Some(Format::Gemini)),
        (r#"{"type":"session.start","data":{"sessionId":"x"},"id":"1"}"#, Some(Format::Copilot)),
        (r#"{"type":"tool_call","subtype":"completed","call_id":"c","tool_call":{"readToolCall":{}}}"#, Some(Format::Cursor)),
        (r#"{"ts":1794304802000,"type":"say","say":"text","text":"x"}"#, Some(Format::Cline)),
        (r#"{"type":"tool_result","id":"c","toolId":"Execute","isError":false,"value":"x","session_id":"s"}"#, Some(Format::Claude)),
        (r#"{"session_id":"s","error":{"type":"FatalInputError","message":"no prompt","code":42}}"#, Some(Format::Gemini)),
        // Logs of services look like this.
        (r#"{"session_id":"s","error":{"type":"DbError","message":"gone","code":42}}"#, None),
        (r#"{"type":"user.created","data":{"content":"x"},"id":"1"}"#, None),
        (r#"{"type":"user","id":"7","timestamp":"t","content":"boom","level":"error"}"#, None),
        (r#"{"type":"error","message":"boom"}"#, None),
        (r#"{"level":"error","msg":"boom","type":"user","id":7}"#, None),
        (r#"{"type":"message","text":"x"}"#, None),
        (r#"{"type":"session","id":7}"#, None),
        (r#"{"source":"api","id":7,"action":"login"}"#, None),
        (r#"{"id":1,"msg":"a message"}"#, None),
        (r#"{"role":"admin","content":"boom"}"#, None),
        (r#"{"Time":"t","Action":"output","Package":"p","Output":"x\n"}"#, None),
        ("# aider", None),
        ("<!-- a comment -->", None),
        ("{", None),
        ("", None),
    ];
    for (line, want) in table {
        assert_eq!(recognise(line.as_bytes()), want, "{line}");
    }
}

#[test]
fn every_format_has_a_fixture() {
    let mut found = Vec::new();
    for (_, input) in FIXTURES {
        found.extend(input.split(|&byte| byte == b'\n').find_map(recognise).map(|format| format!("{format:?}")));
    }
    for format in
        [Format::Claude, Format::Codex, Format::Gemini, Format::Pi, Format::Opencode, Format::Openhands, Format::Messages, Format::Aider, Format::Specstory]
    {
        assert!(found.contains(&format!("{format:?}")), "{format:?}");
    }
}

#[test]
fn only_the_beginning_of_a_stream_shows_a_format() {
    let record = flagged("toolu_0123456789abcdef", "nothing known");
    let after = |lines: usize| "all is well\n".repeat(lines) + &record;
    let rule = |events: &[Event]| events.iter().map(|event| event.call.is_some()).collect::<Vec<_>>();
    assert_eq!(rule(&scan(&after(20))), [true]);
    // Later in the stream it is just some record with a flag, among lines of text.
    assert_eq!(rule(&scan(&after(200))), [false]);
    assert_eq!(rule(&read(in_mode(Mode::Records), after(200).as_bytes(), 100)), [true]);
    assert_eq!(rule(&read(in_mode(Mode::Text), after(0).as_bytes(), 100)), [false]);
}

#[test]
fn what_nobody_flagged_is_no_evidence() {
    let user = r#"{"type":"user","sessionId":"s","message":{"role":"user","content":"TypeError: x is not a function"}}"#;
    let agent = r#"{"type":"assistant","sessionId":"s","message":{"role":"assistant","content":[{"type":"text","text":"panic: boom\nError: x"}]}}"#;
    let shown = r#"{"type":"user","sessionId":"s","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"Traceback (most recent call last):\nValueError: x"}]}}"#;
    let level = r#"{"type":"system","subtype":"informational","sessionId":"s","level":"error","content":"Error: x"}"#;
    assert!(scan(&[user, agent, shown, level, ""].join("\n")).is_empty());
}

#[test]
fn a_failure_is_one_event_however_often_it_stands() {
    let text = "Exit code 1\nerror: one\nerror: two\nTypeError: three is not a function";
    let once = flagged("toolu_0123456789abcdef", text);
    let events = scan(&once.repeat(129));
    assert_eq!(events.len(), 1);
    assert_eq!((events[0].line_num, events[0].text.as_str()), (1, "TypeError: three is not a function"));
    assert_eq!(events[0].multiline.len(), 4);
    let two = [flagged("toolu_0123456789abcde1", text), flagged("toolu_0123456789abcde2", text)].concat();
    assert_eq!(scan(&two).len(), 2);
    // Two in one record have their own ids.
    let both = r#"{"type":"user","sessionId":"s","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","is_error":true,"content":"x\ny"},{"type":"tool_result","tool_use_id":"b","is_error":true,"content":"x"}]}}"#;
    let events = scan(both);
    assert_eq!(events.len(), 2);
    assert_ne!(events[0].id, events[1].id);
}

/// Blocks cut out of their message, and the output of the user's own command.
#[test]
fn blocks_that_stand_alone_say_the_same() {
    let call = r#"{"type":"tool_use","id":"toolu_1","name":"Bash","input":{"command":"make"}}"#;
    let failed = r#"{"type":"tool_result","tool_use_id":"toolu_1","is_error":true,"content":"Exit code 2\nmake: *** [all] Error 2"}"#;
    let events = scan(&format!("{call}\n{failed}\n{}\n", failed.replace("true", "false")));
    let told: Vec<_> = events.iter().map(|event| (event.line_num, event.call.as_ref().and_then(|call| call.command.clone()))).collect();
    assert_eq!(told, [(2, Some("make".into()))]);
    for said in [r#"{"type":"thinking","thinking":"TypeError: x is not a function"}"#, &call.replace("make", "echo 'TypeError: x is not a function'")] {
        assert_eq!(scan(&format!("{said}\n")).len(), 0, "{said}");
    }
    let typed = |stderr: &str| {
        let content = format!("<bash-stdout>x</bash-stdout><bash-stderr>{stderr}</bash-stderr>");
        serde_json::json!({"type": "user", "sessionId": "s", "message": {"role": "user", "content": content}}).to_string()
    };
    assert_eq!(scan(&typed("bash: nosuch: command not found")).len(), 1);
    assert_eq!(scan(&typed("")).len(), 0);
}

#[test]
fn a_refusal_is_no_fault_and_words_of_a_program_are_no_refusal() {
    let refusal = "The user doesn't want to proceed with this tool use. The tool use was rejected";
    let events = scan(&(flagged("a", refusal) + &flagged("b", &format!("Exit code 1\n{refusal}"))));
    let got: Vec<_> = events.iter().map(|event| (event.severity, event.is_fault())).collect();
    assert_eq!(got, [(Severity::Low, false), (Severity::Medium, true)]);
}

#[test]
fn the_api_s_own_status_decides_about_retries() {
    let fault = |fields: &str| {
        format!(
            r#"{{"type":"assistant","sessionId":"s","uuid":"u","isApiErrorMessage":true,{fields}"message":{{"role":"assistant","content":[{{"type":"text","text":"it did not work"}}]}}}}"#
        )
    };
    let table = [
        (r#""apiErrorStatus":429,"#, RetryClass::Transient, "api_rate_limit"),
        (r#""apiErrorStatus":529,"#, RetryClass::Transient, "http_retryable"),
        (r#""apiErrorStatus":401,"#, RetryClass::Permanent, "http_client_error"),
        (r#""error":"rate_limit","#, RetryClass::Transient, "api_rate_limit"),
        (r#""error":"authentication_failed","#, RetryClass::Permanent, "http_client_error"),
        (r#""error":"unknown","#, RetryClass::Unknown, "unmatched"),
    ];
    for (fields, class, reason) in table {
        let events = scan(&fault(fields));
        let got: Vec<_> = events.iter().map(|event| (event.retry.class, &*event.retry.reason)).collect();
        assert_eq!(got, [(class, reason)], "{fields}");
    }
}

#[test]
fn secrets_in_commands_are_replaced() {
    let call = r#"{"type":"assistant","sessionId":"s","message":{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"Bash","input":{"command":"curl -H 'Authorization: Bearer sk-ant-REDACTED' x"}}]}}"#;
    let events = scan(&format!("{call}\n{}", flagged("t", "Exit code 22\nno")));
    let command = events[0].call.as_ref().unwrap().command.clone().unwrap();
    assert!(command.contains("curl") && !command.contains("abcdefghijklmnop"), "{command}");
    assert!(events[0].redactions > 0);
}

/// A transcript that is stopped between any two lines and resumed from its facts gives the same ids.
#[test]
fn a_transcript_goes_on_where_it_stopped() {
    for (name, input) in FIXTURES {
        let whole = ids(&read(stream(), input, usize::MAX));
        for cut in input.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1) {
            let mut first = stream();
            let mut events = Vec::new();
            first.push(&input[..cut], NOW, &mut events);
            let (offset, facts) = first.facts();
            let kept: Facts = serde_json::from_str(&serde_json::to_string(&facts).unwrap()).unwrap();
            let safe = Snapshot::new(offset, &kept, &engine());
            let from = offset as usize;
            let mut second = Stream::resume(engine(), Origin::default(), safe, &input[from.saturating_sub(4096)..from]);
            second.push(&input[from..], NOW, &mut events);
            second.finish(NOW, &mut events);
            let mut all = ids(&events);
            all.dedup();
            assert_eq!(all, whole, "{name} cut at {cut}, resumed at {offset}");
        }
    }
}

/// If a stream is not read from its beginning, its head shows what it is.
#[test]
fn a_transcript_that_is_not_read_from_its_beginning_is_one() {
    for (name, input) in FIXTURES {
        let whole = read(stream(), input, usize::MAX);
        let half = input[..input.len() / 2].iter().rposition(|&byte| byte == b'\n').unwrap() + 1;
        let lines = input[..half].iter().filter(|&&byte| byte == b'\n').count() as u64;
        let facts = Facts::plain(lines).with_transcript(super::Memory::of_head(Mode::Auto, &input[..half]));
        let safe = Snapshot::new(half as u64, &facts, &engine());
        let events = read(Stream::resume(engine(), Origin::default(), safe, b""), &input[half..], usize::MAX);
        let behind: Vec<_> = whole.iter().filter(|event| event.line_num > lines).map(|event| event.line_num).collect();
        let got: Vec<_> = events.iter().map(|event| event.line_num).collect();
        assert!(behind.iter().all(|line| got.contains(line)), "{name}: {behind:?} {got:?}");
    }
}

fn ids(events: &[Event]) -> Vec<String> {
    let mut ids: Vec<_> = events.iter().map(|event| event.id.to_string()).collect();
    ids.sort();
    ids
}

#[test]
fn hostile_records_are_survived() {
    let head = flagged("toolu_0123456789abcdef", "x");
    let deep = |open: &str, close: &str| open.repeat(100_000) + &close.repeat(100_000);
    let mut inputs = vec![
        head.clone() + &deep("[", "]"),
        head.clone() + &deep("{\"type\":", "}"),
        head.clone() + "{\"type\":\"user\",\"message\":" + &deep("{\"message\":", "}"),
        head.clone()
            + "{\"type\":\"progress\",\"sessionId\":\"s\",\"data\":"
            + &"{\"message\":{\"type\":\"progress\",\"data\":".repeat(30)
            + "{}"
            + &"}}".repeat(30)
            + "}",
        head.clone()
            + "{\"type\":\"user\",\"sessionId\":\"s\",\"message\":{\"role\":\"user\",\"content\":["
            + &"{\"type\":\"tool_result\",\"is_error\":true,\"content\":\"Error: x\"},".repeat(2000)
            + "{}]}}",
        flagged("a", &"x".repeat(3 << 20)),
        flagged("a", &"Error: x\n".repeat(100_000)),
        "# aider chat started at x\n".to_owned() + &"> Error: x\n".repeat(50_000),
        "<!-- Generated by SpecStory -->\nTool use: **Bash**\n\n`x`\n\nResult:\n\n```\n".to_owned() + &"Error: x\n".repeat(50_000),
    ];
    inputs.push("{\"trajectory\":[".to_owned() + &deep("{\"a\":", "}"));
    inputs.push("{\"trajectory\":[{\"observation\":\"".to_owned() + &"\\".repeat(2 << 20));
    inputs.push("{\"trajectory\":[".to_owned() + &"{},".repeat(100_000));
    for input in inputs {
        let events = read(stream().with_documents(u64::MAX), input.as_bytes(), 60_000);
        let kept: usize = events.iter().map(|event| event.multiline.as_str().len()).sum();
        assert!(kept <= input.len() + (1 << 20), "{} bytes kept of {}", kept, input.len());
    }
}

/// Records with pieces exchanged: nothing panics, ids stay unique.
#[test]
fn random_records_are_survived() {
    let mut seed = 7u64;
    let mut next = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    for _ in 0..300 {
        let mut input = FIXTURES[next(FIXTURES.len())].1.to_vec();
        for _ in 0..next(12) {
            let other = FIXTURES[next(FIXTURES.len())].1;
            let (from, length, at) = (next(other.len()), next(60), next(input.len()));
            let piece = &other[from..(from + length).min(other.len())];
            let end = (at + next(60)).min(input.len());
            input.splice(at..end, piece.iter().copied());
        }
        let events = read(stream().with_documents(1 << 20), &input, 1 + next(5000));
        let (all, mut unique) = (ids(&events), ids(&events));
        unique.dedup();
        let mut said = String::new();
        events.iter().for_each(|event| _ = writeln!(said, "{}:{} {}", event.line_num, event.inner, event.text));
        assert_eq!(all, unique, "{said}\n{}", String::from_utf8_lossy(&input));
    }
}

/// The context of an error comes from the text that it stands in, with that text's numbers.
#[test]
fn context_is_of_the_same_text() {
    let text = "Exit code 1\nbuilding\nlinking\nTypeError: x is not a function\nend\nbye\nmore";
    let event = &scan(&flagged("t", text))[0];
    assert_eq!(event.record.as_ref().unwrap().line, 4);
    assert_eq!(event.context, ["2: building", "3: linking", "4: TypeError: x is not a function", "5: end", "6: bye"][..]);
    let trace = "Exit code 1\nstart\nTraceback (most recent call last):\n  File \"/srv/a.py\", line 1, in f\n    f()\nKeyError: 'x'\nend\nbye\nmore";
    let event = &scan(&flagged("t", trace))[0];
    assert_eq!(event.context, ["1: Exit code 1", "2: start", "3: Traceback (most recent call last):", "7: end", "8: bye"][..]);
    // No rule matches a line: the last one says why.
    let event = &scan(&flagged("t", "Exit code 2\none\ntwo\nthree"))[0];
    assert_eq!((event.text.as_str(), event.record.as_ref().unwrap().line), ("three", 4));
    assert_eq!(event.context, ["2: one", "3: two", "4: three"][..]);
    // Both ends of a long text are kept, with their line numbers.
    let long = format!("Exit code 2\n{}last words", "some line\n".repeat(20_000));
    let event = &scan(&flagged("t", &long))[0];
    assert_eq!(event.context, ["20000: some line", "20001: some line", "20002: last words"][..]);
    let secret = &scan(&flagged("t", "Exit code 2\npassword=hunter2secret\nno"))[0];
    assert!(!secret.context.as_str().contains("hunter2"), "{:?}", secret.context);
}

/// Flags at places other than the result, and failures that are reported twice.
#[test]
fn flags_of_every_shape_are_one_event_each() {
    let call = r#"{"type":"assistant","sessionId":"s","message":{"role":"assistant","content":[{"type":"tool_use","id":"toolu_0123456789abcdef","name":"Bash","input":{"command":"make"}}]}}"#;
    let result = |content: &str, more: &str| {
        format!(
            r#"{{"type":"user","sessionId":"s",{more}"message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"toolu_0123456789abcdef","content":{content}}}]}}}}"#
        )
    };
    let blocked = r#"{"type":"attachment","sessionId":"s","attachment":{"type":"hook_blocking_error","hookName":"PreToolUse:Bash","toolUseID":"toolu_0123456789abcdef","hookEvent":"PreToolUse","blockingError":{"blockingError":"[guard.sh]: no","command":"guard.sh"}}}"#;
    let fault = |uuid: &str| {
        format!(
            r#"{{"type":"assistant","sessionId":"s","uuid":"{uuid}","isApiErrorMessage":true,"message":{{"id":"msg-0123456789abcdef","role":"assistant","content":[{{"type":"text","text":"API Error: 500"}}]}}}}"#
        )
    };
    let task = r#""<retrieval_status>success</retrieval_status>\n<task_id>b1</task_id>\n<status>failed</status>\n<exit_code>2</exit_code>\n<output>\nboom\n</output>""#;
    let notice = r#"{"type":"user","sessionId":"s","message":{"role":"user","content":"<task-notification>\n<task-id>b1</task-id>\n<status>failed</status>\n<summary>it failed with exit code 2</summary>\n</task-notification>"}}"#;
    let codex = |output: &str| {
        let meta = r#"{"type":"session_meta","payload":{"id":"s"}}"#;
        format!(r#"{meta}{}{{"type":"response_item","payload":{{"type":"function_call_output","call_id":"call_0123456789abcdef","output":"{output}"}}}}"#, "\n")
    };
    let hook = r#"{"id":"e","source":"hook","kind":"HookExecutionEvent","hook_event_type":"PreToolUse","hook_command":"guard.sh","success":false,"blocked":true,"exit_code":2,"stderr":"no"}"#;
    let stop = r#"{"type":"system","subtype":"stop_hook_summary","sessionId":"s","hookCount":1,"hookInfos":[{"command":"lint.sh"}],"hookErrors":["lint.sh: 3 problems"]}"#;
    let kept = r#"{"id":"1","timestamp":"t","type":"user","content":"go on"}"#;
    let kept_fault = |said: &str| format!(r#"{kept}{}{{"id":"2","timestamp":"t","type":"error","content":"{said}"}}"#, "\n");
    let exported = |exit: u8| {
        let state = format!(r#"{{"status":"completed","input":{{"command":"make"}},"output":"ERROR: no rule","metadata":{{"exit":{exit}}}}}"#);
        format!(r#"{{"info":{{"id":"m","sessionID":"s","role":"assistant"}},"parts":[{{"type":"tool","callID":"c","tool":"bash","state":{state}}}]}}"#)
    };
    let table: [(&str, String, &[Option<&str>]); 14] = [
        ("the client's copy alone", [call, &result(r#""File has not been read""#, r#""toolUseResult":"Error: File has not been read","#)].join("\n"), &[None]),
        (
            "blocked, and its result",
            [call, blocked, &result(r#""PreToolUse:Bash hook error: [guard.sh]: no""#, "").replace(r#","content":"Pre"#, r#","is_error":true,"content":"Pre"#)]
                .join("\n"),
            &[Some("not_permitted")],
        ),
        ("repeated in a session that goes on", [fault("a"), fault("b")].join("\n"), &[None]),
        ("a background command, asked for twice, and its notice", [call, &result(task, ""), &result(task, ""), notice].join("\n"), &[None]),
        ("the notice alone", [call, notice].join("\n"), &[None]),
        ("a hook at the end", stop.to_owned(), &[None]),
        ("a call that the client could not make", codex("failed to parse function arguments: missing field"), &[None]),
        ("a patch that does not fit", codex("apply_patch verification failed: no such lines"), &[None]),
        ("a command that shows such words", codex("Exit code: 0\\nOutput:\\nexecution error: shown"), &[]),
        ("a fault in a chat that Gemini keeps", kept_fault("[API Error: the model is overloaded]"), &[None]),
        ("one that is tried again", kept_fault("Rate limited, retrying in 5s"), &[]),
        ("a call of an exported session that went well", exported(0), &[]),
        ("one that failed", exported(2), &[None]),
        ("a hook of OpenHands", hook.to_owned(), &[Some("not_permitted")]),
    ];
    for (name, input, want) in table {
        let events = scan(&input);
        let got: Vec<_> = events.iter().map(|event| event.call.as_ref().and_then(|call| call.flavour)).collect();
        assert_eq!(got, want, "{name}");
    }
}
