//! One JSON object on a line: an envelope around another program's text, or a record with its fields. Walks
//! the object once into a flat list of leaves in document order; `record` gives them meaning. Depth and the
//! number of leaves are bounded, and what lies deeper is skipped. Neither text nor numbers are judged.

use super::level::severity;
use super::record::{Record, record, stamp};
use super::time::parse_any_time;
use crate::core::event::{Io, Level, Timestamp};
use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;

mod leaves;
pub use leaves::{Leaf, Leaves, Scalar, first, text_at};

/// Maximum depth of values that are looked at: the parser takes 128, and fails beyond.
const MAX_DEPTH: usize = 100;
/// Maximum number of leaves kept of one object; further ones are parsed and dropped.
const MAX_LEAVES: usize = 1024;
/// Maximum number of bytes of all their pointers: a key as long as the line is repeated for each leaf that it holds.
const MAX_POINTER_BYTES: usize = 1 << 20;

/// What one JSON object is.
#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    /// A line of another program, wrapped.
    Envelope(Envelope),
    /// A structured log record, or any other object.
    Record(Box<Record>),
}

/// A line of another program, wrapped by docker, a Kubernetes shipper, the journal or `go test -json`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Envelope {
    /// The text, without its line end.
    pub text: Vec<u8>,
    /// The output that it came from.
    pub io: Option<Io>,
    /// When the wrapper read it.
    pub time: Option<Timestamp>,
    /// Whether the text had no line end: then it continues in the next record of the same output and key.
    pub partial: bool,
    /// Container, program, or Go package and test.
    pub key: Option<String>,
    /// The level that the program stated to the wrapper.
    pub level: Option<Level>,
}

/// Reads a line that is one JSON object, with or without blanks around
/// it; returns `None` for anything else. Invalid UTF-8 is replaced.
#[must_use]
pub fn json(line: &[u8], now: Timestamp) -> Option<Json> {
    read(line, |leaves| match envelope(leaves, now) {
        Some(envelope) => Json::Envelope(envelope),
        None => Json::Record(Box::new(record(leaves, now))),
    })
}

/// Returns the level and the time of a line that [`json`] reads as a record, and nothing else of it.
#[must_use]
pub fn json_stamp(line: &[u8], now: Timestamp) -> Option<(Option<Level>, Option<Timestamp>)> {
    read(line, |leaves| envelope(leaves, now).is_none().then(|| stamp(leaves, now))).flatten()
}

/// Shows the leaves of a line that is one JSON object to `take`.
fn read<T>(line: &[u8], take: impl FnOnce(&Leaves<'_>) -> T) -> Option<T> {
    let line = line.trim_ascii();
    if line.first() != Some(&b'{') || line.last() != Some(&b'}') {
        return None;
    }
    let text = String::from_utf8_lossy(line);
    match leaves(&text) {
        Some(leaves) => Some(take(&leaves)),
        None => Some(take(&leaves(&without_depths(&text)?)?)),
    }
}

/// Returns the time of a leaf, whatever its form.
pub fn time_of(leaf: &Leaf<'_>, now: Timestamp) -> Option<Timestamp> {
    match &leaf.value {
        Scalar::Text(text) => parse_any_time(text.as_bytes(), now),
        Scalar::Int(number) => parse_any_time(number.to_string().as_bytes(), now),
        Scalar::Float(number) => parse_any_time(format!("{number:.6}").as_bytes(), now),
        Scalar::Bool(_) | Scalar::Null => None,
    }
}

fn envelope(leaves: &Leaves<'_>, now: Timestamp) -> Option<Envelope> {
    go_test(leaves, now).or_else(|| container(leaves, now)).or_else(|| journal(leaves, now))
}

/// Unwraps docker's `{"log":"…\n","stream":"stderr","time":"…"}`
fn container(leaves: &Leaves<'_>, now: Timestamp) -> Option<Envelope> {
    let io = first(leaves, &["stream"], |leaf| Io::parse(leaf.text()?))?;
    let text = string(leaves, "log")?;
    let name = ["kubernetes.pod_name", "kubernetes.container_name", "container_name"];
    let key = text_at(leaves, &name);
    Some(Envelope { io: Some(io), key, ..unwrapped(text, leaves, now) })
}

/// Unwraps `go test -json`'s `{"Time":"…","Action":"output","Package":"p","Test":"T","Output":"…\n"}`. What the subtests
/// of a test print is a part of what it prints: they are one writer.
fn go_test(leaves: &Leaves<'_>, now: Timestamp) -> Option<Envelope> {
    let action = first(leaves, &["action"], Leaf::text)?;
    let test = first(leaves, &["test"], Leaf::text);
    let text = match action {
        "output" | "build-output" => string(leaves, "output")?,
        // The end of a test ends what it has printed. `go test` marks what it says itself by these signs.
        "pass" | "fail" | "skip" if test.is_some_and(|test| !test.contains('/')) => "=== END\n",
        _ => return None,
    };
    let package = text_at(leaves, &["package", "importpath"])?;
    let key = match test {
        Some(test) => format!("{package}\t{}", test.split('/').next().unwrap_or_default()),
        None => package,
    };
    Some(Envelope { key: Some(key), ..unwrapped(text, leaves, now) })
}

/// Unwraps a line that a service printed, as `journalctl -o json` shows it. The journal adds priority 6, which nobody stated.
fn journal(leaves: &Leaves<'_>, now: Timestamp) -> Option<Envelope> {
    let is = |path: &str, wanted: &str| first(leaves, &[path], |leaf| leaf.text()) == Some(wanted);
    if !is("_transport", "stdout") {
        return None;
    }
    let level = first(leaves, &["priority"], Leaf::int).filter(|priority| *priority != 6).map(severity);
    let text = string(leaves, "message").filter(|text| !text.contains('\n'))?;
    let name = text_at(leaves, &["syslog_identifier", "_comm", "_systemd_unit"]);
    let key = match (name, text_at(leaves, &["_pid", "syslog_pid"])) {
        (Some(name), Some(process)) => Some(format!("{name}[{process}]")),
        (name, process) => name.or(process),
    };
    let time = first(leaves, &["__realtime_timestamp", "_source_realtime_timestamp"], |leaf| time_of(leaf, now));
    Some(Envelope { text: text.as_bytes().to_vec(), time, key, level, ..Envelope::default() })
}

fn string<'l>(leaves: &'l Leaves<'_>, path: &str) -> Option<&'l str> {
    first(leaves, &[path], |leaf| match &leaf.value {
        Scalar::Text(text) => Some(&**text),
        _ => None,
    })
}

fn unwrapped(text: &str, leaves: &Leaves<'_>, now: Timestamp) -> Envelope {
    let line = text.strip_suffix('\n');
    let whole = line.unwrap_or(text);
    Envelope {
        text: whole.strip_suffix('\r').unwrap_or(whole).as_bytes().to_vec(),
        time: first(leaves, &["time"], |leaf| time_of(leaf, now)),
        partial: line.is_none(),
        ..Envelope::default()
    }
}

fn leaves(text: &str) -> Option<Leaves<'_>> {
    let mut walk = Walk { pointer: String::new(), leaves: Leaves::default(), pointer_bytes: 0 };
    let mut parser = serde_json::Deserializer::from_str(text);
    Node(&mut walk).deserialize(&mut parser).ok()?;
    parser.end().ok()?;
    Some(walk.leaves)
}

