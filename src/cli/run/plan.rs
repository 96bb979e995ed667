//! Turns flags and blocks of the configuration into the plan of a daemon for `run`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::super::setup::Setup;
use super::super::setup::ledger_rules;
use super::super::{Failure, identity, out, stdin};
use super::{RunArgs, output, services};
use crate::config::{Config, Listen, SinkKind, SocketMode, SourceConfig, SourceKind, StartAt};
use crate::daemon::{Plan, SinkPlan};
use crate::sources::discover::{Spec, Start};
use crate::sources::follow::IS_FOLDER;
use crate::sources::input::Identity;
use crate::sources::silence::Limit;
use crate::sources::socket::passed::Passed;
use crate::state::folder;
use crate::state::withhold::Rules;
use crate::telemetry::http;
use crate::words::such_files;

/// How long a rotated file of `--file` is still read.
const ROTATE_WAIT: Duration = Duration::from_secs(5);

/// The inputs of `run`.
pub struct Sources {
    /// Files.
    pub specs: Vec<Spec>,
    /// Everything else.
    pub services: Vec<SourceConfig>,
}

/// Returns the sources and the sinks, or all that is wrong with them.
pub fn ends(args: &RunArgs, config: &Config) -> Result<(Sources, Vec<SinkPlan>), Vec<Failure>> {
    let mut wrong = Vec::new();
    let sources = Sources::new(args, config).map_err(|found| wrong.extend(found));
    let sinks = output::sinks(args, config).map_err(|found| wrong.extend(found));
    if let (Ok(sources), Ok(sinks)) = (sources, sinks) {
        return Ok((sources, sinks));
    }
    // What would come out only at the next start, once these are mended.
    let state = state_dir(args, config);
    wrong.extend(check_state(state.as_deref()).err());
    wrong.extend(services::check(&config.sources, state.as_deref().unwrap_or(&config.state_dir)).wrong);
    Err(wrong)
}

pub fn plan(args: &RunArgs, setup: &Setup) -> Result<Plan, Vec<Failure>> {
    let config = &setup.config;
    let (sources, sinks) = ends(args, config)?;
    let per_second = config.sources.iter().map(|source| (source.name.clone(), source.max_events_per_second)).collect();
    let repeat_window_us = i64::try_from(config.delivery.repeat_window.as_micros()).unwrap_or(i64::MAX);
    Ok(Plan {
        config: config.clone(),
        rules_print: setup.print,
        listen: config.telemetry.listen.as_ref().map(|listen| match listen {
            Listen::Address(address) => http::Place::Address(*address),
            Listen::Socket(path) => http::Place::Socket(path.clone()),
        }),
        again: None,
        engine: setup.engine.clone(),
        specs: sources.specs,
        services: sources.services,
        passed: Passed::from_env(),
        nonce: identity::nonce,
        id_of: identity::of_followed,
        sinks,
        state: state_dir(args, config),
        withhold: Rules { per_second, repeat_window_us },
        silence: silence(config),
        ledger: ledger_rules(config),
        on_open: config.breaker.on_open.clone(),
        outbox_max: config.delivery.outbox_max,
        dropping: output::dropping(args, config),
        grace: config.delivery.shutdown_grace,
        host: identity::host(),
        max_event_bytes: config.limits.max_event_bytes as usize,
        own: output::own(),
        labels: output::labels(config),
    })
}

fn silence(config: &Config) -> HashMap<String, Limit> {
    let limit = |source: &SourceConfig| {
        let by_stream = match source.kind {
            SourceKind::File | SourceKind::Tcp => true,
            SourceKind::Unix => source.mode == SocketMode::Stream,
            // Peers that send datagrams have no end, and a command may have nothing to print.
            SourceKind::Udp | SourceKind::Command | SourceKind::Journald | SourceKind::Stdin => false,
        };
        let after_us = i64::try_from(source.silence.as_micros()).unwrap_or(i64::MAX);
        (source.name.clone(), Limit { after_us, kind: source.kind.as_str(), by_stream })
    };
    config.sources.iter().filter(|source| !source.silence.is_zero()).map(limit).collect()
}

