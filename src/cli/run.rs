//! stub
use super::{Exit, Failure};
pub fn run(_: &super::args::RunArgs) -> Result<Exit, Failure> { Ok(Exit::Done) }
