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
        _ => is_of_host(text) || is_of_version(text) || is_of_windows(text),
    }
}

/// Whether the text begins with the prompt of a shell without a start-up file: `bash-5.1$ make`, `sh-4.2# make`.
fn is_of_version(text: &[u8]) -> bool {
    let name = text.iter().take_while(|byte| byte.is_ascii_lowercase()).count();
    let Some(version) = text[name..].strip_prefix(b"-").filter(|_| text[..name].ends_with(b"sh")) else { return false };
    let end = version.iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'.').count();
    end > 0 && is_signed(&version[end..], b"$#")
}

/// Whether the text begins with a prompt of PowerShell or cmd.exe: `PS C:\shop> make`, `PS /home/ann> make`, `C:\shop>make`.
fn is_of_windows(text: &[u8]) -> bool {
    let is_drive = |text: &[u8]| matches!(text, [drive, b':', b'\\', ..] if drive.is_ascii_uppercase());
    let Some(end) = memchr::memchr(b'>', text) else { return false };
    let (place, command) = (&text[..end], &text[end + 1..]);
    let is_path = |place: &[u8]| !place.iter().any(|byte| matches!(byte, b'<' | b'|' | b'"' | b'*' | b'?' | b'(' | b','));
    match place.strip_prefix(b"PS ") {
        Some(place) => (is_drive(place) || place.starts_with(b"/")) && is_path(place) && is_signed(&text[end..], b">"),
        None => is_drive(place) && is_path(place) && command.first().is_none_or(u8::is_ascii_alphabetic),
    }
}

/// Whether the text begins with one of the `signs` and ends there, or goes on after a blank.
fn is_signed(text: &[u8], signs: &[u8]) -> bool {
    text.first().is_some_and(|byte| signs.contains(byte)) && text.get(1).is_none_or(|byte| *byte == b' ')
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
    let is_parted = |at: usize| text.get(at + 1).is_none_or(|next| *next == b' ');
    memchr::memchr3_iter(b'$', b'#', b'%', text).any(is_parted) || memchr::memchr_iter(b'>', text).any(|at| is_parted(at) || text[..at].contains(&b'\\'))
}

/// Whether the text begins with a prompt that names the host: no program prints such a line among its own. Bash
/// (`ann@web-1:~/shop$ make`, `[ann@web-1 shop]$ make`, macOS's `web-1:shop ann$ make`), zsh (`ann@web-1 shop % make`)
/// and fish (`ann@web-1 ~/shop> make`), also within a virtual environment (`(venv) ann@web-1:~$ make`).
#[must_use]
pub fn is_of_host(text: &[u8]) -> bool {
    let text = without_environment(text);
    let (is_boxed, text) = text.strip_prefix(b"[").map_or((false, text), |text| (true, text));
    let first = name_bytes(text);
    if first == 0 {
        return false;
    }
    let Some(host) = text[first..].strip_prefix(b"@") else { return !is_boxed && is_of_macos(&text[first..]) };
    let length = name_bytes(host);
    if length == 0 || !(text[0].is_ascii_lowercase() || text[0] == b'_') {
        return false;
    }
    let (parting, place) = host[length..].split_first().unwrap_or((&0, b""));
    let end = place.iter().position(|byte| matches!(byte, b' ' | b'$' | b'#' | b'>')).unwrap_or(place.len());
    let (place, sign) = place.split_at(end);
    let is_path = place.first().is_some_and(|byte| matches!(byte, b'/' | b'~'));
    match (is_boxed, parting) {
        (true, b' ') => place.ends_with(b"]") && is_signed(sign, b"$#"),
        (false, b':') => is_path && is_signed(sign, b"$#"),
        (false, b' ') => is_path && is_signed(sign, b">") || !place.is_empty() && sign.strip_prefix(b" ").is_some_and(|sign| is_signed(sign, b"%#")),
        _ => false,
    }
}

/// Whether the rest of a prompt follows a host's name: `:shop ann$ make`.
fn is_of_macos(text: &[u8]) -> bool {
    let Some(place) = text.strip_prefix(b":") else { return false };
    let end = place.iter().position(|byte| matches!(byte, b' ' | b':' | b'(')).unwrap_or(place.len());
    let Some(user) = place[end..].strip_prefix(b" ").filter(|user| end > 0 && user.first().is_some_and(u8::is_ascii_lowercase)) else { return false };
    is_signed(&user[name_bytes(user)..], b"$")
}

/// Returns the text without the name of a virtual environment: `(venv) `.
fn without_environment(text: &[u8]) -> &[u8] {
    let Some(inner) = text.strip_prefix(b"(") else { return text };
    let name = name_bytes(inner);
    inner[name..].strip_prefix(b") ").filter(|_| name > 0).unwrap_or(text)
}

/// Returns the length of the name of a user, host or environment that the text begins with.
fn name_bytes(text: &[u8]) -> usize {
    text.iter().take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts() {
        for text in ["$ make", "$ ./run", "$ # a note", "ann@web-1:~/shop$ make", "root@1f2e:/app# make", "[ann@web-1 shop]$ make", "ann@web-1:~$"]
            .into_iter()
            .chain(["(venv) ann@web-1:~$ make", "ann@web-1 shop % make", "ann@web-1 ~/shop> make", "web-1:shop ann$ make"])
            .chain([r"PS C:\shop> make", "PS /home/ann> make"])
        {
            assert!(is_prompt(text.as_bytes()) && may_be_prompt(text.as_bytes()) && resembles_prompt(text.as_bytes()), "{text}");
        }
        for text in ["bash-5.1$ make", "sh-4.2# make", r"C:\shop>make"] {
            assert!(is_prompt(text.as_bytes()) && may_be_prompt(text.as_bytes()), "{text}");
        }
        for text in ["$ 5.00", "# make", "+ make", "++ make", ">>> f()", "In [3]: f()", "##[group]Run", "::error::x"] {
            assert!(resembles_prompt(text.as_bytes()) && !is_prompt(text.as_bytes()), "{text}");
        }
        for text in ["+    let a = b;", "std::vector", "a@b", "#1", "$x", ""] {
            assert!(!resembles_prompt(text.as_bytes()), "{text}");
        }
        for text in [
            "# make",
            "$ 5.00",
            "$",
            "$x",
            "${x}",
            "+ make",
            "git@github.com:till.git",
            "ann@web-1:8080 up",
            "a@b: $ x",
            "> make",
            "-e $ x",
            "[a b]$ x",
            "error: a b$ x",
            "a@b c d % e",
            "50 % done",
            r"C:\shop\till.c(3)>x",
            "x-1$ y",
        ] {
            assert!(!is_prompt(text.as_bytes()), "{text}");
        }
    }
}
