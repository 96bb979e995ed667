//! Turns a configuration into an engine: limits, built-in rules, a user's files, custom patterns. Used
//! by every command that reads a log. All mistakes are returned as diagnostics; nothing is printed here.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use md5::{Digest, Md5};

use super::Failure;
use super::args::{ReadMode, ReadingArgs, SetupArgs};
use crate::config::{Config, ErrorDetection, User};
use crate::core::breaker;
use crate::core::engine::{Engine, Limits};
use crate::core::pipeline::Stream;
use crate::core::transcript::Mode;
use crate::diag::{Diagnostic, Diagnostics, Source};
use crate::rules::{Examples, RuleSet, RulesFile, WARNING_FILE, builtin_files, entries_with, parse, parse_beside};
use crate::sources::expand::{Input, expand};
use crate::sources::input::Opened;
use crate::state::{history, ledger};

mod custom;

/// Maximum number of bytes kept of a trace; the configuration bounds its lines.
const MAX_TRACE_BYTES: usize = 256 << 10;

/// A configuration and what results from it.
pub struct Setup {
    /// The configuration as read.
    pub config: Config,
    /// Rules and limits.
    pub engine: Arc<Engine>,
    /// A fingerprint of configuration and rules: equal if both are made of the same parts.
    pub print: [u8; 16],
    /// Names in `[rules] disable` that no rule has.
    unknown: Vec<String>,
}

impl Setup {
    /// Describes mistakes in the configuration that do not prevent its use.
    pub fn slips(&self) -> impl Iterator<Item = String> {
        self.unknown.iter().map(|id| format!("`disable` names `{}`, and no rule or family is called that: `siftd check` shows where", id.escape_debug()))
    }
}

/// Flags that control how a log is read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reading {
    /// `--context`
    pub context: Option<u16>,
    /// `--mode`
    pub mode: ReadMode,
}

impl From<ReadingArgs> for Reading {
    fn from(args: ReadingArgs) -> Self {
        Self { context: args.context, mode: args.mode }
    }
}

/// Reads the configuration.
pub fn load(args: &SetupArgs, reading: Reading) -> Result<Setup, Failure> {
    let mut config = config(args)?;
    if let Some(lines) = reading.context {
        config.error_detection.max_context_lines = u32::from(lines) * 2 + 1;
    }
    // Work on a second core decides how soon the first event appears. With one core nothing is lost.
    let aside = |name: &str| thread::Builder::new().name(name.into());
    let alone = !changes_rules(&config, &args.rules);
    let tables = aside("tables").spawn(move || Engine::prepare_tables(alone));
    let (rules, unknown) = rules_left(&config, &args.rules, Examples::Skipped)?;
    let limits = Limits { mode: reading.mode.into(), ..limits(&config) };
    let engine = Arc::new(Engine::new(rules, limits));
    let prepared = engine.clone();
    drop((tables, aside("prepare").spawn(move || prepared.prepare())));
    let print = print(&config, &args.rules, reading);
    Ok(Setup { config, engine, print, unknown })
}

/// Tells a stream what is known of its input: a file has an end and is at hand, a pipe may go on.
pub fn over(stream: Stream, opened: &Opened) -> Stream {
    if opened.live { stream } else { stream.of_finished().with_whole_context() }
}

fn print(config: &Config, more: &[PathBuf], reading: Reading) -> [u8; 16] {
    let mut hash = Md5::new();
    hash.update(format!("{:?}{:?}{:?}{reading:?}", config.error_detection, config.limits, config.rules));
    for path in rule_paths(config, more) {
        // A file that has disappeared contributes no rules.
        let text = std::fs::read(&path).unwrap_or_default();
        hash.update(format!("{path:?}{}", text.len()));
        hash.update(&text);
    }
    hash.finalize().into()
}

/// Returns the setup without any file.
pub fn builtin_setup() -> Setup {
    let config = Config::default();
    let engine = Arc::new(Engine::new(RuleSet::compiled(), limits(&config)));
    Setup { config, engine, print: [0; 16], unknown: Vec::new() }
}

/// Returns the configuration alone.
pub fn config(args: &SetupArgs) -> Result<Config, Diagnostics> {
    Config::load(args.config.as_deref(), &User::current(), &custom::check_literals)
}

/// Words why the state in a folder cannot be used. A user without a home gets the folder of the system's siftd, and did not ask for it.
pub fn state_failure(folder: &Path, why: &str) -> Failure {
    let is_stray = folder == Config::default().state_dir && User::current().is_homeless();
    let note = if is_stray { "\n  = note: HOME is not set, so this is where your state is looked for: set it, or name a folder with --state-dir" } else { "" };
    Failure::new(format!("{why}{note}"))
}

/// Returns the built-in rules, those of the configuration, and those of `more` files.
pub fn rule_set(config: &Config, more: &[PathBuf], examples: Examples) -> Result<RuleSet, Diagnostics> {
    rules_left(config, more, examples).map(|(set, _)| set)
}

/// Like [`rule_set`], and also returns the names in `disable` that no rule has.
fn rules_left(config: &Config, more: &[PathBuf], examples: Examples) -> Result<(RuleSet, Vec<String>), Diagnostics> {
    if !config.error_detection.enabled {
        return Ok(<(RuleSet, Vec<String>)>::default());
    }
    let more = files_beside(config, more)?;
    let mut set = match examples {
        Examples::Skipped => RuleSet::compiled_with(more),
        Examples::Read => RuleSet::with_files(builtin_files(examples).into_iter().chain(more).collect()),
    };
    let unknown = if config.rules.disable.is_empty() { Vec::new() } else { set.disable(&config.rules.disable) };
    Ok((set, unknown))
}

