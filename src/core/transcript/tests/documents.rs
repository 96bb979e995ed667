//! A whole JSON text: its steps are read one by one, up to a limit, however it is indented.

use super::super::Document;
use super::{NOW, flagged, read, stream};

fn trajectory(indent: bool) -> String {
    let step =
        |action: &str, observation: &str| serde_json::json!({"action": action, "observation": observation, "thought": "Error: thought", "state": {"a": [{}]}});
    let steps = [
        step("open till.py", "Traceback (most recent call last):\nValueError: shown"),
        step("python till.py", &format!("{}\nNameError: name 'pay' is not defined", "\\\"é".repeat(200_000))),
        step("make", "make: *** [Makefile:2: all] Error 2"),
    ];
    // The order of the keys is as the program writes it.
    let steps = if indent { serde_json::to_string_pretty(&steps) } else { serde_json::to_string(&steps) }.unwrap();
    format!(r#"{{"environment":"x","trajectory":{steps},"history":[{{"action":"a","observation":"TypeError: again"}}],"info":{{"exit_status":"exit_cost"}}}}"#)
}

#[test]
fn a_document_gives_its_steps_one_by_one() {
    for indent in [false, true] {
        let document = trajectory(indent);
        for chunk in [100, 4096, usize::MAX] {
            let events = read(stream().with_documents(u64::MAX), document.as_bytes(), chunk);
            // The list of steps must be seen in the first bytes that are read.
            let got: Vec<_> = events.iter().map(|event| event.text.chars().take(60).collect::<String>()).collect();
            assert_eq!(got, ["NameError: name 'pay' is not defined", "make: *** [Makefile:2: all] Error 2", "exit_cost"], "{chunk}");
            let offsets: Vec<_> = events.iter().map(|event| document.as_bytes()[event.offset as usize]).collect();
            assert_eq!(offsets, [b'{'; 3]);
            assert_eq!(events.iter().map(|event| event.truncated).collect::<Vec<_>>(), [true, false, false], "the long string is cut");
        }
    }
}

#[test]
fn a_document_is_read_up_to_its_limit() {
    let document = trajectory(false);
    let mut cut = stream().with_documents(1000);
    let mut out = Vec::new();
    cut.push(document.as_bytes(), NOW, &mut out);
    assert!(cut.is_document_cut() && out.is_empty());
}

#[test]
fn a_list_of_records_is_a_document() {
    let records = [r#"{"type":"system","subtype":"init","session_id":"s"}"#.to_owned(), flagged("toolu_0123456789abcdef", "Exit code 1\nno")].join(",");
    let events = read(stream().with_documents(u64::MAX), format!("[\n{records}]\n").as_bytes(), usize::MAX);
    assert_eq!(events.len(), 1);
    for other in ["[1, 2]", "[{\"a\":1}]", "{\"a\":{\"trajectory\":[{}]}}", "{\"trajectory\":3}", "{}\n{\"trajectory\":[{}]}"] {
        assert!(Document::begins(other.as_bytes()).is_none(), "{other}");
    }
}

#[test]
fn the_records_of_a_web_session_are_a_document() {
    let said = r#"{"type":"user","message":{"role":"user","content":"Error: fix it"}}"#;
    let failed = flagged("t", "Exit code 1\nmake: *** [Makefile:2: all] Error 2");
    for input in [format!("{{\"loglines\":[{said},{failed}]}}"), format!("{{\n  \"loglines\": [\n    {said},\n    {failed}  ]\n}}\n")] {
        let events = read(stream().with_documents(u64::MAX), input.as_bytes(), usize::MAX);
        let got: Vec<_> = events.iter().map(|event| (event.text.as_str(), input.as_bytes()[event.offset as usize])).collect();
        assert_eq!(got, [("make: *** [Makefile:2: all] Error 2", b'{')]);
    }
}

/// Records that a tool has indented, in one file or one after another; unknown ones stay text.
#[test]
fn indented_records_are_documents() {
    let old = |id: u32, exit: i32| {
        serde_json::json!({"id": id, "timestamp": "2026-11-20T13:00:00", "source": "agent", "message": "x".repeat(300), "cause": id - 1, "observation": "run",
            "content": "bash: jq: command not found", "extras": {"command": "jq .", "metadata": {"exit_code": exit}}})
    };
    let one = serde_json::to_string_pretty(&old(3, 127)).unwrap();
    let two = format!("{one}\n{}\n{}\n", serde_json::to_string_pretty(&old(5, 0)).unwrap(), serde_json::to_string_pretty(&old(7, 127)).unwrap());
    let history = serde_json::json!({"instance_id": "a", "history": [old(3, 127), old(5, 0)], "error": null}).to_string();
    let histories = format!("{history}\n{history}\n");
    let claude = serde_json::from_str::<serde_json::Value>(&flagged("toolu_0123456789abcdef", "Exit code 1\nno")).unwrap();
    let claude = serde_json::to_string_pretty(&claude).unwrap();
    for (text, count) in [(&one, 1), (&two, 2), (&history, 1), (&histories, 1), (&claude, 1)] {
        for chunk in [1000, usize::MAX] {
            let events = read(stream().with_documents(u64::MAX), text.as_bytes(), chunk);
            assert!(events.iter().all(|event| event.call.is_some() && text.as_bytes()[event.offset as usize] == b'{'), "{text}");
            assert_eq!(events.len(), count, "{chunk}: {text}");
        }
    }
    let lines = read(stream().with_documents(u64::MAX), two.as_bytes(), usize::MAX);
    let second = two.lines().enumerate().filter(|(_, line)| *line == "{").nth(2).unwrap().0;
    assert_eq!(lines.iter().map(|event| event.line_num).collect::<Vec<_>>(), [1, second as u64 + 1]);
    for other in ["{\n  \"level\": \"error\",\n  \"id\": 3\n}\n", "{\n", "{\n  \"source\": \"agent\",\n", "{\n\"history\": [{\"a\": 1}]}"] {
        assert!(Document::begins(other.as_bytes()).is_none(), "{other}");
    }
}

/// However much is read at once, the first record may be longer.
#[test]
fn a_document_may_tell_late_that_it_is_one() {
    let step = |said: &str| serde_json::json!({"role": "tool", "tool_call_id": "c", "content": said, "is_error": said.contains("Error")});
    let asked = serde_json::json!({"role": "system", "content": "Error: an example ".repeat(2000)});
    let document =
        serde_json::to_string_pretty(&serde_json::json!({"model": "m", "messages": [asked, step("fine"), step("TypeError: x is not a function")]})).unwrap();
    let list = serde_json::json!([step("TypeError: x is not a function"), asked]).to_string();
    for (text, chunk) in [(&document, 1), (&document, 97), (&document, 16 << 10), (&document, usize::MAX), (&list, 1), (&list, 64)] {
        let events = read(stream().with_documents(u64::MAX), text.as_bytes(), chunk);
        assert_eq!(events.iter().map(|event| &*event.text).collect::<Vec<_>>(), ["TypeError: x is not a function"], "{chunk}");
    }
}

/// A text that never turns out to be a document stays text, all of it.
#[test]
fn what_waits_for_more_is_not_lost() {
    for head in ["{\"a\": [", "[{\"a\": 1,", "{ ", "["] {
        let text = format!("{head}\nbash: jq: command not found\n{}", "1,\n".repeat(200_000));
        for (text, chunk) in [(&text[..], 1000), (&text[..60], 1), (&text[..60], usize::MAX)] {
            let mut stream = stream().with_documents(u64::MAX);
            let mut events = Vec::new();
            text.as_bytes().chunks(chunk).for_each(|part| stream.push(part, NOW, &mut events));
            stream.finish(NOW, &mut events);
            assert_eq!(events.iter().map(|event| (event.line_num, event.offset)).collect::<Vec<_>>(), [(2, head.len() as u64 + 1)], "{head} {chunk}");
            assert_eq!(stream.counts().bytes, text.len() as u64);
        }
    }
}

/// Strings are cut to their ends, but a step of many long ones is not kept: that is counted.
#[test]
fn a_step_that_is_too_long_is_counted() {
    let failed = |strings: usize| {
        let strings: Vec<_> = (0..strings).map(|_| "x".repeat(200_000)).collect();
        serde_json::json!({"role": "tool", "tool_call_id": "c", "content": "TypeError: x is not a function", "is_error": true, "more": strings})
    };
    for (strings, found) in [(2, 1), (22, 0)] {
        let text =
            serde_json::to_string_pretty(&serde_json::json!({"messages": [serde_json::json!({"role": "user", "content": "go"}), failed(strings)]})).unwrap();
        let (mut stream, mut events) = (stream().with_documents(u64::MAX), Vec::new());
        text.as_bytes().chunks(100_000).for_each(|part| stream.push(part, NOW, &mut events));
        stream.finish(NOW, &mut events);
        assert_eq!((events.len(), stream.counts().unread), (found, 1 - found as u64), "{strings}");
        assert!(events.iter().all(|event| !event.truncated), "no string is long");
    }
}
