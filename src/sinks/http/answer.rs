//! What a response means for the records that were sent. Pure: status, headers, body and time in, verdict
//! out. Sources: RFC 9110 (status codes, Retry-After), and Elasticsearch's bulk API for its items.

use std::time::Duration;

use jiff::fmt::rfc2822::DateTimeParser;
use serde::Deserialize;

use crate::config::HttpFormat;
use crate::core::event::Timestamp;
use crate::core::redact::clean;
use crate::words::is_invisible;

/// Maximum length of the server's text kept as a reason, in characters.
const MAX_REASON_CHARS: usize = 300;

/// The server's response.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// `Retry-After`.
    pub retry_after: Option<String>,
    /// `Location`.
    pub location: Option<String>,
    /// The body; `None` if it was too long or incomplete.
    pub body: Option<Vec<u8>>,
}

/// What to do about a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The server has all records.
    Done,
    /// The server has none of them: send the same again, after the pause that the server asks for.
    Again(String, Duration),
    /// One of the records is bad, or there are too many: send fewer.
    Fewer(Refusal),
    /// The server wants none of the records.
    Refused(Refusal),
    /// Each record has a result of its own, in order.
    Each(Vec<Fate>),
}

/// The result of one record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Done,
    /// To be sent again; with the status.
    Again(u16),
    Refused(Refusal),
}

/// Why the server refuses a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub status: u16,
    /// In the server's words, sanitised.
    pub reason: String,
}

impl Refusal {
    /// Returns status and reason, without repeating the status.
    pub fn shown(&self) -> String {
        let status = self.status.to_string();
        if self.reason.starts_with(&status) { self.reason.clone() } else { format!("{status} {}", self.reason) }
    }
}

pub(super) fn verdict(format: HttpFormat, answer: &Answer, count: usize, now: Timestamp) -> Verdict {
    let status = answer.status;
    let refusal = || Refusal { status, reason: reason(format, answer) };
    match status {
        200..=299 if format == HttpFormat::Elasticsearch => items(answer, count),
        200..=299 => Verdict::Done,
        408 | 429 | 500..=599 => {
            let asked = answer.retry_after.as_deref().and_then(|text| retry_after(text, now)).unwrap_or_default();
            Verdict::Again(named(status), asked)
        }
        400 | 413 | 422 if count > 1 => Verdict::Fewer(refusal()),
        400..=499 => Verdict::Refused(refusal()),
        // Following it might send records and a token to anyone.
        300..=399 => {
            let to = answer.location.as_deref().map(|to| format!(" to {}", harmless(to))).unwrap_or_default();
            Verdict::Again(format!("{}, a redirect{to}, which is not followed: correct the url", named(status)), Duration::ZERO)
        }
        _ => Verdict::Again(named(status), Duration::ZERO),
    }
}

fn named(status: u16) -> String {
    let known = ureq::http::StatusCode::from_u16(status).ok().and_then(|code| code.canonical_reason());
    known.map_or_else(|| format!("status {status}"), |name| format!("{status} {name}"))
}

/// The parts of a bulk response that are used. Any other shape is rejected while it is read, so that garbage takes no memory.
#[derive(Deserialize)]
struct Bulk {
    errors: bool,
    #[serde(default)]
    items: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    create: Said,
}

#[derive(Deserialize)]
struct Said {
    status: u16,
    #[serde(default)]
    error: Why,
}

#[derive(Default, Deserialize)]
struct Why {
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    reason: String,
}

/// The error of a request as a whole.
#[derive(Deserialize)]
struct Whole {
    error: Why,
}

/// Evaluates the items of a bulk response. A response that does not match what was sent says nothing about it.
fn items(answer: &Answer, count: usize) -> Verdict {
    let garbage = |why: &str| Verdict::Again(format!("{}, but {why}: is it the _bulk of Elasticsearch?", named(answer.status)), Duration::ZERO);
    let Some(body) = &answer.body else { return garbage("the body is too long or broke off") };
    let Ok(bulk) = serde_json::from_slice::<Bulk>(body) else { return garbage("the body is no answer to a bulk request") };
    if !bulk.errors {
        return Verdict::Done;
    }
    if bulk.items.len() != count {
        return garbage("it does not have an item for each record");
    }
    let fate = |Item { create: said }| match said.status {
        // 409: the server has the record already.
        200..=299 | 409 => Fate::Done,
        400..=499 if !matches!(said.status, 408 | 429) => {
            Fate::Refused(Refusal { status: said.status, reason: harmless(&format!("{}: {}", said.error.kind, said.error.reason)) })
        }
        status => Fate::Again(status),
    };
    Verdict::Each(bulk.items.into_iter().map(fate).collect())
}

fn reason(format: HttpFormat, answer: &Answer) -> String {
    let body = answer.body.as_deref().unwrap_or_default();
    if format == HttpFormat::Elasticsearch
        && let Ok(said) = serde_json::from_slice::<Whole>(body)
        && !said.error.reason.is_empty()
    {
        return harmless(&said.error.reason);
    }
    let text = harmless(String::from_utf8_lossy(&body[..body.len().min(4 * MAX_REASON_CHARS)]).trim());
    if text.is_empty() { named(answer.status) } else { text }
}

/// Makes the server's text safe to show: short, without secrets, and without control and invisible characters.
fn harmless(text: &str) -> String {
    let text = clean(text);
    let plain = text.chars().map(|c| if c.is_control() || is_invisible(c) { ' ' } else { c });
    plain.take(MAX_REASON_CHARS).collect()
}

