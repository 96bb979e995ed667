//! Errors of different tools that directly follow each other stay two. Takes for each rule
//! the first error of the fixtures that it finds, and joins pairs of them by nothing, a
//! blank line, or an ordinary line between blank ones. The pairs that come out wrong are
//! listed in a file and compared exactly: a new one fails, and so does one that has been
//! mended (`UPDATE_EXPECT=1` rewrites the file). `SIFTD_ROUNDS=16` tests the other pairs
//! too, which takes many minutes.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use siftd::core::engine::{Engine, Limits};
use siftd::core::event::Timestamp;
use siftd::core::extract::Origin;
use siftd::core::line::{Line, Place};
use siftd::core::pipeline::Stream;
use siftd::rules::{Kind, RuleSet};

const NOW: Timestamp = Timestamp(1_795_183_200_000_000);
/// One pair in this many is tested.
const ONE_IN: u64 = 16;
/// Pairs that come out wrong: mostly a message of arbitrary lines that takes the first lines
/// of the next error.
const FAULTS: &str = "tests/neighbours.txt";
/// Maximum number of such faults in ten thousand of the pairs that are tested only on demand.
const FAULTS_IN_10_000: usize = 16;
/// What separates two errors.
const BETWEEN: [&str; 3] = ["", "\n", "\nready to go\n"];

/// Pairs that may be one error, as their lines do not show where one ends.
const ONE: &[(&str, &str)] = &[
    // The message of a JavaScript error may have any lines before its frames; these heads do not mention an error.
    ("generic.errno-name", "bundler.webpack-cli"),
    ("generic.error", "bundler.webpack-cli"),
    ("generic.exception", "bundler.webpack-cli"),
    ("generic.exception", "java.throwable"),
    ("generic.exception", "javascript.bun"),
    ("generic.exception-word", "javascript.bun"),
    ("generic.errno-name", "java.throwable"),
    ("generic.errno-name", "javascript.bun"),
    ("generic.errno-name", "javascript.class"),
    ("generic.errno-name", "javascript.deno-check"),
    ("generic.error", "java.throwable"),
    ("generic.error", "javascript.bun"),
    ("generic.error", "javascript.class"),
    ("generic.error", "javascript.deno-check"),
    ("generic.http-status", "java.throwable"),
    ("generic.http-status", "javascript.bun"),
    ("generic.http-status", "javascript.class"),
    ("generic.http-status", "javascript.deno-check"),
    // Bun starts with source code after bars, and these end with it.
    ("gcc.diagnostic", "javascript.bun"),
    ("ruby.syntax", "javascript.bun"),
    ("rust.diagnostic", "javascript.bun"),
    ("rust.summary", "javascript.bun"),
    // The first explains how the second came about, or is repeated by it.
    ("gotest.fail", "go.panic"),
    // Hive's head looks like any other; a report after `#` and TAP's comments look alike.
    ("tools.hive", "javascript.bun"),
    ("tools.hive", "lang.groovy-assert"),
    ("crash.jvm", "tap.diag"),
    ("junit.ant", "python.torchrun"),
    ("generic.exception-word", "csharp.logger"),
    ("lang.pascal", "java.throwable"),
    ("finding.rustfmt", "lang.racket"),
    // The output of a Go test precedes its verdict.
    ("java.diagnostic", "gotest.fail"),
    ("java.launcher", "gotest.fail"),
    ("native.undefined", "native.sanitizer"),
    ("rust.panic", "crash.signal"),
    ("tap.not-ok", "tap.diag"),
    // Reports of Mono and of Node both have blank lines around them.
    ("csharp.exception", "javascript.out-of-memory"),
    // `Backtrace:` is used by Rust and R as well.
    ("gcc.fortran", "lang.guile"),
    ("generic.errno-name", "lang.guile"),
    // Lines that start with the tool's own mark continue it.
    ("make.maven", "junit.surefire"),
    ("make.maven", "level.tag"),
    ("make.maven", "tools.ansible-task"),
    // Ruby also continues with `file:line: what`.
    ("ruby.syntax", "pytool.vulture"),
    // A message that starts with a number looks like numbered source code.
    ("webtool.less", "perl.die-lines"),
    ("rspec.load", "tap.diag"),
    ("tap.spec", "npm.pnpm"),
    ("testthat.test", "logger.marked"),
    ("tools.pip-build", "lang.zig"),
    ("tools.pip-build", "python.rich"),
];
/// What loggers print below their records.
const UNDER_RECORD: &[&str] =
    &["bundler.babel", "bundler.rollup", "elixir.exception", "lang.clojure-data", "perl.confess", "python.traceback", "ruby.reversed"];

/// The output of a test has no shape: everything up to a blank line belongs to it.
const SHAPELESS: &[&str] = &["busted.test", "gotest.gotestsum"];

/// First line, last line, rule.
type Found = (u64, u64, String);

#[test]
fn two_errors_behind_each_other_are_two() {
    let engine = Arc::new(Engine::new(RuleSet::compiled(), Limits::default()));
    let errors = errors(&engine);
    assert!(errors.len() > 100, "only {} rules", errors.len());
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let (mut wrong, mut others, mut asked) = (BTreeMap::new(), Vec::new(), 0);
    std::thread::scope(|scope| {
        let parts: Vec<_> = errors.chunks(errors.len().div_ceil(workers)).map(|firsts| scope.spawn(|| pairs_of(&engine, firsts, &errors))).collect();
        for part in parts.into_iter().map(|part| part.join().unwrap()) {
            wrong.extend(part.0);
            others.extend(part.1);
            asked += part.2;
        }
    });
    println!("{} and {} of {asked} pairs come out otherwise", wrong.len(), others.len());
    let is_usual = others.len() * 10_000 <= asked * FAULTS_IN_10_000;
    assert!(is_usual, "{} of {asked} pairs; the first ones:\n{}", others.len(), others[..others.len().min(12)].join("\n"));
    compare(&wrong);
}

