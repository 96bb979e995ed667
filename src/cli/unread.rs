//! What of an input was too long to be read: `scan` and `replay` say it, and end with [`Trouble`](super::Exit::Trouble).
//! What was read, but not to the last doubt, `scan` only tells.

use crate::core::pipeline::Stream;
use crate::words::counted;

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

/// Returns what the bounds of the work on a stream that has ended have cost, one sentence for each.
pub fn bounded(stream: &Stream) -> impl Iterator<Item = String> {
    let counts = stream.counts();
    let cut = match counts.truncated {
        0 => None,
        1 => Some("1 line is longer than limits.max_line_bytes: its middle was not read".to_owned()),
        count => Some(format!("{count} lines are longer than limits.max_line_bytes: their middles were not read")),
    };
    let lines = (counts.unasked > 0).then(|| {
        let lines = counted(counts.unasked, "line");
        format!(
            "{lines} led to more rules than are asked of one line, repeated one literal too often, or could not be looked at again below an error that came to nothing: \
             an error there may be missing"
        )
    });
    let sections = (counts.cut_sections > 0).then(|| {
        let sections = counted(counts.cut_sections, "section");
        format!("{sections} of tools' outputs began while too many were open: an error there may be missing, or one too many")
    });
    cut.into_iter().chain(lines).chain(sections)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::core::engine::{Engine, Limits};
    use crate::core::event::Timestamp;
    use crate::core::extract::Origin;
    use crate::rules::RuleSet;

    #[test]
    fn what_bounds_have_cost_is_told() {
        let limits = Limits { max_line_bytes: 4 << 10, ..Limits::default() };
        let (mut stream, mut out) = (Stream::new(Arc::new(Engine::new(RuleSet::compiled(), limits)), Origin::default()), Vec::new());
        stream.push(format!("{0}TypeError: x{0}\n", "x".repeat(8 << 10)).as_bytes(), Timestamp(0), &mut out);
        stream.finish(Timestamp(0), &mut out);
        assert_eq!(bounded(&stream).collect::<Vec<_>>(), ["1 line is longer than limits.max_line_bytes: its middle was not read"]);
    }
}
