//! The line format of Kubernetes' container runtimes: `<time> stdout|stderr F|P <text>`.
//! Only splits the line; the caller joins partial pieces.

use super::scan::{byte, rest};
use super::time::parse_time_at;
use crate::core::event::{Io, Timestamp};

/// What precedes the text of a CRI line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cri {
    /// When the runtime read the line.
    pub time: Timestamp,
    /// The output of the container that it came from.
    pub io: Io,
    /// Whether the container's line continues in the next CRI line of the same output.
    pub partial: bool,
    /// Offset of the text.
    pub text: usize,
}

/// Splits a CRI line; returns `None` for any other.
#[must_use]
pub fn cri(line: &[u8], now: Timestamp) -> Option<Cri> {
    // Cheaper than parsing the time of each line that merely begins with one.
    if !byte(line, 0).is_ascii_digit() || byte(line, 10) != b'T' {
        return None;
    }
    let (time, end) = parse_time_at(line, 0, now)?;
    let io = match rest(line, end) {
        [b' ', b's', b't', b'd', b'o', b'u', b't', b' ', ..] => Io::Stdout,
        [b' ', b's', b't', b'd', b'e', b'r', b'r', b' ', ..] => Io::Stderr,
        _ => return None,
    };
    let tag = end + 8;
    // The tag is `F` or `P`, and may be followed by `:` and further tags.
    let tag_end = (tag..line.len().min(tag + 32)).find(|&i| line[i] == b' ').unwrap_or(line.len());
    let partial = match byte(line, tag) {
        b'F' => false,
        b'P' => true,
        _ => return None,
    };
    matches!(line.get(tag + 1), None | Some(b' ' | b'\t' | b':')).then_some(Cri { time, io, partial, text: (tag_end + 1).min(line.len()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_cri() {
        type Row = (&'static str, Option<(Io, bool, &'static str)>);
        let table: [Row; 8] = [
            ("2016-10-06T00:17:09.669794202Z stdout F msg", Some((Io::Stdout, false, "msg"))),
            ("2016-10-06T00:17:09.669794202Z stderr P  a", Some((Io::Stderr, true, " a"))),
            ("2016-10-06T00:17:09.669794202+02:00 stdout F:x y", Some((Io::Stdout, false, "y"))),
            ("2016-10-06T00:17:09Z stdout F", Some((Io::Stdout, false, ""))),
            ("2016-10-06T00:17:09Z stdout F ", Some((Io::Stdout, false, ""))),
            ("2016-10-06T00:17:09Z stdout Foo", None),
            ("2016-10-06T00:17:09Z stdlog F a", None),
            ("error: x", None),
        ];
        for (line, want) in table {
            let got = cri(line.as_bytes(), Timestamp(0));
            assert_eq!(got.map(|c| (c.io, c.partial, &line[c.text..])), want, "{line}");
        }
    }
}
