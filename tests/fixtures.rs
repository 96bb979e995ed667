//! Real outputs in `fixtures/<family>/<case>/`: `input.log` yields exactly the events of `expected.ndjson`, one compact
//! line each, whatever the chunks it arrives in, with and without the prefilter.
//! `UPDATE_EXPECT=1 cargo test --test fixtures` rewrites them; then compare the diff with `about.txt`, which describes what counts as an error there.
#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use siftd::core::engine::{Engine, Limits};
use siftd::core::event::{Event, Lines, Timestamp};
use siftd::core::extract::Origin;
use siftd::core::pipeline::Stream;
use siftd::rules::RuleSet;

/// 2026-11-20T14:00:00Z: shortly after the newest of the logs, whose dates may lack a year.
const NOW: Timestamp = Timestamp(1_795_183_200_000_000);
/// Maximum number of differences printed.
const MAX_SHOWN: usize = 12;

#[test]
fn every_fixture_gives_its_events() {
    let engines = [engine_with(true), engine_with(false)];
    let cases = cases();
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let engines = &engines;
        let check_all = move |part: &[PathBuf]| part.iter().flat_map(|case| check(engines, case)).collect::<Vec<_>>();
        let parts: Vec<_> = cases.chunks(cases.len().div_ceil(workers)).map(|part| scope.spawn(move || check_all(part))).collect();
        parts.into_iter().flat_map(|part| part.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "{} differ; the first ones:\n\n{}", wrong.len(), wrong[..wrong.len().min(MAX_SHOWN)].join("\n"));
}

/// Returns what is wrong with a case: differences from its expectation, and between ways to read it.
fn check([engine, every_line]: &[Arc<Engine>; 2], folder: &Path) -> Vec<String> {
    let mut wrong = Vec::new();
    let input = fs::read(folder.join("input.log")).unwrap();
    let whole = events(engine, &input, usize::MAX);
    let got: String = whole.iter().map(|event| compact(event) + "\n").collect();
    let expected = folder.join("expected.ndjson");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(&expected, &got).unwrap();
    }
    let want = fs::read_to_string(&expected).unwrap_or_default();
    if want != got {
        wrong.push(format!("{}\n{}", folder.display(), diff(&want, &got)));
    }
    let whole = exact(&whole);
    for (how, other) in [
        ("in single bytes", events(engine, &input, 1)),
        ("in random chunks", events(engine, &input, 4096)),
        ("without the prefilter", events(every_line, &input, usize::MAX)),
    ] {
        let other = exact(&other);
        if whole != other {
            wrong.push(format!("{} {how}\n{}", folder.display(), diff(&whole, &other)));
        }
    }
    wrong
}

/// Fixtures of which a quiet log tells something else than one that has ended. Of the first three, only the end shows that the
/// last lines are the error's. In the last, what a passing test prints looks like a section of pytest's report.
const TOLD_OTHERWISE: [&str; 4] = ["boundaries/truncated-tail", "lint/flake8-source", "pytest/junit-xml", "pytest/pass-shown"];

/// A log that a daemon follows has no end: what it tells of while nothing more comes is what its end would show.
#[test]
fn a_log_that_stays_quiet_gives_its_events() {
    let engine = engine_with(true);
    let differing = |case: &PathBuf| {
        let input = fs::read(case.join("input.log")).unwrap();
        let stream = || Stream::new(Arc::clone(&engine), Origin::default());
        let (mut at_end, mut ended) = (Vec::new(), stream());
        ended.push(&input, NOW, &mut at_end);
        ended.finish(NOW, &mut at_end);
        let (mut quiet, mut followed) = (Vec::new(), stream());
        followed.push(&input, NOW, &mut quiet);
        while let Some(deadline) = followed.deadline() {
            followed.tick(deadline, &mut quiet);
        }
        let told = quiet.len();
        followed.finish(NOW, &mut quiet);
        let essence = |events: &[Event]| {
            let mut all: Vec<String> =
                events.iter().map(|event| format!("{} {}-{} {} {}", event.id, event.line_num, event.line_end, event.rule, event.text)).collect();
            all.sort();
            all.join("\n") + "\n"
        };
        let late = quiet[told..]
            .iter()
            .filter(|event| !event.is_status)
            .map(|event| format!("{} at {} only at the end\n", event.rule, event.line_num))
            .collect::<String>();
        let (want, got) = (essence(&at_end), essence(&quiet));
        (want != got || !late.is_empty()).then(|| format!("{}\n{}{late}", case.display(), diff(&want, &got)))
    };
    let is_known = |case: &&PathBuf| TOLD_OTHERWISE.iter().any(|known| case.ends_with(known));
    let wrong: Vec<String> = cases().iter().filter(|case| !is_known(case)).filter_map(differing).collect();
    assert!(wrong.is_empty(), "{} differ; the first ones:\n\n{}", wrong.len(), wrong[..wrong.len().min(MAX_SHOWN)].join("\n"));
}

