//! Prompts of shells and interpreters, and what stands in their place where commands are run for a log. How sure a line
//! must be depends on what is asked: [`is_prompt`] parts what two commands print, wherever it stands; [`resembles_prompt`]
//! only ends a text that would otherwise go on. Looks at one line only.

/// Whether the text is a prompt with a command: `$ make`, `ann@web-1:~/shop$ make`, `root@1f2e:/app# make`, `[ann@web-1 shop]$ make`.
/// The sign alone also stands before prices and in templates, and a `#` begins a comment: a command follows the one, a name and a
/// place precede the other.
#[must_use]
pub fn is_prompt(text: &[u8]) -> bool {
    match text {
        [b'$', b' ', rest @ ..] => rest.first().is_some_and(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'.' | b'/' | b'~' | b'#')),
        _ => is_of_host(text),
    }
}

/// Whether the text begins as a prompt of a shell or interpreter, a shell's command trace, or a CI runner's annotation does. So do
/// comments, headings and added lines of a diff: where a message without an end of its own may be over, that is enough to end it.
#[must_use]
pub fn resembles_prompt(text: &[u8]) -> bool {
    const SIGNS: [&[u8]; 9] = [b"$ ", b"# ", b"% ", b"+ ", b"++ ", b">>> ", b"In [", b"##[", b"PS "];
    // A diff marks an added line with a sign, too.
    if text.starts_with(b"+  ") {
        return false;
    }
    let is_annotation = || text.starts_with(b"::") && text.get(2).is_some_and(u8::is_ascii_lowercase);
    SIGNS.iter().any(|sign| text.starts_with(sign)) || is_annotation() || is_of_host(text)
}

/// Whether a prompt may stand in the text, behind whatever precedes it. Most lines have no sign of one, and need not be decoded to tell.
#[must_use]
pub fn may_be_prompt(text: &[u8]) -> bool {
    memchr::memchr2_iter(b'$', b'#', text).any(|at| text.get(at + 1).is_none_or(|next| *next == b' '))
}

/// Whether the text begins with a prompt that names user and host: no program prints such a line among its own.
#[must_use]
pub fn is_of_host(text: &[u8]) -> bool {
    let (bracket, text) = text.strip_prefix(b"[").map_or((false, text), |text| (true, text));
    if !text.first().is_some_and(|byte| byte.is_ascii_lowercase() || *byte == b'_') {
        return false;
    }
    let name = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')).count();
    let user = name(text);
    let Some(host) = text[user..].strip_prefix(b"@") else { return false };
    let length = name(host);
    let parting = if bracket { b' ' } else { b':' };
    let Some(place) = host[length..].strip_prefix(&[parting]).filter(|_| length > 0) else { return false };
    let end = place.iter().position(|byte| matches!(byte, b' ' | b'$' | b'#')).unwrap_or(place.len());
    let path = if bracket { place[..end].strip_suffix(b"]") } else { Some(&place[..end]) };
    let is_path = path.is_some_and(|path| bracket || path.first().is_some_and(|byte| matches!(byte, b'/' | b'~')));
    is_path && matches!(place[end..], [b'$' | b'#'] | [b'$' | b'#', b' ', ..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts() {
        for text in ["$ make", "$ ./run", "$ # a note", "ann@web-1:~/shop$ make", "root@1f2e:/app# make", "[ann@web-1 shop]$ make", "ann@web-1:~$"] {
            assert!(is_prompt(text.as_bytes()) && may_be_prompt(text.as_bytes()) && resembles_prompt(text.as_bytes()), "{text}");
        }
        for text in ["$ 5.00", "# make", "+ make", "++ make", ">>> f()", "In [3]: f()", "##[group]Run", "::error::x", "PS C:\\> make"] {
            assert!(resembles_prompt(text.as_bytes()) && !is_prompt(text.as_bytes()), "{text}");
        }
        for text in ["+    let a = b;", "std::vector", "a@b", "#1", "$x", ""] {
            assert!(!resembles_prompt(text.as_bytes()), "{text}");
        }
        for text in
            ["# make", "$ 5.00", "$", "$x", "${x}", "+ make", "git@github.com:till.git", "ann@web-1:8080 up", "a@b: $ x", "> make", "-e $ x", "[a b]$ x"]
        {
            assert!(!is_prompt(text.as_bytes()), "{text}");
        }
    }
}
