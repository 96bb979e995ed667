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
        if folder.is_file() {
            return Err(Failure::new(format!("{}: this is a file; name a folder for the pages", folder.display())));
        }
        let fault = |error| Failure::new(format!("{}: {error}", folder.display()));
        std::fs::create_dir_all(folder).map_err(fault)?;
        let mut command = Cli::command().disable_help_subcommand(true);
        command.build();
        pages(command, folder).map_err(fault)?;
        return Ok(Exit::Done);
    }
    out::print(&page::of(Cli::command().disable_help_subcommand(true))?.1)
}

/// Writes the page of a command and those of its subcommands.
fn pages(command: Command, folder: &Path) -> std::io::Result<()> {
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()).cloned() {
        pages(below, folder)?;
    }
    let (name, text) = page::of(command)?;
    std::fs::write(folder.join(name), text)
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;
    use clap_complete::Shell;

    use super::*;

    /// Returns all commands, each built.
    fn all() -> Vec<Command> {
        fn add(command: Command, all: &mut Vec<Command>) {
            command.get_subcommands().cloned().for_each(|below| add(below, all));
            all.push(command);
        }
        let (mut command, mut found) = (Cli::command().disable_help_subcommand(true), Vec::new());
        command.build();
        add(command, &mut found);
        found
    }

    /// The long flags of a command.
    fn flags(command: &Command) -> impl Iterator<Item = &str> {
        command.get_arguments().filter(|arg| !arg.is_hide_set()).filter_map(|arg| arg.get_long())
    }

    /// The forms of output that the flags of a command offer.
    fn formats(command: &Command) -> Vec<String> {
        let formats = command.get_arguments().filter(|arg| arg.get_long().is_some_and(|long| long.ends_with("format")));
        formats.flat_map(|arg| arg.get_possible_values()).map(|value| value.get_name().to_owned()).collect()
    }

    #[test]
    fn pages_and_scripts_have_every_flag_and_format() {
        for command in all() {
            let (name, page) = page::of(command.clone()).unwrap();
            let page = page.replace("\\-", "-");
            let missing: Vec<&str> = flags(&command).filter(|flag| !page.contains(&format!("--{flag}"))).collect();
            assert!(missing.is_empty(), "{name} lacks {missing:?}");
            assert!(formats(&command).iter().all(|format| page.contains(format)), "{name}");
        }
        for shell in Shell::value_variants() {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "siftd", &mut script);
            let script = String::from_utf8(script).unwrap();
            for command in all() {
                assert!(flags(&command).all(|flag| script.contains(flag)), "{shell}: {}", command.get_name());
                assert!(*shell == Shell::Elvish || *shell == Shell::PowerShell || formats(&command).iter().all(|format| script.contains(format)), "{shell}");
            }
        }
    }

    #[test]
    fn the_pages_have_every_flag_and_format() {
        let pages = concat!(include_str!("../../README.md"), include_str!("../../config/rules/README.md"), include_str!("../../systemd/README.md"));
        for command in all() {
            let missing: Vec<&str> = flags(&command).filter(|flag| !["help", "version"].contains(flag) && !pages.contains(&format!("--{flag}"))).collect();
            assert!(missing.is_empty(), "no page has {missing:?} of {}", command.get_name());
            let is_named = |format: &String| pages.contains(&format!("--format {format}")) || pages.contains(&format!("`{format}`"));
            let missing: Vec<String> = formats(&command).into_iter().filter(|format| !is_named(format)).collect();
            assert!(missing.is_empty(), "no page has {missing:?} of {}", command.get_name());
        }
    }
}
