//! Blocks of private keys as programs print and collectors cut them, and what only resembles one.

use super::*;
use crate::core::redact::Redactor;

#[test]
fn a_key_block_without_an_end_hides_no_error() {
    let begin = format!("-----BEGIN {} KEY-----", "PRIVATE");
    let mut lines = vec![begin, "MIIabc".to_owned(), "ValueError: boom".to_owned(), "MIIabc".to_owned()];
    Redactor::builtin().redact_lines(&mut lines, &mut 0);
    assert_eq!(lines[2..], ["ValueError: boom", "MIIabc"]);
}

/// What collectors and loggers put before each line, and a body that is not wrapped.
#[test]
fn a_key_block_behind_prefixes_goes_whole() {
    let begin = format!("-----BEGIN {} KEY-----", "PRIVATE");
    let end = format!("-----END {} KEY-----", "PRIVATE");
    let body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ";
    let token = "[redacted:private-key]";
    for prefix in ["web_1  | ", "Nov 20 10:00:00 till tilld[7]: ", "2026-11-20 10:00:00 ERROR ", ""] {
        let mut lines: Vec<String> =
            [&*begin, body, &body.repeat(30), "AoIBAQC7VJTUt9Us8cKj", &*end, "an error"].map(|text| format!("{prefix}{text}")).to_vec();
        Redactor::builtin().redact_lines(&mut lines, &mut 0);
        assert_eq!(lines[0], format!("{prefix}{token}"));
        assert_eq!(lines[1..4], [token; 3], "{prefix}");
        assert_eq!(lines[5], format!("{prefix}an error"));
        // From the middle of the block on.
        let mut lines: Vec<String> = [body, "AoIBAQC7VJTUt9Us8cKj", &*end].map(|text| format!("{prefix}{text}")).to_vec();
        Redactor::builtin().redact_lines(&mut lines, &mut 0);
        assert_eq!(lines[..2], [token; 2], "{prefix}");
    }
}

/// What only the lines before it tell of a line: whether it is inside a block.
#[test]
fn a_block_is_found_by_the_lines_before() {
    let begin = format!("-----BEGIN {} KEY-----", "PRIVATE");
    let end = format!("-----END {} KEY-----", "PRIVATE");
    let body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ";
    let in_json = format!(r#"{{"msg":"{body}"}}"#);
    // Lines before, oldest first; whether a line of base64 that follows is secret.
    let same = [body; 9];
    let other = ["OTHERvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ12"; 1];
    // What cannot be cut between letters.
    assert!(!KeyBlock::left_open("é", ["éé\\n", "MIIEé\\n\\n", "é x\\"].iter().map(|line| line.as_bytes().into())).is_open());
    let escaped = format!("{body}\\n");
    assert!(KeyBlock::left_open(&escaped, [begin.as_bytes().into()].into_iter()).holds(&escaped));
    let long: Vec<&str> = same.iter().chain(&other).copied().map(|line| &line[..44]).collect();
    let cases: &[(&[&str], bool)] = &[
        (&[&begin], true),
        (&[&begin, body, &in_json], true),
        (&[&begin, "Proc-Type: 4,ENCRYPTED", "", body], true),
        (&[&begin, body, &end], false),
        (&[&begin, body, "ValueError: boom"], false),
        (&[&begin, body, "last=="], false),
        // Nothing else within reach, so it may have begun before.
        (&long, true),
        (&same, false),
        (&[body, body], false),
        (&["ZeroDivisionError", "processIncomingOrder2"], false),
        (&[], false),
    ];
    for (before, is_secret) in cases {
        let block = KeyBlock::left_open(body, before.iter().rev().map(|line| line.as_bytes().into()));
        assert_eq!(block.holds(body), *is_secret, "{before:?}");
    }
}

/// The lines around an event are read only if one of them may be inside a block; the cheap test comes first.
#[test]
fn the_cheap_test_rules_out_no_part_of_a_block() {
    let keys = [
        "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcw",
        "AoIBAQC7VJTUt9Us8cKj",
        "aaaaaaaaaaaaaaa",
        "Aaaaaaaaaaaaaaa1",
        "aaaaaaaaaaaaaaa1A",
        "/home/ann/App1/x",
        "A",
        "=Ab1c",
    ];
    let around = ["", " ", "web_1  | ", "key=", "\"", "'", "\\n", "\\", "`", ".", "Comment: ", "Proc-Type: 4", "at App.main(", ", "];
    let (mut inside, mut ruled_out) = (0, 0);
    for (before, key, after) in around.iter().flat_map(|before| keys.iter().flat_map(move |key| around.map(|after| (before, key, after)))) {
        for line in [format!("{before}{key}{after}"), format!("a line of text {before}{key}{after}"), format!("{before}{after} x")] {
            let is_inside = Shape::of(&line).may_be_inside();
            assert!(may_hold_part(&line) || !is_inside, "{line}");
            inside += usize::from(is_inside);
            ruled_out += usize::from(!may_hold_part(&line));
        }
    }
    assert!(inside > 100 && ruled_out > 100, "{inside} {ruled_out}");
}
