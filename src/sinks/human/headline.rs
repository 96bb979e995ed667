//! An error in one line: the line that names it, without the place that the form states anyway, and with what the error says beyond
//! that line, such as the message below the head of a panic.

use std::borrow::Cow;

use super::telling;
use crate::core::event::{Category, Event, Location};

/// What begins the line of a test's report that tells why it failed, in TAP's YAML blocks and in pytest.
const TELLING: [&str; 4] = ["error:", "Error:", "message:", "E  "];
/// Longest text of the two sides of a comparison that stands in one line, in characters.
const MAX_SIDES: usize = 120;

/// Returns what follows the place in a form that states it.
#[must_use]
pub fn placed_headline(event: &Event) -> Cow<'_, str> {
    match (headline(event), &event.location) {
        (Cow::Borrowed(text), Some(place)) => without_place(text, place).into(),
        (Cow::Owned(text), Some(place)) => without_place(&text, place).to_owned().into(),
        (text, None) => text,
    }
}

/// Takes away the place with which a text begins: `a.c:3:7: `, `a.ts(3,7): ` or `a.sh: line 3: `. A text that is nothing else is kept.
fn without_place<'a>(text: &'a str, place: &Location) -> &'a str {
    let Some(rest) = text.strip_prefix(place.file.as_str()).filter(|_| !place.file.is_empty()) else { return text };
    let line = place.line.to_string();
    let numbers = [": line ", ":", "("].iter().find_map(|before| rest.strip_prefix(before)?.strip_prefix(line.as_str()));
    let Some(rest) = numbers else { return text };
    let column = |rest: &'a str| rest.strip_prefix([':', ','])?.strip_prefix(place.column.to_string().as_str());
    let rest = column(rest).unwrap_or(rest);
    let rest = rest.strip_prefix(')').unwrap_or(rest).strip_prefix(':').map(str::trim_start);
    rest.filter(|rest| !rest.is_empty()).unwrap_or(text)
}

/// Returns an event's text, with its message unless the text has it.
fn headline(event: &Event) -> Cow<'_, str> {
    let said = event.exception.as_ref().map(|exception| exception.message.as_str());
    match beyond(&event.text, said, event.category == Category::TestFailure, event.multiline.iter()) {
        Some(message) => format!("{}: {message}", event.text.trim_end().trim_end_matches(':')).into(),
        None => event.text.as_str().into(),
    }
}

/// Returns what an error says beyond `text`, the line that names it: the first line of the exception's `message` or, if there is
/// none and a test failed, the one of the error's `lines` that tells why; with the two sides of a comparison, if they follow.
pub fn beyond<'a>(text: &str, message: Option<&'a str>, is_test: bool, lines: impl Iterator<Item = &'a str> + Clone) -> Option<Cow<'a, str>> {
    let mut said = message.unwrap_or_default().lines().map(str::trim).skip_while(|line| line.is_empty());
    match said.next() {
        Some(first) => told(text, first, said),
        None if is_test => reason(text, lines),
        None => None,
    }
}

/// Joins a line that tells something with the two sides of a comparison below it; leaves out what `text` has.
fn told<'a>(text: &str, line: &'a str, mut below: impl Iterator<Item = &'a str>) -> Option<Cow<'a, str>> {
    let right = |left: &str, below: &mut dyn Iterator<Item = &'a str>| {
        let right = below.next().filter(|right| right.starts_with("right: "))?;
        Some(format!("{left}, {right}")).filter(|both| both.chars().count() <= MAX_SIDES)
    };
    let is_left = |line: &str| line.starts_with("left: ");
    match (is_left(line), text.contains(line)) {
        (true, _) => Some(right(line, &mut below).map_or(line.into(), Into::into)),
        (false, is_known) => {
            let sides = below.next().filter(|left| is_left(left)).and_then(|left| right(left, &mut below));
            match (sides, is_known) {
                (Some(sides), true) => Some(sides.into()),
                (Some(sides), false) => Some(format!("{line} ({sides})").into()),
                (None, true) => None,
                (None, false) => Some(line.into()),
            }
        }
    }
}

