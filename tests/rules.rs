//! The compiled-in rules: each file loads with every check enabled, and every example gives the expected result.
#![allow(clippy::unwrap_used)]

use std::collections::HashSet;

use siftd::rules::{
    BUILTIN_FILES, Examples, Kind, LiteralForm, MAX_ENTRIES_PER_LITERAL, RuleSet, WARNING_FILE, builtin_files, compiled_leads, compiled_literals, parse,
};

#[test]
fn every_rules_file_passes_every_check() {
    let mut lines: Vec<String> = Vec::new();
    for (name, text) in BUILTIN_FILES.iter().chain([&WARNING_FILE]) {
        if let Err(problems) = parse(name, text, true) {
            lines.extend(problems.iter().map(|p| format!("{name}:{}: {} {}", text[..p.span.start].lines().count(), p.key, p.problem)));
        }
    }
    assert!(lines.is_empty(), "{}", lines.join("\n"));
}

#[test]
fn every_example_comes_out() {
    let (count, failures) = siftd::examples::run(&RuleSet::builtin(), RuleSet::compiled());
    let lines: Vec<String> = failures.iter().map(|f| format!("{}\n  text: {:?}\n  got:  {}", f.rule, f.text, f.got)).collect();
    assert!(failures.is_empty(), "{} of {count} failed:\n{}", failures.len(), lines.join("\n"));
    assert!(count > 0);
}

/// With `warnings = true` a warning is an event of severity low, and errors stay errors.
#[test]
fn warnings_are_events_where_they_are_wanted() {
    let files = BUILTIN_FILES.iter().chain([&WARNING_FILE]).filter(|(name, _)| ["generic.toml", "levels.toml", WARNING_FILE.0].contains(name));
    let read = || RuleSet::with_files(files.clone().map(|(name, text)| parse(name, text, true).unwrap()).collect());
    let (_, failures) = siftd::examples::run(&read(), read());
    let of_warnings: Vec<_> = failures.iter().filter(|failure| failure.rule.starts_with("generic.warning")).collect();
    assert!(of_warnings.is_empty(), "{of_warnings:#?}");
}

/// The later of two entries with the same id would silently replace the other.
#[test]
fn every_built_in_id_is_there_once() {
    let mut seen = HashSet::new();
    let ids = builtin_files(Examples::Skipped).into_iter().flat_map(|file| {
        let entries = file.entries.into_iter().map(|entry| entry.id);
        entries.chain(file.cancels.into_iter().map(|cancel| cancel.id)).collect::<Vec<_>>()
    });
    let twice: Vec<String> = ids.filter(|id| !seen.insert(id.clone())).collect();
    assert!(twice.is_empty(), "{twice:?}");
}

/// The first error of a log waits for the noise and the cancels that may match its
/// line. With Unicode tables, each of them takes ten times as long to compile.
#[test]
fn noise_and_cancels_do_without_unicode_tables() {
    let rules = RuleSet::builtin();
    let noise = rules.noise.iter().map(|&entry| &rules.entries[usize::from(entry)]).filter_map(|entry| match &entry.kind {
        Kind::Noise { regex, .. } => Some((&entry.id, regex)),
        _ => None,
    });
    let all = noise.chain(rules.cancels.iter().map(|cancel| (&cancel.id, &cancel.regex)));
    let slow: Vec<_> = all.filter(|(_, pattern)| !pattern.source().is_ascii() && !pattern.source().starts_with("(?-u)")).map(|(id, _)| id).collect();
    assert!(slow.is_empty(), "begin them with (?-u), and write letters beyond ASCII outside of classes: {slow:?}");
}

/// A short literal occurs on many lines that are no errors, and each of them costs time.
#[test]
fn no_literal_is_cheap_to_write_and_dear_to_search() {
    let is_short = |form: &&LiteralForm| {
        let few_may_follow = !form.after.is_empty() && form.after.len() <= 32;
        // Escape sequences written out as text are rare in logs, and so are headings and fences of Markdown.
        let is_mark = !form.bytes.is_ascii() || form.bytes.starts_with(b"\\") || form.bytes.starts_with(b"##") || form.bytes.starts_with(b"```");
        form.bytes.len()
            < if is_mark {
                3
            } else if few_may_follow {
                4
            } else {
                5
            }
    };
    let short: Vec<String> = compiled_literals().iter().filter(is_short).map(|form| String::from_utf8_lossy(&form.bytes).into_owned()).collect();
    assert!(short.is_empty(), "write more of the text that stands there, or the bytes that may follow: {short:?}");
}

/// Each entry of a literal is tried on every line that contains it: the loader reports literals with too many.
#[test]
fn a_literal_leads_to_few_entries() {
    let rule = |number: usize| format!("[[rule]]\nid = \"mine.r{number}\"\nliterals = [\"core breach\"]\nregex = 'core breach {number}'\n");
    let head = "[family]\nid = \"mine\"\ntitle = \"Mine\"\ndepth = \"head\"\n";
    let text = |rules: usize| head.to_owned() + &(1..=rules).map(rule).collect::<String>();
    assert!(parse("mine.toml", &text(MAX_ENTRIES_PER_LITERAL), true).is_ok());
    let problems = parse("mine.toml", &text(MAX_ENTRIES_PER_LITERAL + 1), true).unwrap_err();
    let [problem] = &problems[..] else { panic!("{problems:?}") };
    assert_eq!((problem.key.as_str(), &text(9)[problem.span.clone()]), ("literals", "\"core breach\""));
    assert_eq!(text(9)[..problem.span.start].lines().count(), 4 + 8 * 4 + 3);
    let leads = compiled_leads();
    let crowded: Vec<_> = (0..compiled_literals().len()).map(|at| leads.of(at).len()).filter(|count| *count > MAX_ENTRIES_PER_LITERAL).collect();
    assert!(crowded.is_empty(), "{crowded:?}");
}
