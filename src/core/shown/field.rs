//! A field, an element or an assignment in displayed source: a name with its type or value.
//! Takes one line (mark removed, trimmed); prose after a name and a colon is a message.

use super::call::{has_colon, quote_end};

/// Words before the name of a field.
const MODIFIERS: &[&[u8]] =
    &[b"pub ", b"public ", b"private ", b"protected ", b"readonly ", b"static ", b"final ", b"mut ", b"val ", b"var ", b"let ", b"const ", b"ref "];

/// Names of an error where it is caught.
const CAUGHT: &[&[u8]] = &[b"e", b"err", b"error", b"ex", b"exc", b"reason"];

/// Whether the line is a field with its type or value: `error: Error | null,`, `error?: string;`,
/// `error: "no such user",`, and in displayed code `errors: list[Error] = field(…)`.
pub fn is_field(text: &[u8], displayed: bool) -> bool {
    // Only displayed code may end without one of these.
    if !displayed && !text.ends_with(b",") && !text.ends_with(b";") {
        return false;
    }
    let modifier = MODIFIERS.iter().find_map(|modifier| text.strip_prefix(*modifier));
    let text = modifier.unwrap_or(text);
    let text = text.strip_prefix(b"#[").and_then(|text| text.splitn(2, |b| *b == b' ').nth(1)).unwrap_or(text);
    let name = text.iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
    let is_bound = text.starts_with(b"<");
    let text = match &text[name..] {
        // A bound on an associated type.
        [b':', b':', ..] | [b'<', ..] => after_path(text),
        rest => rest,
    };
    let has_name = name > 0 || is_bound;
    let Some(value) = text.strip_prefix(b"?").unwrap_or(text).strip_prefix(b": ").filter(|_| has_name) else { return false };
    let value = value.trim_ascii_start();
    let ended = value.strip_suffix(b",").or_else(|| value.strip_suffix(b";"));
    match ended.filter(|ended| !ended.is_empty()) {
        Some(ended) => is_value(ended, displayed || modifier.is_some()),
        None => {
            displayed
                && (value.ends_with(b"{") || is_default(value) || is_type(value) || is_parameter_list(value) || CAUGHT.contains(&value) || modifier.is_some())
        }
    }
}

/// Returns what follows `T::Error`, `<T as TryFrom<U>>::Error`; empty if no bound follows.
fn after_path(text: &[u8]) -> &[u8] {
    let end = memchr::memmem::find(text, b"::Error: ").map(|at| at + b"::Error".len());
    end.map_or(&[], |end| &text[end..])
}

/// Whether this is a type or an expression rather than words. With `sure`,
/// a text in single quotes counts, too, which Node's inspector also prints.
fn is_value(value: &[u8], sure: bool) -> bool {
    match value[0] {
        b'"' | b'`' => return quote_end(value, 0) == Some(value.len() - 1),
        b'\'' => return sure && quote_end(value, 0) == Some(value.len() - 1),
        b'{' => return value.ends_with(b"}"),
        b'&' => return true,
        b'/' => return value.starts_with(b"/*"),
        _ => {}
    }
    const OPERATORS: [&[u8]; 15] = [b"|", b"+", b"new", b"&", b"=", b"=>", b"??", b"||", b"&&", b"instanceof", b"typeof", b"keyof", b"extends", b"?", b"await"];
    words(value) == 1 || value.split(|b| *b == b' ').any(|word| OPERATORS.contains(&word))
}

/// Counts the words outside brackets.
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

/// Whether this is a type that no word of a message looks like: `str | None`, `Final[Counter]`.
fn is_type(value: &[u8]) -> bool {
    let mut parts = value.split(|b| *b == b'|').map(<[u8]>::trim_ascii);
    if value.contains(&b'|') { parts.all(|part| is_path(part) || is_generic(part)) } else { is_generic(value) }
}

/// `Optional[Error]`, `list[dict[str, Any]]`
fn is_generic(value: &[u8]) -> bool {
    value.ends_with(b"]") && value.iter().position(|b| *b == b'[').is_some_and(|open| is_path(&value[..open]))
}

/// Whether this is a name, or names with what joins them.
fn is_path(text: &[u8]) -> bool {
    text.first().is_some_and(u8::is_ascii_alphabetic) && text.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b':'))
}

