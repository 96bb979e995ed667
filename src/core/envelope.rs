//! The envelopes that container runtimes and test runners put around each line: their
//! content, and the output or test that it came from. `pipeline` takes every line out of its
//! envelope, `lookback` the lines before it. Pieces of a split line are not joined here.

use memchr::{memchr, memmem};

use super::decode::{self, Json};
use super::event::Timestamp;
use super::leadin;
use super::line::Place;

/// Docker splits lines into pieces of 16 KiB; characters that it could not read may make a piece longer.
const DOCKER_PIECE_BYTES: usize = 16 << 10;

/// How an envelope in JSON begins.
const OPENS: [&[u8]; 4] = [b"{\"log\":", b"{\"Time\":", b"{\"Action\":", b"{\"ImportPath\":"];
/// Maximum length of a CI system's stamp or a composer's name before an envelope, in bytes.
const MAX_PREFIX_BYTES: usize = 96;

/// Returns the content of a container runtime's or test runner's envelope, and whether more of it follows.
#[must_use]
pub fn unwrap(raw: &[u8], now: Timestamp, place: &mut Place) -> Option<(Vec<u8>, bool)> {
    if raw.first().is_some_and(u8::is_ascii_digit)
        && let Some(cri) = decode::cri(raw, now)
    {
        place.io = Some(cri.io);
        place.time = Some(cri.time);
        // A piece has no line end of its own: this is one of the file, where it was copied to another system.
        let text = &raw[cri.text..];
        let text = if cri.partial { text.strip_suffix(b"\r").unwrap_or(text) } else { text };
        return Some((text.to_vec(), cri.partial));
    }
    let raw = &raw[opened(raw, now)?..];
    let Json::Envelope(envelope) = decode::json(raw, now)? else { return None };
    place.io = envelope.io;
    place.time = envelope.time;
    (place.key, place.level) = (envelope.key, envelope.level);
    let text = envelope.text.strip_suffix(b"\n").unwrap_or(&envelope.text).to_vec();
    let partial = envelope.partial && is_piece(raw, &text);
    Some((text, partial))
}

/// Returns where an envelope in JSON begins: at the start of the line, or behind any prefix, a level's included.
fn opened(raw: &[u8], now: Timestamp) -> Option<usize> {
    let at = brace(raw)?;
    let opens = OPENS.iter().any(|open| raw[at..].starts_with(open)) || is_journals(&raw[at..]) || is_containers(&raw[at..]);
    let is_prefix = || {
        let prefix = decode::prefix(raw, now);
        prefix.body == at || prefix.message == at || follows_name(raw, prefix.body, at)
    };
    (opens && (at == 0 || is_prefix() || follows_cri(raw, at, now))).then_some(at)
}

/// Whether the journal wraps what a service printed. Its keys are in upper case and come in any order.
fn is_journals(object: &[u8]) -> bool {
    let is_key = object.starts_with(b"{\"") && object.get(2).is_some_and(|byte| byte.is_ascii_uppercase() || *byte == b'_');
    is_key && memmem::find(object, b"\"_TRANSPORT\":\"stdout\"").is_some()
}

/// Whether a container's output is wrapped by a shipper, which may put other keys before `log` (Fluent Bit).
fn is_containers(object: &[u8]) -> bool {
    object.starts_with(b"{\"") && memmem::find(object, b"\"stream\":\"std").is_some()
}

/// Returns where an object in JSON begins: at the start of the line, or after what its transport put before it.
/// A prefix with a level makes it a program's own record.
#[must_use]
pub fn object(raw: &[u8], now: Timestamp) -> Option<usize> {
    let at = brace(raw)?;
    let is_prefix = || {
        let prefix = decode::prefix(raw, now);
        (prefix.body == at || follows_name(raw, prefix.body, at)) && prefix.levels == 0
    };
    (at == 0 || is_prefix() || follows_cri(raw, at, now)).then_some(at)
}

/// Whether only a writer's name in brackets stands between `body` and `at`.
fn follows_name(raw: &[u8], body: usize, at: usize) -> bool {
    body < at && leadin::writer(&raw[body..at + 1]) == Some(at - body)
}

fn brace(raw: &[u8]) -> Option<usize> {
    memchr(b'{', &raw[..raw.len().min(MAX_PREFIX_BYTES)])
}

