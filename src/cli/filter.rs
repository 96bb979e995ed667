//! stub
use super::{Exit, Failure};
pub fn filter(_: &super::args::FilterArgs) -> Result<Exit, Failure> { Ok(Exit::Done) }
