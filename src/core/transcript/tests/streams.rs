//! Streams of records that something else shapes: a transport's prefix before each, an agent that shares another's words,
//! a run that says no more than that it failed, and where in a stream a format is looked for.

use std::sync::Arc;

use super::super::{Mode, recognise};
use super::{NOW, flagged, in_mode, read, scan};
use crate::core::engine::{Engine, Limits};
use crate::core::event::Event;
use crate::core::extract::Origin;
use crate::core::pipeline::Stream;
use crate::rules::RuleSet;

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

/// A record over the limit is cut between its escapes, wherever they are. One that is cut outside of its text is counted.
#[test]
fn a_record_that_is_cut_is_read_or_counted() {
    let limits = Limits { max_line_bytes: 4096, ..Limits::default() };
    let engine = Arc::new(Engine::new(RuleSet::compiled(), limits));
    let read = |input: &str| {
        let (mut stream, mut events) = (Stream::new(engine.clone(), Origin::default()), Vec::new());
        stream.push(input.as_bytes(), NOW, &mut events);
        stream.finish(NOW, &mut events);
        (events, stream.counts().unread)
    };
    let first = flagged("toolu_0", "Error: x");
    for piece in ["a line\n", "\n\"", "\\\"\n\t", "\u{7}", "é\u{1f600}\""] {
        for at in 0..16 {
            let text = format!("Exit code 1\n{}{}\nTypeError: x is not a function", "x".repeat(at), piece.repeat(2000));
            let (events, unread) = read(&(first.clone() + &flagged("toolu_1", &text)));
            assert_eq!((events.len(), unread), (2, 0), "{piece:?} {at}");
            assert!(events[1].truncated && events[1].text.contains("TypeError"), "{:?}", events[1]);
        }
    }
    let many: Vec<_> = (0..2000).collect();
    let (events, unread) = read(&(first + &serde_json::json!({"type": "user", "more": many, "n": {"many": many}}).to_string()));
    assert_eq!((events.len(), unread), (1, 1));
}
