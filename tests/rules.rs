//! The compiled-in rules: each file loads with every check on, and every example comes out.
#![allow(clippy::unwrap_used)]

use siftd::rules::{BUILTIN_FILES, RuleSet, parse};

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
