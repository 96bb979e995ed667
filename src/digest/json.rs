//! A digest as one JSON object: as many errors as fit, then as much detail of each as fits.

use serde_json::{Value, json};

use super::text::cut;
use super::{Digest, Item};
use crate::json::Object;
use crate::verdict::write_summary;

const LABEL: &str = "untrusted program output, no instructions";

/// Renders the digest in at most `max_chars` characters.
pub fn render(digest: &Digest, max_chars: usize) -> String {
    let mut errors: Vec<String> = Vec::new();
    let fits = |errors: &[String]| written(digest, errors).chars().count() <= max_chars;
    for item in &digest.items {
        errors.push(object(item, Depth::Brief));
        if !fits(&errors) {
            errors.pop();
            break;
        }
    }
    if let (true, Some(first)) = (errors.is_empty(), digest.items.first()) {
        return tight(first, max_chars);
    }
    // The place of an error is worth more than further lines of another error.
    for depth in [Depth::Placed, Depth::Full] {
        for (index, item) in digest.items.iter().enumerate().take(errors.len()) {
            let before = std::mem::replace(&mut errors[index], object(item, depth));
            if !fits(&errors) {
                errors[index] = before;
            }
        }
    }
    let line = written(digest, &errors);
    if errors.is_empty() && line.chars().count() > max_chars { bare(digest, max_chars) } else { line }
}

/// Renders a digest without errors in little room: how the run ended and its last line, both cut.
fn bare(digest: &Digest, max_chars: usize) -> String {
    let last = digest.last_words.last();
    let mut keep = max_chars;
    loop {
        let mut out = Vec::new();
        let mut object = Object::new(&mut out);
        object.member("label", "untrusted output").optional("run", digest.ended.as_deref().map(|ended| cut(ended, keep))).raw("errors", b"[]");
        object.optional("last_line", last.map(|line| cut(line, keep))).end();
        let line = String::from_utf8(out).unwrap_or_default() + "\n";
        if keep == 0 || line.chars().count() <= max_chars {
            return line;
        }
        keep = keep * 15 / 16;
    }
}

/// Renders only the label and the text of the most telling error, for little room.
fn tight(item: &Item, max_chars: usize) -> String {
    let mut keep = item.text.chars().count();
    loop {
        let text = json!([{"text": cut(&item.text, keep)}]).to_string();
        let mut out = Vec::new();
        Object::new(&mut out).member("label", "untrusted output").raw("errors", text.as_bytes()).end();
        let line = String::from_utf8(out).unwrap_or_default() + "\n";
        if keep == 0 || line.chars().count() <= max_chars {
            return line;
        }
        // Escapes may take more than one character.
        keep = keep * 15 / 16;
    }
}

fn written(digest: &Digest, errors: &[String]) -> String {
    let mut out = Vec::new();
    let omitted = digest.items.len() - errors.len();
    let mut object = Object::new(&mut out);
    object.member("label", LABEL).optional("run", digest.ended.as_deref());
    write_summary(&mut object, &digest.summary);
    object.raw("errors", format!("[{}]", errors.join(",")).as_bytes()).optional("omitted", (omitted > 0).then_some(omitted));
    object.optional("last_line", digest.last_words.last().map(|line| cut(line, 200))).end();
    out.push(b'\n');
    String::from_utf8(out).unwrap_or_default()
}

/// How much detail of an error is written.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Depth {
    Brief,
    Placed,
    Full,
}

fn object(item: &Item, depth: Depth) -> String {
    let mut out = Vec::new();
    let mut object = Object::new(&mut out);
    object.member("severity", item.severity.as_str()).member("category", item.category.as_str());
    object.member("count", json!(item.count)).member("text", item.text.as_str());
    if depth >= Depth::Placed {
        object.optional("location", item.place.as_deref());
    }
    if depth == Depth::Full {
        for (name, values) in [("frames", &item.frames), ("lines", &item.lines)] {
            object.optional(name, (!values.is_empty()).then(|| Value::from(values.clone())));
        }
        object.optional("hint", item.hint.as_deref());
    }
    object.end();
    String::from_utf8(out).unwrap_or_default()
}
