//! Says that a test is skipped. Included by the tests that need a tool or a right.

use std::fmt::Display;
use std::io::{Write, stderr};

/// Says what a test needs that is missing here. `println!` would not do: of a test that passes, nobody
/// sees what it prints, and `.ci/run` fails if it finds one of these lines.
pub fn skipped(needs: impl Display) {
    let _ = writeln!(stderr(), "skipped: needs {needs}");
}
