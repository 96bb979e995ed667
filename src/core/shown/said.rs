//! A verb with a quoted text, a line of a page, a statement with a comment after it. Takes one line (mark removed, trimmed).

use super::call::{has_colon, quote_end};
use crate::rules::Signs;

/// Verbs that take a text without brackets, in shells, Ruby, Perl, PHP, OCaml, SQL.
const VERBS: &[&[u8]] = &[
    b"echo",
    b"printf",
    b"print",
    b"puts",
    b"warn",
    b"abort",
    b"die",
    b"fail",
    b"raise",
    b"croak",
    b"confess",
    b"carp",
    b"failwith",
    b"throw",
    b"say",
    b"panic",
    b"message",
    b"return",
    b"yield",
    b"write-host",
    b"write-error",
    b"write-output",
    b"write-warning",
    b"$stderr.puts",
    b"stderr.puts",
    b"log_error",
    b"log_info",
    b"log_warn",
    b"throwerror",
    b"fatal",
    b"err",
    b"info",
    b"ok",
    b"throwio",
    b"super",
    b"else",
    b"or",
    b"and",
];

/// Whether the line is a verb with nothing but a quoted text after it: `echo "error: …" >&2`,
/// `raise ArgumentError, "…"`, `[ -f x ] || echo "…"`.
pub fn is_said(text: &[u8], signs: Signs) -> bool {
    let to_stderr = text.ends_with(b">&2") && (text.starts_with(b"echo ") || text.starts_with(b"printf "));
    if to_stderr || !signs.has_quote() {
        return to_stderr;
    }
    let marks = [&b"|| "[..], b"&& ", b"; "];
    let before = marks
        .iter()
        .filter(|mark| signs.has(mark[0]))
        .filter_map(|mark| last_mark(text, mark).map(|at| at + mark.len()))
        .max()
        .filter(|at| !has_colon(&text[..*at]));
    says(text) || before.is_some_and(|at| says(&text[at..]))
}

fn says(text: &[u8]) -> bool {
    let text = [&b">&2 "[..], b"or ", b"and "].iter().find_map(|before| text.strip_prefix(*before)).unwrap_or(text);
    let text = text.strip_prefix(b"{ ").unwrap_or(text);
    let Some(open) = memchr::memchr3(b'"', b'\'', b'`', text) else { return false };
    // An f-string, a raw string, a bracket: the letter before the quote is no word.
    let head = text[..open].trim_ascii_end();
    let mut words = head.split(|b| *b == b' ');
    let verb = words.next().unwrap_or_default();
    let lower = verb.to_ascii_lowercase();
    // A function of a shell script has an underscore in its name.
    let is_verb = VERBS.contains(&lower.as_slice()) || (verb.contains(&b'_') && verb.iter().all(|b| b.is_ascii_lowercase() || *b == b'_'));
    if !is_verb || !words.all(is_between) {
        return false;
    }
    let Some(end) = quote_end(text, open) else { return false };
    match text[end + 1..].trim_ascii_start() {
        [] | [b';' | b',' | b'>' | b')' | b'}' | b'|' | b'&' | b'%' | b'.' | b'+' | b'#' | b'\\', ..] | [b'1' | b'2', b'>', ..] => true,
        tail => tail.starts_with(b"if ") || tail.starts_with(b"unless ") || tail.starts_with(b"unless("),
    }
}

/// Whether the word may come between a verb and its text: a flag, a class, a handle, a bracket.
fn is_between(word: &[u8]) -> bool {
    match word {
        [] | b">&2" | b"1>&2" | [b'-', ..] | [b'(', ..] | b"message:" | b"f" | b"r" | b"$" => true,
        [first, .., last] => first.is_ascii_uppercase() && (*last == b',' || word.iter().all(u8::is_ascii_uppercase) || last.is_ascii_alphanumeric()),
        _ => false,
    }
}

const ELEMENTS: &[&[u8]] = &[
    b"<p>",
    b"<p ",
    b"<div",
    b"<span",
    b"<li>",
    b"<li ",
    b"<td",
    b"<th",
    b"<h1",
    b"<h2",
    b"<h3",
    b"<h4",
    b"<a ",
    b"<button",
    b"<strong",
    b"<b>",
    b"<em>",
    b"<code",
    b"<label",
    b"<pre",
    b"<title",
    b"<option",
    b"<body",
    b"<html>",
    b"<html ",
    b"<head>",
    b"<section",
    b"<main",
    b"<header",
    b"<footer",
    b"<article",
    b"<form",
    b"<ul>",
    b"<ul ",
    b"<blockquote",
    b"<small",
    b"<img ",
    b"<details",
    b"<summary",
];

