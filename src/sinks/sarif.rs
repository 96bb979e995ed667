//! SARIF 2.1.0 (OASIS), which code-scanning viewers read: one document with one run. A result is written as soon as it is
//! found. The tool follows the results, because only then is it known which rules found something (members of a JSON object
//! have no order). Log text passes the sanitiser, because a viewer shows it. This module never decides what is an error.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::human::{placed_headline, sanitise};
use super::record::{Envelope, cut_text};
use crate::core::event::{Event, Exception, Frame, Severity};
use crate::core::signature::SIG_VERSION;
use crate::json::Writer;

/// Maximum bytes of a message; viewers show its first line.
const MAX_MESSAGE_BYTES: usize = 4 << 10;
/// The part before the results.
pub const HEAD: &[u8] = b"{\"$schema\":\"https://json.schemastore.org/sarif-2.1.0.json\",\"version\":\"2.1.0\",\"runs\":[{\"results\":[";

/// The rules that found something, each with the hint by which a viewer explains a result. Bounded by the number of rules.
#[derive(Debug, Default)]
pub struct Used(BTreeMap<Arc<str>, Option<Arc<str>>>);

impl Used {
    /// Remembers the rule of an event.
    pub fn add(&mut self, event: &Event) {
        if !self.0.contains_key(&event.rule) {
            self.0.insert(event.rule.clone(), event.hint.clone());
        }
    }

    /// Returns the part after the results. `is_whole`: all input was read.
    #[must_use]
    pub fn tail(&self, is_whole: bool) -> Vec<u8> {
        let mut out = Vec::new();
        let mut w = Writer::new(&mut out);
        w.raw(b"\n],\"invocations\":[{\"executionSuccessful\":");
        w.raw(if is_whole { b"true" } else { b"false" });
        w.raw(b"}],\"tool\":{\"driver\":{\"name\":\"siftd\"");
        w.word(b",\"semanticVersion\":\"", env!("CARGO_PKG_VERSION"));
        w.raw(b",\"rules\":[");
        for (index, (id, hint)) in self.0.iter().enumerate() {
            w.raw(if index > 0 { b"," } else { b"" });
            w.string(b"\n{\"id\":\"", id);
            w.string(b",\"shortDescription\":{\"text\":\"", &in_words(id));
            if let Some(hint) = hint {
                w.string(b"},\"help\":{\"text\":\"", &plain(hint));
            }
            w.raw(b"}}");
        }
        w.raw(b"]}}}]}\n");
        drop(w);
        out
    }
}

/// Appends one result after a comma, including the first. `max_bytes` bounds what it quotes from the log.
pub fn result(out: &mut Vec<u8>, envelope: &Envelope, event: &Event, max_bytes: usize) {
    let mut w = Writer::new(out);
    w.string(b",\n{\"ruleId\":\"", &event.rule);
    w.word(b",\"level\":\"", level(event.severity));
    w.string(b",\"message\":{\"text\":\"", &message(&placed_headline(event)));
    w.raw(b"}");
    locations(&mut w, envelope, event);
    in_the_log(&mut w, envelope, event, max_bytes);
    if let Some(said) = event.exception.as_ref().filter(|said| !said.frames.is_empty()) {
        stack(&mut w, said);
    }
    w.raw(b",\"partialFingerprints\":{\"siftdSignature/v");
    w.raw(SIG_VERSION.to_string().as_bytes());
    w.word(b"\":\"", event.signature.digits());
    w.word(b"},\"properties\":{\"id\":\"", event.id.digits());
    w.word(b",\"category\":\"", event.category.as_str());
    w.word(b",\"severity\":\"", event.severity.as_str());
    w.word(b",\"cause\":\"", event.cause.as_str());
    w.raw(b"}}");
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Blocking | Severity::High => "error",
        Severity::Medium => "warning",
        Severity::Low => "note",
    }
}

