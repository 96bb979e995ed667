//! Text in few allocations: an error has dozens of short strings,
//! and one allocation for each would cost more than finding it.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

/// Room for the number of a line and what surrounds it, in bytes.
const NUMBER_ROOM: usize = 12;

/// Lines of text in one string.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Lines {
    text: String,
    count: usize,
}

impl Lines {
    /// Takes the lines of `text`, which are separated by `\n`; an empty text is one empty line.
    #[must_use]
    pub fn new(text: String) -> Self {
        let count = 1 + memchr::memchr_iter(b'\n', text.as_bytes()).count();
        Self { text, count }
    }

    /// Takes lines as they were read; invalid UTF-8 is replaced.
    #[must_use]
    pub fn of_bytes<'a>(lines: impl Iterator<Item = &'a [u8]> + Clone) -> Self {
        let mut bytes = Vec::with_capacity(lines.clone().map(|line| line.len() + 1).sum());
        let mut count = 0;
        for line in lines {
            if count > 0 {
                bytes.push(b'\n');
            }
            bytes.extend_from_slice(line);
            count += 1;
        }
        let text = String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        Self { text, count }
    }

    /// Appends a line; a text that contains `\n` counts as several.
    pub fn push(&mut self, line: &str) {
        if self.count > 0 {
            self.text.push('\n');
        }
        self.text.push_str(line);
        self.count += 1 + memchr::memchr_iter(b'\n', line.as_bytes()).count();
    }

    /// Returns the same lines, with room for `more` bytes.
    #[must_use]
    pub fn with_room(&self, more: usize) -> Self {
        let mut text = String::with_capacity(self.text.len() + more);
        text.push_str(&self.text);
        Self { text, count: self.count }
    }

    /// Appends line `num` of a stream as `40: text`.
    pub fn push_numbered(&mut self, num: u64, line: &[u8]) {
        self.text.reserve(line.len() + NUMBER_ROOM);
        if self.count > 0 {
            self.text.push('\n');
        }
        push_number(&mut self.text, num);
        self.text.push_str(": ");
        self.text.push_str(&printable(line));
        self.count += 1;
    }

    /// Returns at most `count` of the numbered lines before line `num`; `None` if `num` is not among them.
    #[must_use]
    pub fn before(&self, num: u64, count: usize) -> Option<Self> {
        let at = self.iter().position(|line| line.split_once(':').is_some_and(|(found, _)| found.parse() == Ok(num)))?;
        Some(self.iter().take(at).skip(at.saturating_sub(count)).collect())
    }

    /// Appends lines.
    pub fn append(&mut self, more: &Self) {
        if !self.is_empty() && !more.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(&more.text);
        self.count += more.count;
    }

    /// Returns all lines, joined by `\n`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Iterates over the lines.
    pub fn iter(&self) -> impl Iterator<Item = &str> + Clone {
        let mut rest = self.text.as_str();
        (0..self.count).map(move |_| {
            let line = &rest[..memchr::memchr(b'\n', rest.as_bytes()).unwrap_or(rest.len())];
            rest = rest.get(line.len() + 1..).unwrap_or_default();
            line
        })
    }

    /// Number of lines.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are no lines.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Removes all lines.
    pub fn clear(&mut self) {
        self.text.clear();
        self.count = 0;
    }
}

impl<S: AsRef<str>> FromIterator<S> for Lines {
    fn from_iter<I: IntoIterator<Item = S>>(lines: I) -> Self {
        let mut all = Self::default();
        lines.into_iter().for_each(|line| all.push(line.as_ref()));
        all
    }
}

impl<S: AsRef<str>> PartialEq<[S]> for Lines {
    fn eq(&self, other: &[S]) -> bool {
        self.count == other.len() && self.iter().zip(other).all(|(mine, theirs)| mine == theirs.as_ref())
    }
}

impl<S: AsRef<str>, const N: usize> PartialEq<[S; N]> for Lines {
    fn eq(&self, other: &[S; N]) -> bool {
        *self == other[..]
    }
}

impl fmt::Debug for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// 32 lower-case hex digits: an MD5 (RFC 1321) as records show it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hex([u8; 32]);

