//! Converts GitHub's problem matchers (`{"problemMatcher": […]}`) into a rules file: `siftd rules import`. A one-line
//! matcher becomes a rule; one whose last pattern loops becomes a rule with a line above it that names the file; any
//! other becomes a trace. Only errors match, since siftd finds no warnings. This module reads no file, and leaves
//! nothing out silently.

mod js;

use std::fmt::Write;

use regex_syntax::ParserBuilder;
use serde::Deserialize;

use super::parsed::syntax_message;
use super::prove::{Needle, every_match_has_literal, longest_required_literal};
use super::{MIN_LITERAL_BYTES, Pattern, Problem, parse};
use js::Group;

/// The file, as GitHub describes it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct File {
    problem_matcher: Vec<Matcher>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Matcher {
    owner: String,
    /// Severity of problems whose line names none; `error` if missing.
    severity: Option<String>,
    pattern: Vec<Line>,
}

/// The shape of one line; the numbers are group numbers.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Line {
    regexp: String,
    file: Option<usize>,
    from_path: Option<usize>,
    line: Option<usize>,
    column: Option<usize>,
    severity: Option<usize>,
    #[expect(dead_code, reason = "it is a part of the text, which is all that is wanted of it")]
    code: Option<usize>,
    message: Option<usize>,
    #[serde(default, rename = "loop")]
    repeats: bool,
}

/// A line in the form in which siftd matches it.
struct Part {
    regex: String,
    /// Literals of which every match contains one; empty: none are known.
    literals: Vec<String>,
    /// Whether `file` is a group.
    names_file: bool,
    /// What a look-back line or a row takes from `file`, `line` and `message`.
    take: Option<&'static str>,
}

/// Whether a text is JSON that holds problem matchers.
#[must_use]
pub fn is_matcher(text: &str) -> bool {
    text.trim_start_matches('\u{feff}').trim_start().starts_with('{') && text.contains("\"problemMatcher\"")
}

/// The result of an import.
#[derive(Debug)]
pub struct Imported {
    /// The text of a rules file.
    pub rules: String,
    /// Owners of the matchers that are not about errors.
    pub left_out: Vec<String>,
}

/// Turns matchers into the text of a rules file. `name` appears in it.
///
/// # Errors
/// What cannot be read or is not supported by siftd, in one sentence.
pub fn import(name: &str, text: &str) -> Result<Imported, String> {
    let file: File = serde_json::from_str(text.trim_start_matches('\u{feff}')).map_err(|error| format!("is no file of problem matchers: {error}"))?;
    let mut out = format!(
        "# From {name} by `siftd rules import`: problem matchers of GitHub.\n[family]\nid = \"matcher\"\ntitle = \"Problem matchers\"\ndepth = \"head\"\n"
    );
    let (mut ids, mut left_out): (Vec<String>, Vec<String>) = Default::default();
    for matcher in &file.problem_matcher {
        let id = unique(&slug(&matcher.owner), &ids);
        let of = |why: &str| format!("the matcher of {:?} {why}", matcher.owner);
        if !matcher.entry(&id, &mut out).map_err(|why| of(&why))? {
            line(&mut out, &format!("\n# {}: left out, its problems are no errors.", slug(&matcher.owner)));
            left_out.push(matcher.owner.clone());
        }
        ids.push(id);
    }
    match parse(name, &out, true) {
        Ok(_) => Ok(Imported { rules: out, left_out }),
        Err(problems) => Err(problems.first().map_or_else(String::new, |first| unusable(&out, first))),
    }
}

/// Describes a problem, with the rule in `rules` that it is about.
fn unusable(rules: &str, problem: &Problem) -> String {
    const ID: &str = "id = \"matcher.";
    let rule = rules[..problem.span.start].rfind(ID).and_then(|at| rules[at + ID.len()..].split('"').next()).unwrap_or_default();
    format!("the matcher of {rule:?} comes to a rule that cannot be used: {}", problem.problem)
}

impl Matcher {
    /// Appends the rule that the matcher becomes; `false` if the matcher is not about errors.
    fn entry(&self, id: &str, out: &mut String) -> Result<bool, String> {
        let Some(last) = self.pattern.last() else { return Err("has no pattern".to_owned()) };
        let says = self.pattern.iter().any(|line| line.severity.is_some());
        if !says && self.severity.as_deref().is_some_and(|word| !word.eq_ignore_ascii_case("error")) {
            return Ok(false);
        }
        let Some(parts) = self.pattern.iter().map(Line::part).collect::<Option<Vec<Part>>>() else { return Ok(false) };
        if last.repeats || parts.len() == 1 { rule(id, &parts, out) } else { trace(id, &parts, out) }.map(|()| true)
    }
}

