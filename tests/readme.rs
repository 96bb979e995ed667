//! Checks the README: every command is run and its output compared; every field, key, category word and command is named;
//! every link has a target. `UPDATE_EXPECT=1` records the outputs and rewrites the tables of families and metrics.
//!
//! Blocks marked `console` are sessions: a line that starts with `$ ` is a command, and its output follows; a
//! line `...` stands for any lines. All blocks share one folder with copies of `fixtures` and `config`. Other
//! blocks with a name after the language are files in it. Times, ids and the host match any value of their kind.

#![allow(clippy::unwrap_used, reason = "clippy knows only functions marked as tests")]

#[path = "readme/page.rs"]
mod page;
#[path = "readme/session.rs"]
mod session;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use page::Page;
use session::Session;
use siftd::rules::RuleSet;
use siftd::telemetry::families::FAMILIES;
use siftd::words::{Category, Cause, RetryClass};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn readme() -> PathBuf {
    root().join("README.md")
}

fn is_update() -> bool {
    std::env::var_os("UPDATE_EXPECT").is_some_and(|value| value == "1")
}

/// One test, since both parts may write the page.
#[test]
fn commands_print_what_it_shows_and_its_table_of_families_is_true() {
    let before = fs::read_to_string(readme()).unwrap();
    let mut page = Page::parse(&before);
    let session = Session::new(root());
    for block in &mut page.blocks {
        match (block.language.as_str(), &block.name) {
            ("console", _) => block.body = session.play(&block.body),
            (_, Some(name)) => session.write(name, &block.body.join("\n")),
            _ => {}
        }
    }
    page.set_marked("families", &families());
    page.set_marked("metrics", &metrics());
    let after = page.text();
    if before == after {
        return;
    }
    if is_update() {
        fs::write(readme(), after).unwrap();
        return;
    }
    panic!("{}\nUPDATE_EXPECT=1 records it.", session::difference(&before, &after));
}

/// Returns family, what it covers, depth, rules.
fn families() -> Vec<String> {
    let rules = RuleSet::builtin();
    let mut lines = vec!["| family | covers | depth | rules |".to_owned(), "| --- | --- | --- | ---: |".to_owned()];
    for (number, family) in rules.families.iter().enumerate() {
        let entries = rules.entries.iter().filter(|entry| usize::from(entry.family) == number).count();
        let cancels = rules.cancels.iter().filter(|cancel| cancel.id.split('.').next() == Some(&family.id)).count();
        let covers = if family.covers.is_empty() { family.title.clone() } else { family.covers.join(", ") };
        let covers = covers.replace('|', "\\|");
        lines.push(format!("| `{}` | {covers} | {} | {} |", family.id, family.depth, entries + cancels));
    }
    lines
}

/// Returns name, type, labels, meaning.
fn metrics() -> Vec<String> {
    let mut lines = vec!["| metric | type | labels | |".to_owned(), "| --- | --- | --- | --- |".to_owned()];
    for family in FAMILIES {
        let labels: Vec<String> = family.labels.iter().map(|label| format!("`{label}`")).collect();
        lines.push(format!("| `{}` | {} | {} | {} |", family.name, family.kind.as_str(), labels.join(" "), family.help));
    }
    lines
}

/// Returns the words between backticks in a chapter.
fn words_in(chapter: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(readme()).unwrap();
    let body = page::chapter(&text, chapter);
    body.lines().flat_map(|line| line.split('`').skip(1).step_by(2)).flat_map(|code| code.split([' ', '=', '[', ']'])).map(str::to_owned).collect()
}

fn missing<'a>(chapter: &str, wanted: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let words = words_in(chapter);
    wanted.into_iter().filter(|name| !words.contains(*name)).collect()
}

#[test]
fn it_names_every_field_of_a_record() {
    let session = Session::new(root());
    let records = session.output("siftd scan --format ndjson --jobs 1 fixtures 2>/dev/null");
    let mut keys = BTreeSet::new();
    for line in records.lines() {
        let record: serde_json::Value = serde_json::from_str(line).unwrap();
        for (key, value) in record.as_object().unwrap() {
            keys.insert(key.clone());
            if ["source", "exception", "location", "record", "retry"].contains(&key.as_str()) {
                keys.extend(value.as_object().unwrap().keys().cloned());
            }
        }
    }
    assert!(keys.len() > 30, "{keys:?}");
    let missing = missing("A record", keys.iter().map(String::as_str));
    assert!(missing.is_empty(), "fields that the README does not name: {missing:?}");
}

#[test]
fn it_names_every_category_cause_and_class() {
    let words = Category::ALL
        .iter()
        .map(|word| word.as_str())
        .chain(Cause::ALL.iter().map(|word| word.as_str()))
        .chain(RetryClass::ALL.iter().map(|word| word.as_str()));
    let missing = missing("A record", words);
    assert!(missing.is_empty(), "words that the README does not name: {missing:?}");
}

/// Returns the keys as the types of `src/rules/spec.rs` define them.
#[test]
fn it_names_every_key_of_a_rule() {
    let spec = include_str!("../src/rules/spec.rs");
    let mut names: Vec<String> = Vec::new();
    let mut renamed = None;
    for line in spec.lines().map(str::trim) {
        if let Some((_, name)) = line.strip_prefix("#[serde(").and_then(|rest| rest.split_once("rename = \"")) {
            renamed = name.split('"').next().map(str::to_owned);
        } else if let Some((name, _)) = line.strip_prefix("pub ").and_then(|rest| rest.split_once(": ")).filter(|(name, _)| !name.contains(' ')) {
            names.push(renamed.take().unwrap_or_else(|| name.to_owned()));
        }
    }
    assert!(names.len() > 50, "{names:?}");
    let missing = missing("Your own rules", names.iter().map(String::as_str));
    assert!(missing.is_empty(), "keys that the README does not name: {missing:?}");
}

#[test]
fn it_names_every_command() {
    let session = Session::new(root());
    let help = session.output("siftd --help");
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let commands: Vec<&str> = commands.filter_map(|line| line.split_whitespace().next()).filter(|command| *command != "help").collect();
    assert!(commands.len() >= 9, "{help}");
    let missing = missing("Use", commands);
    assert!(missing.is_empty(), "commands that the README does not name: {missing:?}");
}

#[test]
fn its_links_lead_somewhere() {
    let text = fs::read_to_string(readme()).unwrap();
    let anchors: Vec<String> = text.lines().filter(|line| line.starts_with('#')).map(page::anchor).collect();
    let links: Vec<&str> = text.split("](").skip(1).filter_map(|rest| rest.split(')').next()).collect();
    assert!(!links.is_empty());
    for link in links {
        match link.strip_prefix('#') {
            Some(anchor) => assert!(anchors.iter().any(|known| known == anchor), "{link}: no such chapter"),
            None => assert!(link.starts_with("https://") || root().join(link).exists(), "{link}: no such file"),
        }
    }
}

#[test]
fn it_names_the_rust_that_is_needed() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let needed = manifest.lines().find_map(|line| line.strip_prefix("rust-version = ")).unwrap().trim_matches('"');
    assert!(fs::read_to_string(readme()).unwrap().contains(&format!("Rust {needed} or later")), "Cargo.toml says {needed}");
}

/// The page is read on other machines than the one that wrote it.
#[test]
fn it_names_no_place_of_one_machine() {
    let text = fs::read_to_string(readme()).unwrap();
    for (number, line) in text.lines().enumerate() {
        for place in ["/home/", "/root/", "/Users/", "/tmp/", "/work/"] {
            assert!(!line.contains(place), "README.md:{}: {place}", number + 1);
        }
    }
}
