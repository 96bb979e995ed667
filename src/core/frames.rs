//! The shape of one stack frame, read by bytes: a regex with groups would cost ten times as much, and
//! frames are most of what an error has. A row of a trace names the shape; its regex has already said
//! that the line is a frame. What a shape does not find stays empty.

use super::event::Frame;
use super::text::printable;
use crate::rules::spec::Shape;

/// Shows `take` the frame that stands in `line`.
pub fn read(shape: Shape, line: &[u8], take: impl FnOnce(Frame)) {
    let bytes = match shape {
        Shape::Python => python(line),
        Shape::Call => call(line),
        Shape::Place => place(line),
    };
    let (function, file) = (printable(bytes.function), printable(bytes.file));
    take(Frame { function: &function, file: &file, line: bytes.line, column: bytes.column, in_app: false });
}

/// A [`Frame`] before its text is known to be UTF-8.
#[derive(Default)]
struct Bytes<'a> {
    function: &'a [u8],
    file: &'a [u8],
    line: u32,
    column: u32,
}

fn number(bytes: &[u8]) -> u32 {
    let digits = bytes.iter().take_while(|b| b.is_ascii_digit());
    digits.fold(0_u32, |n, b| n.saturating_mul(10).saturating_add(u32::from(b - b'0')))
}

/// `File "app.py", line 3, in main`
fn python(line: &[u8]) -> Bytes<'_> {
    let mut frame = Bytes::default();
    let Some(open) = memchr::memchr(b'"', line) else { return frame };
    let rest = &line[open + 1..];
    let Some(close) = memchr::memchr(b'"', rest) else { return frame };
    frame.file = &rest[..close];
    let rest = rest[close + 1..].strip_prefix(b", line ").unwrap_or_default();
    frame.line = number(rest);
    let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    frame.function = rest[digits..].strip_prefix(b", in ").unwrap_or_default();
    frame
}

/// `at f (app.js:3:5)`, `at com.acme.App.main(App.java:12)`, `at app.js:3:5`, `at src/main.rs:4:5`
fn call(line: &[u8]) -> Bytes<'_> {
    let mut rest = line.trim_ascii().strip_suffix(b"{").unwrap_or(line.trim_ascii()).trim_ascii_end();
    for word in [&b"at "[..], b"async "] {
        rest = rest.strip_prefix(word).unwrap_or(rest);
    }
    // Logging frameworks say which jar: `~[app.jar:1.2]`.
    if rest.ends_with(b"]")
        && let Some(close) = memchr::memmem::rfind(rest, b") ")
    {
        rest = &rest[..=close];
    }
    let mut frame = Bytes::default();
    let within = rest.strip_suffix(b")").and_then(|inner| {
        let open = memchr::memchr(b'(', inner)?;
        Some((&inner[..open], &inner[open + 1..]))
    });
    match within {
        Some((function, inside)) => {
            frame.function = function.trim_ascii_end();
            set_place(&mut frame, inside);
        }
        None if memchr::memchr(b':', rest).is_some() => set_place(&mut frame, rest),
        None => frame.function = rest,
    }
    frame
}

/// `app.rb:3:in 'main'`, `from lib/x.rb:9:in 'f'`, `/srv/app/main.go:12 +0x1d`
fn place(line: &[u8]) -> Bytes<'_> {
    let rest = line.trim_ascii();
    let rest = rest.strip_prefix(b"from ").unwrap_or(rest);
    let mut frame = Bytes::default();
    let (at, function) = match memchr::memmem::find(rest, b":in ") {
        Some(at) => (&rest[..at], &rest[at + 4..]),
        None => (rest.split(|b| *b == b' ').next().unwrap_or(rest), &b""[..]),
    };
    frame.function = function.strip_prefix(b"`").or(function.strip_prefix(b"'")).unwrap_or(function).strip_suffix(b"'").unwrap_or(function);
    set_place(&mut frame, at);
    frame
}

/// `file`, `file:line` or `file:line:column`.
fn set_place<'a>(frame: &mut Bytes<'a>, place: &'a [u8]) {
    let (before, last) = split_number(place);
    let Some(last) = last else {
        frame.file = place;
        return;
    };
    let (file, line) = split_number(before);
    (frame.line, frame.column) = line.map_or((last, 0), |line| (line, last));
    frame.file = file;
}

fn split_number(text: &[u8]) -> (&[u8], Option<u32>) {
    let Some(colon) = memchr::memrchr(b':', text) else { return (text, None) };
    let digits = &text[colon + 1..];
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return (text, None);
    }
    (&text[..colon], Some(number(digits)))
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
            (Shape::Place, "\tfrom lib/x.rb:9:in `f'", "f", "lib/x.rb", 9, 0),
            (Shape::Place, "\t/srv/app/main.go:12 +0x1d", "", "/srv/app/main.go", 12, 0),
        ];
        for (shape, line, function, file, number, column) in cases {
            let wanted = Frame { function, file, line: *number, column: *column, in_app: false };
            read(*shape, line.as_bytes(), |frame| assert_eq!(frame, wanted, "{line}"));
        }
    }
}