impl Line {
    /// Converts the line; `None` if what it matches is never an error.
    fn part(&self) -> Option<Part> {
        let file = self.file.or(self.from_path);
        let names = [(file, "file"), (self.line, "line"), (self.column, "column"), (self.message, "message")];
        let converted = js::convert(&self.regexp, |number| {
            if self.severity == Some(number) {
                return Group::Severity;
            }
            names.iter().find(|(group, _)| *group == Some(number)).map_or(Group::Unread, |(_, name)| Group::Named(name))
        })?;
        let take = if file.is_some() || self.line.is_some() { Some("location") } else { self.message.map(|_| "text") };
        Some(Part { literals: literals(&converted.regex, converted.words), regex: converted.regex, names_file: file.is_some(), take })
    }
}

/// Returns literals of which every match of `regex` contains one: the longest required literal, or the words of a severity.
fn literals(regex: &str, words: Vec<String>) -> Vec<String> {
    let longest = longest_required_literal(regex).ok().flatten().into_iter().collect();
    let candidates = [longest, words, Pattern::new(regex, false).required_words().unwrap_or_default()];
    let stands = |all: &Vec<String>| {
        let needles: Vec<Needle> = all.iter().map(|text| Needle { text, after: "", not_after: "", at_end: false }).collect();
        !all.is_empty() && all.iter().all(|text| text.len() >= MIN_LITERAL_BYTES) && every_match_has_literal(regex, &needles, false).unwrap_or(false)
    };
    candidates.into_iter().find(stands).unwrap_or_default()
}

/// Writes a rule for the last pattern; the file may be named in a line above.
fn rule(id: &str, parts: &[Part], out: &mut String) -> Result<(), String> {
    let Some((last, above)) = parts.split_last() else { return Ok(()) };
    head(out, ("rule", id), last)?;
    line(out, &format!("regex = {}", quote(&last.regex)));
    if let Some(heading) = above.iter().rev().find(|part| part.names_file).filter(|_| !last.names_file) {
        line(out, &format!("above = {}", quote(&heading.regex)));
    }
    line(out, "code = true");
    Ok(())
}

/// Writes a trace of consecutive lines. It starts at the first line that has literals; earlier lines are looked back for.
fn trace(id: &str, parts: &[Part], out: &mut String) -> Result<(), String> {
    let first = parts.iter().position(|part| !part.literals.is_empty()).unwrap_or(0);
    head(out, ("trace", id), &parts[first])?;
    let take = |part: &Part| part.take.map_or(String::new(), |take| format!(", take = \"{take}\""));
    if first > 0 {
        line(out, "before = [");
        for part in parts[..first].iter().rev() {
            line(out, &format!("    {{ regex = {}{} }},", quote(&part.regex), take(part)));
        }
        line(out, "]");
    }
    line(out, "rows = [");
    for (index, part) in parts.iter().enumerate().skip(first) {
        let from = if index == first { "start".to_owned() } else { format!("line-{index}") };
        let (to, trial) = if index + 1 == parts.len() { ("end".to_owned(), "") } else { (format!("line-{}", index + 1), ", accept = false") };
        line(out, &format!("    {{ from = \"{from}\", regex = {}, to = \"{to}\"{}{trial} }},", quote(&part.regex), take(part)));
    }
    line(out, "]\ncode = true");
    Ok(())
}

fn head(out: &mut String, (table, id): (&str, &str), part: &Part) -> Result<(), String> {
    if let Err(error) = ParserBuilder::new().utf8(false).build().parse(&part.regex) {
        return Err(format!("has an expression that siftd cannot use: {}", syntax_message(&error)));
    }
    if part.literals.is_empty() {
        return Err("matches lines that have no fixed text in common, so they cannot be found quickly: add a word that stands in each of them".to_owned());
    }
    let literals: Vec<String> = part.literals.iter().map(|literal| quote(literal)).collect();
    line(out, &format!("\n[[{table}]]\nid = \"matcher.{id}\"\nliterals = [{}]", literals.join(", ")));
    Ok(())
}

fn line(out: &mut String, text: &str) {
    writeln!(out, "{text}").expect("writing to a String cannot fail");
}

fn quote(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// Turns an owner into a part of an id.
fn slug(owner: &str) -> String {
    let slug: String = owner.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect();
    let slug = slug.trim_matches('-');
    if slug.is_empty() { "problem".to_owned() } else { slug.to_owned() }
}

fn unique(slug: &str, taken: &[String]) -> String {
    let numbered = (2..).map(|number| format!("{slug}-{number}"));
    std::iter::once(slug.to_owned()).chain(numbered).find(|id| !taken.contains(id)).unwrap_or_default()
}
