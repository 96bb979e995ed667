//! Terminal dress: finds and removes escape sequences, and picks the visible piece of a line that overwrites itself.
//! Runs before the other decoders. Never hides text: of an unterminated escape sequence, only the introducer is removed.

use memchr::{memchr, memchr_iter, memchr2, memrchr};

const ESC: u8 = 0x1b;
const BEL: u8 = 0x07;
/// Bytes that are examined together.
const WORD: usize = 8;

/// The parameters of a colour are shorter than this.
const MAX_LOST_PARAMETERS: usize = 20;

/// How programs spell ESC when a string is printed with its escapes (JSON, Python, C, shell).
/// `config/rules/levels.toml` leads to lines that hold one.
const SPELLINGS: [&[u8]; 6] = [b"\\u001b", b"\\u001B", b"\\x1b", b"\\x1B", b"\\033", b"\\e"];

/// Whether the line holds ESC, or a spelled ESC (`\u001b` `\x1b` `\033` `\e`) that begins a CSI or OSC sequence.
#[must_use]
pub fn is_dressed(line: &[u8]) -> bool {
    let Some(first) = memchr2(ESC, b'\\', line) else {
        return false;
    };
    memchr(ESC, &line[first..]).is_some() || memchr_iter(b'\\', &line[first..]).any(|i| spelled(&line[first + i..]).is_some())
}

/// Appends `line` to `out` without escape sequences (raw or spelled), backspaces and other C0 controls; tabs stay.
pub fn strip(line: &[u8], out: &mut Vec<u8>) {
    // What stays is never longer: bytes are written in place, because most pieces have only a few.
    let mut end = out.len();
    out.resize(end + line.len(), 0);
    let mut at = 0;
    while at < line.len() {
        if let Some(word) = line[at..].first_chunk() {
            let plain = plain_bytes(*word);
            out[end..end + WORD].copy_from_slice(word);
            (at, end) = (at + plain, end + plain);
            if plain == WORD {
                continue;
            }
        }
        let byte = line[at];
        out[end] = byte;
        if !MAY_BE_DRESS[usize::from(byte)] {
            (at, end) = (at + 1, end + 1);
            continue;
        }
        let dress = match byte {
            ESC => raw_sequence(&line[at..]),
            b'\\' => spelled_sequence(&line[at..]).unwrap_or(0),
            _ => 1,
        };
        end += usize::from(dress == 0);
        at += dress.max(1);
    }
    out.truncate(end);
}

/// Whether the line has colours that lost their ESC on the way, as in
/// `[31merror[0m`: one is set and one reset, or several are reset.
#[must_use]
pub fn has_lost_escapes(line: &[u8]) -> bool {
    let (mut sets, mut resets) = (false, false);
    memchr_iter(b'[', line).any(|at| {
        match lost_sequence(&line[at..]) {
            Some(b"[m" | b"[0m" | b"[22m" | b"[39m") if sets || resets => return true,
            Some(b"[0m" | b"[22m" | b"[39m") => resets = true,
            Some(b"[m" | b"[K") | None => {}
            Some(_) if resets => return true,
            Some(_) => sets = true,
        }
        false
    })
}

/// Appends `line` to `out` without the sequences that lost their ESC.
pub fn strip_lost(line: &[u8], out: &mut Vec<u8>) {
    let mut from = 0;
    for at in memchr_iter(b'[', line) {
        if let Some(sequence) = lost_sequence(&line[at..]) {
            out.extend_from_slice(&line[from..at]);
            from = at + sequence.len();
        }
    }
    out.extend_from_slice(&line[from..]);
}

/// Returns the `[1;31m`, `[m` or `[K` at the front.
fn lost_sequence(text: &[u8]) -> Option<&[u8]> {
    let parameters = text[1..].iter().take_while(|byte| matches!(byte, b'0'..=b'9' | b';')).count();
    let is_one = matches!((text.get(1 + parameters), parameters), (Some(b'm'), 0..MAX_LOST_PARAMETERS) | (Some(b'K'), 0));
    is_one.then(|| &text[..parameters + 2])
}

/// Counts the bytes before the first that may be dress; a tab also ends the count and is checked by itself.
fn plain_bytes(word: [u8; WORD]) -> usize {
    let word = u64::from_le_bytes(word);
    let all = |byte: u8| u64::from_le_bytes([byte; WORD]);
    // The highest bit of each byte that is smaller, up to the first such byte; those after it may be wrong.
    let smaller = |word: u64, than: u8| word.wrapping_sub(all(than)) & !word;
    let marks = (smaller(word, 0x20) | smaller(word ^ all(b'\\'), 1) | smaller(word ^ all(0x7f), 1)) & all(0x80);
    // Without a mark it is all of them.
    marks.trailing_zeros() as usize / 8
}

