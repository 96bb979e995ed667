//! From a rule's literals to the exact bytes that the prefilter looks for.
//! A log may hold the text of a line raw or inside a JSON string, so a literal that has bytes which
//! JSON escapes is reduced to its longest run of stable bytes, or written out in both forms.

use super::{Gate, LiteralForm};

/// Shortest literal that the prefilter can find.
pub const MIN_LITERAL_BYTES: usize = 3;
/// Shortest stable run that may stand for a whole literal.
const MIN_RUN_BYTES: usize = 8;
/// The line's end, which may always follow a literal: nothing else may.
const LINE_END: &str = "\r";
/// Most literals that one with classes is written out into.
const MAX_WRITTEN_OUT: usize = 2000;
/// Longest part of a literal that is compared.
const MAX_BYTES: usize = 64;

/// The exact forms of all literals of an entry. A fact's literals are the raw bytes of a record:
/// they stay whole.
pub fn forms(gate: &Gate, fact: bool) -> Vec<LiteralForm> {
    let anywhere = gate.literals.iter().map(|literal| (literal, gate.after.as_str()));
    let at_end = gate.at_end.iter().map(|literal| (literal, LINE_END));
    let mut forms: Vec<LiteralForm> = anywhere
        .chain(at_end)
        .flat_map(|(literal, after)| written_out(literal).into_iter().map(move |one| (one, after)))
        .flat_map(|(literal, after)| cases(&literal, gate.ignore_case).into_iter().map(move |case| (case, after)))
        .flat_map(|(literal, after)| encodings(&literal, fact).into_iter().map(move |form| (form, after)))
        .map(|((mut bytes, whole), after)| {
            bytes.truncate(MAX_BYTES);
            // What may stand beside a literal says nothing about what stands beside a part of it.
            let beside = |set: &str| if whole { set.as_bytes().to_vec() } else { Vec::new() };
            LiteralForm {
                bytes,
                after: beside(after),
                not_after: beside(&gate.not_after),
                not_before: beside(&gate.not_before),
                not_behind: beside(&gate.not_behind),
            }
        })
        .collect();
    forms.sort();
    forms.dedup();
    forms
}

/// A fact's literal may hold classes of ASCII characters in `‹›`, as `‹EF›0‹1-9›‹0-3›‹0-9› `: each of
/// their members is a literal. More than the limit stand as they are written, and are found nowhere.
fn written_out(literal: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut rest = literal;
    while let Some((before, (class, after))) = rest.split_once('‹').and_then(|(before, tail)| Some((before, tail.split_once('›')?))) {
        let members = members(class);
        if all.len() * members.len() > MAX_WRITTEN_OUT {
            return vec![literal.to_owned()];
        }
        all = all.iter().flat_map(|head| members.iter().map(move |member| format!("{head}{before}{member}"))).collect();
        rest = after;
    }
    all.iter_mut().for_each(|one| one.push_str(rest));
    all
}

/// `A-Za-z3` → its characters.
fn members(class: &str) -> Vec<char> {
    let chars: Vec<char> = class.chars().collect();
    let mut members = Vec::new();
    let mut at = 0;
    while let Some(&first) = chars.get(at) {
        match (chars.get(at + 1), chars.get(at + 2)) {
            (Some('-'), Some(&last)) => {
                members.extend(first..=last);
                at += 3;
            }
            _ => {
                members.push(first);
                at += 1;
            }
        }
    }
    members
}

fn cases(literal: &str, ignore_case: bool) -> Vec<String> {
    if !ignore_case {
        return vec![literal.to_owned()];
    }
    let lower = literal.to_ascii_lowercase();
    let mut start_of_word = true;
    let title: String = lower
        .chars()
        .map(|c| {
            let cased = if start_of_word { c.to_ascii_uppercase() } else { c };
            start_of_word = c == ' ';
            cased
        })
        .collect();
    let mut capitalised = lower.clone();
    if let Some(first) = capitalised.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    vec![literal.to_owned(), literal.to_ascii_uppercase(), capitalised, title, lower]
}

fn is_stable(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b" .,:;-_()[]{}!?*#@%^~|$".contains(&byte)
}

/// The bytes to look for, and whether they are the whole literal.
fn encodings(literal: &str, fact: bool) -> Vec<(Vec<u8>, bool)> {
    let bytes = literal.as_bytes();
    if bytes.iter().all(|b| is_stable(*b)) {
        return vec![(bytes.to_vec(), bytes.len() <= MAX_BYTES)];
    }
    let run = bytes.split(|b| !is_stable(*b)).max_by_key(|run| run.len()).unwrap_or_default();
    if run.len() >= MIN_RUN_BYTES && !fact {
        return vec![(run.to_vec(), false)];
    }
    [literal.to_owned(), escaped(literal, false), escaped(literal, true)].map(|form| (form.into_bytes(), true)).to_vec()
}

/// As a JSON string holds it; `all`: as an encoder does that escapes everything it may.
fn escaped(literal: &str, all: bool) -> String {
    let mut out = String::new();
    for c in literal.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\t' => out.push_str("\\t"),
            '/' if all => out.push_str("\\/"),
            '\'' | '<' | '>' | '&' if all => out.push_str(&format!("\\u{:04x}", c as u32)),
            c if all && !c.is_ascii() => {
                let mut units = [0; 2];
                c.encode_utf16(&mut units).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_written_out() {
        assert_eq!(written_out("<‹0-2›>‹JF›"), ["<0>J", "<0>F", "<1>J", "<1>F", "<2>J", "<2>F"]);
        assert_eq!(written_out("plain - ‹"), ["plain - ‹"]);
        assert_eq!(written_out(&"‹0-9›".repeat(5)).len(), 1);
    }

    fn of(literal: &str, ignore_case: bool) -> Vec<String> {
        let gate = Gate { literals: vec![literal.into()], ignore_case, ..Gate::default() };
        forms(&gate, false).into_iter().map(|f| String::from_utf8_lossy(&f.bytes).into_owned()).collect()
    }

    #[test]
    fn literals_become_stable_bytes() {
        assert_eq!(of("panicked at", false), ["panicked at"]);
        assert_eq!(of("Cannot find module '", false), ["Cannot find module "]);
        assert_eq!(of("● ", false), ["\\u25cf ", "● "]);
        assert_eq!(of("timed out", true), ["TIMED OUT", "Timed Out", "Timed out", "timed out"]);
    }
}