/// Whether the line is of a page or a component: `<p>Error: {{ error }}</p>`.
pub fn is_markup(text: &[u8]) -> bool {
    let element = text.strip_prefix(b"{").map_or(text, |rest| memchr::memchr(b'<', rest).map_or(rest, |at| &rest[at..]));
    if element.first() != Some(&b'<') {
        return false;
    }
    ELEMENTS.iter().any(|tag| element.starts_with(tag)) || (element.ends_with(b">") && memchr::memmem::find(element, b"={").is_some())
}

/// Whether the line is of a list of changes, which ends with the number of its
/// request or begins with a link to its commit, or is the target of a link.
pub fn is_change(text: &[u8], signs: Signs) -> bool {
    if !signs.has(b'#') && !signs.has(b'[') {
        return false;
    }
    let number = text.strip_suffix(b")").and_then(|text| text.rsplit(|b| *b == b'#').next());
    let ends = || {
        number.is_some_and(|number| {
            (1..=6).contains(&number.len()) && number.iter().all(u8::is_ascii_digit) && text[..text.len() - number.len() - 1].ends_with(b"(#")
        })
    };
    let links = || {
        let item = text.strip_prefix(b"* ").or_else(|| text.strip_prefix(b"- ")).unwrap_or(text);
        let link = item.starts_with(b"[") || item.starts_with(b"\\[");
        link && (memchr::memmem::find(item, b"](http").is_some()
            || memchr::memmem::find(item, b"]: http").is_some()
            || memchr::memmem::find(item, b"]: #").is_some())
    };
    ends() || links()
}

/// Whether the line is a statement with a comment after it: `x(); // error: …`.
pub fn has_comment(text: &[u8], signs: Signs) -> bool {
    let is_hashed =
        || mark(text, b"; # ", 2).is_some() || mark(text, b"  # ", 2).is_some_and(|at| matches!(text[..at].trim_ascii_end(), [.., b')' | b':' | b',' | b']']));
    let is_slashed = || mark(text, b" // ", 1).is_some_and(|at| matches!(text[..at].trim_ascii_end(), [.., b';' | b')' | b'{' | b'}' | b',']));
    (signs.has(b'#') && is_hashed()) || (signs.has(b'/') && is_slashed())
}

/// Returns where `mark` occurs last; found by its first byte.
fn last_mark(text: &[u8], mark: &[u8]) -> Option<usize> {
    memchr::memrchr_iter(mark[0], text).find(|&at| text[at..].starts_with(mark))
}

/// Returns where `mark` occurs first; found by its byte at `sign`, which most lines do not have.
fn mark(text: &[u8], mark: &[u8], sign: usize) -> Option<usize> {
    memchr::memchr_iter(mark[sign], text).filter_map(|at| at.checked_sub(sign)).find(|&at| text[at..].starts_with(mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_and_links() {
        for line in [
            "- Update warning text on access denied (#1278)",
            "* \\[[`ff174b0937`](https://example.com/commit/ff174b0937)] - **runner**: AssertionError has fields",
            "* [#1672](https://example.com/1672) set .code='ECONNRESET'",
            "[Error]: https://example.com/struct.Error.html",
            "[error]: #error-events",
        ] {
            assert!(is_change(line.as_bytes(), Signs::of(line.as_bytes())), "{line}");
        }
        for line in ["[error]: connection refused", "error: 3 (#)", "[ERROR] see https://example.com (#x)", "failed: job (#12) is gone", ")", "(#)"] {
            assert!(!is_change(line.as_bytes(), Signs::of(line.as_bytes())), "{line}");
        }
    }

    #[test]
    fn said_texts() {
        for line in [
            "echo \"error: x\" >&2",
            "raise ArgumentError, \"error: x\"",
            "[ -f x ] || echo \"error: x missing\"",
            "RAISE EXCEPTION 'error: bad';",
            "die \"error: $!\\n\" unless $ok;",
        ] {
            assert!(is_said(line.as_bytes(), Signs::of(line.as_bytes())), "{line}");
        }
        for line in ["exec \"foo\": error: bad", "fail \"x\" because of it", "error: x || \"y\""] {
            assert!(!is_said(line.as_bytes(), Signs::of(line.as_bytes())), "{line}");
        }
    }
}
