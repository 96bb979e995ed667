//! The normaliser: one pass of a byte machine that keeps what a fault is and replaces what varies (recipe: `super`, step 1).
//! Tokens are runs of the bytes that names, numbers, paths and hosts are made of; `shape` says what a token looks like.
//! It never looks back over its output further than one word, and runs in time linear in the text.

use super::moment;
use super::shape;
use super::word;

/// One replacement, for people who ask why two faults are the same; or a part that stays although others like it do not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replacement {
    /// Its offset in the text, in bytes.
    pub at: usize,
    /// The original text.
    pub from: String,
    /// Its replacement in the normalised form.
    pub to: String,
    /// The step of the recipe that made it.
    pub why: &'static str,
}

/// Appends the normalised form of `text` to `out`: one line without control characters.
pub fn normalise(text: &str, out: &mut String) {
    Machine::new(text, out, Silent).run();
}

/// Returns the normalised form and every replacement that led to it.
#[must_use]
pub fn normalise_explained(text: &str) -> (String, Vec<Replacement>) {
    let (mut out, mut notes) = (String::with_capacity(text.len()), Vec::new());
    Machine::new(text, &mut out, &mut notes).run();
    let trimmed = text.len() - text.trim_start_matches(BLANKS).len();
    notes.iter_mut().for_each(|note| note.at += trimmed);
    (out, notes)
}

/// Receives the replacements.
pub(super) trait Listener {
    /// Reports that the text `from`, at byte `at`, became `to`.
    fn replaced(&mut self, at: usize, from: &str, to: &str, why: &'static str);
}

struct Silent;

impl Listener for Silent {
    #[inline(always)]
    fn replaced(&mut self, _: usize, _: &str, _: &str, _: &'static str) {}
}

impl Listener for &mut Vec<Replacement> {
    fn replaced(&mut self, at: usize, from: &str, to: &str, why: &'static str) {
        self.push(Replacement { at, from: from.to_owned(), to: to.to_owned(), why });
    }
}

/// What is trimmed from both ends of a text.
const BLANKS: [char; 4] = [' ', '\t', '\n', '\r'];
/// A byte of a token.
pub(super) const WORD: u8 = 1;
const DIGIT: u8 = 2;
const SLASH: u8 = 4;
const DOT: u8 = 8;
const AT: u8 = 16;
/// A blank.
const SPACE: u8 = 32;
/// A byte that may begin a control character or a quotation mark.
pub(super) const ODD: u8 = 64;

pub(super) const CLASS: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut table = [0u8; 256];
    let mut b = 0;
    while b < 256 {
        table[b] = match b as u8 {
            b'0'..=b'9' => WORD | DIGIT,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'-' | b'%' | b'+' | b'~' | b'$' => WORD,
            b'/' | b'\\' => WORD | SLASH,
            b'.' => WORD | DOT,
            b'@' => WORD | AT,
            b' ' | b'\t' => SPACE,
            0..=0x1F | 0x7F | 0xC2 | 0xE2 => ODD,
            0x80..=0xFF => WORD,
            _ => 0,
        };
        b += 1;
    }
    table
}

pub(super) type Span = (usize, usize);

pub(super) struct Machine<'t, 'o, L> {
    text: &'t str,
    pub(super) bytes: &'t [u8],
    pub(super) out: &'o mut String,
    listener: L,
    /// Text before this offset is in `out`, unchanged or replaced.
    pub(super) done: usize,
    /// The two words before the current token, as the text has them.
    pub(super) words: [Span; 2],
}

impl<'t, 'o, L: Listener> Machine<'t, 'o, L> {
    fn new(text: &'t str, out: &'o mut String, listener: L) -> Self {
        let text = text.trim_matches(BLANKS);
        out.reserve(text.len());
        Self { text, bytes: text.as_bytes(), out, listener, done: 0, words: [(0, 0); 2] }
    }

    fn run(mut self) {
        let mut at = 0;
        while at < self.bytes.len() {
            let class = CLASS[self.bytes[at] as usize];
            at = if class & WORD != 0 {
                self.token(at)
            } else if class & SPACE != 0 {
                self.blanks(at)
            } else if class & ODD != 0 {
                self.odd(at)
            } else if self.bytes[at] == b':' {
                self.colon(at)
            } else {
                at + 1
            };
        }
        self.keep(at);
    }

    /// Copies the text up to `to` unchanged.
    pub(super) fn keep(&mut self, to: usize) {
        self.out.push_str(&self.text[self.done..to]);
        self.done = to;
    }