/// Whether the line is an arm of a match or a member of an enum: `libc::EPIPE => EPIPE,`,
/// `ENOENT => "No such file",`, `EROFS = libc::EROFS,`, `Errno::ENOENT`.
pub fn is_arm(text: &[u8]) -> bool {
    if text.last().is_some_and(u8::is_ascii_uppercase)
        && memchr::memmem::rfind(text, b"::E").is_some_and(|at| is_path(text) && text[at + 2..].iter().all(u8::is_ascii_uppercase))
    {
        return true;
    }
    let Some(text) = text.strip_suffix(b",") else { return false };
    let is_value = |value: &[u8]| is_path(value) || value.iter().all(u8::is_ascii_digit);
    let Some(at) = memchr::memchr(b'=', text).and_then(|at| at.checked_sub(1)) else { return false };
    let name = is_path(&text[..at]);
    match &text[at..] {
        [b' ', b'=', b'>', b' ', value @ ..] => name && (is_value(value) || matches!(value, [b'"', .., b'"'])),
        [b' ', b'=', b' ', value @ ..] => name && is_path(value),
        _ => false,
    }
}

/// Whether this is a parameter's type and then further parameters: `OSError, show: bool, depth: int = 0`.
fn is_parameter_list(value: &[u8]) -> bool {
    const TYPES: [&[u8]; 12] = [b"int", b"str", b"bool", b"float", b"bytes", b"dict", b"list", b"tuple", b"set", b"object", b"string", b"boolean"];
    let is_known = |name: &[u8]| TYPES.contains(&name) || name.ends_with(b"Error") || name.ends_with(b"Exception") || is_type(name) || is_default(name);
    let Some(comma) = memchr::memmem::find(value, b", ") else { return false };
    let (first, rest) = (&value[..comma], &value[comma + 2..]);
    let Some(colon) = memchr::memmem::find(rest, b": ") else { return false };
    let end = memchr::memmem::find(&rest[colon + 2..], b", ").map_or(rest.len(), |at| colon + 2 + at);
    is_known(first) && rest[0].is_ascii_lowercase() && is_path(&rest[..colon]) && is_known(&rest[colon + 2..end])
}

/// Whether this is a type and its default: `str = ""`, `Exception | None = None`.
fn is_default(value: &[u8]) -> bool {
    let Some(at) = memchr::memmem::find(value, b" = ") else { return false };
    let is_word = |word: &[u8]| word == b"|" || word.first().is_some_and(u8::is_ascii_uppercase) || word.len() == at;
    (is_type(&value[..at]) || value[..at].split(|b| *b == b' ').all(is_word)) && (words(&value[at + 3..]) == 1 || matches!(value[at + 3..], [b'"' | b'\'', ..]))
}

/// Whether the line is a variant or an element with its fields:
/// `ParseError { line: usize, error: String },`, `{name: "x", err: "error: y"},`.
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

/// Whether the line is an assignment in displayed code: `message = "error: …"`, `[E_BAD] = "error: …",`
pub fn is_assigned(text: &[u8]) -> bool {
    let Some(at) = memchr::memmem::find(text, b" = ") else { return false };
    let value = &text[at + 3..];
    let is_name = |b: &u8| b.is_ascii_alphanumeric() || b"_.[]{}$@* :<>-".contains(b);
    let name = text[..at].iter().all(is_name) && !has_colon(&text[..at]);
    if name && (text.ends_with(b";") || is_class(value)) {
        return true;
    }
    let value = without_kind(value);
    name && matches!(value.first(), Some(b'"' | b'\'' | b'`'))
        && quote_end(value, 0).is_none_or(|end| matches!(value[end + 1..].first(), None | Some(b',' | b';' | b')')))
}

/// Whether this is nothing but the name of an exception's class, as a class body or a list of settings assigns it.
fn is_class(value: &[u8]) -> bool {
    let name = value.rsplit(|b| matches!(b, b'.' | b':')).next().unwrap_or_default();
    let is_error = [&b"Error"[..], b"Exception"].iter().any(|end| name.ends_with(end));
    is_error && name[0].is_ascii_uppercase() && is_path(value)
}

/// Returns a quoted text without the letter before it that names its kind: `f"…"`, `r'…'`.
fn without_kind(text: &[u8]) -> &[u8] {
    match text {
        [b'f' | b'r' | b'b' | b'u' | b'$' | b'@', b'"' | b'\'', ..] => &text[1..],
        _ => text,
    }
}

/// Whether the line is an argument of a call: `message="error: …",`
pub fn is_argument(text: &[u8]) -> bool {
    let name = text.iter().take_while(|b| b.is_ascii_lowercase() || **b == b'_').count();
    let Some(value) = text[name..].strip_prefix(b"=").map(without_kind).filter(|_| name > 0) else { return false };
    matches!(value.first(), Some(b'"' | b'\'')) && quote_end(value, 0).is_some_and(|end| matches!(&value[end + 1..], b"" | b"," | b")" | b"),"))
}

