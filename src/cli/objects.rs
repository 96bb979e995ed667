//! Reads JSON objects from stdin, one per line, for the commands that answer each line with one. The length of a line is
//! bounded and blank lines are skipped. Bad UTF-8 and lone surrogates are replaced, since programs cut their output anywhere.

use std::io::{self, BufRead, BufReader, Read, Write};

use serde_json::Value;

use super::{Exit, Failure, out};

/// Answers each line of stdin; `limit` is the maximum length of a line in bytes.
/// `answer` gets the number of the line, and the reason if it is no JSON.
pub fn answer_each(limit: u64, mut answer: impl FnMut(u64, Result<Value, String>, &mut Vec<u8>)) -> Result<Exit, Failure> {
    let mut input = BufReader::with_capacity(64 << 10, io::stdin());
    let mut out = io::BufWriter::new(out::stdout()?);
    let (mut line, mut said) = (Vec::new(), Vec::new());
    let unread = |error: io::Error| Failure::new(format!("stdin: {error}"));
    let mut number = 0;
    loop {
        line.clear();
        said.clear();
        number += 1;
        if input.by_ref().take(limit).read_until(b'\n', &mut line).map_err(unread)? == 0 {
            return out::quiet_on_closed_pipe(out.flush());
        }
        let whole = line.ends_with(b"\n") || (line.len() as u64) < limit;
        if !whole {
            input.skip_until(b'\n').map_err(unread)?;
            answer(number, Err(format!("the line is longer than {limit} bytes (limits.max_document_bytes)")), &mut said);
        } else if !line.trim_ascii().is_empty() {
            answer(number, parse(line.trim_ascii()), &mut said);
        }
        if !said.is_empty() {
            said.push(b'\n');
        }
        if let Err(error) = put(&mut out, &said, input.buffer().is_empty()) {
            return out::quiet_on_closed_pipe(Err(error));
        }
    }
}

/// Writes an answer; `at_once` flushes it for a caller that waits for it before sending the next line.
fn put(out: &mut impl Write, said: &[u8], at_once: bool) -> io::Result<()> {
    out.write_all(said)?;
    if at_once { out.flush() } else { Ok(()) }
}

fn parse(line: &[u8]) -> Result<Value, String> {
    let text = String::from_utf8_lossy(line);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let parsed: Result<Value, _> = serde_json::from_str(text);
    parsed.or_else(|error| {
        serde_json::from_str(&paired(text)).map_err(|_| {
            // A line that only begins an object is one of many lines of it.
            let advice = if error.is_eof() { "; give each object a line of its own" } else { "" };
            format!("no JSON: {error}{advice}")
        })
    })
}

/// Replaces lone surrogates in JSON.
fn paired(text: &str) -> String {
    let unit = |at: usize| text.get(at..at + 6).and_then(|escape| u16::from_str_radix(escape.strip_prefix("\\u")?, 16).ok());
    let (mut out, mut at) = (String::with_capacity(text.len()), 0);
    while let Some(found) = text[at..].find('\\') {
        let escape = at + found;
        out.push_str(&text[at..escape]);
        let (kept, length) = match (unit(escape), unit(escape + 6)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => (None, 12),
            (Some(0xd800..=0xdfff), _) => (Some("\\ufffd"), 6),
            _ => (None, 2),
        };
        let end = text.ceil_char_boundary((escape + length).min(text.len()));
        out.push_str(kept.unwrap_or(&text[escape..end]));
        at = end;
    }
    out + &text[at..]
}

/// Returns a member that is a string.
pub fn text<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    object.get(name)?.as_str()
}

/// Returns a member that is a whole number, or a string with one.
pub fn integer(object: &Value, name: &str) -> Option<i64> {
    /// Above this, floats cannot represent every whole number.
    const MAX_FLOAT: f64 = 9e15;
    let value = object.get(name)?;
    let whole = |number: &f64| number.fract() == 0.0 && number.abs() < MAX_FLOAT;
    value.as_i64().or_else(|| value.as_f64().filter(whole).map(|number| number as i64)).or_else(|| value.as_str()?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_however_they_are_written() {
        for (text, want) in
            [("1", Some(1)), ("-9", Some(-9)), ("3.0", Some(3)), ("\" 137 \"", Some(137)), ("1.5", None), ("1e30", None), ("true", None), ("null", None)]
        {
            let object: Value = serde_json::from_str(&format!("{{\"code\":{text}}}")).unwrap();
            assert_eq!(integer(&object, "code"), want, "{text}");
        }
    }

    #[test]
    fn halves_of_pairs_are_replaced_and_whole_ones_stay() {
        for (text, want) in [
            (r#"{"a":"\ud83d"}"#, "{\"a\":\"\u{fffd}\"}"),
            (r#"{"a":"\ud83d\ude00 \udc00"}"#, "{\"a\":\"😀 \u{fffd}\"}"),
            (r#"{"a":"\\ud83d \ud83d"}"#, "{\"a\":\"\\\\ud83d \u{fffd}\"}"),
        ] {
            assert_eq!(parse(text.as_bytes()).unwrap().to_string(), want, "{text}");
        }
        assert!(parse(b"{\"a\":").is_err() && parse(b"\\").is_err());
    }
}