    /// Writes `token` for the text from `from` to `to`.
    pub(super) fn replace(&mut self, (from, to): Span, token: &str, why: &'static str) {
        self.keep(from);
        self.out.push_str(token);
        self.done = to;
        self.listener.replaced(from, &self.text[from..to], token, why);
    }

    fn blanks(&mut self, at: usize) -> usize {
        let is_blank = |b: &u8| matches!(b, b' ' | b'\t');
        if self.bytes[at] == b' ' && !self.bytes.get(at + 1).is_some_and(is_blank) {
            return at + 1;
        }
        let end = at + self.bytes[at..].iter().take_while(|b| is_blank(b)).count();
        self.keep(at);
        self.out.push(' ');
        self.done = end;
        end
    }

    /// Escapes a control character, line separator or change of direction; leaves quotation marks and others.
    fn odd(&mut self, at: usize) -> usize {
        let Some(c) = self.text[at..].chars().next() else { return at + 1 };
        let end = at + c.len_utf8();
        let hides = c.is_control() || matches!(c, '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2066}'..='\u{2069}');
        if hides {
            self.keep(at);
            self.out.extend(c.escape_default());
            self.done = end;
        } else if c.is_alphanumeric() {
            return self.token(at);
        }
        end
    }

    /// Replaces `::1` and the like; any other colon stays.
    fn colon(&mut self, at: usize) -> usize {
        let free = at == 0 || CLASS[self.bytes[at - 1] as usize] & WORD == 0;
        match shape::colon_address(self.bytes, at).filter(|_| free && self.bytes.get(at + 1) == Some(&b':')) {
            Some(end) => self.whole((at, end), "IP", "IPv6 address"),
            None => at + 1,
        }
    }

    /// Replaces a token and remembers it as the last word.
    pub(super) fn whole(&mut self, span: Span, token: &str, why: &'static str) -> usize {
        self.replace(span, token, why);
        self.pass(span)
    }

    pub(super) fn pass(&mut self, span: Span) -> usize {
        self.words = [self.words[1], span];
        // A unit or a group of thousands beyond the token may have been taken with it.
        span.1.max(self.done)
    }

    /// Reads one token: finds its end and decides what it is.
    fn token(&mut self, at: usize) -> usize {
        let (mut end, mut flags) = (at, 0);
        for &b in &self.bytes[at..] {
            let class = CLASS[usize::from(b)];
            // An odd byte belongs to the token when `odd` took it for a letter, or when it begins a micro sign.
            if class & WORD == 0 && (class & ODD == 0 || (end > at && self.bytes.get(end..end + 2) != Some("µ".as_bytes()))) {
                break;
            }
            flags |= class;
            end += 1;
        }
        let full = end;
        while end > at + 1 && self.bytes[end - 1] == b'.' {
            end -= 1;
        }
        // Dots alone are one word; byte by byte, each dot would be scanned to the end of them all.
        if end == at + 1 && self.bytes[at] == b'.' {
            return self.pass((at, full));
        }
        if self.bytes.get(full) == Some(&b':')
            && let Some(next) = self.beyond_colon(at, full)
        {
            return next;
        }
        if flags & (DIGIT | SLASH | DOT | AT) == 0 {
            return self.plain((at, end));
        }
        self.varied((at, end), flags)
    }

    pub(super) fn slice(&self, (from, to): Span) -> &'t [u8] {
        &self.bytes[from..to]
    }

    /// Handles a token of letters only: a month of a date, a value after `user=`, a temporary name, a host after its errno, or a word.
    fn plain(&mut self, span: Span) -> usize {
        let word = self.slice(span);
        if moment::names_day_or_month(word)
            && let Some(end) = self.named_date(span)
        {
            return self.dated((span.0, end));
        }
        if word.len() == 11 && word.starts_with(b"tmp") && word[3..].iter().all(|b| b.is_ascii_lowercase() || *b == b'_') {
            return self.whole(span, "TMP", "temporary name");
        }
        match self.value_of(span) {
            Some(token) => self.whole(span, token, "value of a named field"),
            None => self.pass(span),
        }
    }

