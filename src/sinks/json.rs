//! Writes JSON (RFC 8259) straight into a buffer, member by member. It knows nothing of what the members mean.

use crate::core::event::Lines;
use crate::core::text::with_digits;

/// What stands for a byte in a JSON string (RFC 8259, section 7): `0` the byte itself, `u` a `\u00xx`, else that
/// letter behind a backslash.
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

/// Bytes of a JSON string that are looked at together.
const CHUNK: usize = 16;
/// Half of them.
const HALF: usize = 8;
/// Bytes of a JSON string that are gathered before they go out.
const PIECE: usize = 256;
/// Most bytes that stand for one byte.
const LONGEST: usize = 6;

/// The highest bit of the first of eight bytes that needs an escape, and perhaps of others behind it. (Per byte: is it
/// below 0x20, or equal to one of three? Only an odd byte borrows from the next one.)
#[inline(always)]
fn odd_bytes(word: u64) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    let is = |byte: u8| (word ^ (ONES * u64::from(byte))).wrapping_sub(ONES);
    (word.wrapping_sub(ONES * 0x20) | is(b'"') | is(b'\\') | is(0x7f)) & !word & (ONES * 0x80)
}

/// How many bytes of the chunk stand before the first that needs an escape.
#[inline(always)]
fn plain_bytes(chunk: &[u8; CHUNK]) -> usize {
    let chunk = u128::from_le_bytes(*chunk);
    match odd_bytes(chunk as u64) {
        0 => HALF + odd_bytes((chunk >> (8 * HALF)) as u64).trailing_zeros() as usize / 8,
        odd => odd.trailing_zeros() as usize / 8,
    }
}

/// Appends JSON members to a buffer. A member is given with its name and all that stands before its
/// value: a string's opening quote, too.
pub(super) struct Writer<'a> {
    pub(super) out: &'a mut Vec<u8>,
}

impl Writer<'_> {
    /// Bytes as they are.
    pub(super) fn raw(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// A string in which nothing needs an escape.
    pub(super) fn word(&mut self, head: &[u8], value: impl AsRef<[u8]>) {
        self.raw(head);
        self.raw(value.as_ref());
        self.out.push(b'"');
    }

    /// A string.
    pub(super) fn string(&mut self, head: &[u8], value: &str) {
        self.raw(head);
        self.text(value.as_bytes(), b"\\n");
        self.out.push(b'"');
    }

    /// A string, if there is one.
    pub(super) fn optional(&mut self, head: &[u8], value: Option<&str>) {
        if let Some(value) = value {
            self.string(head, value);
        }
    }

    /// A number.
    pub(super) fn number(&mut self, head: &[u8], value: u64) {
        self.raw(head);
        with_digits(value, |digits| self.raw(digits));
    }

    /// A number, if it is known.
    pub(super) fn positive(&mut self, head: &[u8], value: u32) {
        if value > 0 {
            self.number(head, u64::from(value));
        }
    }

    /// A list of strings, one for each line.
    pub(super) fn lines(&mut self, head: &[u8], lines: &Lines) {
        if !lines.is_empty() {
            self.raw(head);
            self.text(lines.as_str().as_bytes(), b"\",\"");
            self.raw(b"\"]");
        }
    }

    /// A list, each of whose values `each` writes; nothing when there is none.
    pub(super) fn list<T>(&mut self, head: &[u8], values: impl Iterator<Item = T>, mut each: impl FnMut(&mut Self, T)) {
        let mut any = false;
        for value in values {
            self.raw(if any { b"," } else { head });
            each(self, value);
            any = true;
        }
        if any {
            self.out.push(b']');
        }
    }

    /// The inside of a JSON string; `newline`, at most three bytes, stands for `\n`.
    fn text(&mut self, bytes: &[u8], newline: &[u8]) {
        let (mut piece, mut end) = ([0; PIECE], 0);
        let mut rest = bytes;
        while !rest.is_empty() {
            if end > PIECE - CHUNK - LONGEST {
                self.raw(&piece[..end]);
                end = 0;
            }
            let chunk = chunk_of(rest);
            let plain = plain_bytes(&chunk).min(rest.len());
            // The chunk is written as a whole; what of it does not count is written over.
            if let Some(place) = piece[end..].first_chunk_mut() {
                *place = chunk;
            }
            (end, rest) = (end + plain, &rest[plain..]);
            if plain < CHUNK
                && let Some((&byte, behind)) = rest.split_first()
            {
                end += escape(byte, newline, &mut piece[end..]);
                rest = behind;
            }
        }
        self.raw(&piece[..end]);
    }
}

/// The bytes that `rest` begins with; behind its end there are zeros.
#[inline(always)]
fn chunk_of(rest: &[u8]) -> [u8; CHUNK] {
    rest.first_chunk().copied().unwrap_or_else(|| {
        let mut chunk = [0; CHUNK];
        chunk[..rest.len()].copy_from_slice(rest);
        chunk
    })
}

/// Writes what stands for `byte`; returns how many bytes that is.
#[inline]
fn escape(byte: u8, newline: &[u8], out: &mut [u8]) -> usize {
    match ESCAPES[usize::from(byte)] {
        b'n' => {
            out[..newline.len()].copy_from_slice(newline);
            newline.len()
        }
        b'u' => {
            let hex = b"0123456789abcdef";
            out[..LONGEST].copy_from_slice(&[b'\\', b'u', b'0', b'0', hex[usize::from(byte >> 4)], hex[usize::from(byte & 15)]]);
            LONGEST
        }
        letter => {
            out[..2].copy_from_slice(&[b'\\', letter]);
            2
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn a_string_reads_as_it_was(text in r#"([a-zé" \\]|[\x00-\x1f]|\x7f|[a-z]{6,20}){0,12}"#) {
            let mut out = vec![b'"'];
            Writer { out: &mut out }.text(text.as_bytes(), b"\\n");
            out.push(b'"');
            let read: String = serde_json::from_slice(&out).expect("a JSON string");
            proptest::prop_assert_eq!(read, text);
            proptest::prop_assert!(!out.iter().any(|b| *b < 0x20 || *b == 0x7f));
        }

        #[test]
        fn so_does_a_long_one(text in r#"([a-z]{0,40}|["\x00]{1,90}|é){0,20}"#) {
            let mut out = vec![b'"'];
            Writer { out: &mut out }.text(text.as_bytes(), b"\\n");
            out.push(b'"');
            proptest::prop_assert_eq!(serde_json::from_slice::<String>(&out).expect("a JSON string"), text);
        }
    }
}
