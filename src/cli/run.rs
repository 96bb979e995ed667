//! `siftd run`: turns configuration and flags into the plan of a daemon, and runs it.

use std::fmt;

use super::args::RunArgs;
use super::{Exit, Failure, say, setup};
use crate::config::{Config, LogFormat, SinkKind};
use crate::core::redact;
use crate::daemon::{self, Again, Ended, Obstacles};
use crate::telemetry::log;

mod dry;
mod output;
mod peer;
mod plan;
mod services;

/// What a check of a configuration finds.
#[derive(Default)]
pub struct Found {
    /// What `run` would refuse, in the order in which it would come to that.
    pub wrong: Vec<Failure>,
    /// Problems that may exist only today, one per line.
    pub hints: Vec<String>,
}

/// Checks that this version can run the configuration: its sources, its sinks and the state folder.
pub fn check(config: &Config) -> Found {
    let mut found = Found { wrong: plan::check(config), hints: Vec::new() };
    for sink in &config.sinks {
        let checked = match sink.kind {
            SinkKind::File => output::in_folder(sink).map(|_| None),
            _ => peer::check(sink),
        };
        match checked {
            Ok(hint) => found.hints.extend(hint),
            Err(wrong) => found.wrong.push(wrong),
        }
    }
    // Without a source, no state is kept.
    let state = Some(config.state_dir.as_path()).filter(|_| !config.sources.is_empty());
    found.wrong.extend(plan::check_state(state).err());
    let services = services::check(&config.sources, &config.state_dir);
    found.wrong.extend(services.wrong);
    found.hints.extend(services.hints);
    found
}

/// Returns what `run` would leave out, such as siftd's own output, one per line.
///
/// # Errors
/// A glob is invalid.
pub fn matched(config: &Config) -> Result<Vec<String>, Failure> {
    plan::matched_of(config)
}

/// Whether a configuration names what is read or written.
fn is_configured(args: &RunArgs, config: &Config) -> bool {
    args.setup.config.is_some() || !config.sources.is_empty() || !config.sinks.is_empty()
}

fn again(args: RunArgs) -> Again {
    Box::new(move || {
        let setup = setup::load(&args.setup, args.reading.into()).map_err(|failure| failure.to_string())?;
        let all = |wrong: Vec<Failure>| wrong.iter().map(Failure::to_string).collect::<Vec<_>>().join("\n");
        plan::plan(&args, &setup).map_err(all)
    })
}

pub fn run(args: &RunArgs) -> Result<Exit, Failure> {
    let setup = setup::load(&args.setup, args.reading.into())?;
    let form = match setup.config.telemetry.log_format {
        LogFormat::Auto => log::Form::fitting(),
        LogFormat::Text => log::Form::Text,
        LogFormat::Json => log::Form::Json,
        LogFormat::Journald => log::Form::Journald,
    };
    log::init(form, redact::clean);
    if args.dry_run {
        return dry::run(args, &setup);
    }
    setup.slips().for_each(|said| tracing::warn!("{said}"));
    let mut plan = match plan::plan(args, &setup) {
        Ok(plan) => plan,
        Err(wrong) => return Ok(refused(&wrong)),
    };
    let matched = plan::own_matched(&plan.specs).into_iter().chain(plan::matched_again(&plan.specs));
    matched.for_each(|said| tracing::warn!("{said}"));
    for said in plan::unmatched(&plan.specs) {
        // A person may have mistyped the name; a service often starts before its logs exist.
        if is_configured(args, &setup.config) { tracing::info!("{said}") } else { tracing::warn!("{said}") }
    }
    // A configuration given only by flags is not reloaded: there SIGHUP means that the terminal was closed.
    plan.again = is_configured(args, &setup.config).then(|| again(args.clone()));
    match daemon::run(plan) {
        Ok(Ended::Well) => Ok(Exit::Done),
        Ok(Ended::Troubled) => Ok(Exit::Trouble),
        Err(Obstacles(all)) => Ok(refused(&all)),
    }
}

/// Says all that is wrong, so that one look at it is enough.
pub fn refused(wrong: &[impl fmt::Display]) -> Exit {
    wrong.iter().for_each(say);
    Exit::Trouble
}
