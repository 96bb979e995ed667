//! stub
use super::{Exit, Failure};
pub fn explain(_: &super::args::ExplainArgs) -> Result<Exit, Failure> { Ok(Exit::Done) }