/// Returns the pairs of the fixed sample that come out otherwise, with the reason; those beyond it; and how many were asked.
fn pairs_of(engine: &Arc<Engine>, firsts: &[(String, String)], errors: &[(String, String)]) -> (BTreeMap<String, String>, Vec<String>, usize) {
    let rounds = std::env::var("SIFTD_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(1);
    let (mut wrong, mut others, mut asked) = (BTreeMap::new(), Vec::new(), 0);
    for between in BETWEEN {
        for (first, text) in firsts.iter().filter(|(first, text)| is_closed(engine, first, text, between)) {
            for (second, behind) in errors {
                let name = format!("{first} {between:?} {second}");
                if is_asked(&name, rounds) && !may_be_one((first, text), (second, behind), between) {
                    asked += 1;
                    match check(engine, (first, text), (second, behind), between) {
                        Some(why) if is_asked(&name, 1) => drop(wrong.insert(name, why)),
                        why => others.extend(why),
                    }
                }
            }
        }
    }
    (wrong, others, asked)
}

/// The faults are those that are known.
#[track_caller]
fn compare(wrong: &BTreeMap<String, String>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(FAULTS);
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        return fs::write(path, wrong.keys().map(|name| format!("{name}\n")).collect::<String>()).unwrap();
    }
    let text = fs::read_to_string(path).unwrap();
    let known: BTreeSet<&str> = text.lines().collect();
    let new: Vec<&str> = wrong.iter().filter(|(name, _)| !known.contains(name.as_str())).map(|(_, why)| why.as_str()).collect();
    let mended: Vec<&&str> = known.iter().filter(|name| !wrong.contains_key(**name)).collect();
    assert!(new.is_empty(), "{} pairs come out otherwise that did not; the first ones:\n{}", new.len(), new[..new.len().min(12)].join("\n"));
    assert!(mended.is_empty(), "{FAULTS} names pairs that are no faults any more: {mended:?}");
}

/// The same pairs each time, whatever other rules there are.
fn is_asked(name: &str, rounds: u64) -> bool {
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    (hash >> 33) % ONE_IN < rounds
}

fn check(engine: &Arc<Engine>, (first, text): (&str, &str), (second, behind): (&str, &str), between: &str) -> Option<String> {
    let found = scan(engine, &format!("{text}{between}{behind}"));
    let lines = |text: &str| text.lines().count() as u64;
    let (end, start) = (lines(text), lines(text) + lines(between) + 1);
    let wanted = vec![(1, end, first.to_owned()), (start, start + lines(behind) - 1, second.to_owned())];
    (found != wanted).then(|| format!("{first}, {between:?}, {second}: {found:?}, not {wanted:?}"))
}

/// Whether a line of another program ends the error. Some tools print blocks of lines without any shape.
fn is_closed(engine: &Arc<Engine>, rule: &str, text: &str, between: &str) -> bool {
    scan(engine, &format!("{text}{between}ready to go\n")) == [(1, text.lines().count() as u64, rule.to_owned())]
}

fn may_be_one((first, text): (&str, &str), (second, behind): (&str, &str), between: &str) -> bool {
    let is_apart = between.trim() != "";
    let is_indented = behind.starts_with([' ', '\t']);
    let is_record = text.lines().count() == 1 && Line::new(Place::default(), text.trim_end().as_bytes(), NOW).is_stamped();
    let is_shapeless = between.is_empty() && SHAPELESS.contains(&first);
    // A record that announces something takes what follows.
    let announces = is_record && !is_apart && text.trim_end().ends_with(':');
    first == second
        || is_shapeless
        || announces
        || ONE.contains(&(first, second))
        || (!is_apart && (is_indented || (is_record && UNDER_RECORD.contains(&second))))
}

fn scan(engine: &Arc<Engine>, text: &str) -> Vec<Found> {
    let (mut stream, mut events) = (Stream::new(Arc::clone(engine), Origin::default()), Vec::new());
    stream.push(text.as_bytes(), NOW, &mut events);
    stream.finish(NOW, &mut events);
    events.sort_by_key(|event| event.offset);
    events.iter().map(|event| (event.line_num, event.line_end, event.rule.to_string())).collect()
}

/// Returns for each rule the lines of the first error in the fixtures that is found again by itself.
/// Excludes status lines, which the lines before them may claim, and records of transcripts.
fn errors(engine: &Arc<Engine>) -> Vec<(String, String)> {
    let is_note = |rule: &str| engine.rules.entries.iter().any(|entry| entry.id == rule && matches!(entry.kind, Kind::Note(_)));
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    for case in cases() {
        let input = String::from_utf8_lossy(&fs::read(case.join("input.log")).unwrap()).into_owned();
        if input.starts_with('{') || case.parent().is_some_and(|family| family.ends_with("agents")) {
            continue;
        }
        let lines: Vec<&str> = input.lines().collect();
        for (first, last, rule) in scan(engine, &input) {
            let Some(block) = lines.get(first as usize - 1..last as usize) else { continue };
            let block = block.join("\n") + "\n";
            if !found.contains_key(&rule) && !is_note(&rule) && scan(engine, &block) == [(1, last - first + 1, rule.clone())] {
                found.insert(rule, block);
            }
        }
    }
    found.into_iter().collect()
}

fn cases() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let mut found: Vec<PathBuf> = folders(&root).iter().flat_map(|family| folders(family)).filter(|case| case.join("input.log").exists()).collect();
    found.sort();
    found
}

fn folders(of: &Path) -> Vec<PathBuf> {
    fs::read_dir(of).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect()
}