fn engine_with(two_stage: bool) -> Arc<Engine> {
    Arc::new(Engine::new(RuleSet::compiled(), Limits { two_stage, ..Limits::default() }))
}

/// Returns the folders with an `input.log`, in order.
fn cases() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let mut found: Vec<PathBuf> = folders(&root).iter().flat_map(|family| folders(family)).filter(|case| case.join("input.log").exists()).collect();
    found.sort();
    assert!(found.len() > 100, "only {} cases in {}", found.len(), root.display());
    found
}

fn folders(of: &Path) -> Vec<PathBuf> {
    fs::read_dir(of).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect()
}

/// Returns the events of `input`, pushed in chunks of pseudo-random sizes up to `largest`.
fn events(engine: &Arc<Engine>, input: &[u8], largest: usize) -> Vec<Event> {
    let mut stream = Stream::new(Arc::clone(engine), Origin::default()).of_finished();
    let mut out = Vec::new();
    let mut seed = 0x5eed_u64;
    let mut rest = input;
    while !rest.is_empty() {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let size = if largest == usize::MAX { rest.len() } else { 1 + (seed >> 33) as usize % largest };
        let (chunk, later) = rest.split_at(size.min(rest.len()));
        stream.push(chunk, NOW, &mut out);
        rest = later;
    }
    stream.finish(NOW, &mut out);
    out
}

/// Returns what a person wants to check of an event.
fn compact(event: &Event) -> String {
    let mut fields = Vec::new();
    let mut put = |key: &str, value: Value| fields.push(format!("{key:?}:{value}"));
    put("line_num", event.line_num.into());
    put("line_end", event.line_end.into());
    put("rule", (&*event.rule).into());
    if let Some(language) = &event.language {
        put("language", (&**language).into());
    }
    put("category", event.category.as_str().into());
    put("severity", event.severity.as_str().into());
    put("text", event.text.clone().into());
    if let Some(exception) = event.exception.as_ref().filter(|exception| !exception.kind.is_empty()) {
        put("exception", exception.kind.clone().into());
    }
    if let Some(at) = &event.location {
        put("location", format!("{}:{}:{}", at.file, at.line, at.column).into());
    }
    put("retry", event.retry.class.as_str().into());
    if let Some(call) = &event.call {
        let said = [("session", &call.session), ("tool", &call.tool), ("tool_call_id", &call.id), ("command", &call.command)];
        said.into_iter().for_each(|(key, value)| value.iter().for_each(|text| put(key, text.clone().into())));
        call.flavour.iter().for_each(|&flavour| put("flavour", flavour.into()));
    }
    format!("{{{}}}", fields.join(","))
}

/// Returns everything but the context, which may hold lines that have not arrived yet.
fn exact(events: &[Event]) -> String {
    let mut all = String::new();
    for event in events {
        let bare = Event { context: Lines::default(), ..event.clone() };
        let _ = writeln!(all, "{bare:?}");
    }
    all
}

/// Returns lines that only one side has.
fn diff(want: &str, got: &str) -> String {
    let only = |sign: char, these: &str, those: &str| -> String {
        these.lines().filter(|line| !those.lines().any(|other| other == *line)).map(|line| format!("  {sign} {line}\n")).collect()
    };
    only('-', want, got) + &only('+', got, want)
}
