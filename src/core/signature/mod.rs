//! The signature of a fault: MD5 over its normalised form, the same on another day, host, path and line.
//! Last stage of the core; sees the event after redaction. It never looks at time, place, line numbers or context.
//!
//! # Recipe, version 4 ([`SIG_VERSION`]; any change of an output raises it)
//! 1. A text is normalised by one pass of a byte machine (`normalise`), in this order at each token:
//!    what *is* the fault stays (HTTP status, exit code, errno, signal, compiler code, SQLSTATE); dates and times → `DATE`;
//!    users after `user=` and, since version 3, where sshd and PAM name them → `USER`; URLs → `scheme://…/last part`;
//!    paths → their file name, `TMP` for temporary ones; hosts → `HOST`, IP addresses → `IP`, e-mail addresses → `USER@HOST`;
//!    UUIDs → `UUID`; `0x…` → `0xN`; Kubernetes pod suffixes → `POD`; hex ids → `N`, because one without letters is a number
//!    (version 1: `HEX`); random strings → `ID`, of 24 and more characters → `B64`; versions → `VER`; durations → `DUR`;
//!    sizes → `SIZE`; other digits → `N`, within names too (`rdd_3_1` → `rdd_N_N`), except in well-known words (`utf8`, `int32`,
//!    `x86_64`). White space becomes one blank, control characters are escaped: the result is one line.
//! 2. A function name loses Rust's symbol hash `::h` + 16 hex digits (rust-lang.org, *legacy symbol mangling*), its arguments,
//!    which not every symbolizer shows (version 1: only Go's), and the numbers of generated names (`lambda$f$3`, `Outer$1`, `func2`)
//!    become `N`.
//! 3. A frame is `function NUL file name`; the file name is normalised like any path. Application frames come first, at most 20,
//!    a frame equal to the one before it counts once, so recursion depth does not matter. Line and column numbers never count.
//! 4. loose = MD5(`type NUL message`): exception type and normalised message of the outermost exception.
//! 5. strict = MD5(the same, then `NUL language`, since version 4 `NUL name` of the test that failed, normalised, `NUL type NUL
//!    message` of the root cause if there is a chain, then `NUL frame` for each frame). Tests often fail with the same words
//!    (`expect(received).toBe(expected)`), and are different faults. (MD5: RFC 1321; a label, not a protection.)
//! 6. A plain line has no type: `kind` is empty and the line is the message.

mod fault;
mod moment;
mod name;
mod normalise;
mod place;
mod shape;
#[cfg(test)]
mod tests;
mod word;

use super::event::{Frame, Frames, Hex, Link};
use md5::{Digest, Md5};

pub use normalise::{Replacement, normalise, normalise_explained};

/// Version of the recipe.
pub const SIG_VERSION: u32 = 4;
/// Maximum number of frames that count.
const MAX_FRAMES: usize = 20;
/// Room for the signed text of most errors.
const TYPICAL_BYTES: usize = 1024;

/// What has failed, and how. A plain line is given as `message` with an empty `kind`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fault<'a> {
    /// Language.
    pub language: Option<&'a str>,
    /// Name of the test that failed.
    pub test: Option<&'a str>,
    /// Type of the outermost exception.
    pub kind: &'a str,
    /// Message of the outermost exception.
    pub message: &'a str,
}

/// Returns the strict and the loose signature, 32 hex digits each. `chain` is outermost first and may be empty.
#[must_use]
pub fn signature(Fault { language, test, kind, message }: &Fault, chain: &[Link], frames: &Frames) -> (Hex, Hex) {
    let mut text = String::with_capacity(TYPICAL_BYTES);
    fault(kind, message, &mut text);
    let mut hash = Md5::new();
    hash.update(text.as_bytes());
    let loose = hash.clone();
    text.clear();
    text.push('\0');
    text.push_str(language.unwrap_or_default());
    if let Some(test) = test {
        text.push('\0');
        normalise(test, &mut text);
    }
    if let Some(root) = chain.last().filter(|_| chain.len() > 1) {
        text.push('\0');
        fault(&root.kind, &root.message, &mut text);
    }
    frames_into(frames, &mut text);
    hash.update(text.as_bytes());
    (Hex::new(hash.finalize().into()), Hex::new(loose.finalize().into()))
}

fn fault(kind: &str, message: &str, out: &mut String) {
    function_into(kind, out);
    out.push('\0');
    normalise(message, out);
}

