//! Every secret's pattern compiles, and what it matches opens the gate by itself.

use super::*;

/// Returns a text that matches the expression: the `turn`s decide between its alternatives.
fn sample(hir: &regex_syntax::hir::Hir, turn: &mut impl FnMut(usize) -> usize, out: &mut String) {
    use regex_syntax::hir::{Class, HirKind};
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => out.push_str(std::str::from_utf8(&literal.0).expect("patterns are of text")),
        HirKind::Class(Class::Unicode(class)) => {
            // What people write: no letter that only folds to one of the class, no control character.
            let all: Vec<char> = (' '..='~').filter(|c| class.ranges().iter().any(|range| (range.start()..=range.end()).contains(c))).collect();
            out.push(all[turn(all.len())]);
        }
        HirKind::Class(Class::Bytes(_)) => unreachable!("patterns are of text"),
        HirKind::Repetition(repetition) => {
            let most = repetition.max.unwrap_or(u32::MAX).min(repetition.min + 2);
            let times = repetition.min as usize + turn((most - repetition.min) as usize + 1);
            (0..times).for_each(|_| sample(&repetition.sub, turn, out));
        }
        HirKind::Capture(capture) => sample(&capture.sub, turn, out),
        HirKind::Concat(parts) => parts.iter().for_each(|part| sample(part, turn, out)),
        HirKind::Alternation(parts) => sample(&parts[turn(parts.len())], turn, out),
    }
}

/// A word that the gate lacks is a secret that leaks unless another word on the line opens the gate.
#[test]
fn what_a_pattern_matches_opens_its_gate() {
    // Patterns whose gate says which program a flag belongs to.
    const NARROWED: [&str; 1] = ["login(?:"];
    let (redactor, mut state, mut wrong) = (Redactor::builtin(), 7_u64, Vec::new());
    let mut turn = |of: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as usize % of
    };
    for (at, secret) in redactor.secrets.iter().enumerate().filter(|(_, secret)| !NARROWED.iter().any(|part| secret.source.contains(part))) {
        let hir = regex_syntax::parse(&secret.source).expect("a pattern");
        let mut matched = 0;
        for _ in 0..200 {
            let mut text = String::new();
            sample(&hir, &mut turn, &mut text);
            if !secret.regex().is_match(&text) {
                continue;
            }
            matched += 1;
            let mut owners = 0;
            redactor.gate.scan(text.as_bytes(), |id, word| {
                owners |= redactor.touch(id, &text, word).map_or(0, |touch| touch.owners);
                true
            });
            if owners & 1 << at == 0 {
                wrong.push(format!("{}: {text}", secret.token));
                break;
            }
        }
        assert!(matched > 0, "{}", secret.source);
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_pattern_compiles() {
    for secret in &Redactor::builtin().secrets {
        // It panics where it does not.
        secret.regex();
        // The search goes on at the end of a match, so each must be longer than nothing.
        let least = regex_syntax::parse(&secret.source).unwrap().properties().minimum_len();
        assert!(least.is_some_and(|least| least > 0), "{}", secret.source);
    }
    assert!(Redactor::builtin().secrets.len() >= 30);
}
