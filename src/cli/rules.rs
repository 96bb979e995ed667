//! stub
use super::{Exit, Failure};
pub fn rules(_: &super::args::RulesArgs) -> Result<Exit, Failure> { Ok(Exit::Done) }