/// Reads the rules that are added to the built-in ones, and reports their mistakes.
pub fn check_rules(config: &Config, more: &[PathBuf]) -> Result<(), Failure> {
    Ok(files_beside(config, more).map(drop)?)
}

/// Whether the rules differ from the built-in ones.
fn changes_rules(config: &Config, more: &[PathBuf]) -> bool {
    let detection = &config.error_detection;
    !detection.enabled || detection.warnings || !config.rules.disable.is_empty() || custom::rules(detection).is_some() || !rule_paths(config, more).is_empty()
}

/// Returns the rules that are added to the built-in ones, in order: a later one overrides.
fn files_beside(config: &Config, more: &[PathBuf]) -> Result<Vec<RulesFile>, Diagnostics> {
    let mut files = Vec::new();
    if config.error_detection.warnings {
        let (name, text) = WARNING_FILE;
        files.extend(parse(name, text, false));
    }
    for path in rule_paths(config, more) {
        files.push(read_rules(&path)?);
    }
    files.extend(custom::rules(&config.error_detection));
    Ok(files)
}

/// Returns the ids of all entries and cancels.
pub fn ids(set: &RuleSet) -> impl Iterator<Item = &str> {
    set.entries.iter().map(|entry| entry.id.as_str()).chain(set.cancels.iter().map(|cancel| cancel.id.as_str()))
}

/// Reads and checks one rules file, to be added to the built-in rules. Its rules take precedence over them.
pub fn read_rules(path: &Path) -> Result<RulesFile, Diagnostics> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| match error.kind() {
        ErrorKind::IsADirectory => Diagnostic::whole_file(&name, "no .toml file in it").with_mend("name a file of rules, or a folder of them"),
        ErrorKind::InvalidData => Diagnostic::whole_file(&name, "is not UTF-8 text").with_mend("save it as UTF-8"),
        _ => {
            let mend = "check that it exists, is UTF-8 text, and may be read";
            Diagnostic::whole_file(&name, format!("cannot be read: {error}")).with_mend(mend)
        }
    })?;
    let source = Source::new(&name, &text);
    let file = parse_beside(&name, &source.text, true, &uses_beside(&source.text)).map_err(|problems| {
        let shown = problems.into_iter().map(|p| source.error(p.span, p.problem).with_key(p.key).with_mend(p.mend));
        Diagnostics(shown.collect())
    })?;
    Ok(RulesFile { first: true, ..file })
}

/// Counts the built-in entries that have a literal, without those that the file `text` replaces.
fn uses_beside(text: &str) -> impl Fn(&str) -> usize {
    let own = parse("", text, false).map(|file| file.entries).unwrap_or_default();
    move |literal| entries_with(literal).filter(|id| !own.iter().any(|own| own.id == *id)).count()
}

/// Returns a user's rules files, in order: a later one overrides. First come
/// those of `[rules] files`, where a glob may match nothing, then `more`.
pub fn rule_paths(config: &Config, more: &[PathBuf]) -> Vec<PathBuf> {
    let names: Vec<PathBuf> = config.rules.files.iter().map(PathBuf::from).collect();
    let (inputs, _) = expand(&names);
    let found = inputs.into_iter().filter_map(|input| match input {
        Input::Named(path) | Input::Found(path) => Some(path),
        Input::Stdin => None,
    });
    found.chain(in_folders(more)).collect()
}

/// Expands each folder to its files that end in `.toml`. A folder
/// without any is kept, so that reading it reports the problem.
pub fn in_folders(named: &[PathBuf]) -> Vec<PathBuf> {
    named.iter().flat_map(|path| Some(toml_files(path)).filter(|files| !files.is_empty()).unwrap_or_else(|| vec![path.clone()])).collect()
}

fn toml_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    files
}

/// Returns the bounds of the history and the limits of the breakers.
pub fn ledger_rules(config: &Config) -> ledger::Rules {
    let micros = |time: Duration| i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
    let (breaker, history) = (&config.breaker, &config.history);
    let kept = history::Rules {
        max_rows: u64::from(history.max_signatures),
        max_age_us: micros(history.max_age),
        regressed_after_us: micros(history.regressed_after),
    };
    let limits = breaker::Limits {
        warn_after: breaker.warn_after,
        open_after: breaker.open_after,
        transient_open_after: breaker.transient_open_after,
        cooldown_us: micros(breaker.cooldown),
        stream_window_us: micros(breaker.stream_window),
        stream_quiet_us: micros(breaker.stream_quiet),
    };
    ledger::Rules { history: history.enabled.then_some(kept), breaker: limits, streams: breaker.streams }
}

fn limits(config: &Config) -> Limits {
    let (detection, limits): (&ErrorDetection, _) = (&config.error_detection, &config.limits);
    Limits {
        max_line_bytes: limits.max_line_bytes as usize,
        max_trace_lines: limits.max_trace_lines as usize,
        max_trace_bytes: MAX_TRACE_BYTES,
        trace_idle_us: limits.trace_idle.as_micros() as i64,
        max_context_lines: detection.max_context_lines as usize,
        max_stack_depth: detection.max_stack_depth as usize,
        capture_multiline: detection.capture_multiline,
        two_stage: detection.two_stage,
        mode: Mode::Auto,
        severity_overrides: detection.severity_overrides.iter().map(|(name, severity)| (name.clone(), *severity)).collect(),
    }
}
