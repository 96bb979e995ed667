//! Writes JSON straight into a buffer, without an allocation per member.

use crate::core::event::Lines;
use crate::core::text::{MAX_DIGITS, decimal};

/// How each byte is written in a JSON string (RFC 8259, section 7): `0` as itself, `u` as `\u00xx`, any other value as that letter after a backslash.
const ESCAPES: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 0x20 {
        table[byte] = b'u';
        byte += 1;
    }
    table[0x7f] = b'u';
    table[b'"' as usize] = b'"';
    table[b'\\' as usize] = b'\\';
    table[b'\n' as usize] = b'n';
    table[b'\t' as usize] = b't';
    table[b'\r' as usize] = b'r';
    table
};

/// Bytes of a JSON string to check together: most runs of this length need no escape.
const RUN: usize = 32;
/// Bytes to move at a time around a byte that needs an escape.
const WORD: usize = 8;
/// Two words.
const PAIR: usize = 16;
/// Maximum length of the escape of one byte.
const LONGEST: usize = 6;
/// Maximum length of an escaped run, plus the bytes written beyond it and overwritten later.
const RUN_ROOM: usize = RUN * LONGEST + WORD;
/// Room to make at once. (Clearing much more would be left to the processor's block instruction, which is slow to start.)
const ROOM: usize = 1024;

/// Text of at most eight bytes, the first one lowest, and its length.
#[derive(Clone, Copy)]
struct Short(u64, usize);

impl Short {
    const fn new(text: &[u8]) -> Self {
        let (mut word, mut at) = (0, text.len());
        while at > 0 {
            at -= 1;
            word = word << 8 | text[at] as u64;
        }
        Self(word, text.len())
    }
}

/// A line's end within a string.
const NEWLINE: Short = Short::new(b"\\n");
/// A line's end that ends one string and begins the next.
const NEXT: Short = Short::new(b"\",\"");
/// A quotation mark.
const QUOTE: Short = Short::new(b"\\\"");

/// Sets the highest bit of each of the eight bytes that needs an escape. (Per byte: is it below 0x20,
/// or equal to one of three? The highest bit is left out, so nothing carries from byte to byte.)
#[inline(always)]
fn odd_bytes(word: u64) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    let low = word & (ONES * 0x7f);
    let is_not = |byte: u8| (low ^ (ONES * u64::from(byte))) + ONES * 0x7f;
    !((low + ONES * 0x60) & is_not(b'"') & is_not(b'\\') & is_not(0x7f) | word) & (ONES * 0x80)
}

/// Whether none of these bytes needs an escape. (Compilers vectorise a fold over booleans.)
#[inline(always)]
fn is_plain(run: &[u8; RUN]) -> bool {
    !run.iter().fold(false, |odd, &byte| odd | (byte < 0x20) | (byte == b'"') | (byte == b'\\') | (byte == 0x7f))
}

/// Returns fewer than eight bytes as a word, the first one lowest.
#[inline(always)]
fn word_of(bytes: &[u8]) -> u64 {
    match (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        (Some(first), Some(last)) => u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << (8 * (bytes.len() - 4)),
        _ => bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)),
    }
}

/// Appends JSON members to a buffer. A member is given with everything that precedes its value: its name and, for a string, the opening quote.
pub struct Writer<'a> {
    /// The part after `end` is spare room, which is cut off when the writer is dropped.
    out: &'a mut Vec<u8>,
    end: usize,
}

impl Drop for Writer<'_> {
    fn drop(&mut self) {
        self.out.truncate(self.end);
    }
}

