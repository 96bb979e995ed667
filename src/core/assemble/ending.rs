//! Where an error without an end of its own is over: which lines cannot continue a message, and which show that the
//! lines before them did. Looks only at the shapes of single lines; `trace` decides which lines a machine takes.

use std::borrow::Cow;

use super::Context;
use crate::core::confirm::Confirm;
use crate::core::engine::Candidate;
use crate::core::line::{Line, View};
use crate::core::record;
use crate::core::shown;
use crate::core::trace::OpenTrace;
use crate::rules::Kind;

/// What a line means for a message that may continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// The line may belong to the message.
    Open,
    /// Something else begins, which says nothing about the lines before it.
    Begun,
    /// The program or its log continues, so the lines before it belong to the message.
    Over,
}

/// Returns what `line` means for the message of `trace`, and `restamped` whether it has
/// the stamp of the trace's head; `candidates` are the line's, if known.
pub(super) fn of(cx: &Context, trace: &OpenTrace, (line, restamped): (&Line, bool), candidates: Option<&[Candidate]>) -> Ending {
    let prefix = line.prefix();
    let belongs_to_a_record = trace.prefix.shaped || trace.adopted.is_some();
    // Whatever the object holds, it would only be something else that begins.
    if !belongs_to_a_record && is_object(line.text) {
        return Ending::Begun;
    }
    let has_own_level = prefix.level.is_some() && (trace.prefix.level.is_none() || !restamped);
    let is_record = record::is_one(line) || if trace.prefix.shaped { has_own_level } else { line.is_stamped() };
    let part = trace.own_part(View::Body.of(line)).unwrap_or(line.body());
    if shown::resembles_prompt(part) || is_ruler(part) {
        return Ending::Over;
    }
    if trace.is_past(line, part) {
        return Ending::Begun;
    }
    if is_record || is_numbered(part) {
        // Between two records, all lines belong to the first; a bare error may be among another program's
        // lines, and so may one whose lines each have the stamp of whatever collects them.
        let is_alone = belongs_to_a_record && (trace.adopted.is_some() || !trace.is_uniform());
        return if is_alone { Ending::Over } else { Ending::Begun };
    }
    if is_object(part) {
        return Ending::Begun;
    }
    let candidates = candidates.map_or_else(|| cx.engine.candidates_of(line.text).into(), Cow::from);
    if candidates.is_empty() {
        return Ending::Open;
    }
    let mut confirm = Confirm::new(cx.engine, line, &candidates);
    let note = confirm.note();
    // A note that any error explains is printed when the failed program has ended.
    let is_end = |kind: &Kind| matches!(kind, Kind::Note(note) if note.claimed_by.is_empty());
    if confirm.border().is_some() || note.is_some_and(|found| is_end(&cx.engine.rules.entries[usize::from(found.entry)].kind)) {
        return Ending::Over;
    }
    let begins = note.is_some() || confirm.noise_block().is_some() || confirm.region().is_some() || !confirm.starts().0.is_empty() || confirm.rule().is_some();
    if begins { Ending::Begun } else { Ending::Open }
}

/// Whether the text is a JSON record.
fn is_object(text: &[u8]) -> bool {
    text.starts_with(b"{\"") && text.trim_ascii_end().ends_with(b"}")
}

/// Whether the text begins with a step number: `[3/7] `, `[step 2/2] `
fn is_numbered(text: &[u8]) -> bool {
    let Some(inner) = text.strip_prefix(b"[").and_then(|text| text.split(|byte| *byte == b']').next()) else { return false };
    let number = inner.iter().rposition(|byte| *byte == b' ').map_or(inner, |at| &inner[at + 1..]);
    inner.len() < 24 && number.contains(&b'/') && number.iter().all(|byte| byte.is_ascii_digit() || *byte == b'/')
}

/// Whether the text is a ruler: one repeated sign, possibly around a heading.
fn is_ruler(text: &[u8]) -> bool {
    const LONG: usize = 4;
    // Go's test results have the shape of a heading. Their rules are not asked here: of one line, they say neither that
    // another test's lines follow nor that the error's go on.
    if [b"--- PASS:", b"--- FAIL:", b"--- SKIP:"].iter().any(|status| text.starts_with(*status)) {
        return false;
    }
    let Some(&sign) = text.first().filter(|sign| matches!(sign, b'=' | b'-' | b'*' | b'_' | b'#' | b'+' | b'~')) else { return false };
    text.iter().take_while(|byte| **byte == sign).count() >= LONG
        || (b"=-#".contains(&sign) && text.len() > LONG && text.starts_with(&[sign; 3]) && text[3] == b' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rulers_and_step_numbers() {
        for text in ["[2/7] RUN", "[step 2/2] skipped", "==== 1 failed", "--- next", "-----"] {
            assert!(is_ruler(text.as_bytes()) || is_numbered(text.as_bytes()), "{text}");
        }
        for text in ["second line", "(hint: x)", "[parameters: (1,)]", "- item", "[]", "* x", "--- PASS: TestA (0.00s)", ""] {
            assert!(!is_ruler(text.as_bytes()) && !is_numbered(text.as_bytes()), "{text}");
        }
    }
}
