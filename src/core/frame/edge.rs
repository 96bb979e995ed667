//! Where a text that is too long may be cut: not inside a word, which may be a secret that no pattern knows by a part
//! of it, and not inside an escape, without which the text's JSON could not be read.

use std::ops::RangeInclusive;

/// Most bytes by which a cut moves.
const REACH: usize = 4 << 10;
/// Length of two escapes that belong together, as `\ud83d\ude00` does.
const PAIR_BYTES: usize = 12;

/// Returns where the front part of a text ends that is to end at `at`, or somewhat before it, but not before `least`.
#[must_use]
pub fn front(bytes: &[u8], least: usize, at: usize) -> usize {
    let places = places(bytes, least.max(at.saturating_sub(REACH))..=at);
    // Behind the string's opening quotation mark it is still open.
    let is_behind_quote = |place: usize| place.checked_sub(1).is_some_and(|before| bytes[before] == b'"');
    best(bytes, places.iter().rev(), is_behind_quote).unwrap_or(at)
}

/// Returns where the back part of a text begins that is to begin at `at`, or somewhat behind it, but not behind `most`.
#[must_use]
pub fn back(bytes: &[u8], at: usize, most: usize) -> usize {
    let is_quote = |place: usize| bytes[place] == b'"';
    best(bytes, places(bytes, at..=most.min(at + REACH)).iter(), is_quote).unwrap_or(at)
}

/// Returns the first of the places before a blank or at a quotation mark; else before a sign that is in no word; else the first.
fn best<'a>(bytes: &[u8], places: impl Iterator<Item = &'a usize> + Clone, is_at_quote: impl Fn(usize) -> bool) -> Option<usize> {
    let at_word = places.clone().find(|place| matches!(bytes[**place], b' ' | b'\t') || is_at_quote(**place));
    let at_sign = || places.clone().find(|place| b"\\,;()[]{}<>|&".contains(&bytes[**place]));
    at_word.or_else(at_sign).or_else(|| places.clone().next()).copied()
}

/// Returns the places that are inside no character and no escape.
fn places(bytes: &[u8], range: RangeInclusive<usize>) -> Vec<usize> {
    let (least, most) = range.into_inner();
    // A run of backslashes begins outside of an escape.
    let near = least.saturating_sub(PAIR_BYTES);
    let mut at = bytes[near..least].iter().position(|byte| *byte == b'\\').map_or(least, |length| near + length);
    while at > 0 && bytes[at - 1] == b'\\' {
        at -= 1;
    }
    let mut places = Vec::new();
    while at <= most && at < bytes.len() {
        if at >= least && !is_inside(&bytes[at..]) {
            places.push(at);
        }
        at += match bytes[at..] {
            [b'\\', b'u', ..] => PAIR_BYTES / 2,
            [b'\\', ..] => 2,
            _ => 1,
        };
    }
    places
}

/// Whether a text begins with the rest of a character.
fn is_inside(text: &[u8]) -> bool {
    match text {
        [0x80..=0xbf, ..] => true,
        [b'\\', b'u', b'd' | b'D', third, ..] => matches!(third, b'c'..=b'f' | b'C'..=b'F'),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cuts the middle out of a text at every place; returns what is left.
    fn cuts(text: &str) -> Vec<(String, String)> {
        let bytes = text.as_bytes();
        let part = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("no character is cut");
        (1..bytes.len()).map(|at| (part(&bytes[..front(bytes, 1, at)]), part(&bytes[back(bytes, at, bytes.len() - 1)..]))).collect()
    }

    #[test]
    fn words_stay_whole() {
        for (head, tail) in cuts("one two_three ghp_0123456789 four") {
            assert!(head == "o" || ["one", "one two_three", "one two_three ghp_0123456789"].contains(&head.as_str()) || !head.contains(' '), "{head}");
            assert!(tail.starts_with(' ') || !tail.contains(' '), "{tail}");
        }
        assert_eq!(front(b"a=b&token=0123456789", 1, 15), 3);
        assert_eq!(back(b"a=b&token=0123456789;c", 12, 21), 20);
    }

    /// What is cut inside a string ends and begins inside it.
    #[test]
    fn a_string_that_is_cut_stays_one() {
        let text = format!(r#"{{"a": "b", "c": "{}", "d": 1}}"#, "x".repeat(100));
        for at in 20..110 {
            let cut = format!("{}…{}", &text[..front(text.as_bytes(), 1, at)], &text[back(text.as_bytes(), at, text.len() - 1)..]);
            assert!(serde_json::from_str::<serde_json::Value>(&cut).is_ok(), "{cut}");
        }
    }

    #[test]
    fn escapes_and_characters_stay_whole() {
        for text in [r"\n\t\n\\\\\\\n\u00e9\ud83d\ude00\ud83d\ude00x\n\\\\n\u005cn", "xé\u{1f600}ßx", r"a\\\\\\\\u00e9b"] {
            for (head, tail) in cuts(text) {
                let read = |text: &str| serde_json::from_str::<String>(&format!("\"{text}\"")).is_ok();
                // Nothing says how a text begins whose front is too short for a cut.
                assert!(head.len() < 2 || read(&head), "{head}");
                assert!(read(&tail) || tail.len() < 2, "{tail}");
            }
        }
    }
}