/// Whether a container runtime put everything before `at`.
fn follows_cri(raw: &[u8], at: usize, now: Timestamp) -> bool {
    decode::cri(raw, now).is_some_and(|cri| cri.text == at && !cri.partial)
}

/// Whether a record without a line end is a piece. Fluent Bit keeps the tag of CRI that says so; of Docker's, only a
/// full-size record is one, because shippers remove line ends. `levels.toml` leads to these forms.
fn is_piece(raw: &[u8], text: &[u8]) -> bool {
    const TAG: &[u8] = b"\"logtag\":\"";
    if let Some(at) = memmem::find(raw, TAG) {
        return raw.get(at + TAG.len()) == Some(&b'P');
    }
    match memmem::find(raw, b"\"stream\":\"std") {
        Some(at) => text.len() >= DOCKER_PIECE_BYTES && !raw[..at].ends_with(b"\\n\","),
        None => memmem::find(raw, b"\"Output\":\"").is_some(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_envelope_may_stand_behind_the_stamp_of_its_transport() {
        const RECORD: &str = r#"{"Time":"2026-11-27T06:00:00Z","Action":"output","Package":"till","Test":"TestAdd","Output":"--- FAIL: TestAdd (0.00s)\n"}"#;
        let of = |before: &str| {
            let mut place = Place::default();
            let text = unwrap(format!("{before}{RECORD}").as_bytes(), Timestamp(0), &mut place).map(|(text, _)| String::from_utf8(text).unwrap());
            text.map(|text| (text, place.key))
        };
        let bare = of("");
        assert!(bare.as_ref().is_some_and(|(text, _)| text == "--- FAIL: TestAdd (0.00s)"));
        for before in [
            "2026-11-27T06:00:01.1130000Z ",
            "web-1  | ",
            "[web] ",
            "2026-11-27T06:00:01.1130000Z [web] ",
            "[2026-11-27T06:00:01.113Z] ",
            "INFO 2026-11-27 06:00:01 ",
            "2026-11-27 06:00:01 INFO ",
        ] {
            assert_eq!(of(before), bare, "{before}");
        }
        for before in ["output was ", "x", "{"] {
            assert_eq!(of(before), None, "{before}");
        }
    }

    /// Fluent Bit sorts the keys of a record as its parser does.
    #[test]
    fn a_containers_text_may_stand_behind_other_keys() {
        let of = |raw: &str| {
            let mut place = Place::default();
            unwrap(raw.as_bytes(), Timestamp(0), &mut place).map(|(text, partial)| (String::from_utf8(text).unwrap(), partial, place.key))
        };
        let record = |tag: &str| format!(r#"{{"stream":"stderr","logtag":"{tag}","log":"Error: x","kubernetes":{{"pod_name":"till"}}}}"#);
        assert_eq!(of(&record("F")), Some(("Error: x".to_owned(), false, Some("till".to_owned()))));
        assert_eq!(of(&record("P")), Some(("Error: x".to_owned(), true, Some("till".to_owned()))));
        assert_eq!(of(r#"{"time":"2026-01-01T10:00:00Z","stream":"stdout","log":"Error: x\n"}"#).map(|(text, ..)| text).as_deref(), Some("Error: x"));
        assert_eq!(of(r#"{"stream":"stdout","msg":"Error: x"}"#), None);
    }

    /// A copy of the file on another system has other line ends; they are within no line of the container.
    #[test]
    fn a_piece_has_no_line_end() {
        let of = |raw: &str| unwrap(raw.as_bytes(), Timestamp(0), &mut Place::default()).map(|(text, partial)| (String::from_utf8(text).unwrap(), partial));
        assert_eq!(of("2026-11-27T06:00:00Z stdout P Type\r"), Some(("Type".to_owned(), true)));
        assert_eq!(of("2026-11-27T06:00:00Z stdout F Error: x\r"), Some(("Error: x\r".to_owned(), false)));
    }

    #[test]
    fn an_object_behind_a_level_is_a_programs_own_record() {
        let of = |before: &str| object(format!("{before}{{\"a\":1}}").as_bytes(), Timestamp(0));
        for before in ["", "2026-11-27T06:00:01.1130000Z ", "web-1  | ", "[web] "] {
            assert_eq!(of(before), Some(before.len()), "{before}");
        }
        for before in ["2026-11-27 06:00:01 INFO ", "INFO 2026-11-27 06:00:01 "] {
            assert_eq!(of(before), None, "{before}");
        }
    }
}
