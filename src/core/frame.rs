//! Splits bytes into whole lines, in one buffer without copying: the lines before (the look-back), the bytes under way, and
//! free space. A line beyond the limit keeps its head and its tail, whatever the chunks were. UTF-16 becomes UTF-8 here.

use super::lookback::{self, LookBack};

pub mod edge;
mod rest;

/// Space for one read, in bytes.
const BLOCK: usize = 128 << 10;
/// Bytes behind a line that its context may take lines from.
pub const AHEAD_BYTES: usize = 8 << 10;
/// What replaces the middle of a line that was cut.
pub const CUT: &[u8] = b" [\xe2\x80\xa6] ";

/// A run of whole lines in the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framed {
    /// First byte.
    pub from: usize,
    /// Offset after the last newline, or after the last byte of an unfinished line.
    pub to: usize,
    /// Whether it is one line, which was cut.
    pub truncated: bool,
}

/// The buffer of one stream.
pub struct Buffer {
    /// Look-back, unprocessed bytes, free space.
    pub bytes: Vec<u8>,
    start: usize,
    end: usize,
    /// Where to look for the next newline.
    searched: usize,
    /// Offset in the stream of byte 0.
    base: u64,
    /// Bytes removed from the middle of the line at `start`.
    cut: u64,
    max_line_bytes: usize,
    /// How many lines must have arrived behind a line before it is returned.
    lines_ahead: usize,
    wide: Option<Wide>,
    raw: Vec<u8>,
    at_start: bool,
}

/// Number of bytes needed to detect UTF-16 without a byte order mark.
const FIRST_BYTES: usize = 4;

/// A UTF-16 stream. Its offsets are counted line by line, because its lines are kept as UTF-8.
struct Wide {
    big_endian: bool,
    /// The first half of a unit or of a surrogate pair.
    rest: Vec<u8>,
    /// Offset in the stream of the place `counted_at`, which is an offset in UTF-8.
    counted: u64,
    counted_at: u64,
    /// Bytes removed from the middle of the line at `start`.
    cut: u64,
}

impl Buffer {
    /// Creates an empty buffer.
    #[must_use]
    pub fn new(max_line_bytes: usize) -> Self {
        Self {
            bytes: Vec::new(),
            start: 0,
            end: 0,
            searched: 0,
            base: 0,
            cut: 0,
            max_line_bytes: max_line_bytes.max(1024),
            lines_ahead: 0,
            wide: None,
            raw: Vec::new(),
            at_start: true,
        }
    }

    /// Keeps each line until this many more have arrived, or [`AHEAD_BYTES`]. Returns the number so far.
    pub fn wait_for(&mut self, lines: usize) -> usize {
        std::mem::replace(&mut self.lines_ahead, lines)
    }

    /// Returns space for the next bytes.
    pub fn space(&mut self) -> &mut [u8] {
        if self.wide.is_some() {
            self.raw.resize(BLOCK / 2, 0);
            return &mut self.raw;
        }
        self.make_room(BLOCK / 2);
        let end = self.end;
        let limit = (end + BLOCK).min(self.bytes.len());
        &mut self.bytes[end..limit]
    }

    fn make_room(&mut self, wanted: usize) {
        // Allocated only once there is something to hold: of a thousand connections, most may say nothing.
        if self.bytes.is_empty() {
            self.bytes = vec![0; 2 * BLOCK];
        }
        if self.bytes.len() - self.end >= wanted {
            return;
        }
        let keep = self.start.saturating_sub(lookback::MAX_BYTES);
        self.bytes.copy_within(keep..self.end, 0);
        self.base += keep as u64;
        self.start -= keep;
        self.end -= keep;
        self.searched -= keep;
        if self.bytes.len() - self.end < wanted {
            self.bytes.resize((self.end + wanted).max(self.bytes.len() * 2).min(self.end + wanted + BLOCK * 8), 0);
        }
    }

    /// Takes in `count` bytes that were written into the space.
    pub fn filled(&mut self, count: usize) {
        if self.wide.is_some() {
            let raw = std::mem::take(&mut self.raw);
            self.transcode(&raw[..count]);
            self.raw = raw;
            return;
        }
        self.end += count;
        if self.at_start && (self.end >= FIRST_BYTES || self.end >= 2 && self.bytes[0] != 0 && self.bytes[1] != 0) {
            self.detect_wide();
        }
    }

