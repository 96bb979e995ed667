//! From the raw bytes of a line to the text that a person would see: a hole before it is skipped,
//! carriage returns are resolved, escape sequences removed. It never looks at what the text means.

use std::borrow::Cow;

use super::{decode, frame};

/// Returns the visible text of `raw`. If pieces of it overwrite each
/// other, that is the piece that holds byte `at`, or the last one.
#[must_use]
pub fn visible(raw: &[u8], at: Option<usize>) -> Cow<'_, [u8]> {
    if is_plain(raw) {
        return without_lost(raw);
    }
    let whole = raw.len();
    let raw = skip_hole(raw.strip_prefix(b"\xef\xbb\xbf").unwrap_or(raw));
    let at = at.map(|at| at.saturating_sub(whole - raw.len()));
    let piece = match memchr::memchr(b'\r', raw) {
        None => raw,
        Some(_) => {
            let (from, to) = at.map_or_else(|| decode::last_visible(raw), |at| decode::visible(raw, at));
            &raw[from..to]
        }
    };
    if !decode::is_dressed(piece) {
        return without_lost(piece);
    }
    let mut clean = Vec::with_capacity(piece.len());
    decode::strip(piece, &mut clean);
    Cow::Owned(clean)
}

/// Removes colours that have lost their ESC.
fn without_lost(text: &[u8]) -> Cow<'_, [u8]> {
    if !decode::has_lost_escapes(text) {
        return Cow::Borrowed(text);
    }
    let mut clean = Vec::with_capacity(text.len());
    decode::strip_lost(text, &mut clean);
    Cow::Owned(clean)
}

/// Whether nothing in the line hides anything; for most lines, this is the only check.
fn is_plain(raw: &[u8]) -> bool {
    !matches!(raw.first(), Some(b'\0' | b'\xef')) && memchr::memchr3(b'\r', b'\x1b', b'\\', raw).is_none()
}

/// Returns the text after the zeros of a hole: a writer without `O_APPEND` leaves one before its
/// first line after its file was truncated. The hole may have made the line so long that it was cut.
fn skip_hole(raw: &[u8]) -> &[u8] {
    let zeros = |text: &[u8]| text.iter().take_while(|byte| **byte == 0).count();
    match raw.split_at(zeros(raw)) {
        ([], _) => raw,
        (_, rest) => match rest.strip_prefix(frame::CUT) {
            Some(tail) => &tail[zeros(tail)..],
            None => rest,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hole_before_a_line_is_skipped() {
        let cut = [&b"\0\0"[..], frame::CUT, b"\0error: x"].concat();
        for (raw, at, text) in [
            (&b"\0\0error: x"[..], Some(3), "error: x"),
            (b"\xef\xbb\xbf\0a", None, "a"),
            (&cut, None, "error: x"),
            (b"\0\0a\rb", Some(2), "a"),
            (b"\0\0", None, ""),
            (b"a\0b", None, "a\0b"),
        ] {
            assert_eq!(visible(raw, at), text.as_bytes(), "{raw:?}");
        }
    }
}
