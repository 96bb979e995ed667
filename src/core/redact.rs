//! Replaces secrets with `[redacted:<kind>]` before anything is classified, signed, stored or shown. The patterns are
//! data (`config/redact.toml`) behind one keyword gate: [`Redactor::touches`] tells in one pass over an event's bytes
//! whether any of its lines needs a second look. What there is to do depends on what the caller has: a text
//! ([`redact`](Redactor::redact)), lines that come one by one ([`redact_next`](Redactor::redact_next)) or all at once
//! ([`redact_lines`](Redactor::redact_lines)), an event's lines ([`redact_event`](Redactor::redact_event)), or its
//! context ([`redact_context`](Redactor::redact_context)). Every change to a text is counted, and what was removed is never kept.

mod key_block;
mod value;

use super::gate::Gate;
use super::text::Lines;
use regex::Regex;
use serde::Deserialize;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::OnceLock;

pub use key_block::KeyBlock;
use key_block::ended;
use value::{Plain, Value};

/// The source of the built-in patterns.
const BUILTIN: &str = include_str!("../../config/redact.toml");
/// Maximum number of refused values of one text that are read once more.
const MAX_READ_AGAIN: usize = 64;

/// The patterns, ready for use.
pub struct Redactor {
    gate: Gate,
    words: Vec<(String, bool)>,
    /// For each gate word, the bit of its secret: there are at most 64.
    owners: Vec<u64>,
    /// The secrets whose words are keys that a value is assigned to.
    assigned: u64,
    /// The bit of private keys.
    private_key: u64,
    secrets: Vec<Secret>,
    plain: Plain,
}

/// A word at `at` that opens the gate for the secrets of `owners`, one bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touch {
    at: usize,
    owners: u64,
}

/// How a private key's block reaches into a context.
#[derive(Clone, Copy, Debug)]
pub enum ContextKey {
    /// The lines before the context leave this block open; a closed one: none does.
    Before(KeyBlock),
    /// Each line that this block holds is a record of its own, and other records may stand between them.
    Within(KeyBlock),
}

struct Secret {
    token: String,
    source: String,
    regex: OnceLock<Regex>,
    value: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    prose: Vec<String>,
    secret: Vec<Entry>,
    placeholder: Vec<Placeholder>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    kind: String,
    words: Vec<String>,
    regex: String,
    #[serde(default)]
    value: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Placeholder {
    words: Vec<String>,
}

impl Redactor {
    /// Returns the built-in patterns, read at the first call.
    #[must_use]
    pub fn builtin() -> &'static Self {
        static REDACTOR: OnceLock<Redactor> = OnceLock::new();
        REDACTOR.get_or_init(|| Self::parse(BUILTIN).expect("the patterns compiled in are parsed by a test"))
    }

    fn parse(source: &str) -> Result<Self, toml::de::Error> {
        let file: File = toml::from_str(source)?;
        assert!(file.secret.len() <= u64::BITS as usize, "each secret has a bit");
        let (mut words, mut owners) = (Vec::new(), Vec::new());
        for (index, entry) in file.secret.iter().enumerate() {
            for word in &entry.words {
                words.push(word.strip_prefix('=').map_or((word.clone(), false), |exact| (exact.to_owned(), true)));
                owners.push(1u64 << index);
            }
        }
        let gate = Gate::new(words.iter().map(|(word, exact)| (word.as_str(), *exact)));
        let private_key = file.secret.iter().position(|entry| token_of(&entry.kind) == KeyBlock::TOKEN).map_or(0, |index| 1 << index);
        let assigned =
            (0..).zip(&file.secret).filter(|(_, entry)| matches!(entry.value, Value::Assigned | Value::Hinted)).fold(0, |all, (index, _)| all | 1 << index);
        let secrets = file.secret.into_iter().map(Secret::new).collect();
        let plain = Plain { placeholders: file.placeholder.into_iter().flat_map(|entry| entry.words).collect(), prose: file.prose };
        Ok(Self { gate, words, owners, assigned, private_key, secrets, plain })
    }

    /// Returns the gate's words, and whether each is case-sensitive.
    pub fn words(&self) -> impl Iterator<Item = (&str, bool)> {
        self.words.iter().map(|(word, exact)| (word.as_str(), *exact))
    }

    /// Returns what word `id`, found at `word` of `text`, opens; `None` if it is a key to which nothing is assigned.
    #[must_use]
    pub fn touch(&self, id: usize, text: &str, word: Range<usize>) -> Option<Touch> {
        let owners = self.owners[id];
        (owners & self.assigned == 0 || assigns(&text.as_bytes()[word.end..])).then_some(Touch { at: word.start, owners })
    }

