//! The wire form of records that are not errors: `gap`, `exit`, `repeat`, `silence`, `breaker`,
//! one line each, with the envelope of every record; and of what the history adds to an error.

use crate::core::event::Timestamp;
use crate::delivery::{Label, Missed, Notice};

use super::record::{rfc3339, with_rfc3339};
use crate::core::text::with_digits;

/// Appends a notice as one line.
pub fn write(out: &mut Vec<u8>, host: &str, label: &Label, notice: &Notice, now: Timestamp) {
    let mut line = Line { out, is_first: false };
    line.raw(b"{\"schema\":1");
    let (kind, id) = match notice {
        Notice::Gap { id, .. } => ("gap", id),
        Notice::Repeat { id, .. } => ("repeat", id),
        Notice::Exit { id, .. } => ("exit", id),
        Notice::Breaker { id, .. } => ("breaker", id),
        Notice::Silence { id, .. } => ("silence", id),
    };
    line.text("kind", kind);
    line.text("id", id);
    line.text("timestamp", &rfc3339(now));
    line.text("host", host);
    line.object("source", |line| source(line, label));
    members(&mut line, label, notice);
    line.raw(b"}\n");
}

/// Writes where the record comes from.
fn source(line: &mut Line, label: &Label) {
    line.text("name", &label.source);
    line.text("type", label.kind);
    if !label.path.is_empty() {
        line.text("path", &label.path);
    }
    if !label.peer.is_empty() {
        line.text("peer", &label.peer);
    }
    if !label.argv.is_empty() {
        line.texts("argv", &label.argv);
    }
}

/// Writes the members that only this kind has.
fn members(line: &mut Line, label: &Label, notice: &Notice) {
    match notice {
        Notice::Gap { why, missed, from, to, .. } => {
            line.text("why", why.as_str());
            match missed {
                Missed::Unknown => {}
                Missed::Bytes(count) => line.number("bytes", *count),
                Missed::Events(count) => line.number("count", *count),
                Missed::Datagrams(count) => line.number("datagrams", *count),
                Missed::Connections(count) => line.number("connections", *count),
            }
            line.text("from", &rfc3339(*from));
            line.text("to", &rfc3339(*to));
        }
        Notice::Exit { code, signal, duration_ms, outcome, attempts, .. } => {
            line.texts("argv", &label.argv);
            code.iter().for_each(|code| line.integer("code", i64::from(*code)));
            signal.iter().for_each(|signal| line.integer("signal", i64::from(*signal)));
            line.number("duration_ms", *duration_ms);
            line.text("outcome", outcome);
            line.number("attempts", *attempts);
        }
        Notice::Repeat { signature, kind, count, since, to, .. } => {
            line.text("signature", signature);
            if let Some((severity, category)) = kind {
                line.text("category", category.as_str());
                line.text("severity", severity.as_str());
            }
            line.number("count", *count);
            line.text("since", &rfc3339(*since));
            line.text("to", &rfc3339(*to));
        }
        Notice::Silence { since, seconds, ended, .. } => {
            line.text("status", if ended.is_some() { "ended" } else { "begun" });
            line.number("seconds", *seconds);
            line.text("since", &rfc3339(*since));
            ended.iter().for_each(|to| line.text("to", &rfc3339(*to)));
        }
        Notice::Breaker { name, made, .. } => {
            line.text("breaker", name);
            line.text("from", made.from.as_str());
            line.text("to", made.to.as_str());
            made.signature.iter().for_each(|signature| line.text("signature", signature));
            if made.count > 0 {
                line.number("count", u64::from(made.count));
            }
            line.text("reason", made.reason.as_str());
            made.until.iter().for_each(|until| line.text("until", &rfc3339(*until)));
        }
    }
}

/// Maximum length of what [`seen`] writes, in bytes.
pub const SEEN_BYTES: usize = 160;

/// Appends the member `seen` of an error's record, with the comma before it.
pub fn seen(out: &mut Vec<u8>, status: &str, count: u64, (first, last): (Timestamp, Timestamp)) {
    out.extend_from_slice(b",\"seen\":{\"status\":\"");
    out.extend_from_slice(status.as_bytes());
    out.extend_from_slice(b"\",\"count\":");
    with_digits(count, |digits| out.extend_from_slice(digits));
    out.extend_from_slice(b",\"first\":\"");
    with_rfc3339(first, |text| out.extend_from_slice(text));
    out.extend_from_slice(b"\",\"last\":\"");
    with_rfc3339(last, |text| out.extend_from_slice(text));
    out.extend_from_slice(b"\"}");
}

/// Appends members of a JSON object.
struct Line<'a> {
    out: &'a mut Vec<u8>,
    is_first: bool,
}

impl Line<'_> {
    fn raw(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    fn name(&mut self, name: &str) {
        if !std::mem::take(&mut self.is_first) {
            self.raw(b",");
        }
        self.raw(format!("\"{name}\":").as_bytes());
    }

    fn text(&mut self, name: &str, value: &str) {
        self.name(name);
        let quoted = serde_json::to_string(value).unwrap_or_else(|_| "\"\"".to_owned());
        self.raw(quoted.as_bytes());
    }

    fn texts(&mut self, name: &str, values: &[String]) {
        self.name(name);
        let quoted = serde_json::to_string(values).unwrap_or_else(|_| "[]".to_owned());
        self.raw(quoted.as_bytes());
    }

    fn integer(&mut self, name: &str, value: i64) {
        self.name(name);
        self.raw(value.to_string().as_bytes());
    }

    fn number(&mut self, name: &str, value: u64) {
        self.name(name);
        self.raw(value.to_string().as_bytes());
    }

    fn object(&mut self, name: &str, members: impl FnOnce(&mut Self)) {
        self.name(name);
        self.raw(b"{");
        self.is_first = true;
        members(self);
        self.is_first = false;
        self.raw(b"}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::event::{Category, Severity};
    use crate::delivery::Why;

    #[test]
    fn a_gap_and_a_repeat() {
        let label = Label { source: "agent".into(), kind: "file", path: "a\"b.log".into(), ..Label::default() };
        let (since, to) = (Timestamp(0), Timestamp(1_500_000));
        let gap = Notice::Gap { id: "00".into(), why: Why::RateLimit, missed: Missed::Events(7), from: since, to };
        let repeat = Notice::Repeat { id: "01".into(), signature: "ff".into(), kind: Some((Severity::High, Category::ALL[0])), count: 3, since, to };
        let mut out = Vec::new();
        write(&mut out, "h", &label, &gap, to);
        write(&mut out, "h", &Label { path: String::new(), ..label }, &repeat, to);
        let wanted = r#"{"schema":1,"kind":"gap","id":"00","timestamp":"1970-01-01T00:00:01.500000Z","host":"h","source":{"name":"agent","type":"file","path":"a\"b.log"},"why":"rate_limit","count":7,"from":"1970-01-01T00:00:00.000000Z","to":"1970-01-01T00:00:01.500000Z"}
{"schema":1,"kind":"repeat","id":"01","timestamp":"1970-01-01T00:00:01.500000Z","host":"h","source":{"name":"agent","type":"file"},"signature":"ff","category":"test_failure","severity":"high","count":3,"since":"1970-01-01T00:00:00.000000Z","to":"1970-01-01T00:00:01.500000Z"}
"#;
        assert_eq!(String::from_utf8(out).unwrap(), wanted);
    }
}
