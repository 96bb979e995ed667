//! From the raw bytes of a line to the text that a person would see: carriage returns resolved,
//! escape sequences removed. It never looks at what the text means.

use std::borrow::Cow;

use super::decode;

/// The visible text of `raw`; when pieces of it overwrite each other, the one that holds byte `at`,
/// or the last one.
#[must_use]
pub fn visible(raw: &[u8], at: Option<usize>) -> Cow<'_, [u8]> {
    let raw = raw.strip_prefix(b"\xef\xbb\xbf").unwrap_or(raw);
    let piece = match memchr::memchr(b'\r', raw) {
        None => raw,
        Some(_) => {
            let (from, to) = at.map_or_else(|| decode::last_visible(raw), |at| decode::visible(raw, at));
            &raw[from..to]
        }
    };
    if !decode::is_dressed(piece) {
        return Cow::Borrowed(piece);
    }
    let mut clean = Vec::with_capacity(piece.len());
    decode::strip(piece, &mut clean);
    Cow::Owned(clean)
}