    /// Whether these bytes may hold a secret. If `false`, [`Redactor::redact`] would change nothing in them.
    #[must_use]
    pub fn touches(&self, bytes: &[u8]) -> bool {
        self.gate.any(bytes)
    }

    /// Returns the text with its secrets replaced, and adds their number to `count`.
    pub fn redact<'a>(&self, text: &'a str, count: &mut u32) -> Cow<'a, str> {
        let mut asked = 0u64;
        self.gate.scan(text.as_bytes(), |id, word| {
            asked |= self.touch(id, text, word).map_or(0, |touch| touch.owners);
            true
        });
        self.replace_all(text, asked, count)
    }

    /// Returns an event's `lines` without the secrets that `touched` leads to; `None` if there is none.
    #[must_use]
    pub fn redact_event(&self, lines: &Lines, touched: &[Touch], count: &mut u32) -> Option<Lines> {
        self.without(lines, touched, count, |_| 0)
    }

    /// Removes the secrets from the numbered lines of a context.
    pub fn redact_context(&self, key: ContextKey, lines: &mut Lines) {
        match key {
            ContextKey::Before(mut key) if key.is_open() => *lines = replace_key(lines, |text| key.takes(text)),
            ContextKey::Before(_) => {}
            ContextKey::Within(key) => *lines = replace_key(lines, |text| key.holds(text)),
        }
        let mut touched = Vec::new();
        self.gate.scan(lines.as_str().as_bytes(), |id, word| {
            touched.extend(self.touch(id, lines.as_str(), word));
            true
        });
        if let Some(clean) = self.without(lines, &touched, &mut 0, number_end) {
            *lines = clean;
        }
    }

    /// Returns the lines without secrets; what precedes `text_at` in a line is not part of its text.
    fn without(&self, lines: &Lines, touched: &[Touch], count: &mut u32, text_at: impl Fn(&str) -> usize) -> Option<Lines> {
        if touched.is_empty() {
            return None;
        }
        if touched.iter().any(|touch| touch.owners & self.private_key != 0) {
            let mut out = Lines::default();
            let mut texts: Vec<String> = lines.iter().map(|line| line[text_at(line)..].to_owned()).collect();
            self.redact_lines(&mut texts, count);
            lines.iter().zip(texts).for_each(|(line, text)| out.push(&(line[..text_at(line)].to_owned() + &text)));
            return Some(out);
        }
        let all = lines.as_str();
        let (mut out, mut done, mut touched) = (String::new(), 0, touched);
        // `touched` is in the order of the lines.
        while let Some(first) = touched.first() {
            let place = line_around(all, first.at);
            let (here, later) = touched.split_at(touched.iter().take_while(|touch| touch.at < place.end).count().max(1));
            let asked = here.iter().fold(0, |asked, touch| asked | touch.owners);
            let text = place.start + text_at(&all[place.clone()])..place.end;
            if let Cow::Owned(clean) = self.replace_all(&all[text.clone()], asked, count) {
                out.push_str(&all[done..text.start]);
                out.push_str(&clean);
                done = text.end;
            }
            touched = later;
        }
        (done > 0).then(|| Lines::new(out + &all[done..]))
    }

    fn replace_all<'a>(&self, text: &'a str, asked: u64, count: &mut u32) -> Cow<'a, str> {
        let mut out = Cow::Borrowed(text);
        let mut left = asked;
        while left != 0 {
            let secret = &self.secrets[left.trailing_zeros() as usize];
            left &= left - 1;
            if secret.may_stand_in(&out)
                && let Some(changed) = self.replace(secret, &out, count)
            {
                out = Cow::Owned(changed);
            }
        }
        out
    }

    /// Returns a line without secrets; `key` is the block that the lines before it leave open.
    pub fn redact_next<'a>(&self, key: &mut KeyBlock, line: &'a str, count: &mut u32) -> Cow<'a, str> {
        if key.takes(line) { KeyBlock::TOKEN.into() } else { self.redact(line, count) }
    }

    /// Redacts lines that belong together. A private key's block is followed from line to line as long as its lines
    /// look like one, and back from its end if the lines begin inside it. The number of lines stays the same.
    pub fn redact_lines(&self, lines: &mut [String], count: &mut u32) {
        let mut key = KeyBlock::default();
        for at in 0..lines.len() {
            if let Some(block) = ended(&lines[at]).filter(|_| !key.is_open()) {
                let body = lines[..at].iter().rev().take_while(|line| block.spans(line)).count();
                lines[at - body..at].fill(KeyBlock::TOKEN.to_owned());
            }
            let line = &mut lines[at];
            match self.redact_next(&mut key, line, count) {
                Cow::Borrowed(same) if std::ptr::eq(same.as_ptr(), line.as_ptr()) => {}
                changed => *line = changed.into_owned(),
            }
        }
    }

    fn replace(&self, secret: &Secret, text: &str, count: &mut u32) -> Option<String> {
        let regex = secret.regex();
        let (mut out, mut done, mut at, mut again) = (String::new(), 0, 0, 0);
        while let Some(caps) = regex.captures_at(text, at) {
            let (Some(whole), Some(found)) = (caps.get(0), caps.iter().flatten().last()) else { break };
            at = whole.end();
            // A value that is refused is read once more: it may begin with the key of another (`bad password: db_password=…`).
            // To read each part of a hostile text again would take time quadratic in it, so after a while nothing is refused.
            if again < MAX_READ_AGAIN && !self.plain.accepts(secret.value, text, &caps, found.as_str()) {
                if found.start() > whole.start() && found.as_str().contains(['=', ':']) {
                    (at, again) = (found.start(), again + 1);
                }
            } else {
                out.push_str(&text[done..found.start()]);
                out.push_str(&secret.token);
                done = found.end();
                *count += 1;
            }
        }
        (done > 0).then(|| out + &text[done..])
    }
}

