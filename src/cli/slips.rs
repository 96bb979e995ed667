//! Common mistakes on the command line: a tip names the right command instead of clap's guess.

use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Adds the tip to clap's error; `args` come without the program's name.
pub fn explain(mut error: clap::Error, args: &[String]) -> clap::Error {
    let asked = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    };
    let tip = match error.kind() {
        ErrorKind::InvalidSubcommand => asked(ContextKind::InvalidSubcommand).and_then(|name| command(&name)),
        ErrorKind::UnknownArgument => asked(ContextKind::InvalidArg).and_then(|arg| place(args, &arg).or_else(|| argument(command_of(args)?, &arg))),
        ErrorKind::ValueValidation => asked(ContextKind::InvalidArg).zip(asked(ContextKind::InvalidValue)).and_then(|(flag, value)| count(args, &flag, &value)),
        ErrorKind::ArgumentConflict => asked(ContextKind::InvalidSubcommand).and_then(|below| order(args, &below)),
        ErrorKind::InvalidValue => asked(ContextKind::InvalidArg).and_then(|arg| empty(args, &arg)),
        _ => None,
    };
    if let Some(tip) = tip {
        for kind in [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand, ContextKind::SuggestedCommand] {
            error.remove(kind);
        }
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// Returns the subcommand that the arguments name.
pub fn command_of(args: &[String]) -> Option<&str> {
    let is_value = |at: usize| at > 0 && args[at - 1] == "--color";
    args.iter().enumerate().find(|(at, arg)| !arg.starts_with('-') && !is_value(*at)).map(|(_, arg)| arg.as_str())
}

/// Returns the tip for the name of a log in place of a subcommand.
fn command(name: &str) -> Option<String> {
    let is_file = name.contains(['.', '/', '*']) || Path::new(name).exists();
    is_file.then(|| format!("for the errors of a log: siftd scan {}", quoted(name)))
}

/// Returns the tip for the number of a line that stands apart from its file.
fn place(args: &[String], arg: &str) -> Option<String> {
    let is_line = command_of(args) == Some("explain") && arg.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    let file = args.iter().position(|word| word == arg).and_then(|at| args.get(at.checked_sub(1)?)).filter(|_| is_line)?;
    Some(format!("the line follows the file's name: siftd explain {}", quoted(&format!("{file}:{arg}"))))
}

/// Returns the tip for flags that stand before a command below another one.
fn order(args: &[String], below: &str) -> Option<String> {
    Some(format!("its flags follow it: siftd {} {below} …", command_of(args)?))
}

fn argument(command: &str, arg: &str) -> Option<String> {
    let is_file = !arg.starts_with('-');
    match (command, arg.split('=').next().unwrap_or(arg)) {
        ("digest", "-o" | "--output" | "--out") => Some(format!("the output is on stdout: siftd {command} … > FILE")),
        ("scan", "--json") => Some("one JSON record a line: --format ndjson; one document: --format report".to_owned()),
        ("scan" | "digest", "--file") => Some(format!("files are named without a flag: siftd {command} FILE")),
        ("scan", "-f" | "--follow") => Some("to follow a file that grows: siftd run --file FILE".to_owned()),
        ("scan" | "digest", "-r" | "-R" | "--recursive") => Some("folders are read at any depth: name the folder".to_owned()),
        ("exec", "--retry") => Some("the flag is --retries".to_owned()),
        ("exec", "--cwd" | "--chdir" | "-C") => Some("it runs in the current folder: cd FOLDER && siftd exec …".to_owned()),
        ("run", "--follow" | "-F") => Some("it follows all that --file names: siftd run --file FILE".to_owned()),
        ("signature" | "filter" | "judge" | "classify", "-") => Some(format!("it reads stdin anyway: siftd {command}")),
        ("run", "-f") => Some("the flag is --file".to_owned()),
        ("run", _) if is_file => Some(format!("to follow a file: siftd run --file {}", quoted(arg))),
        ("run", "--format" | "--json") => Some("records are always NDJSON; a finished log for people: siftd scan --format pretty FILE".to_owned()),
        ("run", "-v" | "--verbose") => Some("for more messages: SIFTD_LOG=debug siftd run …".to_owned()),
        ("run", "-q" | "--quiet") => Some("for fewer messages: SIFTD_LOG=error siftd run …".to_owned()),
        ("scan", "-v" | "--verbose") => Some("more lines around each error: --context 10; why a line is an error or none: siftd explain FILE:LINE".to_owned()),
        ("scan", "-q" | "--quiet") => Some("the exit code alone: siftd scan --fail-on low … > /dev/null".to_owned()),
        ("exec", "-v" | "--verbose") => Some("what went wrong, after the command's output: --digest -".to_owned()),
        (_, "-q" | "--quiet" | "-v" | "--verbose") => Some(format!("its flags: siftd {command} --help")),
        ("man", _) if is_file => Some(format!("siftd {arg} --help; the pages of all commands: siftd man --dir FOLDER")),
        ("check", _) if is_file => Some(format!("siftd check --config {}", quoted(arg))),
        ("signature" | "filter" | "judge" | "classify", _) if is_file => Some(format!("it reads stdin: siftd {command} < {}", quoted(arg))),
        _ => None,
    }
}

/// Returns the tip for the command of `exec` in place of a flag's number.
fn count(args: &[String], flag: &str, value: &str) -> Option<String> {
    let is_command = command_of(args) == Some("exec") && flag.starts_with("--retries") && !value.starts_with(|c: char| c.is_ascii_digit());
    is_command.then(|| format!("two hyphens stand before the command: siftd exec --retries -- {}", quoted(value)))
}

/// Returns the tip for an argument that is there, but empty.
fn empty(args: &[String], arg: &str) -> Option<String> {
    let what = if arg.contains("FILE") { "a file name" } else { "an argument" };
    args.iter().any(String::is_empty).then(|| format!("{what} is empty (\"\"), perhaps from a variable that is not set"))
}

/// Quotes a name for a shell.
fn quoted(name: &str) -> String {
    shlex::try_quote(name).map_or_else(|_| "FILE".to_owned(), |name| name.into_owned())
}
