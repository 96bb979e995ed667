//! A statement that calls something: a name with its brackets, and code before and after it. Takes
//! one line (mark removed, trimmed), read once; a sentence that mentions a call does not count.

/// Words that may precede a call without making the line a sentence.
const BEFORE_CALL: &[&[u8]] = &[
    b"return",
    b"await",
    b"async",
    b"throw",
    b"throws",
    b"new",
    b"raise",
    b"yield",
    b"if",
    b"elif",
    b"else",
    b"while",
    b"for",
    b"not",
    b"and",
    b"or",
    b"do",
    b"then",
    b"unless",
    b"try",
    b"try!",
    b"try?",
    b"go",
    b"defer",
    b"def",
    b"fn",
    b"func",
    b"fun",
    b"function",
    b"public",
    b"private",
    b"protected",
    b"static",
    b"final",
    b"abstract",
    b"override",
    b"internal",
    b"virtual",
    b"void",
    b"export",
    b"default",
    b"const",
    b"let",
    b"var",
    b"val",
    b"my",
    b"local",
    b"case",
    b"when",
    b"with",
    b"assert",
    b"print",
    b"echo",
    b"puts",
    b"expect",
    b"pub",
    b"unsafe",
    b"get",
    b"set",
    b"readonly",
    b"constructor",
    b"it",
    b"test",
    b"in",
    b"RAISE",
    b"PERFORM",
    b"SELECT",
    b"bool",
    b"int",
    b"char",
    b"string",
    b"String",
    b"auto",
    b"delete",
    b"elsif",
    b"typeof",
    b"lambda",
];

/// Whether the line is a call with its brackets, such as `log.error("failed: %s", e)`:
/// code before it, a quoted text or the end of a statement, and nothing but code after it.
pub fn is_call(text: &[u8]) -> bool {
    let Some(open) = first_call(text) else { return false };
    if !is_before_call(&text[..name_start(text, open)]) {
        return false;
    }
    let Some(close) = closing(text, open) else {
        return has_quote(&text[open..]) && matches!(text, [.., b',' | b'(' | b'{' | b'[']);
    };
    match &text[close + 1..] {
        [b' ', b'=' | b'-', b'>', ..] | [b' ', b'{', ..] | [b'{', ..] => true,
        [b':', b' ', tail @ ..] if tail.ends_with(b"{") || (tail.ends_with(b";") && !tail.contains(&b' ')) => true,
        // A method's signature: typed parameters and a return type.
        [b':', b' ', tail @ ..] if memchr::memmem::find(&text[open..close], b": ").is_some() && !tail.contains(&b' ') => true,
        tail => is_after_call(tail) && (has_quote(&text[open..close]) || begins_statement(text) || matches!(text, [.., b';' | b'{' | b',' | b'?'])),
    }
}

/// Whether no text is needed in the brackets: `raise X(y)`, `return f(x)`.
fn begins_statement(text: &[u8]) -> bool {
    [&b"raise "[..], b"throw ", b"return ", b"await ", b"yield ", b"if ", b"elif ", b"assert "].iter().any(|word| text.starts_with(word))
}

/// Returns the first bracket directly after a name. GNU's style has a blank between them.
fn first_call(text: &[u8]) -> Option<usize> {
    let gnu = text.ends_with(b");") || text.ends_with(b",");
    memchr::memchr_iter(b'(', text).find(|&at| {
        let blank = gnu && at > 1 && text[at - 1] == b' ';
        let at = at - usize::from(blank);
        at > 0 && (text[at - 1].is_ascii_alphanumeric() || matches!(text[at - 1], b'_' | b'!' | b'?'))
    })
}

/// Returns where the name before the bracket at `open` begins; a number is no name.
fn name_start(text: &[u8], open: usize) -> usize {
    let name =
        |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'!' | b'?' | b'$' | b'@' | b'&' | b'*' | b'\\') || matches!(b, b':' | b'>' | b'-');
    let open = open - usize::from(open > 0 && text[open - 1] == b' ');
    open - text[..open].iter().rev().take_while(|b| name(b)).count()
}

fn is_before_call(before: &[u8]) -> bool {
    let before = before.trim_ascii();
    if has_mark(before) {
        return !has_colon(before);
    }
    before.split(|b| matches!(b, b' ' | b'\t')).all(|word| {
        word.is_empty()
            || BEFORE_CALL.contains(&word)
            || matches!(word, [.., b',' | b'{' | b'}' | b')' | b'|' | b'>' | b'='] | [b'$' | b'@' | b'&' | b'{' | b'(' | b'!', ..] | b"default:")
    })
}

