//! Line formats that state a level: in each, a line of level error or above is exactly one event,
//! and a line of a lower level that mentions errors is none. `formats.txt` holds pairs of whole
//! lines; each line of `layouts.txt` has one layout and its level words, all of which are tried.
//! `beneath.txt` holds what has no level of its own and takes that of the record above it.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use siftd::core::engine::{Engine, Limits};
use siftd::core::event::{Event, Timestamp};
use siftd::core::extract::Origin;
use siftd::core::pipeline::Stream;
use siftd::rules::RuleSet;

const FORMATS: &str = include_str!("formats.txt");
const LAYOUTS: &str = include_str!("layouts.txt");
const BENEATH: &str = include_str!("beneath.txt");
/// 2026-11-20T14:00:00Z: ten days after the lines.
const NOW: Timestamp = Timestamp(1_795_183_200_000_000);
/// A smaller number means that the file was not parsed as intended.
const LEAST_FORMATS: usize = 250;
const LEAST_LAYOUTS: usize = 780;
const LEAST_BENEATH: usize = 14;
/// What replaces `‹M›` in an error, and in any other line.
const MESSAGES: [&str; 2] = ["the store is gone", "error counters cleared"];

/// A format: its name, its error line, and a similar line that is no error.
struct Format<'a> {
    name: &'a str,
    error: &'a str,
    look_alike: &'a str,
}

fn formats() -> Vec<Format<'static>> {
    let lines: Vec<&str> = FORMATS.lines().filter(|line| !line.is_empty() && !line.starts_with("# ") && !line.starts_with("## ")).collect();
    lines
        .chunks(3)
        .map(|block| {
            let text = |at: usize, mark: &str| block.get(at).and_then(|line| line.strip_prefix(mark)).unwrap_or_else(|| panic!("{block:?}"));
            Format { name: block[0], error: text(1, "! "), look_alike: text(2, ". ") }
        })
        .collect()
}

fn events(engine: &Arc<Engine>, line: &str) -> Vec<Event> {
    let mut out = Vec::new();
    let mut stream = Stream::new(Arc::clone(engine), Origin::default());
    stream.push(line.as_bytes(), NOW, &mut out);
    stream.push(b"\n", NOW, &mut out);
    stream.finish(NOW, &mut out);
    out
}

#[test]
fn levels_are_found_in_every_format() {
    let engine = Arc::new(Engine::new(RuleSet::compiled(), Limits::default()));
    let formats = formats();
    assert!(formats.len() >= LEAST_FORMATS, "{}", formats.len());
    let mut wrong = Vec::new();
    for format in &formats {
        let found = events(&engine, format.error).len();
        if found != 1 {
            wrong.push(format!("{}: {found} events, one expected: {}", format.name, format.error));
        }
        for event in events(&engine, format.look_alike) {
            wrong.push(format!("{}: {} in {}", format.name, event.rule, format.look_alike));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), formats.len(), wrong.join("\n"));
}

/// Parses `‹E¦F‖I¦W›`: returns its place in the layout, the words of level error or above, and the others.
fn choices(layout: &str) -> Vec<(std::ops::Range<usize>, [Vec<&str>; 2])> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(open) = layout[at..].find('‹').map(|open| open + at) {
        let close = open + layout[open..].find('›').unwrap_or_else(|| panic!("{layout}"));
        if let Some((errors, others)) = layout[open + '‹'.len_utf8()..close].split_once('‖') {
            found.push((open..close + '›'.len_utf8(), [errors.split('¦').collect(), others.split('¦').collect()]));
        }
        at = close;
    }
    found
}

/// Returns the layout's lines of one side: 0 for errors, 1 for the others.
fn lines(layout: &str, side: usize) -> Vec<String> {
    let choices = choices(layout);
    let most = choices.iter().map(|(_, words)| words[side].len()).max().unwrap_or_else(|| panic!("{layout}"));
    let line = |word: usize| {
        let (mut line, mut at) = (String::new(), 0);
        for (place, words) in &choices {
            line += &layout[at..place.start];
            line += words[side][word % words[side].len()];
            at = place.end;
        }
        (line + &layout[at..]).replace("‹M›", MESSAGES[side]).replace("\\t", "\t").replace("\\n", "\n")
    };
    (0..most).map(line).collect()
}

#[test]
fn levels_are_found_whatever_their_word() {
    let engine = Arc::new(Engine::new(RuleSet::compiled(), Limits::default()));
    let layouts: Vec<&str> = LAYOUTS.lines().filter(|line| !line.is_empty() && !line.starts_with("# ") && !line.starts_with("## ")).collect();
    assert!(layouts.len() >= LEAST_LAYOUTS, "{}", layouts.len());
    let mut wrong = Vec::new();
    for layout in &layouts {
        let (name, layout) = layout.split_once(": ").unwrap_or_else(|| panic!("{layout}"));
        for (side, expected) in [(0, 1), (1, 0)] {
            for line in lines(layout, side) {
                let found = events(&engine, &line);
                if found.len() != expected {
                    wrong.push(format!("{name}: {} events, {expected} expected: {line}", found.len()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn what_stands_below_a_record_takes_its_level() {
    let engine = Arc::new(Engine::new(RuleSet::compiled(), Limits::default()));
    let text: String = BENEATH.lines().filter(|line| !line.starts_with("# ") && !line.starts_with("## ")).map(|line| format!("{line}\n")).collect();
    let blocks: Vec<&str> = text.split("\n\n").map(str::trim).filter(|block| !block.is_empty()).collect();
    assert!(blocks.len() >= LEAST_BENEATH, "{}", blocks.len());
    let mut wrong = Vec::new();
    for block in blocks {
        let (name, lines) = block.split_once('\n').unwrap_or_else(|| panic!("{block}"));
        let (name, expected) = name.rsplit_once(": ").unwrap_or_else(|| panic!("{block}"));
        let found = events(&engine, lines);
        if found.len() != expected.parse::<usize>().unwrap() {
            wrong.push(format!(
                "{name}: {} events, {expected} expected: {:?}",
                found.len(),
                found.iter().map(|event| (&event.rule, event.line_num)).collect::<Vec<_>>()
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
