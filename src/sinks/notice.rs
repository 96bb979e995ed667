//! The wire form of records that are not errors: `gap`, `exit`, `retry`, `repeat`, `silence`, `breaker`,
//! one line each, with the envelope of every record.

use super::record::rfc3339;
use crate::core::breaker::Transition;
use crate::core::event::Timestamp;
use crate::delivery::{Exit, Label, Missed, Notice, Rerun};
use crate::json::Object;

/// Appends a notice as one line.
pub fn write(out: &mut Vec<u8>, host: &str, label: &Label, notice: &Notice, now: Timestamp) {
    let mut line = Object::new(out);
    let (kind, id) = match notice {
        Notice::Gap { id, .. } => ("gap", id),
        Notice::Repeat { id, .. } => ("repeat", id),
        Notice::Exit { id, .. } => ("exit", id),
        Notice::Retry { id, .. } => ("retry", id),
        Notice::Breaker { id, .. } => ("breaker", id),
        Notice::Silence { id, .. } => ("silence", id),
    };
    line.member("schema", 1).member("kind", kind).member("id", id.as_str());
    line.member("timestamp", rfc3339(now)).member("host", host).object("source", |line| source(line, label));
    members(&mut line, label, notice);
    line.end();
    out.push(b'\n');
}

/// Writes where the record comes from.
fn source(line: &mut Object, label: &Label) {
    let known = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    line.member("name", label.source.as_str()).member("type", label.kind);
    line.optional("path", known(&label.path)).optional("peer", known(&label.peer));
    if !label.argv.is_empty() {
        line.member("argv", label.argv.clone());
    }
}

/// Writes the members that only this kind has.
fn members(line: &mut Object, label: &Label, notice: &Notice) {
    match notice {
        Notice::Gap { why, missed: lost, from, to, .. } => {
            line.member("why", why.as_str());
            missed(line, *lost);
            line.member("from", rfc3339(*from)).member("to", rfc3339(*to));
        }
        Notice::Exit { exit: how, .. } => {
            line.member("argv", label.argv.clone());
            exit(line, how);
        }
        Notice::Retry { rerun, .. } => retry(line, rerun),
        Notice::Repeat { signature, kind, count, since, to, .. } => {
            line.member("signature", signature.as_str());
            if let Some((severity, category)) = kind {
                line.member("category", category.as_str()).member("severity", severity.as_str());
            }
            line.member("count", *count).member("since", rfc3339(*since)).member("to", rfc3339(*to));
        }
        Notice::Silence { since, seconds, ended, .. } => {
            line.member("status", if ended.is_some() { "ended" } else { "begun" }).member("seconds", *seconds);
            line.member("since", rfc3339(*since)).optional("to", ended.map(rfc3339));
        }
        Notice::Breaker { name, made, .. } => breaker(line, name, made),
    }
}

fn missed(line: &mut Object, missed: Missed) {
    match missed {
        Missed::Unknown => line,
        Missed::Bytes(count) => line.member("bytes", count),
        Missed::Events(count) => line.member("count", count),
        Missed::Datagrams(count) => line.member("datagrams", count),
        Missed::Connections(count) => line.member("connections", count),
    };
}

fn exit(line: &mut Object, exit: &Exit) {
    line.optional("code", exit.code).optional("signal", exit.signal).optional("duration_ms", exit.duration_ms);
    line.member("outcome", exit.outcome).member("attempts", exit.attempts);
    if let Some(judged) = &exit.judged {
        line.member("failures", judged.failures).optional("task", judged.task.as_deref()).raw("verdict", &judged.verdict);
    }
}

fn retry(line: &mut Object, rerun: &Rerun) {
    line.member("attempt", rerun.attempt).member("max_attempts", rerun.max_attempts).optional("task", rerun.task.as_deref());
    line.member("reason", rerun.reason.as_str()).member("delay_ms", rerun.delay_ms);
}

fn breaker(line: &mut Object, name: &str, made: &Transition) {
    line.member("breaker", name).member("from", made.from.as_str()).member("to", made.to.as_str());
    line.optional("signature", made.signature.as_ref().map(|signature| signature.to_string()));
    line.optional("count", (made.count > 0).then_some(made.count));
    line.member("reason", made.reason.as_str()).optional("until", made.until.map(rfc3339));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::event::{Category, Severity};
    use crate::delivery::{Judged, Why};

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

    #[test]
    fn a_commands_end_and_its_retry() {
        let label = Label { source: "t\u{7f}".into(), kind: "command", argv: vec!["sh".into(), "-c".into()], ..Label::default() };
        let judged = Judged { failures: 2, task: Some("build".into()), verdict: b"{}".to_vec() };
        let exit = Exit { code: Some(3), signal: None, duration_ms: Some(5), outcome: "failure", attempts: 2, judged: None };
        let rerun = Rerun { attempt: 1, max_attempts: 3, task: None, reason: "a \"limit\"".into(), delay_ms: 100 };
        let mut out = Vec::new();
        for notice in [
            Notice::Exit { id: "00".into(), exit: exit.clone() },
            Notice::Exit { id: "01".into(), exit: Exit { code: None, signal: Some(9), judged: Some(judged), ..exit } },
            Notice::Retry { id: "02".into(), rerun },
        ] {
            write(&mut out, "h", &label, &notice, Timestamp(0));
        }
        let wanted = r#"{"schema":1,"kind":"exit","id":"00","timestamp":"1970-01-01T00:00:00.000000Z","host":"h","source":{"name":"t~","type":"command","argv":["sh","-c"]},"argv":["sh","-c"],"code":3,"duration_ms":5,"outcome":"failure","attempts":2}
{"schema":1,"kind":"exit","id":"01","timestamp":"1970-01-01T00:00:00.000000Z","host":"h","source":{"name":"t~","type":"command","argv":["sh","-c"]},"argv":["sh","-c"],"signal":9,"duration_ms":5,"outcome":"failure","attempts":2,"failures":2,"task":"build","verdict":{}}
{"schema":1,"kind":"retry","id":"02","timestamp":"1970-01-01T00:00:00.000000Z","host":"h","source":{"name":"t~","type":"command","argv":["sh","-c"]},"attempt":1,"max_attempts":3,"reason":"a \"limit\"","delay_ms":100}
"#;
        assert_eq!(String::from_utf8(out).unwrap(), wanted.replace('~', "\u{7f}"));
    }
}
