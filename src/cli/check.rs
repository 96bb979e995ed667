//! `siftd check`: a configuration and all that it names, tried before the daemon does.

use super::args::CheckArgs;
use super::{Exit, Failure, setup};
use crate::sinks::human::sanitise;

pub fn check(args: &CheckArgs) -> Result<Exit, Failure> {
    let setup = setup::load(&args.setup, setup::Reading::default())?;
    let name = args.setup.config.as_ref().map_or("/etc/siftd".into(), |path| path.display().to_string());
    let (config, rules) = (&setup.config, &setup.engine.rules);
    println!("{}: ok ({} sources, {} sinks, {} rules)", sanitise(&name), config.sources.len(), config.sinks.len(), rules.entries.len() + rules.cancels.len());
    Ok(Exit::Done)
}
