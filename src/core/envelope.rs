//! The envelopes that container runtimes and test runners put around each line: what stands in them, and from which output
//! or test. `pipeline` takes every line out of its envelope, `lookback` those before it. It never joins the pieces of a line.

use memchr::memmem;

use super::decode::{self, Json};
use super::event::Timestamp;
use super::line::Place;

/// Docker splits lines into pieces of 16 KiB; characters that it could not read may have grown.
const DOCKER_PIECE_BYTES: usize = 16 << 10;

/// The content of a container runtime's or test runner's envelope, and whether more of it follows.
#[must_use]
pub fn unwrap(raw: &[u8], now: Timestamp, place: &mut Place) -> Option<(Vec<u8>, bool)> {
    if raw.first().is_some_and(u8::is_ascii_digit)
        && let Some(cri) = decode::cri(raw, now)
    {
        place.io = Some(cri.io);
        place.time = Some(cri.time);
        return Some((raw[cri.text..].to_vec(), cri.partial));
    }
    let opens = [&b"{\"log\":"[..], b"{\"Time\":", b"{\"Action\":", b"{\"ImportPath\":"];
    if !opens.iter().any(|open| raw.starts_with(open)) {
        return None;
    }
    let Json::Envelope(envelope) = decode::json(raw, now)? else { return None };
    place.io = envelope.io;
    place.time = envelope.time;
    place.key = envelope.key;
    let text = envelope.text.strip_suffix(b"\n").unwrap_or(&envelope.text).to_vec();
    let partial = envelope.partial && is_piece(raw, &text);
    Some((text, partial))
}

/// Whether a record without a line end is a piece: of docker only a full one is, because shippers
/// take line ends off. `levels.toml` leads to these forms.
fn is_piece(raw: &[u8], text: &[u8]) -> bool {
    match memmem::find(raw, b"\",\"stream\":\"std") {
        Some(at) => text.len() >= DOCKER_PIECE_BYTES && !raw[..at].ends_with(b"\\n"),
        None => memmem::find(raw, b"\"Output\":\"").is_some(),
    }
}
