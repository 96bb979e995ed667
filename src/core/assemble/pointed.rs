//! Source that a tool shows below an error which names a place: lines of a listing, or the line itself, and a mark that
//! points into it. Whatever tool printed it, they belong to the error. They are taken on trial until the mark comes.
//! Asked only where an error would end; never about a line that begins something.

use super::Context;
use super::ending::{self, Ending};
use crate::core::engine::Candidate;
use crate::core::line::{Line, Tried};
use crate::core::trace::OpenTrace;

/// Maximum number of lines between the head, or a mark, and the next mark.
const MAX_TRIAL_LINES: usize = 8;
/// Signs that part the number of a line from its text.
const BARS: [&str; 5] = ["|", "│", "¦", "·", ":"];

/// What a line is in a display of source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Blank,
    /// A line behind its number or the bar of the listing.
    Listed,
    /// A mark below a line of source: `^~~~`, `  |  ^^^ not found`.
    Mark,
    Other,
}

/// Takes the line into the event of `trace`, which would end before it, if it may be source that is shown below it.
pub(super) fn takes(cx: &Context, trace: &mut OpenTrace, line: &Line, candidates: Option<&[Candidate]>) -> bool {
    let entries = &cx.engine.rules.entries;
    let is_same = line.key() == trace.key.as_deref() && line.place.io == trace.lines.get(0).place.io;
    // A CI system's stamp stands before the source, too.
    let is_no_record = trace.outranks(line) || trace.is_stamped_alike(line);
    let is_next = is_same && trace.is_followed_by(line) && line.tried == Tried::No && is_no_record;
    let Some(outcome) = trace.outcome(entries).filter(|_| is_next) else { return false };
    let head = trace.lines.get(trace.lead.min(trace.lines.len() - 1)).part;
    if self::shape(head) != Shape::Other || !is_placed(head) {
        return false;
    }
    let below_head = trace.lines.len() - trace.lead - 1;
    let on_trial = trace.lines.len().saturating_sub(outcome.lines);
    let last = if below_head == 0 { Shape::Other } else { self::shape(trace.lines.get(trace.lines.len() - 1).part) };
    let is_parted = below_head > 1 && trace.lines.get(trace.lead + 1).part.trim_ascii().is_empty();
    let shape = shape(line.body());
    let (is_taken, is_certain) = match shape {
        Shape::Mark => (last == Shape::Listed || last == Shape::Other && below_head == 1 + usize::from(is_parted), true),
        Shape::Listed if matches!(last, Shape::Listed | Shape::Mark) => (on_trial < MAX_TRIAL_LINES, last == Shape::Mark && on_trial == 0),
        // Below its calls, or with other numbers, the listing is the next error's.
        Shape::Listed => (below_head == usize::from(last == Shape::Blank) && is_near(head, line.body()), false),
        Shape::Blank => (below_head == 0 && !trace.prefix.is_stamped(), false),
        Shape::Other => (below_head == 0, false),
    };
    // Few lines of source have a word of an error in them, most errors in a row do.
    let is_marked = matches!(shape, Shape::Listed | Shape::Mark);
    let is_open = || if is_marked { ending::of(cx, trace, (line, false), candidates) == Ending::Open } else { candidates.is_none_or(<[_]>::is_empty) };
    if !is_taken || !is_open() {
        return false;
    }
    if !is_marked {
        // If no mark comes, nothing of the error does.
        trace.stop();
    }
    trace.extend_single(&cx.engine.rules.entries, line, is_certain, cx.engine.limits.room());
    true
}

