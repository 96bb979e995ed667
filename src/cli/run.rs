//! `siftd run`: configuration and flags → the plan of a daemon, which then runs.

use super::args::RunArgs;
use super::{Exit, Failure, setup, stdin_is_given};
use crate::config::Config;
use crate::daemon::{self, Ended};

mod dry;
mod output;
mod peer;
mod plan;

/// Whether this version can run what a configuration asks for.
///
/// # Errors
/// The source or sink that it cannot.
pub fn check(config: &Config) -> Result<(), Failure> {
    plan::check_sources(config)?;
    config.sinks.iter().try_for_each(peer::check)
}

pub fn run(args: &RunArgs) -> Result<Exit, Failure> {
    crate::telemetry::init();
    let setup = setup::load(&args.setup, setup::Reading { context: args.context, mode: args.mode })?;
    if args.dry_run {
        return dry::run(args, &setup);
    }
    let plan = plan::plan(args, &setup)?;
    match daemon::run(plan) {
        Ok(Ended::Well) => Ok(Exit::Done),
        Ok(Ended::Troubled) => Ok(Exit::Trouble),
        Err(why) => Err(Failure::new(why)),
    }
}