    fn detect_wide(&mut self) {
        self.at_start = false;
        let Some((big_endian, mark)) = utf16(&self.bytes[..self.end]) else { return };
        self.wide = Some(Wide { big_endian, rest: Vec::new(), counted: mark as u64, counted_at: 0, cut: 0 });
        let raw = self.bytes[mark..self.end].to_vec();
        (self.end, self.searched) = (0, 0);
        self.transcode(&raw);
    }

    fn transcode(&mut self, raw: &[u8]) {
        let Some(wide) = &mut self.wide else { return };
        let mut bytes = std::mem::take(&mut wide.rest);
        bytes.extend_from_slice(raw);
        let mut units: Vec<u16> = bytes
            .chunks_exact(2)
            .map(|pair| if wide.big_endian { u16::from_be_bytes([pair[0], pair[1]]) } else { u16::from_le_bytes([pair[0], pair[1]]) })
            .collect();
        let mut used = units.len() * 2;
        // A high surrogate waits for its other half.
        if units.last().is_some_and(|unit| (0xd800..0xdc00).contains(unit)) {
            units.pop();
            used -= 2;
        }
        wide.rest = bytes.split_off(used);
        let text: String = char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
        self.append(&text);
    }

    fn append(&mut self, text: &str) {
        self.make_room(text.len());
        self.bytes[self.end..self.end + text.len()].copy_from_slice(text.as_bytes());
        self.end += text.len();
    }

    /// Returns the next run of whole lines, or one line that is too long.
    pub fn next_lines(&mut self) -> Option<Framed> {
        if self.at_start && self.end >= 2 {
            // It may turn out to be UTF-16.
            return None;
        }
        let last = memchr::memrchr(b'\n', &self.bytes[self.searched..self.end]).map(|at| self.searched + at);
        let Some(last) = last else {
            self.searched = self.end;
            self.shorten(2 * BLOCK);
            return None;
        };
        let first = memchr::memchr(b'\n', &self.bytes[self.start..=last]).map_or(last, |at| self.start + at);
        if (first - self.start) as u64 + self.cut > self.max_line_bytes as u64 {
            let to = self.cut_line(first) + 1;
            self.searched = to;
            return Some(Framed { from: self.start, to, truncated: true });
        }
        let to = self.before_long_line(first + 1, last + 1).min(self.with_lines_ahead(last + 1));
        (to > self.start).then_some(Framed { from: self.start, to, truncated: false })
    }

    /// Returns the end of the lines up to `last` behind which enough has arrived.
    fn with_lines_ahead(&self, last: usize) -> usize {
        let mut to = last;
        for _ in 0..self.lines_ahead {
            if self.end - to > AHEAD_BYTES || to <= self.start {
                break;
            }
            to = memchr::memrchr(b'\n', &self.bytes[self.start..to - 1]).map_or(self.start, |newline| self.start + newline + 1);
        }
        to
    }

    /// Returns the end of the lines up to `last` that are not too long.
    fn before_long_line(&self, mut from: usize, last: usize) -> usize {
        if last - from <= self.max_line_bytes {
            return last;
        }
        while from < last {
            let end = memchr::memchr(b'\n', &self.bytes[from..last]).map_or(last, |at| from + at);
            if end - from > self.max_line_bytes {
                return from;
            }
            from = end + 1;
        }
        last
    }

    /// Returns the unfinished last line.
    pub fn last_line(&mut self) -> Option<Framed> {
        // The stream may be too short for its encoding to have been detected.
        if self.at_start && self.end > 0 {
            self.detect_wide();
        }
        if self.wide.as_mut().is_some_and(|wide| !std::mem::take(&mut wide.rest).is_empty()) {
            self.append("\u{fffd}");
        }
        if self.start == self.end {
            return None;
        }
        let truncated = (self.end - self.start) as u64 + self.cut > self.max_line_bytes as u64;
        let to = if truncated { self.cut_line(self.end) } else { self.end };
        Some(Framed { from: self.start, to, truncated })
    }

    /// Keeps an endless line from filling the memory: beyond the limit plus `spare`, its middle is removed.
    fn shorten(&mut self, spare: usize) {
        if self.end - self.start > self.max_line_bytes + spare {
            // Leaves room for the mark between head and tail.
            let (head, tail) = (self.start + self.head(), self.end - (self.max_line_bytes - self.head()));
            self.take_out(head, tail, 0);
            self.searched = self.end;
        }
    }

