//! `siftd run`: configuration and flags → the plan of a daemon, which then runs.

use super::args::RunArgs;
use super::{Exit, Failure, setup, stdin_is_given};
use crate::config::{Config, LogFormat, SinkKind};
use crate::core::redact;
use crate::daemon::{self, Again, Ended};
use crate::telemetry::log;

mod dry;
mod output;
mod peer;
mod plan;
mod services;

/// Whether this version can run what a configuration asks for; what may be in the way today only, one line each.
///
/// # Errors
/// The source or sink that it cannot, or what stands in the place of the state folder.
pub fn check(config: &Config) -> Result<Vec<String>, Failure> {
    plan::check(config)?;
    let mut hints = services::check(&config.sources, &config.state_dir)?;
    for sink in &config.sinks {
        match sink.kind {
            SinkKind::File => drop(output::in_folder(sink)?),
            _ => hints.extend(peer::check(sink)?),
        }
    }
    Ok(hints)
}

/// What of it `run` would leave out because siftd itself writes it, one line each.
///
/// # Errors
/// A glob is none.
pub fn matched(config: &Config) -> Result<Vec<String>, Failure> {
    plan::matched_of(config)
}

/// Whether a configuration says what is read or written.
fn is_configured(args: &RunArgs, config: &Config) -> bool {
    args.setup.config.is_some() || !config.sources.is_empty() || !config.sinks.is_empty()
}

fn again(args: RunArgs) -> Again {
    Box::new(move || {
        let setup = setup::load(&args.setup, args.reading.into());
        setup.and_then(|setup| plan::plan(&args, &setup)).map_err(|failure| failure.to_string())
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
    let mut plan = plan::plan(args, &setup)?;
    let matched = plan::own_matched(&plan.specs).into_iter().chain(plan::matched_again(&plan.specs));
    matched.for_each(|said| tracing::warn!("{said}"));
    for said in plan::unmatched(&plan.specs) {
        // Who runs it by hand may have mistyped; a service often begins before its logs do.
        if is_configured(args, &setup.config) { tracing::info!("{said}") } else { tracing::warn!("{said}") }
    }
    // What is said by flags alone stays as it was said: there SIGHUP means that the terminal was closed.
    plan.again = is_configured(args, &setup.config).then(|| again(args.clone()));
    match daemon::run(plan) {
        Ok(Ended::Well) => Ok(Exit::Done),
        Ok(Ended::Troubled) => Ok(Exit::Trouble),
        Err(why) => Err(Failure::new(why)),
    }
}