/// Writes the place in the code, or the place in the log if the log names none.
fn locations(w: &mut Writer, envelope: &Envelope, event: &Event) {
    let place = event.location.as_ref().filter(|place| !place.file.is_empty());
    if let Some(place) = place {
        w.raw(b",\"locations\":[{");
        // A file without a line number is shown from its beginning.
        physical(w, &uri(&place.file), (u64::from(place.line.max(1)), place.column));
        w.raw(b"}]");
    } else if let Some(path) = &envelope.path {
        w.raw(b",\"locations\":[{");
        physical(w, &log_uri(envelope, path), (event.line_num, 0));
        w.raw(b"}]");
    }
}

/// Writes the members of a place, without braces; 0 stands for an unknown number.
fn physical(w: &mut Writer, uri: &str, (line, column): (u64, u32)) {
    w.string(b"\"physicalLocation\":{\"artifactLocation\":{\"uri\":\"", uri);
    w.raw(b"}");
    if line > 0 {
        w.number(b",\"region\":{\"startLine\":", line);
        w.positive(b",\"startColumn\":", column);
        w.raw(b"}");
    }
    w.raw(b"}");
}

/// Writes where the log reports the event, with its lines; a stream has no place.
fn in_the_log(w: &mut Writer, envelope: &Envelope, event: &Event, max_bytes: usize) {
    let Some(path) = &envelope.path else { return };
    let mut lines: String = event.multiline.iter().map(|line| sanitise(line).into_owned() + "\n").collect();
    cut_text(&mut lines, max_bytes / 2);
    w.string(b",\"relatedLocations\":[{\"message\":{\"text\":\"in the log\"},\"physicalLocation\":{\"artifactLocation\":{\"uri\":\"", &log_uri(envelope, path));
    w.number(b"},\"region\":{\"startLine\":", event.line_num);
    w.number(b",\"endLine\":", event.line_end.max(event.line_num));
    w.string(b",\"snippet\":{\"text\":\"", &lines);
    w.raw(b"}}}}]");
}

/// Returns the URI of the log; a name that is no text keeps its bytes.
fn log_uri(envelope: &Envelope, path: &str) -> String {
    match &envelope.raw_path {
        Some(raw) => escaped_bytes(raw.strip_prefix(b"./").unwrap_or(raw), b"", if raw.starts_with(b"/") { "file://" } else { "" }),
        None => uri(path),
    }
}

fn stack(w: &mut Writer, said: &Exception) {
    let head = [said.kind.as_str(), &said.message].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(": ");
    w.raw(b",\"stacks\":[{");
    if !head.is_empty() {
        w.string(b"\"message\":{\"text\":\"", &message(&head));
        w.raw(b"},");
    }
    w.raw(b"\"frames\":[");
    for (index, frame) in said.frames.iter().enumerate() {
        w.raw(if index > 0 { b",{\"location\":{" } else { b"{\"location\":{" });
        self::frame(w, frame);
        w.raw(b"}}");
    }
    w.raw(b"]}]");
}

fn frame(w: &mut Writer, frame: Frame) {
    if !frame.function.is_empty() {
        w.string(b"\"logicalLocations\":[{\"fullyQualifiedName\":\"", &sanitise(frame.function));
        w.raw(b"}]");
    }
    if !frame.file.is_empty() {
        w.raw(if frame.function.is_empty() { b"" } else { b"," });
        physical(w, &uri(frame.file), (u64::from(frame.line), frame.column));
    }
}

fn message(text: &str) -> String {
    let mut text = text.to_owned();
    cut_text(&mut text, MAX_MESSAGE_BYTES);
    plain(&text)
}

/// Escapes text so that a viewer shows it literally: `{0}` would be a placeholder (3.11.5 of the standard), `[a](b)` a link (3.11.6).
fn plain(text: &str) -> String {
    let text = sanitise(text);
    let bytes = text.as_bytes();
    let has_link = memchr::memmem::find(bytes, b"](").is_some();
    let mut out = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        let digits = bytes[at + c.len_utf8()..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        match c {
            '[' if has_link => out.push_str("\\["),
            '{' if digits > 0 && bytes.get(at + 1 + digits) == Some(&b'}') => out.push_str("{{"),
            '}' if is_placeholder_end(&bytes[..at]) => out.push_str("}}"),
            c => out.push(c),
        }
    }
    out
}

