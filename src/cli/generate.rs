//! `siftd completions` and `siftd man`: what a packager installs beside the binary.

mod page;

use std::path::Path;

use clap::{Command, CommandFactory};

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
        let mut command = Cli::command().disable_help_subcommand(true);
        command.build();
        pages(command, folder).map_err(fault)?;
        return Ok(Exit::Done);
    }
    out::print(&page::of(Cli::command())?.1)
}

/// Writes the page of a command and those of its subcommands.
fn pages(command: Command, folder: &Path) -> std::io::Result<()> {
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()).cloned() {
        pages(below, folder)?;
    }
    let (name, text) = page::of(command)?;
    std::fs::write(folder.join(name), text)
}
