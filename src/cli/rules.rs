//! `siftd rules`: the catalogue, a rule as written, the examples, a user's file, files of other systems.

use std::path::{Path, PathBuf};

use super::args::{RulesArgs, RulesCommand, SetupArgs};
use super::{Exit, Failure, say, setup, stdin};
use crate::core::word_gate;
use crate::diag::{Diagnostic, Diagnostics};
use crate::examples;
use crate::rules::{BUILTIN_FILES, Examples, RuleSet, RulesFile, WARNING_FILE, builtin_files, matcher, parse};
use crate::sinks::human::sanitise;
use crate::words::{counted, did_you_mean};

mod catalogue;
mod written;

pub fn rules(args: &RulesArgs) -> Result<Exit, Failure> {
    match &args.command {
        RulesCommand::List { names, form, setup } => list(names, form.is_json(), setup),
        RulesCommand::Show { id, setup } => show(id, setup),
        RulesCommand::Test { files, setup } => test(files, setup),
        RulesCommand::Check { files, setup } => check(files, setup),
        RulesCommand::Import { file } => import(file),
    }
}

fn set_of(args: &SetupArgs) -> Result<RuleSet, Failure> {
    let config = setup::config(args)?;
    Ok(setup::rule_set(&config, &args.rules, Examples::Read)?)
}

fn list(names: &[String], as_json: bool, args: &SetupArgs) -> Result<Exit, Failure> {
    let set = set_of(args)?;
    let mut rows = catalogue::rows(&set);
    if let Some(none) = names.iter().find(|name| !rows.iter().any(|row| row.is_of(name))) {
        return Err(unknown(none, &set));
    }
    rows.retain(|row| names.is_empty() || names.iter().any(|name| row.is_of(name)));
    if as_json {
        let text = serde_json::to_string_pretty(&rows).map_err(|error| Failure::new(error.to_string()))?;
        return print(&(text + "\n"));
    }
    print(&catalogue::table(&rows))
}

/// Shows a rule as written in the last file that has it, which is in force, with the head of its family; for a family, shows every file.
fn show(id: &str, args: &SetupArgs) -> Result<Exit, Failure> {
    let config = setup::config(args)?;
    let mut files: Vec<(String, String)> = BUILTIN_FILES.iter().map(|(name, text)| (format!("config/rules/{name}"), (*text).to_owned())).collect();
    for path in setup::rule_paths(&config, &args.rules) {
        setup::read_rules(&path)?;
        files.push((path.display().to_string(), std::fs::read_to_string(&path)?));
    }
    let families: String =
        files.iter().filter(|(_, text)| written::is_family(text, id)).map(|(name, text)| format!("# {name}\n\n{}\n", text.trim_end())).collect();
    if !families.is_empty() {
        return print(&families);
    }
    let mut found: Vec<(&str, String)> = files.iter().map(|(name, text)| (name.as_str(), written::find(text, id))).collect();
    found.retain(|(_, pieces)| !pieces.is_empty());
    let Some((name, pieces)) = found.pop() else {
        let set = setup::rule_set(&config, &args.rules, Examples::Skipped)?;
        return Err(unknown(id, &set));
    };
    let replaced = found.pop().map_or(String::new(), |(other, _)| format!(", in place of the one in {other}"));
    print(&format!("# {name}{replaced}\n\n{pieces}"))
}

fn unknown(id: &str, set: &RuleSet) -> Failure {
    let known: Vec<&str> = setup::ids(set).chain(set.families.iter().map(|family| family.id.as_str())).collect();
    let mend = did_you_mean(id, &known).map_or_else(|| "; `siftd rules list` shows all".to_owned(), |near| format!(": {near}"));
    Failure::new(format!("no rule or family {id:?}{mend}"))
}

fn test(files: &[PathBuf], args: &SetupArgs) -> Result<Exit, Failure> {
    let config = setup::config(args)?;
    let named = [setup::rule_paths(&config, &args.rules), setup::in_folders(files)].concat();
    let Parsed { others, warnings, problems } = Parsed::of(named);
    if !problems.is_empty() {
        return Err(Diagnostics(problems).into());
    }
    let read = |paths: &[PathBuf]| paths.iter().map(|path| setup::read_rules(path)).collect::<Result<Vec<_>, _>>();
    let run = |paths: &[PathBuf]| {
        let told = RuleSet::with_files(builtin_files(Examples::Read).into_iter().chain(read(paths)?).collect());
        Ok::<_, Diagnostics>(examples::run(&told, RuleSet::compiled_with(read(paths)?)))
    };
    let (mut count, mut failures) = run(&others)?;
    if !warnings.is_empty() {
        let own: Vec<Checked> = warnings.iter().zip(&read(&warnings)?).map(|(path, file)| Checked::new(path, file)).collect();
        let (_, with_warnings) = run(&[others, warnings].concat())?;
        count += own.iter().map(|file| file.examples).sum::<usize>();
        failures.extend(with_warnings.into_iter().filter(|failure| own.iter().any(|file| file.ids.contains(&failure.rule))));
    }
    report(count, &failures.iter().collect::<Vec<_>>())
}

/// Checks each file as it will be used: together with the built-in rules, the configured files and the other named files.
fn check(files: &[PathBuf], args: &SetupArgs) -> Result<Exit, Failure> {
    let config = setup::config(args)?;
    let configured = setup::rule_paths(&config, &[]);
    let named = setup::in_folders(&[&args.rules[..], files].concat());
    let (mut around, checked) = if named.is_empty() { (Vec::new(), configured) } else { (configured, named) };
    if checked.is_empty() {
        return Err(Failure::new("rules check: which file? name it: siftd rules check FILE"));
    }
    let Parsed { others, warnings, problems } = Parsed::of(checked);
    let mut worst = Exit::Done;
    for group in [others, warnings] {
        if !group.is_empty() {
            worst = worst.max(check_among(&around, &group)?);
        }
        around.extend(group);
    }
    if problems.is_empty() { Ok(worst) } else { Err(Diagnostics(problems).into()) }
}

