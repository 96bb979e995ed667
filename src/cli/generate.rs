//! `siftd completions` and `siftd man`: what a packager installs beside the binary.

use clap::CommandFactory;

use super::args::{Cli, CompletionsArgs, ManArgs};
use super::{Exit, Failure, out};

pub fn completions(args: &CompletionsArgs) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "siftd", &mut script);
    out::write(&script)
}

pub fn man(args: &ManArgs) -> Result<Exit, Failure> {
    if let Some(folder) = &args.dir {
        let fault = |error| Failure::new(format!("{}: {error}", folder.display()));
        std::fs::create_dir_all(folder).map_err(fault)?;
        clap_mangen::generate_to(Cli::command(), folder).map_err(fault)?;
        return Ok(Exit::Done);
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(Cli::command()).render(&mut page)?;
    out::write(&page)
}