/// Whether the text before a `}` ends with `{` and digits.
fn is_placeholder_end(before: &[u8]) -> bool {
    let digits = before.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    digits > 0 && before.iter().rev().nth(digits) == Some(&b'{')
}

/// Turns `native.sanitizer` into `native: sanitizer`.
fn in_words(rule: &str) -> String {
    sanitise(&rule.replacen('.', ": ", 1).replace('-', " ")).into_owned()
}

/// Returns a file as a URI reference (RFC 3986): relative names stay relative; absolute ones, Windows' included, become `file:` URIs.
fn uri(file: &str) -> String {
    if let Some((scheme, _)) = file.split_once("://").filter(|(scheme, _)| scheme.len() > 1 && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')) {
        return scheme.to_owned() + &escaped(&file[scheme.len()..], b":?#[]@%");
    }
    let slashed = resolved(&file.replace('\\', "/"));
    if let Some(share) = slashed.strip_prefix("//").filter(|_| file.starts_with('\\')) {
        return format!("file://{}", escaped(share, b""));
    }
    match slashed.as_bytes() {
        [drive, b':', b'/', ..] if drive.is_ascii_alphabetic() => format!("file:///{}:{}", *drive as char, escaped(&slashed[2..], b"")),
        [b'/', ..] => format!("file://{}", escaped(&slashed, b"")),
        _ => escaped(slashed.strip_prefix("./").unwrap_or(&slashed), b""),
    }
}

/// Resolves each `..` in a path against the folder before it.
fn resolved(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match parts.last() {
            Some(&last) if part == ".." && !matches!(last, "" | "." | "..") => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

/// Percent-encodes everything except what a path may hold and what is `allowed` besides.
fn escaped(text: &str, allowed: &[u8]) -> String {
    escaped_bytes(text.as_bytes(), allowed, "")
}

/// As [`escaped`], after `head`.
fn escaped_bytes(bytes: &[u8], allowed: &[u8], head: &str) -> String {
    let mut out = head.to_owned();
    for &byte in bytes {
        if byte.is_ascii_alphanumeric() || b"-._~/!$&'()*+,;=@".contains(&byte) || allowed.contains(&byte) {
            out.push(byte as char);
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_become_uris() {
        for (file, want) in [
            ("src/cart.ts", "src/cart.ts"),
            ("/rustc/std/src/../../lib/../core/x.rs", "file:///rustc/core/x.rs"),
            ("../../a/../x.c", "../../x.c"),
            ("./a b%#.c", "a%20b%25%23.c"),
            ("src\\main.rs", "src/main.rs"),
            ("/srv/app/x.py", "file:///srv/app/x.py"),
            ("C:\\src\\ä.cs", "file:///C:/src/%C3%A4.cs"),
            ("\\\\srv\\share\\x.c", "file://srv/share/x.c"),
            ("http://localhost:3000/a.js?v=1", "http://localhost:3000/a.js?v=1"),
            ("webpack:///./src/x.js", "webpack:///./src/x.js"),
            ("node:internal/x", "node%3Ainternal/x"),
            ("a:b,c.log", "a%3Ab,c.log"),
            ("<anonymous>", "%3Canonymous%3E"),
        ] {
            assert_eq!(uri(file), want, "{file}");
        }
    }

    #[test]
    fn a_message_is_no_template_and_holds_no_link() {
        for (text, want) in [
            ("missing {0} of {name} {}", "missing {{0}} of {name} {}"),
            ("a[1] and {12", "a[1] and {12"),
            ("see [this](http://x)", "see \\[this](http://x)"),
            ("\u{1b}[31mred", "\\u{1b}[31mred"),
        ] {
            assert_eq!(plain(text), want);
        }
    }
}
