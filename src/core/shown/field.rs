//! A field, an element or an assignment of displayed source: a name with its type or value.
//! One line (mark removed, trimmed); prose behind a name and a colon is a message.

use super::call::{has_colon, quote_end};

/// Words before the name of a field.
const MODIFIERS: &[&[u8]] =
    &[b"pub ", b"public ", b"private ", b"protected ", b"readonly ", b"static ", b"final ", b"mut ", b"val ", b"var ", b"let ", b"const ", b"ref "];

/// Whether the line is a field with its type or value: `error: Error | null,`, `error?: string;`,
/// `error: "no such user",`, and in displayed code `errors: list[Error] = field(…)`.
pub fn is_field(text: &[u8], displayed: bool) -> bool {
    let modifier = MODIFIERS.iter().find_map(|modifier| text.strip_prefix(*modifier));
    let text = modifier.unwrap_or(text);
    let name = text.iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
    let text = &text[name..];
    let Some(value) = text.strip_prefix(b"?").unwrap_or(text).strip_prefix(b": ").filter(|_| name > 0) else { return false };
    let ended = value.strip_suffix(b",").or_else(|| value.strip_suffix(b";"));
    match ended.filter(|ended| !ended.is_empty()) {
        Some(ended) => is_value(ended, displayed || modifier.is_some()),
        None => displayed && (is_default(value) || modifier.is_some()),
    }
}

/// A type or an expression rather than words; `sure` takes a text in single quotes too, which Node's
/// inspector also prints.
fn is_value(value: &[u8], sure: bool) -> bool {
    match value[0] {
        b'"' | b'`' => return quote_end(value, 0) == Some(value.len() - 1),
        b'\'' => return sure && quote_end(value, 0) == Some(value.len() - 1),
        b'{' => return value.ends_with(b"}"),
        _ => {}
    }
    const OPERATORS: [&[u8]; 13] = [b"|", b"&", b"=", b"=>", b"??", b"||", b"&&", b"instanceof", b"typeof", b"keyof", b"extends", b"?", b"await"];
    words(value) == 1 || value.split(|b| *b == b' ').any(|word| OPERATORS.contains(&word))
}

/// Words outside brackets.
fn words(value: &[u8]) -> usize {
    let mut depth = 0usize;
    let mut words = 1;
    for b in value {
        match b {
            b'(' | b'{' | b'[' | b'<' => depth += 1,
            b')' | b'}' | b']' | b'>' => depth = depth.saturating_sub(1),
            b' ' if depth == 0 => words += 1,
            _ => {}
        }
    }
    words
}

/// `str = ""`, `Exception | None = None`: a type and its default.
fn is_default(value: &[u8]) -> bool {
    let Some(at) = memchr::memmem::find(value, b" = ") else { return false };
    let is_type = |word: &[u8]| word == b"|" || word.first().is_some_and(u8::is_ascii_uppercase) || word.len() == at;
    value[..at].split(|b| *b == b' ').all(is_type) && (words(&value[at + 3..]) == 1 || matches!(value[at + 3..], [b'"' | b'\'', ..]))
}

/// `ParseError { line: usize, error: String },`, `{name: "x", err: "error: y"},`: a variant or an
/// element with its fields.
pub fn is_element(text: &[u8]) -> bool {
    // Go and C: `{"name", "error: x"},`
    if matches!(text, [b'{', b'"' | b'`', ..] | [b'{', b' ', b'"' | b'`', ..]) && text.ends_with(b"},") {
        let quote = usize::from(text[1] == b' ') + 1;
        return quote_end(text, quote).is_some_and(|end| text[end + 1..].starts_with(b","));
    }
    let name = text.iter().take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b':' | b'.')).count();
    let open = &text[name..];
    let open = open.strip_prefix(b" ").unwrap_or(open);
    let Some(fields) = open.strip_prefix(b"{") else { return false };
    let first = fields.trim_ascii_start().iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
    first > 0 && fields.trim_ascii_start()[first..].starts_with(b": ") && matches!(text, [.., b'}', b',' | b';'])
}

/// `message = "error: …"`, `[E_BAD] = "error: …",` in displayed code.
pub fn is_assigned(text: &[u8]) -> bool {
    let Some(at) = memchr::memmem::find(text, b" = ") else { return false };
    let value = &text[at + 3..];
    let is_name = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'[' | b']' | b'$' | b'@' | b'*' | b' ' | b':' | b'<' | b'>');
    let name = text[..at].iter().all(is_name) && !has_colon(&text[..at]);
    if name && text.ends_with(b";") {
        return true;
    }
    name && matches!(value.first(), Some(b'"' | b'\'' | b'`'))
        && quote_end(value, 0).is_none_or(|end| matches!(value[end + 1..].first(), None | Some(b',' | b';' | b')')))
}

/// `"error: cannot parse %s" % name`, `'a' => 'error: b',`: an element that is a text. Marked lines need
/// no more than the quote, indented ones an operator behind it; an entry `key => text` is one everywhere.
pub fn is_text(text: &[u8], displayed: bool, indented: bool) -> bool {
    if !matches!(text.first(), Some(b'"' | b'\'' | b'`')) {
        return false;
    }
    let Some(end) = quote_end(text, 0) else { return displayed };
    let tail = text[end + 1..].trim_ascii_start();
    let operator = matches!(tail, [b')' | b'%' | b'+' | b';', ..]);
    displayed || (indented && operator) || (tail.starts_with(b"=> ") && text.ends_with(b","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_told_from_messages() {
        for line in [
            "error: Error | null,",
            "error: string | null;",
            "pub error: Error,",
            "error: Box<dyn std::error::Error>,",
            "error: \"no such user\",",
            "error: err instanceof Error ? err.message : String(err),",
        ] {
            assert!(is_field(line.as_bytes(), false), "{line}");
        }
        for line in ["error: something broke", "error: expected one of `!`, `.`,", "error: \"x\"", "error: cannot find value x,", "Error: connect ECONNREFUSED"]
        {
            assert!(!is_field(line.as_bytes(), true), "{line}");
        }
        assert!(is_field(b"errors: Optional[Error] = None", true) && !is_field(b"error: x = None is wrong", true));
    }
}