/// Control characters except the tab, and the backslash of a spelled escape.
const MAY_BE_DRESS: [bool; 256] = {
    let mut set = [false; 256];
    let mut byte = 0;
    while byte < 0x20 {
        set[byte] = byte != b'\t' as usize;
        byte += 1;
    }
    set[0x7f] = true;
    set[b'\\' as usize] = true;
    set
};

/// Returns the range of the piece between carriage returns that holds byte `at`; a trailing `\r` belongs to the line end.
#[must_use]
pub fn visible(line: &[u8], at: usize) -> (usize, usize) {
    let line = without_cr(line);
    let at = at.min(line.len());
    let start = memrchr(b'\r', &line[..at]).map_or(0, |i| i + 1);
    let end = memchr(b'\r', &line[at..]).map_or(line.len(), |i| at + i);
    (start, end)
}

/// Returns the range of the last piece between carriage returns that is not blank: what a terminal shows in the end.
#[must_use]
pub fn last_visible(line: &[u8]) -> (usize, usize) {
    let line = without_cr(line);
    let mut end = line.len();
    loop {
        let start = memrchr(b'\r', &line[..end]).map_or(0, |i| i + 1);
        if start == 0 || !line[start..end].trim_ascii().is_empty() {
            return (start, end);
        }
        end = start - 1;
    }
}

