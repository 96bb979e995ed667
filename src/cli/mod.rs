//! The command line: takes arguments, returns an exit code. Each subcommand has a file that wires the library
//! together and prints; `setup` turns a configuration into an engine. Nothing here judges a log line.

mod args;
mod attempts;
mod breaker;
mod check;
mod classify;
mod digest;
mod exec;
mod explain;
mod filter;
mod generate;
mod help;
mod history;
mod identity;
mod judge;
mod objects;
mod order;
mod out;
mod progress;
mod replay;
mod rules;
mod run;
mod scan;
mod service;
mod setup;
mod signature;
mod slips;
mod state;
mod status;
mod stdin;
mod table;
mod unread;

use std::fmt;
use std::io::Write;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};

use crate::core::redact::clean;
use crate::diag::Diagnostics;
use crate::exec::{keeper, relay};
use crate::sinks::human::sanitise;
use args::{Cli, Command};

/// How a command ended; the numbers are part of the documented interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// 0
    Done,
    /// 1: what `--fail-on` asked for.
    Found,
    /// 2: usage, configuration, or an input that cannot be read.
    Trouble,
    /// 10: a breaker is half open.
    HalfOpen = 10,
    /// 11: a breaker is open.
    Open,
    /// 125: `exec` itself failed and ran nothing, as for env(1) and timeout(1); 2 could be the command's own.
    NotRun = 125,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why a command could not do its work; printed as is.
#[derive(Debug)]
pub struct Failure(String);

impl Failure {
    fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<Diagnostics> for Failure {
    fn from(diagnostics: Diagnostics) -> Self {
        Self(diagnostics.to_string())
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self(error.to_string())
    }
}

/// Runs the command that the arguments name.
#[must_use]
pub fn main() -> ExitCode {
    if relay::is_wanted() {
        relay::copy();
        return Exit::Done.into();
    }
    if keeper::is_wanted() {
        keeper::keep();
        return Exit::Done.into();
    }
    let cli = parsed().unwrap_or_else(|error| answer(error));
    carry_out(cli.command, cli.color)
}

/// Says why there is no command to run, or prints the help or version that was asked for, and exits.
fn answer(error: clap::Error) -> ! {
    let args: Vec<String> = std::env::args_os().skip(1).map(|arg| arg.to_string_lossy().into_owned()).collect();
    let error = slips::explain(error, &args);
    if error.use_stderr() && slips::command_of(&args) == Some("exec") {
        // If stderr is closed or full, the message is lost.
        drop(error.print());
        std::process::exit(Exit::NotRun as i32);
    }
    if error.use_stderr() {
        error.exit()
    }
    // Help and version are requested output, so a failure to print them is reported.
    let printed = out::quiet_on_closed_pipe(error.print().and_then(|()| std::io::stdout().flush()));
    std::process::exit(printed.unwrap_or_else(|failure| failed(&failure, Exit::Trouble)) as i32)
}

/// Reports a failure; returns the exit code that goes with it.
fn failed(failure: &Failure, exit: Exit) -> Exit {
    say(failure);
    exit
}

fn carry_out(command: Command, color: args::Color) -> ExitCode {
    let done = match command {
        // A command that is not run has an exit code of its own.
        Command::Exec(args) => return exec::exec(*args).unwrap_or_else(|failure| failed(&failure, Exit::NotRun).into()),
        Command::Digest(args) => digest::digest(&args),
        Command::Scan(args) => scan::scan(&args, color),
        Command::Run(args) => run::run(&args),
        Command::Judge(args) => judge::judge(&args),
        Command::Classify(args) => classify::classify(&args),
        Command::Breaker(args) => breaker::breaker(&args),
        Command::History(args) => history::history(&args),
        Command::Replay(args) => replay::replay(&args),
        Command::State(args) => state::state(&args),
        Command::Status(args) => status::status(&args),
        Command::Service(args) => service::service(&args),
        Command::Explain(args) => explain::explain(&args),
        Command::Signature(args) => signature::signature(&args),
        Command::Filter(args) => filter::filter(&args),
        Command::Rules(args) => rules::rules(&args),
        Command::Check(args) => check::check(&args),
        Command::Completions(args) => generate::completions(&args),
        Command::Man(args) => generate::man(&args),
    };
    done.unwrap_or_else(|failure| failed(&failure, Exit::Trouble)).into()
}

/// Parses the arguments; help comes in the width of the terminal.
fn parsed() -> Result<Cli, clap::Error> {
    let mut command = help::fitted(Cli::command());
    let mut matches = command.try_get_matches_from_mut(std::env::args_os())?;
    Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
}

/// Prints one message on stderr, without secrets. A message that is a diagnostic already starts with `error:`.
fn say(message: &impl fmt::Display) {
    let message = message.to_string();
    let lines: Vec<_> = message.lines().map(|line| sanitise(&clean(line)).into_owned()).collect();
    let head = if message.starts_with("error: ") { "" } else { "siftd: " };
    // If stderr is closed or full, the message is lost.
    let _ = writeln!(std::io::stderr(), "{head}{}", lines.join("\n"));
}