    /// Returns how much is kept of the front of a line that is cut; the mark and the tail are the rest.
    fn head(&self) -> usize {
        self.max_line_bytes / 2 - CUT.len()
    }

    /// Replaces the middle of the line that ends at `end` by the mark; returns the line's new end.
    fn cut_line(&mut self, end: usize) -> usize {
        let (head, tail) = (self.start + self.head(), end - (self.max_line_bytes - self.head() - CUT.len()));
        let line = &self.bytes[..end];
        let from = edge::front(line, self.start + self.head() / 2, head);
        let to = edge::back(line, tail, tail + (end - tail) / 2);
        end - self.take_out(from, to, CUT.len())
    }

    /// Removes the bytes from `from` to `to` of the line at `start`, except the
    /// first `mark` of them, which become the mark. Returns how many are gone.
    fn take_out(&mut self, from: usize, to: usize, mark: usize) -> usize {
        if let Some(wide) = &mut self.wide {
            wide.cut += utf16_bytes(&self.bytes[from..to]) - utf16_bytes(&CUT[..mark]);
        }
        self.bytes[from..from + mark].copy_from_slice(&CUT[..mark]);
        self.bytes.copy_within(to..self.end, from + mark);
        let gone = to - from - mark;
        self.end -= gone;
        self.cut += gone as u64;
        gone
    }

    /// Marks `framed` as processed.
    pub fn done(&mut self, framed: &Framed) {
        self.start = framed.to.min(self.end);
        self.searched = self.start;
        self.base += self.cut;
        if let Some(wide) = &mut self.wide {
            let from = (wide.counted_at + self.cut - self.base) as usize;
            wide.counted += utf16_bytes(&self.bytes[from..self.start]) + std::mem::take(&mut wide.cut);
            wide.counted_at = self.base + self.start as u64;
        }
        self.cut = 0;
    }

    /// Returns the lines that are processed, before line `num`.
    #[must_use]
    pub fn look_back(&self, num: u64) -> LookBack<'_> {
        LookBack::new(&self.bytes[..self.start], num, self.position(), self.is_wide())
    }

    /// Returns the end of the bytes read so far; what the buffer holds beyond it has no meaning.
    #[must_use]
    pub fn end(&self) -> usize {
        self.end
    }

    /// Whether the stream is UTF-16, so that its offsets differ from those of the bytes kept here.
    #[must_use]
    pub fn is_wide(&self) -> bool {
        self.wide.is_some()
    }

    /// Returns the offset in the stream of the line that begins at `from` within `framed`.
    pub fn offset_of(&mut self, bytes: &[u8], framed: &Framed, from: usize) -> u64 {
        debug_assert!(from >= framed.from);
        let narrow = self.base + from as u64;
        let Some(wide) = &mut self.wide else { return narrow };
        let known = (wide.counted_at - self.base) as usize;
        wide.counted += utf16_bytes(&bytes[known..from]);
        wide.counted_at = narrow;
        wide.counted
    }
}

/// Detects UTF-16 at the beginning of a text: a byte order mark, or two ASCII characters
/// with their zeros. Returns whether it is big-endian, and the length of the mark.
#[must_use]
pub fn utf16(first: &[u8]) -> Option<(bool, usize)> {
    let is_visible = |byte: u8| byte == b'\t' || (0x20..0x7f).contains(&byte);
    match *first {
        [0xff, 0xfe, ..] => Some((false, 2)),
        [0xfe, 0xff, ..] => Some((true, 2)),
        [a, 0, b, 0, ..] if is_visible(a) && b.is_ascii() && b != 0 => Some((false, 0)),
        [0, a, 0, b, ..] if is_visible(a) && b.is_ascii() && b != 0 => Some((true, 0)),
        _ => None,
    }
}

