//! An error in one line: the line that names it, without the place that the form states anyway, and with what the error says beyond
//! that line, such as the message below the head of a panic.

use std::borrow::Cow;

use crate::core::event::{Category, Event, Location};

/// What begins the line of a test's report that tells why it failed, in TAP's YAML blocks and in pytest.
const TELLING: [&str; 3] = ["error:", "message:", "E  "];

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
/// none and a test failed, the one of the error's `lines` that tells why.
pub fn beyond<'a>(text: &str, message: Option<&'a str>, is_test: bool, lines: impl Iterator<Item = &'a str> + Clone) -> Option<&'a str> {
    let first = message.and_then(|message| message.lines().map(str::trim).find(|line| !line.is_empty()));
    let found = match first {
        Some(first) => Some(first),
        None if is_test => reason(text.trim(), lines),
        None => None,
    };
    found.filter(|found| !text.contains(found))
}

fn reason<'a>(text: &str, lines: impl Iterator<Item = &'a str> + Clone) -> Option<&'a str> {
    let mut below = lines.map(str::trim).skip_while(|line| *line != text).skip(1).filter(|line| !line.is_empty());
    let mut telling = below.clone();
    while let Some(line) = telling.next() {
        let Some(value) = TELLING.iter().find_map(|word| line.strip_prefix(word)) else { continue };
        // A YAML block scalar begins on the next line.
        return if matches!(value.trim(), "" | "|" | "|-" | ">" | ">-") { telling.next() } else { Some(value.trim()) };
    }
    // A subtest's head is no reason.
    let is_head = |line: &str| line.split(' ').next() == text.split(' ').next();
    below.find(|line| line.contains(' ') && line.contains(char::is_alphabetic) && !is_head(line))
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
        assert_eq!(of("thread 'main' panicked at src/main.rs:3:5:", "no till\nat all"), Some("no till"));
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
            ("not ok 1 - adds", None),
        ] {
            let text = report.lines().next().unwrap();
            assert_eq!(beyond(text, None, true, report.lines()), want, "{report}");
            assert_eq!(beyond(text, None, false, report.lines()), None);
        }
    }
}