/// Returns `text` with `null` for each object and array that is deeper than the parser goes; `None` if there is none.
fn without_depths(text: &str) -> Option<String> {
    let (mut depth, mut quoted, mut escaped) = (0usize, false, false);
    let (mut kept, mut from, mut is_deep) = (String::new(), 0, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = quoted,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'{' | b'[' => {
                depth += 1;
                if depth == MAX_DEPTH {
                    kept.push_str(&text[from..at]);
                    kept.push_str("null");
                    is_deep = true;
                }
            }
            b'}' | b']' => {
                if depth == MAX_DEPTH {
                    from = at + 1;
                }
                depth = depth.checked_sub(1)?;
            }
            _ => {}
        }
    }
    if !is_deep || depth > 0 {
        return None;
    }
    kept.push_str(&text[from..]);
    Some(kept)
}

struct Walk<'de> {
    pointer: String,
    leaves: Leaves<'de>,
    /// Bytes of the pointers of all leaves.
    pointer_bytes: usize,
}

impl<'de> Walk<'de> {
    fn push(&mut self, value: Scalar<'de>) {
        if self.leaves.len() < MAX_LEAVES && self.pointer_bytes + self.pointer.len() <= MAX_POINTER_BYTES {
            self.pointer_bytes += self.pointer.len();
            self.leaves.push(Leaf { pointer: self.pointer.clone(), value });
        }
    }
}

/// The value at the walk's pointer.
struct Node<'w, 'de>(&'w mut Walk<'de>);

impl<'de> DeserializeSeed<'de> for Node<'_, 'de> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<(), D::Error> {
        value.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<(), E> {
        self.0.push(Scalar::Text(Cow::Borrowed(text)));
        Ok(())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.0.push(Scalar::Text(Cow::Owned(text.to_owned())));
        Ok(())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<(), E> {
        self.0.push(Scalar::Int(number));
        Ok(())
    }

    #[allow(clippy::cast_precision_loss)] // numbers beyond i64 are no time, level or code
    fn visit_u64<E: Error>(self, number: u64) -> Result<(), E> {
        self.0.push(i64::try_from(number).map_or(Scalar::Float(number as f64), Scalar::Int));
        Ok(())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<(), E> {
        self.0.push(Scalar::Float(number));
        Ok(())
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        self.0.push(Scalar::Bool(value));
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.0.push(Scalar::Null);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let parent = self.0.pointer.len();
        for index in 0u64.. {
            push_segment(&mut self.0.pointer, &index.to_string());
            let item = items.next_element_seed(Node(self.0))?;
            self.0.pointer.truncate(parent);
            if item.is_none() {
                break;
            }
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        let parent = self.0.pointer.len();
        while let Some(Key(key)) = fields.next_key()? {
            push_segment(&mut self.0.pointer, &key);
            fields.next_value_seed(Node(self.0))?;
            self.0.pointer.truncate(parent);
        }
        Ok(())
    }
}

/// A key, borrowed if it holds no escape.
struct Key<'de>(Cow<'de, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(key: D) -> Result<Self, D::Error> {
        struct KeyVisitor;
        impl<'de> Visitor<'de> for KeyVisitor {
            type Value = Key<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }
            fn visit_borrowed_str<E: Error>(self, key: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(key)))
            }
            fn visit_str<E: Error>(self, key: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(key.to_owned())))
            }
        }
        key.deserialize_str(KeyVisitor)
    }
}