/// The files to check that can be read. The file of warnings is apart: a warning is an event with it and none without, so
/// the examples of the others hold only without it.
#[derive(Default)]
struct Parsed {
    others: Vec<PathBuf>,
    warnings: Vec<PathBuf>,
    /// Why the rest cannot be read.
    problems: Vec<Diagnostic>,
}

impl Parsed {
    fn of(paths: Vec<PathBuf>) -> Self {
        let mut parsed = Self::default();
        for path in paths {
            match read_once(&path) {
                Ok(file) if is_of_warnings(&file) => parsed.warnings.push(path),
                Ok(_) => parsed.others.push(path),
                Err(Diagnostics(problems)) => parsed.problems.extend(problems),
            }
        }
        parsed
    }
}

/// Whether a file is the one that `warnings = true` reads, or has the same rules.
fn is_of_warnings(file: &RulesFile) -> bool {
    let (name, text) = WARNING_FILE;
    parse(name, text, false).is_ok_and(|warnings| warnings.entries.iter().map(|entry| &entry.id).eq(file.entries.iter().map(|entry| &entry.id)))
}

/// Checks the files `checked`, which are read after the files `around`.
fn check_among(around: &[PathBuf], checked: &[PathBuf]) -> Result<Exit, Failure> {
    let (mut own, mut read, mut told) = (Vec::new(), Vec::new(), Vec::new());
    for path in around.iter().chain(checked) {
        let file = read_once(path)?;
        own.push(Checked::new(path, &file));
        read.push(file);
        told.push(setup::read_rules(path)?);
    }
    let rules = RuleSet::compiled_with(read);
    let own = &own[around.len()..];
    let untold = word_gate::untold(&rules).filter(|id| own.iter().any(|file| file.ids.iter().any(|own| own == id)));
    untold.for_each(|id| say(&format!("{id}: slow: no word stands in all that it matches, so it is asked of every line that may hold an error; give it one")));
    let (_, failures) = examples::run(&RuleSet::with_files(told), rules);
    own.iter().try_fold(Exit::Done, |worst, file| Ok(worst.max(file.report(&failures)?)))
}

/// What is reported of a checked file.
struct Checked {
    name: String,
    ids: Vec<String>,
    examples: usize,
}

impl Checked {
    fn new(path: &Path, file: &RulesFile) -> Self {
        let ids = file.entries.iter().map(|entry| &entry.id).chain(file.cancels.iter().map(|cancel| &cancel.id));
        let examples = file.entries.iter().map(|entry| &entry.examples).chain(file.cancels.iter().map(|cancel| &cancel.examples));
        Self {
            name: sanitise(&path.display().to_string()).into_owned(),
            ids: ids.cloned().collect(),
            examples: examples.map(|examples| examples.matching.len() + examples.no_match.len()).sum(),
        }
    }

    fn report(&self, failures: &[examples::Failure]) -> Result<Exit, Failure> {
        let wrong: Vec<&examples::Failure> = failures.iter().filter(|failure| self.ids.contains(&failure.rule)).collect();
        let exit = report(self.examples, &wrong)?;
        if exit == Exit::Done {
            print(&format!("{}: ok, {}\n", self.name, counted(self.ids.len() as u64, "rule")))?;
        }
        Ok(exit)
    }
}

/// Reads a file, and rejects equal ids within it, of which the second would silently win.
fn read_once(path: &Path) -> Result<RulesFile, Diagnostics> {
    let file = setup::read_rules(path)?;
    let mut seen = std::collections::HashSet::new();
    let ids = file.entries.iter().map(|entry| &entry.id).chain(file.cancels.iter().map(|cancel| &cancel.id));
    match ids.into_iter().find(|id| !seen.insert(*id)) {
        Some(id) => Err(written::repeated(&path.display().to_string(), &std::fs::read_to_string(path).unwrap_or_default(), id).into()),
        None => Ok(file),
    }
}

fn report(count: usize, failures: &[&examples::Failure]) -> Result<Exit, Failure> {
    for failure in failures {
        let text: String = failure.text.lines().map(|line| format!("    {line}\n")).collect();
        say(&format!("{}: an example does not hold:\n{text}  came to: {}", failure.rule, failure.got));
    }
    print(&format!("{} of {count} examples hold\n", count - failures.len()))?;
    Ok(if failures.is_empty() { Exit::Done } else { Exit::Trouble })
}

fn import(file: &Path) -> Result<Exit, Failure> {
    let is_stdin = file == Path::new("-");
    if is_stdin {
        stdin::needed("import", "name a file, or pipe one in", "rules import")?;
    }
    let name = if is_stdin { "stdin".to_owned() } else { file.display().to_string() };
    let whole = |problem: String| Diagnostics::from(Diagnostic::whole_file(&name, problem));
    let text = if is_stdin { std::io::read_to_string(std::io::stdin()) } else { std::fs::read_to_string(file) };
    let text = text.map_err(|error| whole(format!("cannot be read: {error}")))?;
    if !matcher::is_matcher(&text) {
        return print(&crate::config::import(&name, &text)?);
    }
    let imported = matcher::import(&name, &text).map_err(whole)?;
    for owner in &imported.left_out {
        say(&format!("{name}: the matcher of {owner:?} is left out: its problems are no errors"));
    }
    print(&imported.rules)
}

fn print(text: &str) -> Result<Exit, Failure> {
    super::out::print(text)
}