fn reason<'a>(text: &str, lines: impl Iterator<Item = &'a str> + Clone) -> Option<Cow<'a, str>> {
    let text = text.trim();
    let mut below = telling(lines.skip_while(|line| line.trim() != text).skip(1)).map(str::trim);
    // What a runner reports whole has the panic somewhere below; what the test printed stands before it.
    let mut panicked = below.clone().skip_while(|line| !(line.ends_with(':') && line.contains("panicked at "))).skip(1);
    if let Some(line) = panicked.next() {
        return told(text, line, panicked);
    }
    let mut values = below.clone();
    while let Some(line) = values.next() {
        let Some(value) = TELLING.iter().find_map(|word| line.strip_prefix(word)) else { continue };
        // A YAML block scalar begins on the next line.
        let value = if matches!(value.trim(), "" | "|" | "|-" | ">" | ">-") { values.next()? } else { value.trim() };
        return Some(value).filter(|value| !text.contains(value)).map(Into::into);
    }
    // A subtest's head is no reason.
    let is_head = |line: &str| line.split(' ').next() == text.split(' ').next();
    let line = below.find(|line| line.contains(' ') && line.contains(char::is_alphabetic) && !is_head(line))?;
    told(text, line, below)
}

#[cfg(test)]
mod tests {
    use super::{beyond, without_place};
    use crate::core::event::Location;

    #[test]
    fn a_place_is_not_said_twice() {
        let of = |text, file: &str, line, column| without_place(text, &Location { file: file.into(), line, column });
        for (text, want) in [
            ("src/a.ts(5,9): error TS2322: no", "error TS2322: no"),
            ("src/a.ts:5:9: error: no", "error: no"),
            ("src/a.ts:5: error: no", "error: no"),
            ("src/a.ts(5): error: no", "error: no"),
            ("src/a.ts: line 5: no", "no"),
            ("src/a.ts:5:9", "src/a.ts:5:9"),
            ("src/a.ts:50:9: no", "src/a.ts:50:9: no"),
            ("src/a.ts: no", "src/a.ts: no"),
            ("in src/a.ts:5:9: no", "in src/a.ts:5:9: no"),
        ] {
            assert_eq!(of(text, "src/a.ts", 5, 9), want, "{text}");
        }
        assert_eq!(of("a.c:3: no", "a.c", 3, 0), "no");
        assert_eq!(of(":3: no", "", 3, 0), ":3: no");
    }

    #[test]
    fn a_message_is_added_unless_the_text_has_it() {
        let of = |text, message| beyond(text, Some(message), false, std::iter::empty());
        assert_eq!(of("thread 'main' panicked at src/main.rs:3:5:", "no till\nat all").as_deref(), Some("no till"));
        let sides = of("thread 'main' panicked at src/main.rs:3:5:", "assertion `left == right` failed\n  left: 3\n right: 4");
        assert_eq!(sides.as_deref(), Some("assertion `left == right` failed (left: 3, right: 4)"));
        let long = format!("not equal\n  left: {}\n right: 4", "3".repeat(200));
        assert_eq!(of("Aborted", &long).as_deref(), Some("not equal"));
        assert_eq!(of("ValueError: bad", "bad"), None);
        assert_eq!(of("Aborted", "\n"), None);
    }

    #[test]
    fn the_report_of_a_test_tells_why_it_failed() {
        for (report, want) in [
            ("--- FAIL: TestTotal (0.00s)\n    till_test.go:12: got 3, want 4", Some("till_test.go:12: got 3, want 4")),
            ("--- FAIL: TestTotal (0.00s)\n    --- FAIL: TestTotal/tax (0.00s)\n        got 3, want 4", Some("got 3, want 4")),
            ("not ok 1 - adds\n  ---\n  location: '/a.js:3:1'\n  error: 'three, not two'\n  ...", Some("'three, not two'")),
            ("not ok 1 - adds\n  ---\n  location: '/a.js:3:1'\n  error: |-\n    three, not two\n  ...", Some("three, not two")),
            ("not ok 1 - adds\n  ---\n  ...", None),
            ("index out of bounds\nstack backtrace:\n   0: core::panicking::panic_fmt\n             at /rustc/5980/library/core/src/panicking.rs:80:14", None),
            ("assertion `left == right` failed\n  left: 3\n right: 4\nstack backtrace:", Some("left: 3, right: 4")),
            (
                "FAIL [ 0.1s] shop t::adds\n  stdout ───\n    running 1 test\n    error: printed\n  stderr ───\n    thread 't::adds' (7) panicked at src/lib.rs:5:9:\n    not equal\n      left: 3\n     right: 4",
                Some("not equal (left: 3, right: 4)"),
            ),
            ("not ok 1 - adds", None),
        ] {
            let text = report.lines().next().unwrap();
            assert_eq!(beyond(text, None, true, report.lines()).as_deref(), want, "{report}");
            assert_eq!(beyond(text, None, false, report.lines()), None);
        }
    }
}
