//! `siftd check`: tries a configuration and everything that it names before the daemon does.

use std::path::PathBuf;

use super::args::CheckArgs;
use super::{Exit, Failure, attempts, out, run, say, setup};
use crate::config::Config;
use crate::diag::{Diagnostic, Diagnostics, Source};
use crate::rules::{Examples, RuleSet};
use crate::sinks::human::sanitise;
use crate::words::{counted, did_you_mean};

pub fn check(args: &CheckArgs) -> Result<Exit, Failure> {
    let setup = setup::load(&args.setup, setup::Reading::default())?;
    let name = args.setup.config.as_ref().map_or("/etc/siftd".into(), |path| path.display().to_string());
    let text = args.setup.config.as_ref().and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
    let wrong = unknown_rules(&setup.config, &args.setup.rules, &Source::new(&name, &text))?;
    let found = run::check(&setup.config);
    if !wrong.is_empty() || !found.wrong.is_empty() {
        return Ok(refuse(wrong, &found.wrong));
    }
    let matched = run::matched(&setup.config)?;
    attempts::hints(&setup.config).iter().chain(&found.hints).chain(&matched).for_each(|hint| say(&format!("hint: {hint}")));
    let (config, rules) = (&setup.config, &setup.engine.rules);
    let count = rules.entries.len() + rules.cancels.len();
    let name = match args.setup.config.is_some() || Config::is_written() {
        true => name,
        false => format!("no file in {name} (siftd.toml, conf.d/*.toml), the defaults"),
    };
    out::print(&format!(
        "{}: ok ({}, {}, {})\n",
        sanitise(&name),
        counted(config.sources.len() as u64, "source"),
        counted(config.sinks.len() as u64, "sink"),
        counted(count as u64, "rule")
    ))
}

fn refuse(unknown: Vec<Diagnostic>, wrong: &[Failure]) -> Exit {
    if !unknown.is_empty() {
        say(&Diagnostics(unknown));
    }
    run::refused(wrong)
}

/// Reports names that no rule has; `run` assumes that they belong to a rules file that is currently missing.
fn unknown_rules(config: &Config, more: &[PathBuf], source: &Source) -> Result<Vec<Diagnostic>, Diagnostics> {
    let mut all = config.clone();
    all.rules.disable.clear();
    all.error_detection.enabled = true;
    let set: RuleSet = setup::rule_set(&all, more, Examples::Skipped)?;
    let families = set.families.iter().map(|family| family.id.as_str());
    let known: Vec<&str> = setup::ids(&set).chain(families).collect();
    let overrides = config.error_detection.severity_overrides.keys().filter(|name| name.contains('.'));
    let named = config.rules.disable.iter().map(|id| ("disable", id)).chain(overrides.map(|id| ("severity_overrides", id)));
    let wrong = named.filter(|(_, id)| !known.contains(&id.as_str()));
    Ok(wrong.map(|(key, id)| unknown_rule(key, id, &known, source)).collect())
}

fn unknown_rule(key: &str, id: &str, known: &[&str], source: &Source) -> Diagnostic {
    let problem = format!("`{key}` names `{id}`, and no rule or family is called that");
    let place = source.text.find(id).map(|at| at..at + id.len());
    let diagnostic = place.map_or_else(|| Diagnostic::whole_file(&source.name, &problem), |span| source.error(span, &problem));
    diagnostic.with_key(key).with_mend(did_you_mean(id, known).unwrap_or_else(|| "`siftd rules list` shows all".to_owned()))
}