/// Returns the folder for positions and for records that wait for sinks. Sources
/// of a configuration always have one; flags alone only have one on request.
pub fn state_dir(args: &RunArgs, config: &Config) -> Option<PathBuf> {
    args.state_dir.clone().or_else(|| (!config.sources.is_empty()).then(|| config.state_dir.clone()))
}

impl Sources {
    fn new(args: &RunArgs, config: &Config) -> Result<Self, Vec<Failure>> {
        let mut sources = Self { specs: Vec::new(), services: Vec::new() };
        let mut wrong = sources.flags(args);
        for source in &config.sources {
            match source.kind {
                SourceKind::File => match spec(source) {
                    Ok(spec) => sources.specs.push(spec),
                    Err(why) => wrong.push(why),
                },
                _ => sources.services.push(source.clone()),
            }
        }
        wrong.extend(one_reads_stdin(&sources.services).err());
        if !wrong.is_empty() {
            return Err(wrong);
        }
        sources.complete(args, config).map_err(|why| vec![why])
    }

    /// Adds stdin if nothing is named, and leaves out what siftd itself writes.
    fn complete(mut self, args: &RunArgs, config: &Config) -> Result<Self, Failure> {
        if self.specs.is_empty() && self.services.is_empty() {
            stdin::needed("follow", "name files with --file, sources with --config, or pipe a log in", "run")?;
            self.services.push(SourceConfig::new("stdin", SourceKind::Stdin));
        }
        leave_out_own(&mut self.specs, (state_dir(args, config), args.output.clone()), config)?;
        self.reads_more_than_it_writes()?;
        Ok(self)
    }

    /// Checks that siftd's own output is not all there is to read: nothing would ever come of it.
    fn reads_more_than_it_writes(&self) -> Result<(), Failure> {
        let stdout = out::regular_stdout();
        let is_named = |spec: &Spec, path: &PathBuf| spec.is_own(path) || path.canonicalize().is_ok_and(|real| spec.is_own(&real));
        let is_own = |spec: &Spec, path: &PathBuf| is_named(spec, path) || stdout.is_some_and(|own| Identity::at(path).is_ok_and(|there| there == own));
        let is_only_own = |spec: &Spec| spec.globs_nothing() && spec.literals.iter().all(|path| is_own(spec, path));
        match self.specs.iter().find_map(|spec| Some((spec, spec.literals.first()?))) {
            Some((spec, own)) if self.services.is_empty() && self.specs.iter().all(is_only_own) => {
                Err(Failure::new(format!("{}: is siftd's own output, and nothing else is to be read: write to another file with --output", spec.shown(own))))
            }
            _ => Ok(()),
        }
    }

    /// Takes what the flags name; returns what is wrong with it.
    fn flags(&mut self, args: &RunArgs) -> Vec<Failure> {
        let (stdin, files): (Vec<_>, Vec<_>) = args.file.iter().partition(|name| name.as_os_str() == "-");
        if !stdin.is_empty() {
            self.services.push(SourceConfig::new("stdin", SourceKind::Stdin));
        }
        if files.is_empty() {
            return Vec::new();
        }
        let mut spec = match Spec::new("run", Start::Beginning, ROTATE_WAIT) {
            Ok(spec) => spec,
            Err(why) => return vec![Failure(why)],
        };
        let include = |name: &PathBuf| spec.include(name).err().map(|why| Failure::new(format!("--file {}: {why}", name.display())));
        let wrong = files.into_iter().filter_map(include).collect();
        self.specs.push(spec);
        wrong
    }
}

fn one_reads_stdin(sources: &[SourceConfig]) -> Result<(), Failure> {
    let mut of_stdin = sources.iter().filter(|source| source.kind == SourceKind::Stdin);
    let (Some(one), Some(other)) = (of_stdin.next(), of_stdin.next()) else { return Ok(()) };
    Err(Failure::new(format!("sources {:?} and {:?} both read stdin, which only one can: leave one out", one.name, other.name)))
}