/// Returns the length in UTF-16, in bytes, of UTF-8 text or a part of it: each character counts at its first byte.
#[must_use]
pub fn utf16_bytes(text: &[u8]) -> u64 {
    let width = |byte: &u8| match byte {
        0x80..=0xbf => 0,
        0xf0.. => 4,
        _ => 2,
    };
    text.iter().map(width).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns lines with their offsets and whether they were cut, from chunks of `size` bytes.
    fn lines(bytes: &[u8], size: usize, max_line_bytes: usize) -> Vec<(u64, String, bool)> {
        let mut buffer = Buffer::new(max_line_bytes);
        let mut found = Vec::new();
        for chunk in bytes.chunks(size) {
            buffer.space()[..chunk.len()].copy_from_slice(chunk);
            buffer.filled(chunk.len());
            while let Some(framed) = buffer.next_lines() {
                take(&mut buffer, &framed, &mut found);
            }
        }
        if let Some(framed) = buffer.last_line() {
            take(&mut buffer, &framed, &mut found);
        }
        found
    }

    fn take(buffer: &mut Buffer, framed: &Framed, found: &mut Vec<(u64, String, bool)>) {
        let bytes = buffer.bytes.clone();
        let mut from = framed.from;
        for line in bytes[framed.from..framed.to].split_inclusive(|b| *b == b'\n') {
            found.push((buffer.offset_of(&bytes, framed, from), String::from_utf8_lossy(line).into_owned(), framed.truncated));
            from += line.len();
        }
        buffer.done(framed);
    }

    fn utf16(units: &[u16], big_endian: bool) -> Vec<u8> {
        units.iter().flat_map(|unit| if big_endian { unit.to_be_bytes() } else { unit.to_le_bytes() }).collect()
    }

    fn at_every_size(bytes: &[u8], max_line_bytes: usize) -> Vec<(u64, String, bool)> {
        let whole = lines(bytes, bytes.len().clamp(1, 60_000), max_line_bytes);
        for size in [1, 2, 3, 5, 64, 1000] {
            assert_eq!(lines(bytes, size, max_line_bytes), whole, "chunks of {size}");
        }
        whole
    }

    fn row(offset: u64, text: &str) -> (u64, String, bool) {
        (offset, text.to_owned(), false)
    }

    #[test]
    fn lines_and_offsets() {
        assert_eq!(at_every_size(b"", 4096), []);
        assert_eq!(at_every_size(b"\n\na\nbc", 4096), [row(0, "\n"), row(1, "\n"), row(2, "a\n"), row(4, "bc")]);
        assert_eq!(at_every_size(b"\xef\xbb\xbfa\n", 4096), [row(0, "\u{feff}a\n")]);
        assert_eq!(at_every_size(b"\xff", 4096), [row(0, "\u{fffd}")]);
    }

    #[test]
    fn a_stream_that_is_silent_at_first_may_be_utf16() {
        for units in ["\u{feff}ab\n", "ab\n"] {
            let bytes = utf16(&units.encode_utf16().collect::<Vec<_>>(), false);
            let mut buffer = Buffer::new(4096);
            assert!(buffer.last_line().is_none());
            buffer.space()[..bytes.len()].copy_from_slice(&bytes);
            buffer.filled(bytes.len());
            let framed = buffer.next_lines().expect("a whole line");
            assert_eq!(&buffer.bytes[framed.from..framed.to], b"ab\n");
        }
    }

    #[test]
    fn utf16_without_a_mark() {
        for big in [false, true] {
            let text: Vec<u16> = "a\u{1f600}é\nb\n".encode_utf16().collect();
            assert_ne!(at_every_size(&utf16(&text, big), 4096), [row(0, "a\u{1f600}é\n"), row(10, "b\n")], "its second character is not ASCII");
            let text: Vec<u16> = "ab\u{1f600}é\nb\n".encode_utf16().collect();
            assert_eq!(at_every_size(&utf16(&text, big), 4096), [row(0, "ab\u{1f600}é\n"), row(12, "b\n")]);
            let text: Vec<u16> = "a\n".encode_utf16().collect();
            assert_eq!(at_every_size(&utf16(&text, big), 4096), [row(0, "a\n")]);
        }
        for damaged in [&b"a\0"[..], b"a\0b", b"\0a\n", b"a\0\nb\n", b"\n\0b\0", b"\0\0a\n"] {
            let lines = at_every_size(damaged, 4096);
            assert_eq!(lines.iter().map(|(_, text, _)| text.as_str()).collect::<String>().as_bytes(), damaged);
        }
    }

    #[test]
    fn utf16_with_pairs_halves_and_an_odd_end() {
        for big in [false, true] {
            let text: Vec<u16> = "\u{feff}a\u{1f600}é\nb\n".encode_utf16().collect();
            assert_eq!(at_every_size(&utf16(&text, big), 4096), [row(2, "a\u{1f600}é\n"), row(12, "b\n")]);
            // A lone surrogate, before a newline and at the end; then half a unit.
            let halves = utf16(&[0xfeff, 0xd83d, 0x0a, 0xde00, 0x0a, 0x62, 0xd83d], big);
            let wanted = [row(2, "\u{fffd}\n"), row(6, "\u{fffd}\n"), row(10, "b\u{fffd}")];
            assert_eq!(at_every_size(&halves, 4096), wanted);
            assert_eq!(at_every_size(&[utf16(&[0xfeff, 0x62], big), vec![0]].concat(), 4096), [row(2, "b\u{fffd}")]);
        }
    }

    #[test]
    fn utf16_offsets_do_not_depend_on_what_was_asked_for() {
        let mut units: Vec<u16> = vec![0xfeff];
        units.extend("é is no \u{1f600}\n".repeat(40_000).encode_utf16());
        let last = units.len() as u64 * 2;
        units.extend("end".encode_utf16());
        let mut buffer = Buffer::new(4096);
        let mut found = Vec::new();
        for chunk in utf16(&units, false).chunks(50_000) {
            buffer.space()[..chunk.len()].copy_from_slice(chunk);
            buffer.filled(chunk.len());
            // Ordinary text: nobody asks for offsets.
            while let Some(framed) = buffer.next_lines() {
                buffer.done(&framed);
            }
        }
        let framed = buffer.last_line().expect("an unfinished line");
        take(&mut buffer, &framed, &mut found);
        assert_eq!(found, [row(last, "end")]);
    }

    #[test]
    fn a_long_line_keeps_its_head_and_its_tail() {
        for extra in [1, 2, 6, 7, 8, 1000, 300_000, 600_000] {
            let text = format!("first\nhead{}tail\nlast\n", "x".repeat(2048 - 8 + extra));
            let found = at_every_size(text.as_bytes(), 2048);
            let (offset, line, truncated) = &found[1];
            assert_eq!((*offset, *truncated, line.len()), (6, true, 2049), "{extra}");
            assert!(line.starts_with("headxx") && line.contains("xx […] xx") && line.ends_with("xxtail\n"));
            assert_eq!(found[2], row((6 + 2049 + extra) as u64, "last\n"));
        }
    }

    /// No pattern knows a part of a secret, and no reader a part of an escape.
    #[test]
    fn a_cut_goes_through_no_word_and_no_escape() {
        let token = format!("ghp_{}", "0123456789".repeat(4));
        for at in 0..=60 {
            let text = format!("{} {token} {}", "x".repeat(1000 - at), "more ".repeat(1000));
            let text = format!("{text}{token} {}\n", "y".repeat(1000 - at));
            let (_, line, _) = &at_every_size(text.as_bytes(), 2048)[0];
            assert!(line.replace(&token, "").find("ghp_").is_none() && line.replace(&token, "").find("6789").is_none(), "{at} {line}");
            let text = format!("{{\"a\":\"{}{}\"}}", "x".repeat(at), r#"\"\\\n\ud83d\ude00\u00e9"#.repeat(500));
            let (_, line, _) = &at_every_size(text.as_bytes(), 2048)[0];
            assert!(serde_json::from_str::<serde_json::Value>(line).is_ok(), "{at} {line}");
        }
    }

    #[test]
    fn a_line_of_just_the_limit_is_whole() {
        let text = format!("{}\n{}", "x".repeat(2048), "y".repeat(2048));
        let found = at_every_size(text.as_bytes(), 2048);
        assert!(found.iter().all(|(_, line, truncated)| !truncated && line.trim_end().len() == 2048));
    }

    #[test]
    fn a_long_line_of_utf16() {
        let text = format!("\u{feff}head{}tail\nlast", "é\u{1f600}".repeat(50_000));
        let bytes = utf16(&text.encode_utf16().collect::<Vec<_>>(), true);
        let found = at_every_size(&bytes, 2048);
        assert!(found[0].2 && found[0].1.starts_with("headé") && found[0].1.ends_with("tail\n"));
        assert_eq!(found[1], row((bytes.len() - 8) as u64, "last"));
    }

    #[test]
    fn memory_is_bounded() {
        let mut buffer = Buffer::new(1 << 20);
        for _ in 0..2000 {
            let space = buffer.space().len();
            buffer.filled(space);
            assert!(buffer.next_lines().is_none());
            assert!(buffer.bytes.len() <= 4 << 20, "{}", buffer.bytes.len());
        }
    }
}
