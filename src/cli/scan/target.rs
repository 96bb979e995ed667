//! Where the output of a scan goes: stdout, or the file of `--output`. That file is emptied by `order` once an input is read:
//! what an earlier scan wrote outlives a wrong name. It is never one of the inputs, nor the baseline.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

use super::super::args::{Color, ScanArgs};
use super::super::{Exit, Failure, out};
use crate::sinks::human::Paint;
use crate::sources::expand::{Input, Trouble};
use crate::sources::input::Identity;

/// The output of a scan.
pub struct Target {
    /// Where it is written.
    pub file: File,
    /// It, if it is a regular file: reading it would never end.
    pub own: Option<Identity>,
    /// It is a file of `--output`, with what was in it before.
    pub is_kept: bool,
    /// The file was not there before.
    pub is_new: bool,
}

impl Target {
    /// Opens the output.
    pub fn open(args: &ScanArgs, inputs: &[Input]) -> Result<Self, Failure> {
        let Some(path) = named(args) else {
            return Ok(Self { file: out::stdout()?, own: out::regular_stdout(), is_kept: false, is_new: false });
        };
        let fault = |error: io::Error| failure(path, &error);
        let is_new = !path.exists();
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path).map_err(fault)?;
        let own = Identity::of(&file).ok().filter(|_| file.metadata().is_ok_and(|meta| meta.is_file()));
        let is_read = |input: &Input| matches!(input, Input::Named(path) if own.is_some() && Identity::at(path).ok() == own);
        if inputs.iter().any(is_read) {
            return Err(Failure::new(format!("{}: --output would overwrite what is to be read: name another file", path.display())));
        }
        if args.baseline.as_ref().is_some_and(|baseline| own.is_some() && Identity::at(baseline).ok() == own) {
            return Err(Failure::new(format!("{}: --output would overwrite the --baseline: name another file", path.display())));
        }
        Ok(Self { file, own, is_kept: own.is_some(), is_new })
    }

    /// Removes the file of `--output` if this scan made it and has read nothing: an empty one would look like an answer.
    pub fn unmake(args: &ScanArgs) {
        // It stays if it cannot be removed; the exit code tells that it is no answer.
        named(args).map(std::fs::remove_file);
    }

    /// Decides what a failed write means.
    pub fn written(path: Option<&Path>, result: io::Result<()>) -> Result<Exit, Failure> {
        match (path, result) {
            (Some(path), Err(error)) => Err(failure(path, &error)),
            (_, result) => out::quiet_on_closed_pipe(result),
        }
    }
}

/// Returns the file of `--output`; `None` for stdout.
pub fn named(args: &ScanArgs) -> Option<&Path> {
    args.output.as_deref().filter(|path| path.as_os_str() != "-")
}

/// Whether to colour the output: a file is for no terminal.
pub fn paint(args: &ScanArgs, color: Color) -> Paint {
    if named(args).is_some() && color == Color::Auto { Paint { on: false } } else { out::paint(color) }
}

fn failure(path: &Path, error: &io::Error) -> Failure {
    let Trouble { path, why } = Trouble::new(path, error);
    Failure::new(format!("{path}: {why}"))
}