/// Appends one RFC 6901 segment.
fn push_segment(pointer: &mut String, key: &str) {
    pointer.push('/');
    for c in key.chars() {
        match c {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            c => pointer.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrapped(line: &str) -> Envelope {
        match json(line.as_bytes(), Timestamp(0)) {
            Some(Json::Envelope(envelope)) => envelope,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn unwraps_docker() {
        let got = wrapped(r#"{"log":"boom \u003cx\u003e\n","stream":"stderr","time":"2019-10-09T00:00:00.329193863Z"}"#);
        assert_eq!(got.text, b"boom <x>");
        assert_eq!((got.io, got.partial, got.key), (Some(Io::Stderr), false, None));
        assert_eq!(got.time, Some(Timestamp(1_570_579_200_329_193)));
        assert!(wrapped(r#"{"log":"half","stream":"stdout","time":""}"#).partial);
        assert!(!wrapped("{\"log\":\"\\n\",\"stream\":\"stdout\"}").partial);
    }

    #[test]
    fn unwraps_go_test() {
        let got = wrapped(r#"{"Time":"2021-04-17T14:33:35Z","Action":"output","Package":"a/b","Test":"TestX","Output":"--- FAIL\n"}"#);
        assert_eq!((got.text.as_slice(), got.key.as_deref()), (&b"--- FAIL"[..], Some("a/b\tTestX")));
        let sub = wrapped(r#"{"Action":"output","Package":"a/b","Test":"TestX/two/c","Output":"    --- FAIL\n"}"#);
        assert_eq!((sub.text.as_slice(), sub.key.as_deref()), (&b"    --- FAIL"[..], Some("a/b\tTestX")));
        let got = wrapped(r#"{"Action":"output","Package":"a/b","Output":"FAIL"}"#);
        assert_eq!((got.partial, got.key.as_deref()), (true, Some("a/b")));
        let end = wrapped(r#"{"Action":"fail","Package":"a/b","Test":"TestX","Elapsed":0}"#);
        assert_eq!((end.text.as_slice(), end.partial, end.key.as_deref()), (&b"=== END"[..], false, Some("a/b\tTestX")));
        let run = br#"{"Action":"run","Package":"a/b","Test":"TestX"}"#;
        assert!(matches!(json(run, Timestamp(0)), Some(Json::Record(_))));
    }

    #[test]
    fn takes_one_object_only() {
        let deep = format!("{{\"a\":{}1{}}}", "[".repeat(100_000), "]".repeat(99_999));
        for line in ["", "{", "}", "[]", "1", "{}x", "{} {}", "{\"a\":}", "{a:1}", "{\"a\":1", &deep] {
            assert_eq!(json(line.as_bytes(), Timestamp(0)), None, "{}", &line[..line.len().min(20)]);
        }
        assert!(json(b" {} ", Timestamp(0)).is_some());
        assert!(json(b"{\"msg\":\"bad \xff utf\"}", Timestamp(0)).is_some());
    }

    #[test]
    fn skips_what_is_too_deep() {
        for depth in [90, 99, 127, 128, 200, 100_000] {
            let line = format!(r#"{{"a":{}"]}}"{},"level":"error","msg":"boom","b":[{{"c":1}}]}}"#, "[".repeat(depth), "]".repeat(depth));
            let Some(Json::Record(record)) = json(line.as_bytes(), Timestamp(0)) else { panic!("{depth}: no record") };
            assert_eq!(record.level, Some(crate::core::event::Level::Error), "{depth}");
            assert_eq!(record.message.map(|message| message.text).as_deref(), Some("boom"), "{depth}");
        }
    }

    #[test]
    fn a_long_key_stands_above_few_leaves() {
        let line = format!("{{\"{}\":[{}\"z\"]}}", "k".repeat(200_000), "\"s\",".repeat(500));
        let bytes: usize = leaves(&line).expect("an object").iter().map(|leaf| leaf.pointer.len()).sum();
        assert!((200_000..=MAX_POINTER_BYTES).contains(&bytes), "{bytes}");
    }
}
