//! Reads values of JSON records of any shape: every query may find nothing.

use serde_json::Value;

use crate::core::decode::parse_any_time;
use crate::core::event::Timestamp;
use crate::core::text::printable;

/// Parses one JSON object. The parser bounds its depth (128), the line its size; invalid UTF-8 is replaced.
pub fn parse(line: &[u8]) -> Option<Value> {
    serde_json::from_str(&printable(line)).ok().filter(Value::is_object)
}

/// Returns the value at a pointer such as `/message/content`.
pub fn at<'v>(value: &'v Value, pointer: &str) -> Option<&'v Value> {
    value.pointer(pointer)
}

/// Returns the text at a pointer, if it is not empty.
pub fn text<'v>(value: &'v Value, pointer: &str) -> Option<&'v str> {
    at(value, pointer)?.as_str().filter(|text| !text.is_empty())
}

/// Returns the text at the first of these pointers that has one.
pub fn first<'v>(value: &'v Value, pointers: &[&str]) -> Option<&'v str> {
    pointers.iter().find_map(|pointer| text(value, pointer))
}

/// Returns the integer at a pointer.
pub fn int(value: &Value, pointer: &str) -> Option<i64> {
    at(value, pointer)?.as_i64()
}

/// Whether the value at a pointer is `true`.
pub fn is_true(value: &Value, pointer: &str) -> bool {
    at(value, pointer).and_then(Value::as_bool) == Some(true)
}

/// Returns the elements of the list at a pointer.
pub fn list<'v>(value: &'v Value, pointer: &str) -> &'v [Value] {
    at(value, pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Returns the HTTP status at a pointer.
pub fn status(value: &Value, pointer: &str) -> Option<u16> {
    int(value, pointer).and_then(|number| u16::try_from(number).ok()).filter(|status| (400..600).contains(status))
}

/// Returns content that is a text or a list of blocks with texts: the text, and the pointer to its first piece.
pub fn content(value: &Value, pointer: &str) -> (String, String) {
    match at(value, pointer) {
        Some(Value::String(text)) => (text.clone(), pointer.to_owned()),
        Some(Value::Array(blocks)) => {
            let texts: Vec<(usize, &str)> = blocks.iter().enumerate().filter_map(|(at, block)| Some((at, text(block, "/text")?))).collect();
            let first = texts.first().map_or_else(|| pointer.to_owned(), |(at, _)| format!("{pointer}/{at}/text"));
            (texts.iter().map(|(_, text)| *text).collect::<Vec<_>>().join("\n"), first)
        }
        _ => (String::new(), pointer.to_owned()),
    }
}

/// Returns what a call does, for people: its command, or its subject.
pub fn command(input: &Value) -> Option<String> {
    const KEYS: [&str; 12] =
        ["/command", "/cmd", "/file_path", "/path", "/notebook_path", "/pattern", "/query", "/url", "/description", "/code", "/input", "/file"];
    KEYS.iter().find_map(|key| match at(input, key)? {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Array(words) => Some(argv(words)).filter(|text| !text.is_empty()),
        _ => None,
    })
}

/// Joins an argument vector into one line; for `bash -lc SCRIPT` returns the script.
fn argv(words: &[Value]) -> String {
    let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
    match words[..] {
        [shell, flag, script] if flag.starts_with('-') && flag.ends_with('c') && shell.ends_with("sh") => script.to_owned(),
        _ => words.join(" "),
    }
}

/// Returns the time that a record states.
pub fn time(record: &Value, now: Timestamp) -> Option<Timestamp> {
    match record.get("timestamp")? {
        Value::String(text) => parse_any_time(text.as_bytes(), now),
        Value::Number(number) => parse_any_time(number.to_string().as_bytes(), now),
        _ => None,
    }
}
