//! The compiled-in rules: each file loads with every check on, and every example comes out.
#![allow(clippy::unwrap_used)]

use siftd::rules::{BUILTIN_FILES, LiteralForm, RuleSet, parse};

#[test]
fn every_rules_file_passes_every_check() {
    let mut lines: Vec<String> = Vec::new();
    for (name, text) in BUILTIN_FILES {
        if let Err(problems) = parse(name, text, true) {
            lines.extend(problems.iter().map(|p| format!("{name}:{}: {} {}", text[..p.span.start].lines().count(), p.key, p.problem)));
        }
    }
    assert!(lines.is_empty(), "{}", lines.join("\n"));
}

#[test]
fn every_example_comes_out() {
    let (count, failures) = siftd::examples::run(RuleSet::builtin());
    let lines: Vec<String> = failures.iter().map(|f| format!("{}\n  text: {:?}\n  got:  {}", f.rule, f.text, f.got)).collect();
    assert!(failures.is_empty(), "{} of {count} failed:\n{}", failures.len(), lines.join("\n"));
    assert!(count > 0);
}

/// A short literal stands on many lines that are no errors, and each of them costs time.
#[test]
fn no_literal_is_cheap_to_write_and_dear_to_search() {
    let rules = RuleSet::builtin();
    let is_short = |form: &&LiteralForm| {
        let few_may_follow = !form.after.is_empty() && form.after.len() <= 32;
        // Escape sequences written out as text stand in few logs.
        let is_mark = !form.bytes.is_ascii() || form.bytes.starts_with(b"\\");
        form.bytes.len()
            < if is_mark {
                3
            } else if few_may_follow {
                4
            } else {
                5
            }
    };
    let short: Vec<String> = rules.literals.iter().filter(is_short).map(|form| String::from_utf8_lossy(&form.bytes).into_owned()).collect();
    assert!(short.is_empty(), "write more of the text that stands there, or the bytes that may follow: {short:?}");
}
