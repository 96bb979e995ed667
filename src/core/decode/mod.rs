//! Decode: what one line says about itself, apart from its message: its time, level, writer, and where the text
//! begins. Stands between the guard and confirm. Every function is pure, total on any bytes, linear in the line
//! and bounded in look-ahead; none decides whether a line is an error, and none keeps state from line to line.

mod android;
mod ansi;
mod calendar;
mod container;
mod fields;
mod json;
mod letter;
mod level;
mod logfmt;
mod prefix;
mod record;
mod rfc5424;
mod runner;
mod scan;
mod tag;
mod time;
mod writer;

pub use ansi::{has_lost_escapes, is_dressed, last_visible, strip, strip_lost, visible};
pub use container::{Cri, cri};
pub use json::{Envelope, Json, json, json_stamp};
pub use level::{level_word, loose_level};
pub use logfmt::{Logfmt, logfmt};
pub use prefix::{Prefix, has_name, prefix};
pub use record::{Record, Text, with_error};
pub use rfc5424::{Stated, syslog};
pub use time::{parse_any_time, parse_time_at};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::event::Timestamp;

    const NOW: Timestamp = Timestamp(1_795_000_000_000_000);

    /// Runs every decoder on one line, and checks what they promise about ranges.
    fn decode_all(line: &[u8]) {
        let got = prefix(line, NOW);
        assert!(got.body <= got.message && got.message <= line.len(), "{:?} {got:?}", String::from_utf8_lossy(line));
        assert!(got.key.is_none_or(|(a, b)| a <= b && b <= got.body.max(b) && b <= line.len()));
        let mut bare = Vec::new();
        strip(line, &mut bare);
        assert!(bare.len() <= line.len() && !bare.contains(&0x1b));
        assert!(is_dressed(line) || !line.contains(&0x1b));
        for range in [visible(line, line.len() / 2), last_visible(line)] {
            assert!(line.get(range.0..range.1).is_some());
        }
        let _ = (syslog(line, NOW), json(line, NOW), logfmt(line, NOW), cri(line, NOW), loose_level(line), level_word(line));
        for at in 0..line.len().min(40) {
            assert!(parse_time_at(line, at, NOW).is_none_or(|(_, end)| end <= line.len()));
        }
    }

    /// Bytes that the shapes are made of, joined at random by a linear congruential generator.
    #[test]
    fn survives_random_bytes() {
        const PARTS: [&[u8]; 40] = [
            b"[",
            b"]",
            b"(",
            b")",
            b"<",
            b">",
            b"{",
            b"}",
            b"\"",
            b":",
            b" ",
            b"\t",
            b"-",
            b"|",
            b"=",
            b",",
            b"\\",
            b"\x1b",
            b"\x1b]",
            b"\\u001b[",
            b"\r",
            b"\xff",
            b"2026-01-01",
            b"T",
            b"10:00:00",
            b".1234567",
            b"Z",
            b"Jan  1 ",
            b"ERROR",
            b"error",
            b"E",
            b"<134>",
            b"1 ",
            b"host",
            b"prog[1]:",
            b"web_1",
            b"99999999999",
            b"level",
            b"msg",
            b"##[",
        ];
        let mut seed = 1u64;
        for _ in 0..60_000 {
            let mut line = Vec::new();
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            for _ in 0..(seed >> 60) + 1 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let pick = usize::try_from(seed >> 40).expect("a test");
                if pick % 8 == 0 {
                    line.push(u8::try_from(pick >> 8 & 0xff).expect("a test"));
                } else {
                    line.extend_from_slice(PARTS[(pick >> 3) % PARTS.len()]);
                }
            }
            decode_all(&line);
        }
    }

    #[test]
    fn survives_long_hostile_lines() {
        for part in ["[", "(", "<", "{", "[[]", "- ", "| ", "a | ", ": ", "\\", "\u{1b}]", "\\u001b]", "a=\"", "a=b ", "\r", "1", "[1] ", "{\"a\":["] {
            for head in ["", "2026-01-01 10:00:00 ", "ERROR ", "<1>1 2026-01-01T10:00:00Z ", "Jan  1 10:00:00 ", "level=error "] {
                decode_all((head.to_owned() + &part.repeat(100_000)).as_bytes());
            }
        }
    }
}
