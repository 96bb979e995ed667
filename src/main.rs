//! argv → command → exit code. All else is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    siftd::cli::main()
}
