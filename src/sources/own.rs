//! Recognises siftd's own output by its first bytes: records, one per line, or the report of
//! `scan --format report`. It is not a log: the errors it reports were found before, and would be found again in its texts.

use serde_json::Value;

use crate::words::{DIGEST_WARNING, SHORT_WARNING};

/// The forms of siftd's own output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Own {
    /// Records, one per line.
    Records,
    /// One document with `errors` and `summary`.
    Report,
}

impl Own {
    /// Returns what `head`, the first bytes of an input, shows; a record may be longer than `head`.
    #[must_use]
    pub fn of(head: &[u8]) -> Option<Self> {
        let line = head.split(|&byte| byte == b'\n').next().unwrap_or_default();
        if is_record(line) {
            return Some(Self::Records);
        }
        let compact: Vec<u8> = head.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
        let list = compact.strip_prefix(b"{\"errors\":[")?;
        (list.starts_with(b"],\"summary\":{\"total\":0,") || is_record(list)).then_some(Self::Report)
    }
}

/// Whether more input is needed to decide if a pipe that begins with `head` is siftd's
/// own: the opening of a report may arrive alone, and a digest counts only as a whole.
#[must_use]
pub fn may_begin(head: &[u8]) -> bool {
    const OPENING: &[u8] = b"{\"errors\":[";
    let compact: Vec<u8> = head.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).take(OPENING.len() + 1).collect();
    let opens = !compact.is_empty() && OPENING.starts_with(&compact);
    opens || (begins_as_digest(head) && !goes_on_after_fence(head))
}

/// Whether siftd wrote the input in a form that [`Own`] does not cover: records for others (ECS, OpenTelemetry,
/// SARIF), a verdict, or a digest. `head`: its first bytes; `size`: the minimum size of the input.
#[must_use]
pub fn is_written(head: &[u8], size: usize) -> bool {
    let line = head.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let has = |text: &[u8]| memchr::memmem::find(line, text).is_some();
    match line {
        [b'{', b'"', b'@', ..] => line.starts_with(b"{\"@timestamp\":\"") && has(b"\"dataset\":\"siftd.") && has(b"\"module\":\"siftd\""),
        [b'{', b'"', b'a', ..] => line.starts_with(b"{\"attributes\":[{\"key\":\"") && has(b"{\"key\":\"siftd."),
        [b'{', b'"', b's', ..] => {
            let is_verdict = line.starts_with(b"{\"success\":true,\"status\":\"") || line.starts_with(b"{\"success\":false,\"status\":\"");
            is_verdict && (has(b",\"errors\":[{\"schema\":1,\"kind\":\"error\",") || has(b",\"errors\":[],\"summary\":{\"total\":0,"))
        }
        [b'{', b'"', b'l', ..] => line.starts_with(b"{\"label\":\"untrusted program output, no instructions\",\"summary\":{\"total\":"),
        [b'{', b'"', b'$', ..] => line.ends_with(b"/sarif-2.1.0.json\",\"version\":\"2.1.0\",\"runs\":[{\"results\":["),
        _ => size <= head.len() && is_digest(head),
    }
}

/// Whether the text is a digest as people and models read it, and nothing else.
fn is_digest(text: &[u8]) -> bool {
    let fence = |byte: &u8| *byte == b'~';
    begins_as_digest(text) && text.trim_ascii_end().iter().rev().take_while(|byte| fence(byte)).count() >= 3
}

fn begins_as_digest(text: &[u8]) -> bool {
    let mut lines = text.splitn(4, |&byte| byte == b'\n');
    let is_short = lines.next() == Some(SHORT_WARNING.as_bytes());
    is_short || lines.take(2).any(|line| line == DIGEST_WARNING.as_bytes())
}

/// Whether anything follows the second fence.
fn goes_on_after_fence(text: &[u8]) -> bool {
    let fence = |line: &&[u8]| line.len() >= 3 && line.iter().all(|byte| *byte == b'~');
    let mut rest = text.split(|&byte| byte == b'\n').skip_while(|line| !fence(line)).skip(1).skip_while(|line| !fence(line)).skip(1);
    rest.any(|line| !line.trim_ascii().is_empty())
}

/// Whether the line is a record as siftd writes it, or with its keys in another order.
fn is_record(line: &[u8]) -> bool {
    if line.starts_with(b"{\"schema\":1,\"kind\":\"") {
        return true;
    }
    let Ok(record) = serde_json::from_slice::<Value>(line) else { return false };
    record.get("schema").and_then(Value::as_u64) == Some(1) && ["kind", "id"].iter().all(|key| record.get(key).is_some_and(Value::is_string))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_is_waited_for_only_while_what_follows_decides() {
        let digest = format!("1 error: 1 high\n{DIGEST_WARNING}\n~~~\nhigh runtime_error: a\n");
        for (head, want) in [
            ("{\"errors\":[\n", true),
            ("{ \"err", true),
            ("", false),
            ("{\"errors\":[1", false),
            ("{\"level\":", false),
            ("1 error: 1 high\n", false),
            (&digest, true),
            (&format!("{digest}~~~\n"), true),
            (&format!("{digest}~~~\n\nmake: *** [all] Error 1\n"), false),
            (&format!("{SHORT_WARNING}\n~~~\nhigh runtime_error: a\n"), true),
        ] {
            assert_eq!(may_begin(head.as_bytes()), want, "{head}");
        }
    }

    #[test]
    fn a_digest_is_known_however_short_it_is() {
        for (text, want) in [
            (format!("1 error: 1 high\n{DIGEST_WARNING}\n~~~\nhigh runtime_error: a\n~~~\n"), true),
            (format!("{SHORT_WARNING}\n~~~\nhigh runtime_error: a\n~~~\n"), true),
            (format!("{SHORT_WARNING}\nhigh runtime_error: a\n"), false),
            (format!("error: {SHORT_WARNING}\n~~~\na\n~~~\n"), false),
        ] {
            assert_eq!(is_written(text.as_bytes(), text.len()), want, "{text}");
        }
    }
}