/// Whether the text is the left side of an expression: `=`, `=>`, `->`, `{`, `||`, `&&`.
fn has_mark(before: &[u8]) -> bool {
    let ends = matches!(before, [.., b'=' | b'{' | b'|' | b'&' | b'(' | b'>' | b'?']);
    ends || memchr::memmem::find(before, b" = ").is_some() || memchr::memmem::find(before, b" := ").is_some()
}

/// Whether a colon and a blank occur outside brackets: a message begins after them. Those of `case x: ` do not count.
pub(super) fn has_colon(before: &[u8]) -> bool {
    let mut depth = 0usize;
    for pair in before.windows(2) {
        match pair {
            [b'(' | b'{' | b'[' | b'<', _] => depth += 1,
            [b')' | b'}' | b']' | b'>', _] => depth = depth.saturating_sub(1),
            b": " if depth == 0 => return !before.starts_with(b"case "),
            _ => {}
        }
    }
    false
}

/// Returns the bracket that closes the one at `open`; brackets inside quotes do not count.
fn closing(text: &[u8], open: usize) -> Option<usize> {
    let mut depth = 0usize;
    let mut at = open;
    while at < text.len() {
        match text[at] {
            b'(' => depth += 1,
            b')' if depth == 1 => return Some(at),
            b')' => depth -= 1,
            b'"' | b'`' | b'\'' if is_quote(text, at) => at = quote_end(text, at)?,
            _ => {}
        }
        at += 1;
    }
    None
}

/// Whether this is a quote rather than an apostrophe.
fn is_quote(text: &[u8], at: usize) -> bool {
    text[at] != b'\'' || !at.checked_sub(1).is_some_and(|before| text[before].is_ascii_alphanumeric() || text[before] == b'&')
}

/// Returns the quote that ends the text which begins at `open`.
pub(super) fn quote_end(text: &[u8], open: usize) -> Option<usize> {
    let quote = text[open];
    let mut at = open + 1;
    while at < text.len() {
        match text[at] {
            b'\\' => at += 1,
            b if b == quote => return Some(at),
            _ => {}
        }
        at += 1;
    }
    None
}

fn has_quote(text: &[u8]) -> bool {
    memchr::memchr3(b'"', b'\'', b'`', text).is_some()
}

/// Whether the text may follow a call in a statement: an end, a further call, an operator, a comment.
fn is_after_call(tail: &[u8]) -> bool {
    const OPERATORS: [&[u8]; 22] = [
        b" as ",
        b" or ",
        b" and ",
        b" if ",
        b" unless ",
        b" else ",
        b" in ",
        b" throws ",
        b" when ",
        b" from ",
        b" do",
        b" ==",
        b" !=",
        b" ||",
        b" &&",
        b" + ",
        b" . ",
        b" % ",
        b" << ",
        b" //",
        b"  #",
        b" = ",
    ];
    match tail {
        [] | b":" | b" }" | b" \\" | b" |" => true,
        [b';' | b',' | b')' | b']' | b'}' | b'?' | b'!', ..] => true,
        [b'.', next, ..] => next.is_ascii_alphabetic(),
        [b' ', b'}' | b')' | b'#' | b';', ..] => true,
        _ => OPERATORS.iter().any(|operator| tail.starts_with(operator)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_told_from_messages_with_brackets() {
        let calls = [
            "log.error(\"failed: %s\", exc)",
            "return nil, status.Errorf(codes.Internal, \"error: bad\")",
            "Error::Io(error) => write!(f, \"io error: {error}\"),",
            "private handle(error: Error): void {",
            ".map_err(|error: io::Error| Error::Io(error))?;",
            "res.status(500).json({ error: \"failed: db\" });",
            "default: panic(\"error: bad\")",
        ];
        for line in calls {
            assert!(is_call(line.as_bytes()), "{line}");
        }
        let messages = [
            "Error in library(\"foo\") : there is no package called 'foo'",
            "open(\"/x\"): No such file or directory",
            "open(\"/x\") failed: No such file or directory (2)",
            "Error: Command failed(\"x\")",
            "error: no matching function for call to 'f(\"x\")'",
            "main.c(12): error C2065: 'x': undeclared identifier;",
            "Failed to require(\"x\")",
            "FAIL: test_foo(bar=\"x\")",
            "mysqli_connect(): (HY000/2002): Connection refused",
            "request failed: timeout (30s)",
            "ERROR foo(\"x\")",
            "retrying (error: bad)",
        ];
        for line in messages {
            assert!(!is_call(line.as_bytes()), "{line}");
        }
    }
}
