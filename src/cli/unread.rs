//! What of an input was too long to be read: `scan` and `replay` say it, and end with [`Trouble`](super::Exit::Trouble).

use crate::core::pipeline::Stream;

/// Returns what of a stream that has ended was not read, one sentence for each limit.
pub fn unread(stream: &Stream) -> impl Iterator<Item = String> {
    let document = stream.is_document_cut().then(|| "is larger than limits.max_document_bytes: its end was not read".to_owned());
    let records = match stream.counts().unread {
        0 => None,
        1 => Some("1 record is too long to be read: an error there is missing".to_owned()),
        count => Some(format!("{count} records are too long to be read: errors there are missing")),
    };
    document.into_iter().chain(records)
}
