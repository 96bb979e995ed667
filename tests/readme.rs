//! Checks the pages for users: every command is run and its output compared; every field, key, category word, metric and
//! command is named on the page where it belongs; every link has a target. `UPDATE_EXPECT=1` records the outputs and
//! rewrites the tables of families and metrics.
//!
//! Blocks marked `console` are sessions: a line that starts with `$ ` is a command, and its output follows; a
//! line `...` stands for any lines. The blocks of a page share one folder with copies of `fixtures` and `config`. Other
//! blocks with a name after the language are files in it. Times, ids and the host match any value of their kind.

#![allow(clippy::unwrap_used, reason = "clippy knows only functions marked as tests")]

#[path = "readme/page.rs"]
mod page;
#[path = "readme/session.rs"]
mod session;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use page::Page;
use session::Session;
use siftd::rules::RuleSet;
use siftd::telemetry::families::FAMILIES;
use siftd::words::{Category, Cause, RetryClass};

const README: &str = "README.md";
const RULES: &str = "config/rules/README.md";
const SERVICE: &str = "systemd/README.md";
const PAGES: [&str; 3] = [README, RULES, SERVICE];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(page: &str) -> String {
    fs::read_to_string(root().join(page)).unwrap_or_else(|error| panic!("{page}: {error}"))
}

fn is_update() -> bool {
    std::env::var_os("UPDATE_EXPECT").is_some_and(|value| value == "1")
}

#[test]
fn the_readme_shows_what_its_commands_print_and_its_table_of_families_is_true() {
    check(README, Some(("families", families())));
}

#[test]
fn the_page_of_rules_shows_what_its_commands_print() {
    check(RULES, None);
}

#[test]
fn the_page_of_the_service_shows_what_its_commands_print_and_its_table_of_metrics_is_true() {
    check(SERVICE, Some(("metrics", metrics())));
}

/// Compares outputs and table in one go, since both may write the page.
fn check(name: &str, table: Option<(&str, Vec<String>)>) {
    let before = read(name);
    let mut page = Page::parse(&before);
    let session = Session::new(root());
    for block in &mut page.blocks {
        match (block.language.as_str(), &block.name) {
            ("console", _) => block.body = session.play(&block.body),
            (_, Some(file)) => session.write(file, &block.body.join("\n")),
            _ => {}
        }
    }
    if let Some((mark, lines)) = table {
        page.set_marked(mark, &lines);
    }
    let after = page.text();
    if before == after {
        return;
    }
    if is_update() {
        fs::write(root().join(name), after).unwrap();
        return;
    }
    panic!("{}\nUPDATE_EXPECT=1 records it.", session::difference(name, &before, &after));
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

/// Returns which names do not stand between backticks in a chapter of a page.
fn missing<'a>(page: &str, chapter: &str, wanted: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let text = read(page);
    let code = page::chapter(&text, chapter).lines().flat_map(|line| line.split('`').skip(1).step_by(2));
    let words: BTreeSet<&str> = code.flat_map(|code| code.split([' ', '=', '[', ']'])).collect();
    wanted.into_iter().filter(|name| !words.contains(name)).collect()
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
    let missing = missing(README, "A record", keys.iter().map(String::as_str));
    assert!(missing.is_empty(), "fields that the README does not name: {missing:?}");
}

#[test]
fn it_names_every_category_cause_and_class() {
    let words = Category::ALL
        .iter()
        .map(|word| word.as_str())
        .chain(Cause::ALL.iter().map(|word| word.as_str()))
        .chain(RetryClass::ALL.iter().map(|word| word.as_str()));
    let missing = missing(README, "A record", words);
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
    let missing = missing(RULES, "All keys", names.iter().map(String::as_str));
    assert!(missing.is_empty(), "keys that {RULES} does not name: {missing:?}");
}

#[test]
fn it_names_every_command() {
    let session = Session::new(root());
    let help = session.output("siftd --help");
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let commands: Vec<&str> = commands.filter_map(|line| line.split_whitespace().next()).filter(|command| *command != "help").collect();
    assert!(commands.len() >= 9, "{help}");
    let missing = missing(README, "Use", commands);
    assert!(missing.is_empty(), "commands that the README does not name: {missing:?}");
}

#[test]
fn links_lead_somewhere() {
    for page in PAGES {
        let text = read(page);
        let links: Vec<&str> = text.split("](").skip(1).filter_map(|rest| rest.split(')').next()).collect();
        assert!(!links.is_empty(), "{page}");
        for link in links.into_iter().filter(|link| !link.starts_with("https://")) {
            let (file, anchor) = link.split_once('#').map_or((link, None), |(file, anchor)| (file, Some(anchor)));
            let target = if file.is_empty() { root().join(page) } else { root().join(page).parent().unwrap().join(file) };
            assert!(target.exists(), "{page}: {link}: no such file");
            if let Some(anchor) = anchor {
                let known = page::anchors(&fs::read_to_string(&target).unwrap());
                assert!(known.iter().any(|known| known == anchor), "{page}: {link}: no such chapter");
            }
        }
    }
}

/// Nobody finds a page to which no link leads.
#[test]
fn the_readme_links_to_the_other_pages() {
    let text = read(README);
    for page in [RULES, SERVICE] {
        assert!(text.contains(&format!("]({page})")), "{page}");
    }
}

/// Whoever reads it for the first time reads all of it but the table of families, which grows with the rules.
#[test]
fn the_readme_is_short() {
    let text = read(README);
    let (head, rest) = text.split_once("<!-- families").unwrap();
    let (_, tail) = rest.split_once("<!-- /families -->").unwrap();
    let words = head.split_whitespace().chain(tail.split_whitespace()).count();
    assert!(words <= 8_500, "{words} words: reference belongs on the other pages");
}

#[test]
fn it_names_the_rust_that_is_needed() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let needed = manifest.lines().find_map(|line| line.strip_prefix("rust-version = ")).unwrap().trim_matches('"');
    assert!(read(README).contains(&format!("Rust {needed} or later")), "Cargo.toml says {needed}");
}

/// The pages are read on other machines than the one that wrote them.
#[test]
fn no_page_names_a_place_of_one_machine() {
    for page in PAGES {
        for (number, line) in read(page).lines().enumerate() {
            for place in ["/home/", "/root/", "/Users/", "/tmp/", "/work/"] {
                assert!(!line.contains(place), "{page}:{}: {place}", number + 1);
            }
        }
    }
}