/// Whether the line is an element that is a text: `"error: cannot parse %s" % name`, `'a' => 'error: b',`. A marked
/// line needs no more than the quote, an indented one an operator after it; an entry `key => text` counts everywhere.
pub fn is_text(text: &[u8], displayed: bool, indented: bool) -> bool {
    let (text, whole) = (without_kind(text), text);
    if !matches!(text.first(), Some(b'"' | b'\'' | b'`')) {
        return indented && is_later_argument(text);
    }
    let is_template = text[0] == b'`' && memchr::memmem::find(text, b"${").is_some();
    if text.len() < whole.len() || is_template {
        return true;
    }
    let Some(end) = quote_end(text, 0) else { return displayed };
    let tail = text[end + 1..].trim_ascii_start();
    let operator = matches!(tail, [b')' | b'%' | b'+' | b';', ..]);
    displayed || (indented && operator) || (tail.starts_with(b"=> ") && text.ends_with(b","))
}

/// Whether the line is the end of a call, names before a text: `exc, 'Fatal error: no protocol')`
fn is_later_argument(text: &[u8]) -> bool {
    let Some(quote) = memchr::memchr2(b'"', b'\'', text) else { return false };
    let Some(names) = text[..quote].strip_suffix(b", ") else { return false };
    names.split(|b| *b == b',').all(|name| is_path(name.trim_ascii()))
        && quote_end(text, quote).is_some_and(|end| matches!(&text[end + 1..], b")" | b")," | b");" | b"):"))
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
        for line in [
            "errors: Optional[Error] = None",
            "error: SensitiveError | None",
            "failed: Final[Counter]",
            "failed: list[dict[str, Any]] = []",
            "error: str | None = outcome.error",
            "error: OSError, show_traceback: bool",
            "error: Exception, depth: int = 0, *args: Any",
        ] {
            assert!(is_field(line.as_bytes(), true) && !is_field(line.as_bytes(), false), "{line}");
        }
        for line in [
            "T::Error: From<io::Error>,",
            "<Uri as TryFrom<T>>::Error: Into<http::Error>,",
            "error: {",
            "#[case] error: &str,",
            "error: &mut dyn ErrorSink,",
            "BitError: ParserError<Bits> + Convert,",
        ] {
            assert!(is_field(line.as_bytes(), true), "{line}");
        }
        for line in [
            "error: Refused, host: db1",
            "error: SoldOutError, till: 3",
            "error: x, y",
            "error: x = None is wrong",
            "error: BadGateway",
            "error: a | b c",
            "error: [Errno 2]",
        ] {
            assert!(!is_field(line.as_bytes(), true), "{line}");
        }
    }

    #[test]
    fn texts_and_arguments() {
        for line in ["message=\"Validation Error: no\"", "msg=f'error: {x}',"] {
            assert!(is_argument(line.as_bytes()), "{line}");
        }
        for line in ["error=\"refused\" attempt=2", "=\"x\"", "error=refused"] {
            assert!(!is_argument(line.as_bytes()), "{line}");
        }
        assert!(is_text(b"f\"error: {x}\"", false, false) && is_text(b"`upload failed: ${error}`", false, false));
        assert!(is_text(b"exc, 'Fatal error: no protocol.')", false, true) && !is_text(b"exc, 'Fatal error: x')", false, false));
        assert!(!is_text(b"close failed, 'error: x')", false, true) && !is_text(b"host, 'error: x' (1)", false, true));
        assert!(!is_text(b"\"error: x\",", false, true) && !is_text(b"`error: x`", false, false));
    }

    #[test]
    fn classes_that_are_assigned() {
        for line in ["failureException = AssertionError", "retry_on = requests.ConnectionError", "E = Errno::AccessError"] {
            assert!(is_assigned(line.as_bytes()), "{line}");
        }
        for line in ["cause = AssertionError: gone", "failed = AssertionError in till", "error = noError", "the cause, it says, = TillError"] {
            assert!(!is_assigned(line.as_bytes()), "{line}");
        }
    }

    #[test]
    fn arms_and_members() {
        for line in ["libc::EPIPE => EPIPE,", "ENOENT => \"No such file or directory\",", "EROFS = libc::EROFS,", "c::EACCES => 2,", "Errno::ENOENT"] {
            assert!(is_arm(line.as_bytes()), "{line}");
        }
        for line in ["error => EPIPE", "code = ENOENT, syscall", "connect => EPIPE, gave up,", "=,", "a =>,", ","] {
            assert!(!is_arm(line.as_bytes()), "{line}");
        }
    }
}
