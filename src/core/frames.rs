//! The shape of one stack frame, read byte by byte: a regex with groups would cost ten times
//! as much, and frames are most of an error. A row of a trace names the shape; its regex has
//! already decided that the line is a frame. What a shape does not find stays empty.

use super::event::Frame;
use crate::rules::spec::Shape;

/// Returns the frame in `line`.
#[must_use]
pub fn read(shape: Shape, line: &str) -> Frame<'_> {
    match shape {
        Shape::Python => python(line),
        Shape::Call => call(line),
        Shape::Place => place(line),
        Shape::Numbered => numbered(line),
        // An exception has no frame in its line.
        Shape::Named => Frame::default(),
    }
}

fn number(text: &str) -> u32 {
    let digits = text.bytes().take_while(u8::is_ascii_digit);
    digits.fold(0_u32, |n, b| n.saturating_mul(10).saturating_add(u32::from(b - b'0')))
}

/// Returns what precedes and follows the first `byte`, which is ASCII.
fn split_once(text: &str, byte: u8) -> Option<(&str, &str)> {
    memchr::memchr(byte, text.as_bytes()).map(|at| (&text[..at], &text[at + 1..]))
}

/// Returns what precedes and follows the last ` (`.
fn rsplit_at_parenthesis(text: &str) -> Option<(&str, &str)> {
    let at = memchr::memrchr_iter(b'(', text.as_bytes()).find(|&at| text[..at].ends_with(' '))?;
    Some((&text[..at - 1], &text[at + 1..]))
}

/// Reads `File "app.py", line 3, in main`
fn python(line: &str) -> Frame<'_> {
    let mut frame = Frame::default();
    let Some((file, rest)) = split_once(line, b'"').and_then(|(_, rest)| split_once(rest, b'"')) else { return frame };
    frame.file = file;
    let rest = rest.strip_prefix(", line ").unwrap_or_default();
    frame.line = number(rest);
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    frame.function = rest[digits..].strip_prefix(", in ").unwrap_or_default();
    frame
}

/// `at f (app.js:3:5)`, `at f (address at app.bundle:1:3776)` of Hermes, `at com.acme.App.main(App.java:12)`, `at app.js:3:5`, `at src/main.rs:4:5`
fn call(line: &str) -> Frame<'_> {
    let line = line.trim_ascii();
    let mut rest = line.strip_suffix('{').unwrap_or(line).trim_ascii_end();
    for word in ["at ", "async "] {
        rest = rest.strip_prefix(word).unwrap_or(rest);
    }
    // Logging frameworks say which jar: `~[app.jar:1.2]`.
    if rest.ends_with(']')
        && let Some(close) = memchr::memrchr_iter(b')', rest.as_bytes()).find(|&at| rest[at..].starts_with(") "))
    {
        rest = &rest[..=close];
    }
    let mut frame = Frame::default();
    // A name may have parentheses of its own: `Cart.(anonymous function) (app.js:3:5)`; so may a path.
    match rest.strip_suffix(')').and_then(|inner| rsplit_at_parenthesis(inner).or_else(|| split_once(inner, b'('))) {
        Some((function, inside)) => {
            frame.function = function.trim_ascii_end();
            set_place(&mut frame, inside.strip_prefix("address at ").unwrap_or(inside));
        }
        None if memchr::memchr(b':', rest.as_bytes()).is_some() => set_place(&mut frame, rest),
        None => frame.function = rest,
    }
    frame
}

/// Reads `12: core::panicking::panic`, `12:  0x55d0c7 - core::panicking::panic`
fn numbered(line: &str) -> Frame<'_> {
    let rest = split_once(line, b':').map_or(line, |(_, rest)| rest).trim_ascii_start();
    let after_address = || {
        let (address, name) = rest.strip_prefix("0x")?.split_once(" - ")?;
        let is_address = !address.is_empty() && address.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        Some(name).filter(|name| is_address && name.starts_with(|c: char| !c.is_ascii_whitespace()))
    };
    Frame { function: after_address().unwrap_or(rest).trim_end(), ..Frame::default() }
}

/// Returns type and message of `app.CartError: empty cart`, after bars and blanks; the message may be missing.
#[must_use]
pub fn named(line: &str) -> (&str, &str) {
    let line = line.trim_start_matches([' ', '\t', '|']);
    let is_name = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'<' | b'>');
    let (name, rest) = line.split_at(line.as_bytes().iter().take_while(|b| is_name(b)).count());
    (name, rest.strip_prefix(": ").unwrap_or_default())
}