impl<'a> Writer<'a> {
    /// Appends to `out`.
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        let end = out.len();
        Self { out, end }
    }

    /// Returns where in the buffer the next byte goes.
    pub fn position(&self) -> usize {
        self.end
    }

    /// Appends bytes as they are.
    #[inline(always)]
    pub fn raw(&mut self, bytes: &[u8]) {
        let end = self.end + bytes.len();
        if end > self.out.len() {
            self.make_room(bytes.len());
        }
        self.out[self.end..end].copy_from_slice(bytes);
        self.end = end;
    }

    #[cold]
    #[inline(never)]
    fn make_room(&mut self, bytes: usize) {
        self.out.resize(self.end + bytes + ROOM, 0);
    }

    /// Appends a string that needs no escapes.
    #[inline]
    pub fn word(&mut self, head: &[u8], value: impl AsRef<[u8]>) {
        self.raw(head);
        self.raw(value.as_ref());
        self.raw(b"\"");
    }

    /// Appends a string.
    #[inline]
    pub fn string(&mut self, head: &[u8], value: &str) {
        self.raw(head);
        self.text(value.as_bytes(), NEWLINE);
        self.raw(b"\"");
    }

    /// Appends a string, if there is one.
    #[inline]
    pub fn optional(&mut self, head: &[u8], value: Option<&str>) {
        if let Some(value) = value {
            self.string(head, value);
        }
    }

    /// Appends a number.
    #[inline]
    pub fn number(&mut self, head: &[u8], value: u64) {
        self.raw(head);
        // A fixed number of bytes is copied without a call.
        let (digits, from) = decimal(value);
        if let Some(digits) = digits[from..].first_chunk::<MAX_DIGITS>() {
            self.raw(digits);
            self.end -= from;
        }
    }

    /// Appends a number, if it is known (not 0).
    #[inline]
    pub fn positive(&mut self, head: &[u8], value: u32) {
        if value > 0 {
            self.number(head, u64::from(value));
        }
    }

    /// Appends a list of strings, one per line.
    pub fn lines(&mut self, head: &[u8], lines: &Lines) {
        if !lines.is_empty() {
            self.raw(head);
            self.text(lines.as_str().as_bytes(), NEXT);
            self.raw(b"\"]");
        }
    }

    /// Appends a list whose values are written by `each`; nothing if there are none.
    #[inline]
    pub fn list<T>(&mut self, head: &[u8], values: impl Iterator<Item = T>, mut each: impl FnMut(&mut Self, T)) {
        let mut any = false;
        for value in values {
            self.raw(if any { b"," } else { head });
            each(self, value);
            any = true;
        }
        if any {
            self.raw(b"]");
        }
    }

    /// Appends the inside of a JSON string; `newline` stands for `\n`.
    #[inline(never)]
    fn text(&mut self, bytes: &[u8], newline: Short) {
        let (runs, rest) = bytes.as_chunks::<RUN>();
        for run in runs {
            let room = self.room();
            if is_plain(run)
                && let Some(place) = room.first_chunk_mut()
            {
                *place = *run;
                self.end += RUN;
            } else {
                self.end += escaped(run, newline, room);
            }
        }
        if !rest.is_empty() {
            self.end += escaped(rest, newline, self.room());
        }
    }

    /// Returns room for an escaped run.
    #[inline(always)]
    fn room(&mut self) -> &mut [u8; RUN_ROOM] {
        if self.out.len() - self.end < RUN_ROOM {
            self.make_room(RUN_ROOM);
        }
        self.out[self.end..].first_chunk_mut().expect("room was made")
    }
}

/// Writes at most a run of bytes with their escapes; returns the length written.
#[inline(never)]
fn escaped(bytes: &[u8], newline: Short, room: &mut [u8; RUN_ROOM]) -> usize {
    let mut end = 0;
    let (pairs, rest) = bytes.as_chunks::<PAIR>();
    for pair in pairs {
        let both = u128::from_le_bytes(*pair);
        let (low, high) = (both as u64, (both >> (8 * WORD)) as u64);
        let (odd_low, odd_high) = (odd_bytes(low), odd_bytes(high));
        if odd_low | odd_high == 0 {
            put(low, room, end);
            put(high, room, end + WORD);
            end += PAIR;
        } else {
            end = word_into(low, odd_low, newline, room, end) + WORD;
            end = word_into(high, odd_high, newline, room, end) + WORD;
        }
    }
    let (words, rest) = rest.as_chunks::<WORD>();
    for word in words {
        let word = u64::from_le_bytes(*word);
        end = word_into(word, odd_bytes(word), newline, room, end) + WORD;
    }
    if !rest.is_empty() {
        let word = word_of(rest);
        // Mask the bytes that are not part of the text.
        end = word_into(word, odd_bytes(word) & ((1 << (8 * rest.len())) - 1), newline, room, end) + rest.len();
    }
    end
}