/// Whether a number stands in the text as a place does: right behind a word and `:` or `(`, or behind `line `.
pub(super) fn is_placed(text: &[u8]) -> bool {
    memchr::memchr2_iter(b':', b'(', text).any(|at| {
        let digits = text[at + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let is_word = at > 0 && (text[at - 1].is_ascii_alphanumeric() || text[at - 1] == b'"');
        let next = text.get(at + 1 + digits);
        digits > 0 && is_word && next.is_none_or(|next| matches!(next, b':' | b',' | b')' | b' ' | b'-' | b'.' | b']'))
    }) || memchr::memmem::find(text, b"line ").is_some_and(|at| text.get(at + 5).is_some_and(u8::is_ascii_digit))
}

/// Whether the number of the listed line, if it has one, is not far from one in the head.
fn is_near(head: &[u8], listed: &[u8]) -> bool {
    let mut of_line = numbers(listed);
    let is_first = listed.iter().find(|byte| !matches!(byte, b' ' | b'\t' | b'>')).is_some_and(u8::is_ascii_digit);
    !is_first || of_line.next().is_some_and(|number| numbers(head).any(|other| number.abs_diff(other) <= MAX_TRIAL_LINES as u64))
}

/// Returns the numbers in the text.
fn numbers(text: &[u8]) -> impl Iterator<Item = u64> {
    let runs = text.split(|byte| !byte.is_ascii_digit()).filter(|digits| (1..=9).contains(&digits.len()));
    runs.map(|digits| digits.iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0')))
}

fn shape(text: &[u8]) -> Shape {
    let inner = text.trim_ascii();
    if inner.is_empty() {
        return Shape::Blank;
    }
    let listed = behind_bar(text);
    let shown = listed.unwrap_or(text).trim_ascii_start();
    let mark = shown.iter().take_while(|byte| b"^~-".contains(byte)).count();
    let points = shown[..mark].contains(&b'^') || shown[..mark].starts_with(b"~~");
    if points && shown.get(mark).is_none_or(u8::is_ascii_whitespace) {
        return Shape::Mark;
    }
    if listed.is_some() { Shape::Listed } else { Shape::Other }
}

/// Returns what follows the bar of a listing: `12 | x`, `> 12 | x`, `   | x`, `12: x`.
fn behind_bar(text: &[u8]) -> Option<&[u8]> {
    let inner = text.trim_ascii_start();
    let marked = inner.strip_prefix(b">").map_or(inner, <[u8]>::trim_ascii_start);
    let digits = marked.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let bar = marked[digits..].trim_ascii_start();
    let rest = BARS.iter().find_map(|sign| bar.strip_prefix(sign.as_bytes()))?;
    // A colon alone is no bar.
    let is_sure = digits > 0 || !bar.starts_with(b":");
    (is_sure && rest.first().is_none_or(u8::is_ascii_whitespace)).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_of_shown_source() {
        for (text, wanted) in [
            ("  12 | let x", Shape::Listed),
            ("> 12 | let x", Shape::Listed),
            ("12: let x", Shape::Listed),
            ("   |", Shape::Listed),
            ("   | ^^^ not found", Shape::Mark),
            ("    ^~~", Shape::Mark),
            ("~~~^", Shape::Mark),
            ("--^--", Shape::Mark),
            ("", Shape::Blank),
            ("  ", Shape::Blank),
            ("----", Shape::Other),
            ("^C", Shape::Other),
            ("~", Shape::Other),
            (": x", Shape::Other),
            ("let x", Shape::Other),
        ] {
            assert_eq!(shape(text.as_bytes()), wanted, "{text}");
        }
    }

    #[test]
    fn lines_near_a_place() {
        for (listed, near) in [("12 | x", true), ("> 10 | x", true), ("   | x", true), ("99 | x", false), ("1 | x", false)] {
            assert_eq!(is_near(b"cart.x:12:300: no", listed.as_bytes()), near, "{listed}");
        }
    }

    #[test]
    fn places() {
        for text in ["cart.x:12:5: no", "no (cart.x:12)", "cart.x(12,5): no", "no in cart.x, line 12", "Unexpected token (cart:12)"] {
            assert!(is_placed(text.as_bytes()), "{text}");
        }
        for text in ["no", "error: 12", "12:00:01 no", "f(12x)", "no line"] {
            assert!(!is_placed(text.as_bytes()) || text.starts_with("12:"), "{text}");
        }
    }
}