/// Reads `app.rb:3:in 'main'`, `from lib/x.rb:9:in 'f'`, `/srv/app/main.go:12 +0x1d`
fn place(line: &str) -> Frame<'_> {
    let rest = line.trim_ascii();
    let rest = rest.strip_prefix("from ").unwrap_or(rest);
    let mut frame = Frame::default();
    let (at, function) = match memchr::memchr_iter(b':', rest.as_bytes()).find(|&at| rest[at..].starts_with(":in ")) {
        Some(at) => (&rest[..at], &rest[at + 4..]),
        None => (split_once(rest, b' ').map_or(rest, |(at, _)| at), ""),
    };
    frame.function = function.strip_prefix('`').or(function.strip_prefix('\'')).unwrap_or(function).strip_suffix('\'').unwrap_or(function);
    set_place(&mut frame, at);
    frame
}

/// Sets the place from `file`, `file:line` or `file:line:column`.
fn set_place<'a>(frame: &mut Frame<'a>, place: &'a str) {
    let (before, last) = split_number(place);
    let Some(last) = last else {
        frame.file = place;
        return;
    };
    let (file, line) = split_number(before);
    (frame.line, frame.column) = line.map_or((last, 0), |line| (line, last));
    frame.file = file;
}

fn split_number(text: &str) -> (&str, Option<u32>) {
    let digits = text.bytes().rev().take_while(u8::is_ascii_digit).count();
    match text[..text.len() - digits].strip_suffix(':') {
        Some(before) if digits > 0 => (before, Some(number(&text[text.len() - digits..]))),
        _ => (text, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_every_shape() {
        let cases: &[(Shape, &str, &str, &str, u32, u32)] = &[
            (Shape::Python, "  File \"/srv/app.py\", line 3, in main", "main", "/srv/app.py", 3, 0),
            (Shape::Python, "  File \"<stdin>\", line 1", "", "<stdin>", 1, 0),
            (Shape::Call, "    at f (/srv/app.js:3:5)", "f", "/srv/app.js", 3, 5),
            (Shape::Call, "    at async Loader.load (node:internal/modules:9:1) {", "Loader.load", "node:internal/modules", 9, 1),
            (Shape::Call, "    at file:///srv/app.mjs:3:5", "", "file:///srv/app.mjs", 3, 5),
            (Shape::Call, "\tat com.acme.App.main(App.java:12)", "com.acme.App.main", "App.java", 12, 0),
            (Shape::Call, "\tat com.acme.App.main(App.java:12) ~[app.jar:?]", "com.acme.App.main", "App.java", 12, 0),
            (Shape::Call, "\tat com.acme.App.main(Native Method)", "com.acme.App.main", "Native Method", 0, 0),
            (Shape::Call, "             at /srv/src/main.rs:4:9", "", "/srv/src/main.rs", 4, 9),
            (Shape::Call, "    at Foo.bar", "Foo.bar", "", 0, 0),
            (
                Shape::Call,
                "    at Cart.(anonymous function) [as total] (/srv/app/(shop)/a.js:3:5)",
                "Cart.(anonymous function) [as total]",
                "/srv/app/(shop)/a.js",
                3,
                5,
            ),
            (Shape::Call, "    at total (address at index.android.bundle:1:32776)", "total", "index.android.bundle", 1, 32776),
            (Shape::Place, "\tfrom lib/x.rb:9:in `f'", "f", "lib/x.rb", 9, 0),
            (Shape::Numbered, "   3: core::panicking::panic", "core::panicking::panic", "", 0, 0),
            (Shape::Numbered, "  14:     0x55d0c7 - <T as Into<U>>::into ", "<T as Into<U>>::into", "", 0, 0),
            (Shape::Numbered, "  14: 0x55d0c7 - ", "0x55d0c7 -", "", 0, 0),
            (Shape::Place, "\t/srv/app/main.go:12 +0x1d", "", "/srv/app/main.go", 12, 0),
        ];
        for (shape, line, function, file, number, column) in cases {
            let wanted = Frame { function, file, line: *number, column: *column, in_app: false };
            assert_eq!(read(*shape, line), wanted, "{line}");
        }
    }

    #[test]
    fn reads_what_was_thrown() {
        for (line, kind, message) in [
            ("app.CartError: empty: cart ", "app.CartError", "empty: cart "),
            ("  | f.<locals>.E:", "f.<locals>.E", ""),
            ("KeyboardInterrupt", "KeyboardInterrupt", ""),
        ] {
            assert_eq!(named(line), (kind, message));
        }
    }
}