/// Writes eight bytes at `end`, of which the `odd` ones need an escape. Returns the place
/// at which eight bytes without an escape would begin if they ended where these do.
#[inline(always)]
fn word_into(mut word: u64, mut odd: u64, newline: Short, room: &mut [u8; RUN_ROOM], mut end: usize) -> usize {
    let mut gone = 0;
    while odd != 0 {
        let bits = odd.trailing_zeros() & !7;
        put(word, room, end);
        let plain = bits as usize / 8;
        let Short(text, len) = escape((word >> bits) as u8, newline);
        put(text, room, end + plain);
        end += plain + len;
        gone += plain + 1;
        // All eight bytes may be consumed, and a shift by 64 is not allowed.
        (word, odd) = (word >> bits >> 8, odd >> bits >> 8);
    }
    put(word, room, end);
    end - gone
}

/// Writes all eight bytes of a word; those that do not count are overwritten later.
#[inline(always)]
fn put(word: u64, room: &mut [u8; RUN_ROOM], at: usize) {
    // A place of fixed length is written in one step, without a call.
    if let Some(place) = room.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
        *place = word.to_le_bytes();
    }
}

/// Returns how `byte` is written.
#[inline(always)]
fn escape(byte: u8, newline: Short) -> Short {
    if byte == b'"' { QUOTE } else { rare_escape(byte, newline) }
}

fn rare_escape(byte: u8, newline: Short) -> Short {
    match ESCAPES[usize::from(byte)] {
        b'n' => newline,
        b'u' => {
            let hex = b"0123456789abcdef";
            Short::new(&[b'\\', b'u', b'0', b'0', hex[usize::from(byte >> 4)], hex[usize::from(byte & 15)]])
        }
        letter => Short::new(&[b'\\', letter]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> Vec<u8> {
        let mut out = vec![b'"'];
        Writer::new(&mut out).text(text.as_bytes(), NEWLINE);
        out.push(b'"');
        out
    }

    /// As [`escaped`], byte by byte.
    fn plainly(text: &str) -> Vec<u8> {
        let one = |byte: u8| match ESCAPES[usize::from(byte)] {
            0 => vec![byte],
            b'u' => format!("\\u{byte:04x}").into_bytes(),
            letter => vec![b'\\', letter],
        };
        [b"\"".to_vec(), text.bytes().flat_map(one).collect(), b"\"".to_vec()].concat()
    }

    #[test]
    fn every_byte_at_every_place() {
        for byte in 0..0x80_u8 {
            for place in 0..40 {
                for behind in [0, 1, 7, 8, 9, 30] {
                    let text = "x".repeat(place) + &char::from(byte).to_string().repeat(2) + &"é".repeat(behind);
                    assert_eq!(written(&text), plainly(&text), "{text:?}");
                }
            }
        }
    }

    #[test]
    fn what_stood_before_stays_and_room_goes() {
        let mut out = b"before".to_vec();
        let mut w = Writer::new(&mut out);
        w.lines(b",", &["a\"", "", "b"].iter().collect());
        w.number(b"", 7);
        assert_eq!(w.position(), 20);
        drop(w);
        assert_eq!(out, b"before,a\\\"\",\"\",\"b\"]7");
    }

    proptest::proptest! {
        #[test]
        fn a_string_reads_as_it_was(text in r#"([a-zé" \\]|[\x00-\x1f]|\x7f|[a-z]{6,20}){0,12}"#) {
            let out = written(&text);
            let read: String = serde_json::from_slice(&out).expect("a JSON string");
            proptest::prop_assert_eq!(&read, &text);
            proptest::prop_assert!(!out.iter().any(|b| *b < 0x20 || *b == 0x7f));
            proptest::prop_assert_eq!(out, plainly(&text));
        }

        #[test]
        fn so_does_a_long_one(text in r#"([a-z]{0,40}|["\x00]{1,90}|é){0,20}"#) {
            proptest::prop_assert_eq!(serde_json::from_slice::<String>(&written(&text)).expect("a JSON string"), text);
        }
    }
}