fn without_cr(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Returns the length of the sequence that the ESC at the front begins; at least 1.
fn raw_sequence(text: &[u8]) -> usize {
    match text.get(1) {
        Some(b'[') => 2 + csi(&text[2..]),
        Some(b']' | b'P' | b'X' | b'^' | b'_') => 2 + string_end(&text[2..]),
        Some(0x20..=0x2f) => {
            let middle = text[1..].iter().take_while(|b| matches!(b, 0x20..=0x2f)).count();
            1 + middle + usize::from(matches!(text.get(1 + middle), Some(0x30..=0x7e)))
        }
        Some(0x30..=0x7e) => 2,
        _ => 1,
    }
}

/// Returns the length of the spelled sequence at the front; `None` if the backslash begins something else.
fn spelled_sequence(text: &[u8]) -> Option<usize> {
    let esc = spelled(text)?;
    let body = &text[esc + 1..];
    Some(esc + 1 + if text[esc] == b'[' { csi(body) } else { string_end(body) })
}

/// Returns the length of the spelled ESC at the front, if `[` or `]` follows it.
fn spelled(text: &[u8]) -> Option<usize> {
    let len = SPELLINGS.iter().find(|s| text.starts_with(s))?.len();
    matches!(text.get(len), Some(b'[' | b']')).then_some(len)
}

/// Returns the length of a CSI's parameters, intermediates and final byte.
fn csi(body: &[u8]) -> usize {
    let parameters = body.iter().take_while(|b| matches!(b, 0x20..=0x3f)).count();
    parameters + usize::from(matches!(body.get(parameters), Some(0x40..=0x7e)))
}

/// Returns the length of a control string (OSC, DCS, APC) with its terminator, or 0 if it has none. The string cannot
/// hold ESC or a backslash other than its terminator's, so the search ends at the first: that keeps `strip` linear.
fn string_end(body: &[u8]) -> usize {
    let Some(end) = body.iter().position(|b| matches!(*b, BEL | ESC | b'\\')) else {
        return 0;
    };
    let tail = &body[end..];
    let terminators: [&[u8]; 9] = [b"\x07", b"\x1b\\", b"\\u0007", b"\\x07", b"\\007", b"\\a", b"\\u001b\\", b"\\x1b\\", b"\\033\\"];
    let Some(terminator) = terminators.iter().find(|t| tail.starts_with(t)) else {
        return 0;
    };
    // A spelled ST doubles its backslash (`\u001b\\`).
    let doubled = terminator.len() > 2 && terminator.ends_with(b"\\") && tail.get(terminator.len()) == Some(&b'\\');
    end + terminator.len() + usize::from(doubled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_the_same_singly_and_together() {
        let mut seed = 11_u64;
        let pieces = [&b"a"[..], b"plain text ", b"\x1b[1m", b"\t", b"\\u001b[0m", b"\\n", b"\x7f", b"\x08", b"\xe2\x97\x8f", b"\x1b", b"[", b"\x80\xff"];
        for round in 0..2000 {
            let mut line = Vec::new();
            for _ in 0..round % 30 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                line.extend_from_slice(pieces[(seed >> 33) as usize % pieces.len()]);
            }
            let (mut out, mut singly) = (Vec::new(), Vec::new());
            strip(&line, &mut out);
            let mut at = 0;
            while at < line.len() {
                let dress = match line[at] {
                    ESC => raw_sequence(&line[at..]),
                    b'\\' => spelled_sequence(&line[at..]).unwrap_or(0),
                    byte => usize::from(MAY_BE_DRESS[usize::from(byte)]),
                };
                if dress == 0 {
                    singly.push(line[at]);
                }
                at += dress.max(1);
            }
            assert_eq!(out, singly, "{:?}", String::from_utf8_lossy(&line));
        }
    }

    #[test]
    fn strips_every_dress() {
        let table: [(&str, &str); 14] = [
            ("plain \\path\\error\t1", "plain \\path\\error\t1"),
            ("npm\u{1b}[0m \u{1b}[31mERR!", "npm ERR!"),
            ("error\u{1b}[0m\u{1b}[1m: aborting", "error: aborting"),
            (r"a\u001b[31mb\u001B[0mc", "abc"),
            (r"a\x1b[1;31mb\033[0mc\e[0md", "abcd"),
            ("\u{1b}]8;;http://x\u{1b}\\text\u{1b}]8;;\u{1b}\\!", "text!"),
            ("\u{1b}]0;title\u{7}body", "body"),
            (r"\u001b]8;;http://x\u001b\\text\u001b]8;;\u0007!", "text!"),
            ("\u{1b}]0;never ends error: x", "0;never ends error: x"),
            ("\u{1b}_bk;t=1695668091895\u{7}go", "go"),
            ("\u{1b}(Bok\u{1b}=", "ok"),
            ("a\u{8}b\u{7}c\u{0}\r", "abc"),
            ("end\u{1b}", "end"),
            ("end\u{1b}[3", "end"),
        ];
        for (dressed, bare) in table {
            let mut out = Vec::new();
            strip(dressed.as_bytes(), &mut out);
            assert_eq!(String::from_utf8_lossy(&out), bare, "{dressed:?}");
        }
    }

    #[test]
    fn knows_a_dressed_line() {
        for line in ["a\u{1b}[0m", r"\u001b[0m", r"C:\dir \x1B[0m", r"\033[1m", r"\e[0m", r"\u001b]8;;"] {
            assert!(is_dressed(line.as_bytes()), "{line}");
        }
        for line in ["", "error: x", r"C:\error\x1b", r"\u001", r"\n[0m"] {
            assert!(!is_dressed(line.as_bytes()), "{line}");
        }
    }

    #[test]
    fn colours_that_lost_their_escape_are_told_by_their_end() {
        for (line, bare) in [
            ("[31merror[0m: no till", "error: no till"),
            ("[0m[[0m[31merror[0m] [0m[0m/srv/Till.scala:20: x", "[error] /srv/Till.scala:20: x"),
            ("[[1;31mERROR[m] /srv/Till.java:[12,9] x", "[ERROR] /srv/Till.java:[12,9] x"),
            ("[01m[K/srv/till.c:9:5:[m[K [01;31m[Kerror: [m[K'x' undeclared", "/srv/till.c:9:5: error: 'x' undeclared"),
        ] {
            assert!(has_lost_escapes(line.as_bytes()), "{line}");
            let mut out = Vec::new();
            strip_lost(line.as_bytes(), &mut out);
            assert_eq!(String::from_utf8_lossy(&out), bare);
        }
        for line in ["a[m] = b[m]", "x[0m", "[31mno end", "matrix[12m", "[K", "[error]", "[", "[1;2;3] [0]"] {
            assert!(!has_lost_escapes(line.as_bytes()), "{line}");
        }
    }

    #[test]
    fn picks_the_visible_piece() {
        let line = b"10%\r20%\rerror: x\r";
        assert_eq!(visible(line, 0), (0, 3));
        assert_eq!(visible(line, 5), (4, 7));
        assert_eq!(visible(line, 10), (8, 16));
        assert_eq!(visible(line, 99), (8, 16));
        assert_eq!(last_visible(line), (8, 16));
        assert_eq!(last_visible(b"done\r   \r\r"), (0, 4));
        assert_eq!(last_visible(b"plain\r"), (0, 5));
        assert_eq!(last_visible(b""), (0, 0));
    }
}
