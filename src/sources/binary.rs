//! Recognises what is not a log by its first bytes: programs, databases, images and archives.

use std::path::Path;

use super::archive;
use super::input::{GZIP, ZSTD};

/// The message for a followed file.
pub(super) const LEFT_OUT: &str = "is a binary file and is not read";
/// For a followed file, which no option reads all the same, only this many first bytes are
/// checked for zeros: the first block of a damaged log may have as many zeros as a binary file.
const HEAD_BYTES: usize = 64;
/// With this many kinds of control characters, a block is not text in any encoding: damage shows
/// as zeros, and formats that separate fields by control characters use two or three kinds.
const MIN_CONTROLS: usize = 8;
/// With this many runs of zeros amid text, a file is binary: a damaged log has one or two.
const MIN_ZEROS: usize = 3;

/// Returns why the file at `path` that begins with these bytes is not followed, if it is not a log.
#[must_use]
pub fn left_out(path: &Path, first: &[u8]) -> Option<String> {
    let packed = archive::of(first).map(|archive| archive.advice("run", Some(path)));
    packed
        .or_else(|| unpacked_by_name(path, first))
        .or_else(|| (is_binary(&first[..first.len().min(HEAD_BYTES)]) || has_many_controls(first)).then(|| LEFT_OUT.to_owned()))
}

/// Whether the bytes look random, as those of pictures, keys and compressed data do. The control characters that terminals and shells use do not count.
fn has_many_controls(block: &[u8]) -> bool {
    let mut kinds = 0u32;
    for byte in block.iter().filter(|byte| matches!(byte, 1..=6 | 0x10..=0x1a | 0x1c..=0x1f)) {
        kinds |= 1 << byte;
    }
    kinds.count_ones() as usize >= MIN_CONTROLS && !is_utf16(block)
}

/// Says why a compressed file is not read: `run` unpacks it only if its name says that it never grows.
fn unpacked_by_name(path: &Path, first: &[u8]) -> Option<String> {
    let forms = [(GZIP, "gzip", ".gz", "gzip -dc"), (ZSTD, "zstd", ".zst", "zstd -dc")];
    let (_, what, end, unpack) = forms.into_iter().find(|(magic, ..)| first.starts_with(magic))?;
    let name = archive::named(Some(path));
    Some(format!("is compressed with {what}, and is read here only if its name ends with {end}: {unpack} {name} | siftd run"))
}

/// Whether the block has zeros amid text, or is UTF-32, which is not read. Zeros before a
/// line do not count: they are the hole that a writer leaves after its file was truncated.
#[must_use]
pub fn is_binary(block: &[u8]) -> bool {
    if block.starts_with(b"\xff\xfe\0\0") || block.starts_with(b"\0\0\xfe\xff") {
        return true;
    }
    if memchr::memchr(0, block).is_none() || is_utf16(block) {
        return false;
    }
    let begins = |at: usize| block[at] == 0 && !matches!(at.checked_sub(1).map(|before| block[before]), None | Some(0 | b'\n'));
    (0..block.len()).filter(|&at| begins(at)).nth(MIN_ZEROS - 1).is_some()
}

/// Whether the block has a byte-order mark, or zeros in every other byte and nowhere else.
fn is_utf16(block: &[u8]) -> bool {
    let zeros = |from: usize| block.iter().skip(from).step_by(2).filter(|byte| **byte == 0).count();
    let (even, odd) = (zeros(0), zeros(1));
    block.starts_with(b"\xff\xfe") || block.starts_with(b"\xfe\xff") || (even.min(odd) == 0 && even.max(odd) > block.len() / 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_amid_text_make_a_file_binary_and_a_hole_does_not() {
        let utf16: Vec<u8> = "an error\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        for (first, want) in [
            (&b"\x7fELF\x02\x01\x01\0\0\0\0\x03\0>\0\x01\0\0\0error:"[..], true),
            (b"SQLite format 3\0\x10\0\x01\x01\0@  \0\0", true),
            (b"\0\0\0\0error: x\nmore\n", false),
            (b"a\n\0\0\0error: x\nb\n\0\0c\nd\n\0\0e\nf\n\0\0", false),
            (b"power lost\0\0\0\0\nerror: x\n", false),
            (b"\xff\xfea\0b\0c\0d\0", false),
            (b"\xff\xfe\0\0a\0\0\0", true),
            (b"\0\0\xfe\xff\0\0\0a", true),
            (&utf16, false),
            (&[0; 9000], false),
            (b"error: x\n", false),
            (b"", false),
        ] {
            assert_eq!(is_binary(first), want, "{first:?}");
        }
    }

    #[test]
    fn a_file_that_is_followed_is_left_out_by_its_first_bytes_alone() {
        let wtmp = b"\x02\0\0\0\0\0\0\0~\0\0\0\0\0\0\0\0\0\0\0~~\0\0reboot\0\0";
        for (first, word) in [
            (&b"\x7fELF\x02\x01\x01\0\0\0\0\x03\0>\0\x01\0\0\0"[..], "binary"),
            (wtmp, "binary"),
            (b"\xfd7zXZ\0\0\x04", "xz -dc a.log | siftd run"),
            (b"\x1f\x8b\x08", "ends with .gz"),
        ] {
            assert!(left_out(Path::new("a.log"), first).is_some_and(|why| why.contains(word)), "{first:?}");
        }
        let drawn: Vec<u8> = (0..400u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        assert!(left_out(Path::new("a.log"), &[&b"a line\n"[..], &drawn].concat()).is_some());
        let damaged = [&[b'a'; 100][..], b"\0\0b\0\0c\0\0d\0\0\n"].concat();
        assert_eq!(left_out(Path::new("a.log"), &damaged), None);
        for text in ["8=FIX.4.4\u{1}9=176\u{1}35=8\u{1}", "\u{2}a\u{3}\u{1c}b\u{1d}\u{1e}\u{1f}\n", "\u{1b}[31mred\u{7}\u{8}\u{e}\u{f}\r\n"] {
            assert_eq!(left_out(Path::new("a.log"), text.as_bytes()), None, "{text:?}");
        }
    }
}