fn frames_into(frames: &Frames, out: &mut String) {
    let ours = frames.iter().filter(|frame| frame.in_app);
    let theirs = frames.iter().filter(|frame| !frame.in_app);
    let mut previous: Option<Frame> = None;
    for frame in ours.chain(theirs).take(MAX_FRAMES) {
        if previous.is_none_or(|p| p.function != frame.function || p.file != frame.file) {
            out.push('\0');
            function_into(frame.function, out);
            out.push('\0');
            file_into(frame.file, out);
        }
        previous = Some(frame);
    }
}

/// Returns the last part of a path, without a URL's query.
fn file_name(path: &str) -> &str {
    let has_scheme = memchr::memchr_iter(b':', path.as_bytes()).any(|at| path[at..].starts_with("://"));
    let query = if has_scheme { memchr::memchr2(b'?', b'#', path.as_bytes()).filter(|&at| at > 0) } else { None };
    let path = &path[..query.unwrap_or(path.len())];
    let bytes = path.as_bytes();
    let Some(last) = bytes.iter().rposition(|b| !matches!(b, b'/' | b'\\')) else { return path };
    &path[memchr::memrchr2(b'/', b'\\', &bytes[..last]).map_or(0, |slash| slash + 1)..=last]
}

/// Appends the normalised name of a file; most names are their own normal form.
fn file_into(path: &str, out: &mut String) {
    match plain_name(path) {
        Some(name) => out.push_str(name),
        None => normalise(file_name(path), out),
    }
}

/// Returns what [`file_name`] finds, if a quick look shows that it is its own normal
/// form. Most paths are read from their end to the last slash, and no further.
fn plain_name(path: &str) -> Option<&str> {
    let bytes = path.as_bytes();
    let (mut from, mut dot) = (bytes.len(), 0);
    while from > 0 {
        match bytes[from - 1] {
            b'/' | b'\\' => break,
            b'.' if dot == 0 => dot = from - 1,
            b'_' if dot > 0 => {}
            byte if byte.is_ascii_alphabetic() => {}
            _ => return None,
        }
        from -= 1;
    }
    // The path comes before the query, which may have slashes itself.
    let fits = dot > from && shape::is_plain_file((dot - from, &bytes[dot + 1..])) && memchr::memchr2(b'?', b'#', &bytes[..from]).is_none();
    fits.then(|| &path[from..])
}

/// Appends a function or type name without what a compiler or a run adds to it.
fn function_into(name: &str, out: &mut String) {
    let name = without_arguments(without_hash(name));
    let bytes = name.as_bytes();
    if !bytes.iter().fold(false, |any, b| any | b.is_ascii_digit()) {
        out.push_str(name);
        return;
    }
    let closure = name.find(".func").map_or(usize::MAX, |at| at + ".func".len());
    let mut at = 0;
    while at < bytes.len() {
        let digits = bytes[at..].iter().take_while(|b| b.is_ascii_digit()).count();
        if digits > 0 && (is_generated(&name[..at], digits) || (at >= closure && bytes[at - 1] == b'.')) {
            out.push('N');
            at += digits;
        } else {
            let rest = if digits > 0 { digits } else { bytes[at..].iter().take_while(|b| !b.is_ascii_digit()).count() };
            out.push_str(&name[at..at + rest]);
            at += rest;
        }
    }
}

/// Removes Rust's symbol hash: `core::f::h0123456789abcdef` → `core::f`.
fn without_hash(name: &str) -> &str {
    let Some((head, tail)) = name.len().checked_sub("::h0123456789abcdef".len()).and_then(|at| name.split_at_checked(at)) else { return name };
    let is_hash = tail.strip_prefix("::h").is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
    if is_hash { head } else { name }
}

/// Removes arguments: `main.f(0xc0000, 0x1)`, `main.f(...)`, `shop::f(int) const` → `main.f`, `shop::f`.
fn without_arguments(name: &str) -> &str {
    let bare = name.strip_suffix(" const").unwrap_or(name);
    if !bare.ends_with(')') {
        return name;
    }
    let mut depth = 0_usize;
    for (at, byte) in bare.bytes().enumerate().rev() {
        match byte {
            b')' => depth += 1,
            b'(' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return if at > 0 { bare[..at].trim_end() } else { name };
        }
    }
    name
}

/// Whether the digits after `head` number a generated name rather than belong to a chosen one.
fn is_generated(head: &str, digits: usize) -> bool {
    const HEADS: &[&str] =
        &["$", "lambda", "lambda_", "func", "anonymous", "closure", "closure#", "closure_", "#", "@", "+0x", "Proxy", "<", "gowrap", "block_", "fn_"];
    digits >= 5 || HEADS.iter().any(|h| head.ends_with(h))
}
