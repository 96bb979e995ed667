//! argv → command → exit code. Everything else is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    siftd::cli::main()
}