impl Hex {
    /// Creates the hex digits of a digest.
    #[must_use]
    pub fn new(digest: [u8; 16]) -> Self {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut hex = [0; 32];
        for (pair, byte) in hex.as_chunks_mut().0.iter_mut().zip(digest) {
            *pair = [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]];
        }
        Self(hex)
    }

    /// Returns the digits as bytes.
    #[must_use]
    pub fn digits(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns the digits as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    /// Returns the digest that the digits stand for.
    #[must_use]
    pub fn digest(&self) -> [u8; 16] {
        let value = |digit: u8| if digit.is_ascii_digit() { digit - b'0' } else { digit - b'a' + 10 };
        std::array::from_fn(|at| value(self.0[2 * at]) << 4 | value(self.0[2 * at + 1]))
    }

    /// Parses 32 hex digits; returns `None` for anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut digest = [0; 16];
        let is_whole = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        for (byte, at) in digest.iter_mut().zip((0..text.len()).step_by(2)).take_while(|_| is_whole) {
            *byte = u8::from_str_radix(text.get(at..at + 2)?, 16).ok()?;
        }
        is_whole.then(|| Self::new(digest))
    }
}

impl Default for Hex {
    fn default() -> Self {
        Self([b'0'; 32])
    }
}

impl Deref for Hex {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Display for Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self)
    }
}

impl fmt::Debug for Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self)
    }
}

/// Appends a number in decimal digits.
pub fn push_number(text: &mut String, number: u64) {
    with_digits(number, |digits| text.push_str(std::str::from_utf8(digits).unwrap_or_default()));
}

/// `00` to `99`, one after the other.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut at = 0;
    while at < 100 {
        pairs[at] = [b'0' + (at / 10) as u8, b'0' + (at % 10) as u8];
        at += 1;
    }
    pairs
};

/// Number of digits of the longest number.
pub const MAX_DIGITS: usize = 20;

/// Returns the decimal digits of a number, which end at [`MAX_DIGITS`], and where they begin.
#[inline]
#[must_use]
pub fn decimal(mut number: u64) -> ([u8; 2 * MAX_DIGITS], usize) {
    let (mut digits, mut from) = ([0; 2 * MAX_DIGITS], MAX_DIGITS);
    while number >= 10 {
        from -= 2;
        digits[from..from + 2].copy_from_slice(&PAIRS[(number % 100) as usize]);
        number /= 100;
    }
    // An odd number of digits leaves one, an even number none.
    if number > 0 || from == MAX_DIGITS {
        from -= 1;
        digits[from] = b'0' + number as u8;
    }
    (digits, from)
}

/// Calls `show` with the decimal digits of a number.
#[inline]
pub fn with_digits(number: u64, show: impl FnOnce(&[u8])) {
    let (digits, from) = decimal(number);
    show(&digits[from..MAX_DIGITS]);
}

/// Returns bytes as text; invalid UTF-8 is replaced. The check for valid text is many times faster.
#[must_use]
pub fn printable(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_back_as_they_went_in() {
        for lines in [&[][..], &[""], &["", ""], &["a"], &["a", "", "b"]] {
            let all: Lines = lines.iter().collect();
            assert_eq!(all.iter().collect::<Vec<_>>(), lines);
            assert_eq!((all.len(), all.is_empty()), (lines.len(), lines.is_empty()));
            assert_eq!(Lines::of_bytes(lines.iter().map(|line| line.as_bytes())), all);
        }
        assert_eq!(Lines::of_bytes([&b"a\xffb"[..], b"c"].into_iter()).as_str(), "a\u{fffd}b\nc");
        assert_eq!(Lines::new("a\nb".to_owned()).len(), 2);
        let mut all = Lines::default();
        for more in [&[][..], &["a", ""], &[], &["", "é"]] {
            all.append(&more.iter().collect());
        }
        assert_eq!(all, ["a", "", "", "é"]);
        assert_eq!(all.len(), 4);
    }

    #[test]
    fn digits_are_those_of_the_standard_library() {
        for number in (0..25_000).chain([99_999, 100_000, 1_234_567, 10_000_000, u64::MAX - 1, u64::MAX]) {
            let mut text = String::new();
            push_number(&mut text, number);
            assert_eq!(text, number.to_string());
        }
    }

    #[test]
    fn hex_has_two_digits_a_byte() {
        let digest = std::array::from_fn(|at| (at * 17) as u8);
        assert_eq!(&*Hex::new(digest), "00112233445566778899aabbccddeeff");
        assert_eq!((Hex::new(digest).digest(), Hex::parse(&Hex::new(digest))), (digest, Some(Hex::new(digest))));
        assert_eq!(Hex::parse("00112233445566778899AABBCCDDEEFF"), Some(Hex::new(digest)));
        assert!(["", "0", "é", "00112233445566778899aabbccddeef", "g0112233445566778899aabbccddeeff"].iter().all(|text| Hex::parse(text).is_none()));
    }
}