/// Nothing is waited for longer: a number too large for any clock means "not for a very long time", never "at once".
const LONGEST: Duration = Duration::from_secs(366 * 86_400);

/// Parses seconds or a date.
fn retry_after(text: &str, now: Timestamp) -> Option<Duration> {
    let text = text.trim();
    if text.is_empty() {
        return None;
    }
    let pause = if text.bytes().all(|byte| byte.is_ascii_digit()) {
        text.parse().map_or(LONGEST, Duration::from_secs)
    } else {
        let at = DateTimeParser::new().parse_timestamp(text).ok()?;
        Duration::from_micros(u64::try_from(at.as_microsecond() - now.0).unwrap_or(0))
    };
    Some(pause.min(LONGEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, body: &str) -> Answer {
        Answer { status, body: Some(body.into()), ..Answer::default() }
    }

    fn plain(status: u16, count: usize) -> Verdict {
        verdict(HttpFormat::Ndjson, &answer(status, "no\u{61c}\u{feff}\u{1b}[2J\nthanks"), count, Timestamp(0))
    }

    #[test]
    fn a_refusal_says_its_status_once() {
        let shown = |reason: &str| Refusal { status: 400, reason: reason.into() }.shown();
        assert_eq!((shown("no such field").as_str(), shown("400 Bad Request").as_str()), ("400 no such field", "400 Bad Request"));
    }

    #[test]
    fn statuses() {
        for status in [200, 201, 202, 204] {
            assert_eq!(plain(status, 3), Verdict::Done);
        }
        for status in [408, 429, 500, 502, 503, 504, 599, 100, 301, 307, 999] {
            assert!(matches!(plain(status, 3), Verdict::Again(..)), "{status}");
        }
        for status in [401, 403, 404, 405, 409, 415, 431] {
            let Verdict::Refused(refusal) = plain(status, 3) else { panic!("{status}") };
            assert_eq!((refusal.status, refusal.reason.as_str()), (status, "no   [2J thanks"));
        }
        for status in [400, 413, 422] {
            assert!(matches!(plain(status, 2), Verdict::Fewer(_)) && matches!(plain(status, 1), Verdict::Refused(_)), "{status}");
        }
        let moved = Answer { status: 302, location: Some("https://else\u{7}/".into()), ..Answer::default() };
        let wanted = "302 Found, a redirect to https://else /, which is not followed: correct the url".to_owned();
        assert_eq!(verdict(HttpFormat::Ndjson, &moved, 1, Timestamp(0)), Verdict::Again(wanted, Duration::ZERO));
    }

    #[test]
    fn retry_after_in_both_forms() {
        let now = Timestamp(784_111_777 * 1_000_000);
        for (text, wanted) in [
            ("120", Some(120)),
            (" 0 ", Some(0)),
            ("Sun, 06 Nov 1994 08:51:37 GMT", Some(120)),
            ("Sun, 06 Nov 1994 08:40:00 GMT", Some(0)),
            ("soon", None),
            ("-1", None),
            ("", None),
            ("99999999999999999999999", Some(366 * 86_400)),
            ("18446744073709551615", Some(366 * 86_400)),
        ] {
            assert_eq!(retry_after(text, now).map(|pause| pause.as_secs()), wanted, "{text}");
        }
        let busy = Answer { status: 429, retry_after: Some("7".into()), ..Answer::default() };
        assert_eq!(verdict(HttpFormat::Json, &busy, 1, now), Verdict::Again("429 Too Many Requests".into(), Duration::from_secs(7)));
    }

    #[test]
    fn items_of_a_bulk_answer() {
        let said = |body: &str, count| verdict(HttpFormat::Elasticsearch, &answer(200, body), count, Timestamp(0));
        assert_eq!(said(r#"{"took":3,"errors":false,"items":[]}"#, 2), Verdict::Done);
        let body = r#"{"errors":true,"items":[{"create":{"_id":"1","status":201}},{"create":{"status":409,"error":{"type":"version_conflict_engine_exception"}}},
            {"create":{"status":429,"error":{"type":"es_rejected_execution_exception","reason":"full"}}},{"create":{"status":503}},
            {"create":{"status":400,"error":{"type":"document_parsing_exception","reason":"failed to parse [x]\u001b"}}}]}"#;
        let refused = Fate::Refused(Refusal { status: 400, reason: "document_parsing_exception: failed to parse [x] ".into() });
        assert_eq!(said(body, 5), Verdict::Each(vec![Fate::Done, Fate::Done, Fate::Again(429), Fate::Again(503), refused]));
        for (body, count) in [(body, 4), ("<html>", 1), ("{}", 1), (r#"{"errors":true,"items":[{}]}"#, 1), (r#"{"errors":true,"items":[{"create":{}}]}"#, 1)] {
            assert!(matches!(said(body, count), Verdict::Again(why, _) if why.contains("_bulk")), "{body}");
        }
        let cut = Answer { status: 200, ..Answer::default() };
        assert!(matches!(verdict(HttpFormat::Elasticsearch, &cut, 1, Timestamp(0)), Verdict::Again(..)));
        let whole = verdict(HttpFormat::Elasticsearch, &answer(404, r#"{"error":{"reason":"no such index [x]"}}"#), 3, Timestamp(0));
        assert_eq!(whole, Verdict::Refused(Refusal { status: 404, reason: "no such index [x]".into() }));
    }
}
