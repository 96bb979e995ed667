//! What a compiler says about a place: `a.cc:6:49: error: …`, and what a program has thrown: `com.acme.TillException: …`.
//! Either may quote the code that it is about, but is no code itself. Tests bytes only, from the beginning of the line.

/// The words of an error after a place.
const WORDS: [&[u8]; 3] = [b": error: ", b": fatal error: ", b": internal compiler error: "];

/// Whether `line` begins with a file, its line number and an error word, with the code of a rustc error, or with an exception.
pub fn is_diagnosed(line: &[u8]) -> bool {
    let is_told = |at: usize| WORDS.iter().any(|word| line[at..].starts_with(word)) && is_place(&line[..at]);
    is_numbered(line) || is_thrown(line) || memchr::memchr_iter(b':', line).any(is_told)
}

/// Whether the line begins with the name of an exception and of its packages: `com.acme.Till$ShutException: …`. A
/// word alone may be a parameter's name, and two a member's type.
fn is_thrown(line: &[u8]) -> bool {
    let is_part = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$');
    let end = line.iter().take_while(|b| is_part(b) || **b == b'.').count();
    let (name, said) = line.split_at(end);
    let ends_so = name.ends_with(b"Exception") || name.ends_with(b"Error");
    ends_so && said.starts_with(b": ") && name[0].is_ascii_lowercase() && name.iter().filter(|b| **b == b'.').count() > 1
}

/// Whether the line begins with the code of a rustc error: `error[E0308]: …`
fn is_numbered(line: &[u8]) -> bool {
    let Some(rest) = line.strip_prefix(b"error[E") else { return false };
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    digits > 0 && rest[digits..].starts_with(b"]: ")
}

/// Whether the text is a place: `src/a.cc:6`, `a.cc:6:49`, a name with an extension and no blank, then numbers.
fn is_place(text: &[u8]) -> bool {
    let Some(file) = without_number(text) else { return false };
    let file = without_number(file).unwrap_or(file);
    let name = file.iter().rev().take_while(|byte| !matches!(byte, b'/' | b'\\')).count();
    let name = &file[file.len() - name..];
    let has_extension = name.iter().position(|byte| *byte == b'.').is_some_and(|dot| dot > 0 && dot + 1 < name.len());
    has_extension && !file.iter().any(|byte| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | b'`' | b'(' | b'='))
}

/// Returns the text without the `:6` at its end.
fn without_number(text: &[u8]) -> Option<&[u8]> {
    let digits = text.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    (digits > 0).then(|| text[..text.len() - digits].strip_suffix(b":")).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_what_a_compiler_says() {
        for line in ["src/a.cc:6:49: error: x", "a.c:6: fatal error: x", "C:\\a\\b.cpp:3:1: error: x", "error[E0308]: x", "com.acme.Till$ShutException: x"] {
            assert!(is_diagnosed(line.as_bytes()), "{line}");
        }
        let others = [
            "echo \"a.c:6: error: x\"",
            "a.c: error: x",
            "log: error: x",
            "    x = 3: error: y",
            "error[foo]: x",
            "12:34: error: x",
            "errors.TillError: x",
            "com.acme.TillError",
        ];
        for line in others {
            assert!(!is_diagnosed(line.as_bytes()), "{line}");
        }
    }
}