    /// Returns what replaces a value whose name says that it is a user, host or id: `user=root`, `ENOTFOUND db`.
    fn value_of(&self, (at, end): Span) -> Option<&'static str> {
        let (from, to) = self.words[1];
        if at != to + 1 {
            return None;
        }
        let name = &self.bytes[from..to];
        match self.bytes[to] {
            b'=' => match name {
                b"user" | b"username" | b"ruser" | b"login" | b"uname" => Some("USER"),
                b"host" | b"hostname" | b"rhost" | b"server" | b"node" => Some("HOST"),
                _ => None,
            },
            b' ' => match name {
                b"ENOTFOUND" | b"EAI_AGAIN" => Some("HOST"),
                b"user" | b"for" if self.names_user(name, end) => Some("USER"),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether the value that ends at `end` is a user: `Invalid user pi from`,
    /// `opened for user pi by`, `Failed password for pi from`.
    fn names_user(&self, name: &[u8], end: usize) -> bool {
        let before = self.slice(self.words[0]);
        let follows = |word: &[u8]| self.bytes[end..].starts_with(word);
        let comes = follows(b" from ") && self.bytes.get(end + 6).is_some_and(u8::is_ascii_digit);
        match name {
            b"user" => comes || follows(b" (id ") || follows(b" (uid=") || (before == b"for" && (follows(b" by ") || end == self.bytes.len())),
            b"for" => comes && matches!(before, b"password" | b"publickey"),
            _ => false,
        }
    }

    /// Returns the end of `Mon Jan  2 15:04:05 2026`, `Jan 2 15:04:05`, `Jan 2, 2026`.
    fn named_date(&self, (at, end): Span) -> Option<usize> {
        let after = |from: usize| from + self.bytes.get(from..).unwrap_or_default().iter().take_while(|b| matches!(b, b' ' | b',')).count();
        let mut month = at;
        let mut month_end = end;
        if moment::is_weekday(self.slice((at, end))) {
            month = after(end);
            if let Some(stop) = moment::date(self.bytes, month) {
                return Some(stop);
            }
            month_end = month + 3;
        }
        let day = after(month_end);
        let count = shape::digits(self.bytes, day);
        if !self.bytes.get(month..month_end).is_some_and(moment::is_month) || day == month_end || !(1..=2).contains(&count) {
            return None;
        }
        let mut stop = day + count;
        if let Some(next) = moment::time(self.bytes, after(stop)) {
            stop = next;
        }
        let year = after(stop);
        Some(if shape::digits(self.bytes, year) == 4 && year > stop { year + 4 } else { stop })
    }

    /// Writes a date or time; two in a row become one.
    fn dated(&mut self, span: Span) -> usize {
        self.keep(span.0);
        let joined = ["DATE ", "DATE, ", "DATE T"].into_iter().find(|before| self.out.ends_with(before));
        if let Some(before) = joined {
            self.out.truncate(self.out.len() - before.len());
        }
        self.whole(span, "DATE", "date or time")
    }

    /// Handles a token with digits, slashes, inner dots or `@`.
    fn varied(&mut self, span: Span, flags: u8) -> usize {
        let end = span.1;
        if flags & DIGIT != 0 {
            if self.is_fault(span) {
                let code = &self.text[span.0..span.1];
                self.listener.replaced(span.0, code, code, "the fault itself");
                return self.pass(span);
            }
            if let Some(next) = self.starts_with_digit(span.0) {
                return next;
            }
        }
        if flags & SLASH != 0 && self.is_path(span) {
            return self.path(span);
        }
        if let Some(token) = self.value_of(span) {
            return self.whole(span, token, "value of a named field");
        }
        let port = self.bytes.get(end) == Some(&b':') && shape::digits(self.bytes, end + 1) >= 2;
        if flags & DOT != 0 && flags & AT == 0 && shape::is_host(self.slice(span), port) {
            return self.whole(span, "HOST", "host name");
        }
        if flags & AT != 0
            && let Some(next) = self.address(span)
        {
            return next;
        }
        if flags & DIGIT != 0 && word::is_random(self.slice(span)) {
            return self.whole(span, "B64", "random string");
        }
        self.names(span);
        self.pass(span)
    }

    /// Replaces dates and clock times, which reach beyond the token.
    fn starts_with_digit(&mut self, at: usize) -> Option<usize> {
        if !self.bytes[at].is_ascii_digit() {
            return None;
        }
        if let Some(stop) = moment::date(self.bytes, at) {
            return Some(self.dated((at, stop)));
        }
        // Without a word before it, it is a line and a column.
        let (from, to) = self.words[1];
        let follows_word = to > from && at == to + 1 && self.bytes[to] == b' ' && self.bytes[from..to].iter().all(u8::is_ascii_lowercase);
        let stop = moment::clock(self.bytes, at).filter(|_| follows_word)?;
        Some(self.whole((at, stop), "DUR", "minutes and seconds"))
    }
}
