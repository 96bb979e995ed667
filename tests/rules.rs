//! The compiled-in rules: each file loads with every check enabled, and every example gives the expected result.
#![allow(clippy::unwrap_used)]

use std::collections::HashSet;
use std::sync::Arc;

use siftd::core::engine::{Engine, Limits};
use siftd::examples::events_of;
use siftd::rules::{
    BUILTIN_FILES, Entry, Examples, Kind, LiteralForm, MAX_ENTRIES_PER_LITERAL, RuleSet, WARNING_FILE, builtin_files, compiled_leads, compiled_literals, parse,
};
use siftd::words::Category;

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

/// What a log says below an error is no part of it, even if the error's message may be any lines. (A test's report may hold a log.)
#[test]
fn a_log_below_an_error_is_no_part_of_it() {
    const LOG: &str = "2026-11-20 10:11:12.107 [main] ERROR app - payment failed for order 17\n\
        2026-11-20 10:11:12.108 [main] INFO app - next order\n\
        2026-11-20 10:11:13.108 [main] ERROR app - payment failed for order 18\n";
    /// A section lasts until its tool says more, or its lines have clocks as those of the log.
    const SECTIONS: [&str; 4] = ["linter.gradle-check", "linter.j2lint", "r.check-dependencies", "gcc.eclipse-stamped"];
    let (told, rules) = (RuleSet::builtin(), RuleSet::compiled());
    let engine = Arc::new(Engine::new(rules, Limits::default()));
    let is_of_test = |entry: &Entry| told.families[usize::from(entry.family)].test || entry.fault.category == Some(Category::TestFailure);
    let mut lost = Vec::new();
    for entry in told.entries.iter().filter(|entry| matches!(entry.kind, Kind::Trace(_)) && !is_of_test(entry) && !SECTIONS.contains(&&*entry.id)) {
        for text in &entry.examples.matching {
            let text = text.trim_end();
            let lines = text.lines().count() as u64;
            let heads: Vec<u64> = events_of(&engine, &format!("{text}\n{LOG}")).iter().map(|event| event.line_num).filter(|num| *num > lines).collect();
            if heads != [lines + 1, lines + 3] {
                lost.push(format!("{}: {heads:?} of {} and {} below {text:?}", entry.id, lines + 1, lines + 3));
            }
        }
    }
    assert!(lost.is_empty(), "{}", lost.join("\n"));
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
    let is_short = |form: &LiteralForm| {
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
    let short: Vec<String> = compiled_literals().filter(is_short).map(|form| String::from_utf8_lossy(&form.bytes).into_owned()).collect();
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