/// Returns for `siftd check` which sources would keep `run` from starting, or make it end badly,
/// for any user: two that read stdin, or one that names a folder.
pub fn check(config: &Config) -> Vec<Failure> {
    let named = config.sources.iter().flat_map(|source| source.include.iter().map(move |name| (source, name)));
    let folders = named.filter(|(_, name)| Path::new(name).is_dir());
    let folders = folders.map(|(source, name)| Failure::new(format!("source {:?}: {name}: {IS_FOLDER}", source.name)));
    one_reads_stdin(&config.sources).err().into_iter().chain(folders).collect()
}

/// Checks that nothing else is in the place of the state folder, if a state is kept.
pub fn check_state(folder: Option<&Path>) -> Result<(), Failure> {
    let obstacle = folder.and_then(|folder| Some((folder, folder::in_the_way(folder)?)));
    obstacle.map_or(Ok(()), |(folder, why)| Err(Failure::new(format!("state folder {}: {why}", folder.display()))))
}

/// Excludes from globs what this daemon itself writes: its state, and the files of its sinks.
fn leave_out_own(specs: &mut [Spec], (state, output): (Option<PathBuf>, Option<PathBuf>), config: &Config) -> Result<(), Failure> {
    let files = config.sinks.iter().filter(|sink| sink.kind == SinkKind::File).filter_map(|sink| sink.path.clone());
    let own: Vec<PathBuf> = files.chain(state).chain(output).collect();
    let mut each = specs.iter_mut();
    each.try_for_each(|spec| own.iter().try_for_each(|own| spec.leave_out_own(own))).map_err(Failure)
}

/// Returns the files that sources leave out because siftd writes them, one per line.
pub fn own_matched(specs: &[Spec]) -> Vec<String> {
    let one = |spec: &Spec, own: &Path| format!("source {}: {} is siftd's own and is left out", spec.name, own.display());
    specs.iter().flat_map(|spec| spec.own_matched().into_iter().map(move |own| one(spec, own))).collect()
}

/// Returns files that several sources match, one line for each later source: the first source reads the file.
pub fn matched_again(specs: &[Spec]) -> Vec<String> {
    let (mut first, mut said) = (HashMap::new(), Vec::new());
    for spec in specs {
        let files = spec.literals.iter().filter(|path| path.is_file()).cloned().chain(spec.matches());
        let owned = files.map(|path| (*first.entry(path.clone()).or_insert(&spec.name), path)).filter(|(owner, _)| **owner != spec.name);
        let taken: Vec<(&String, PathBuf)> = owned.collect();
        if let Some((owner, path)) = taken.first() {
            let (path, more) = (spec.shown(path), such_files(taken.len()));
            said.push(format!("source {}: {path} is read for source {owner}, which matches it first{more}", spec.name));
        }
    }
    said
}

/// Returns the remarks on files for `siftd check`, which follows nothing.
pub fn matched_of(config: &Config) -> Result<Vec<String>, Failure> {
    let files = config.sources.iter().filter(|source| source.kind == SourceKind::File);
    let mut specs: Vec<Spec> = files.map(spec).collect::<Result<_, _>>()?;
    leave_out_own(&mut specs, (Some(config.state_dir.clone()), None), config)?;
    Ok(own_matched(&specs).into_iter().chain(matched_again(&specs)).collect())
}

/// Returns globs that match nothing yet, one per line.
pub fn unmatched(specs: &[Spec]) -> Vec<String> {
    let one = |spec: &Spec, glob: String| format!("source {}: {glob} matches no file yet; waiting for one", spec.name);
    specs.iter().flat_map(|spec| spec.unmatched().into_iter().map(move |glob| one(spec, glob))).collect()
}

fn spec(source: &SourceConfig) -> Result<Spec, Failure> {
    let start = match source.start_at {
        StartAt::Beginning => Start::Beginning,
        StartAt::End => Start::End,
    };
    let fault = |why: String| Failure::new(format!("source {:?}: {why}", source.name));
    let mut spec = Spec::new(&source.name, start, source.rotate_wait).map_err(fault)?;
    spec.forget_after = source.forget_after;
    for name in &source.include {
        spec.include(Path::new(name)).map_err(fault)?;
    }
    for name in &source.exclude {
        spec.exclude(Path::new(name)).map_err(fault)?;
    }
    for folder in &source.follow_links_into {
        spec.follow_links_into(folder);
    }
    Ok(spec)
}