impl Secret {
    fn new(entry: Entry) -> Self {
        Self { token: token_of(&entry.kind), source: entry.regex, regex: OnceLock::new(), value: entry.value }
    }

    /// Whether the text has what the regex needs: a cheap test before it.
    fn may_stand_in(&self, text: &str) -> bool {
        match self.value {
            Value::Userinfo => memchr::memchr(b'@', text.as_bytes()).is_some(),
            _ => true,
        }
    }

    /// Returns the regex, compiled when its gate first opens.
    fn regex(&self) -> &Regex {
        // Leaving a pattern out would let its secrets into every record.
        self.regex.get_or_init(|| Regex::new(&self.source).expect("a test compiles every pattern"))
    }
}

/// Returns what replaces a secret of the kind.
fn token_of(kind: &str) -> String {
    format!("[redacted:{kind}]")
}

/// Returns numbered lines with a token in place of those whose text `is_key`.
fn replace_key(lines: &Lines, mut is_key: impl FnMut(&str) -> bool) -> Lines {
    let mut out = Lines::default();
    for line in lines.iter() {
        let (number, text) = line.split_at(number_end(line));
        out.push(&if is_key(text) { number.to_owned() + KeyBlock::TOKEN } else { line.to_owned() });
    }
    out
}

/// Returns where the text of a numbered line begins.
fn number_end(line: &str) -> usize {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    if line[digits..].starts_with(": ") { digits + 2 } else { 0 }
}

/// Returns the text without secrets, by the built-in patterns.
#[must_use]
pub fn clean(text: &str) -> Cow<'_, str> {
    Redactor::builtin().redact(text, &mut 0)
}

/// Whether a `=` or `:` follows a key, after the rest of its name, backslashes, a quotation
/// mark and blanks. (The patterns know a few non-ASCII letters that fold to letters of a key.)
fn assigns(behind: &[u8]) -> bool {
    let without = |bytes: &'_ [u8], is_gone: fn(u8) -> bool| bytes.iter().take_while(|b| is_gone(**b)).count();
    let behind = &behind[without(behind, |b| b.is_ascii_alphabetic() || matches!(b, b'_' | b'-' | 0x80..))..];
    let behind = &behind[without(behind, |b| b == b'\\')..];
    let behind = &behind[usize::from(matches!(behind.first(), Some(b'"' | b'\'')))..];
    let behind = &behind[without(behind, |b| matches!(b, b' ' | b'\t'))..];
    matches!(behind.first(), Some(b'=' | b':'))
}

/// Returns the range of the line of `text` that holds the byte at `at`.
fn line_around(text: &str, at: usize) -> Range<usize> {
    let bytes = text.as_bytes();
    let start = memchr::memrchr(b'\n', &bytes[..at]).map_or(0, |newline| newline + 1);
    start..memchr::memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |newline| at + newline)
}

#[cfg(test)]
#[path = "redact_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "redact/gate_tests.rs"]
mod gate_tests;
