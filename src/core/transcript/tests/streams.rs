//! Streams of records that something else shapes: a transport's prefix before each, an agent that shares another's words,
//! a run that says no more than that it failed, and where in a stream a format is looked for.

use super::super::{Mode, recognise};
use super::{flagged, in_mode, read, scan};
use crate::core::event::Event;

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
