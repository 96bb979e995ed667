//! Converts a JavaScript regular expression with numbered groups into one of siftd's with named groups.
//! What siftd's expressions lack (look-around, back-references) is left unchanged: the loader reports it.

use std::ops::Range;

/// Words that a severity group has for an error; GitHub takes everything but warnings and notices for an error.
const ERROR_WORDS: &[&str] = &["error", "Error", "ERROR", "fatal"];
/// Words for lesser severities.
const LESSER: &[&str] = &["warning", "warn", "notice", "info", "information", "note", "hint", "style", "debug"];

/// The expression, and the words of which one stands in the severity group.
pub(super) struct Converted {
    pub(super) regex: String,
    pub(super) words: Vec<String>,
}

/// What a group of the expression becomes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Group {
    /// A group that is not read.
    Unread,
    /// A named group.
    Named(&'static str),
    /// The severity group: only errors match.
    Severity,
}

/// Converts `regexp`; `group` tells what the group with a number (from 1) is. `None`: the severity is never an error.
pub(super) fn convert(regexp: &str, group: impl Fn(usize) -> Group) -> Option<Converted> {
    let bytes = regexp.as_bytes();
    let (mut regex, mut words, mut number, mut at) = (String::with_capacity(regexp.len() + 64), Vec::new(), 0, 0);
    while at < bytes.len() {
        let end = match bytes[at] {
            b'(' => {
                let (inside, is_counted) = opening(bytes, at);
                number += usize::from(is_counted);
                let meaning = if is_counted { group(number) } else { Group::Unread };
                match meaning {
                    Group::Severity => {
                        let close = closing(bytes, inside);
                        words = error_words(&regexp[inside..close])?;
                        regex.push_str(&format!("(?:{})", words.join("|")));
                        number += (inside..close).filter(|&at| bytes[at] == b'(' && is_free(bytes, at) && opening(bytes, at).1).count();
                        close + 1
                    }
                    Group::Named(name) => {
                        regex.push_str(&format!("(?P<{name}>"));
                        inside
                    }
                    Group::Unread => {
                        regex.push_str(if is_counted { "(?:" } else { &regexp[at..inside] });
                        inside
                    }
                }
            }
            b'[' => class(regexp, at, &mut regex),
            b'{' if !is_repeat(&bytes[at..]) => {
                regex.push_str("\\{");
                at + 1
            }
            b'\\' => {
                let end = at + 1 + regexp[at + 1..].chars().next().map_or(0, char::len_utf8);
                // A slash needs no escape, and siftd's expressions accept none.
                regex.push_str(if &regexp[at..end] == "\\/" { "/" } else { &regexp[at..end] });
                end
            }
            _ => {
                let end = at + regexp[at..].chars().next().map_or(1, char::len_utf8);
                regex.push_str(&regexp[at..end]);
                end
            }
        };
        at = end;
    }
    Some(Converted { regex, words })
}

/// Returns where the inside of the group that opens at `at` begins, and whether the group is numbered.
fn opening(bytes: &[u8], at: usize) -> (usize, bool) {
    match &bytes[at + 1..] {
        [b'?', b'<', next, ..] if !matches!(next, b'=' | b'!') => (memchr::memchr(b'>', &bytes[at..]).map_or(at + 1, |end| at + end + 1), true),
        [b'?', b':', ..] => (at + 3, false),
        [b'?', ..] => (at + 2, false),
        _ => (at + 1, true),
    }
}

/// Whether the byte is not escaped.
fn is_free(bytes: &[u8], at: usize) -> bool {
    bytes[..at].iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 0
}

/// Returns where the group closes whose inside begins at `inside`.
fn closing(bytes: &[u8], inside: usize) -> usize {
    let (mut depth, mut in_class) = (0, false);
    for at in (inside..bytes.len()).filter(|&at| is_free(bytes, at)) {
        match bytes[at] {
            b'[' => in_class = true,
            b']' => in_class = false,
            b'(' if !in_class => depth += 1,
            b')' if !in_class && depth == 0 => return at,
            b')' if !in_class => depth -= 1,
            _ => {}
        }
    }
    bytes.len()
}

/// Copies a character class from `at`, escaping `[`, `&`, `~` and a hyphen beside
/// `\s` and the like, which JavaScript takes literally; returns where the class ends.
fn class(regexp: &str, at: usize, out: &mut String) -> usize {
    let is_kind = |text: &str| text.starts_with('\\') && text.get(1..2).is_some_and(|kind| "dswDSW".contains(kind));
    let (mut is_escaped, mut follows_kind) = (false, false);
    for (index, c) in regexp[at..].char_indices() {
        let is_lone_hyphen = c == '-' && (follows_kind || is_kind(&regexp[at + index + 1..]));
        if index > 0 && !is_escaped && (matches!(c, '[' | '&' | '~') || is_lone_hyphen) {
            out.push('\\');
        }
        out.push(c);
        if c == ']' && !is_escaped && index > 0 {
            return at + index + 1;
        }
        follows_kind = is_escaped && is_kind(&regexp[at + index - 1..]);
        is_escaped = c == '\\' && !is_escaped;
    }
    regexp.len()
}

/// Whether `bytes` begin with a counted repetition: `{2}`, `{2,}`, `{2,3}`.
fn is_repeat(bytes: &[u8]) -> bool {
    let Range { start, end } = 1..memchr::memchr(b'}', bytes).unwrap_or(1);
    end > start && bytes[start].is_ascii_digit() && bytes[start..end].iter().all(|byte| byte.is_ascii_digit() || *byte == b',')
}

/// Returns the words for an error in a group; the usual ones if the group is no list of words. `None`: it holds only lesser words.
fn error_words(inside: &str) -> Option<Vec<String>> {
    let is_word = |word: &&str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b' ');
    let words: Vec<&str> = inside.split('|').collect();
    if !words.iter().all(is_word) {
        return Some(ERROR_WORDS.iter().map(|&word| word.to_owned()).collect());
    }
    let kept: Vec<String> = words.into_iter().filter(|word| !LESSER.contains(&word.to_ascii_lowercase().as_str())).map(str::to_owned).collect();
    (!kept.is_empty()).then_some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_named_and_the_severity_is_that_of_an_error() {
        let group = |number| match number {
            1 => Group::Named("file"),
            3 => Group::Severity,
            5 => Group::Named("message"),
            _ => Group::Unread,
        };
        for (regexp, want) in [
            (r"^(.+):(\d+): (error|warning|(x)): (.*)$", r"^(?P<file>.+):(?:\d+): (?:error|Error|ERROR|fatal): (?P<message>.*)$"),
            (r"(a)(b)(warning|fatal error) (c) (d)", r"(?P<file>a)(?:b)(?:fatal error) (?:c) (?P<message>d)"),
            (r"(?:\/x\()([^[\]&]*){", r"(?:/x\()(?P<file>[^\[\]\&]*)\{"),
            (r"([\s->=]+[a-z])", r"(?P<file>[\s\->=]+[a-z])"),
            (r"(?<n>é{2,3})", r"(?P<file>é{2,3})"),
        ] {
            assert_eq!(convert(regexp, group).map(|found| found.regex).as_deref(), Some(want), "{regexp}");
        }
        assert!(convert("(a)(b)(warning|notice)", group).is_none());
        for odd in ["(", "[", "(a)(b)(", "\\", "(?<", "{"] {
            let _ = convert(odd, group);
        }
    }
}
