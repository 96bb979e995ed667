//! The keeper: a small process of siftd's own that leads the session of a command. Because the command is
//! not the session leader, its end does not hang up on the processes it leaves behind. The keeper starts
//! the command, reports to siftd how it ended, and stays while other processes are in the session.

use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::time::Duration;

use super::family;
use super::signals;

/// The name of the keeper process; its arguments are a [`Voice`] and the command.
pub const NAME: &str = "siftd-session";
/// Interval between checks for remaining processes.
const LOOK: Duration = Duration::from_millis(200);

/// The output of the keeper that siftd listens on; the command gets the terminal of stdin in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Voice {
    /// The other output is the command's stderr.
    Stdout,
    /// The other output is the command's stdout.
    Stderr,
}

impl Voice {
    /// The name as an argument.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }

    fn heard(word: &OsStr) -> Option<Self> {
        [Self::Stdout, Self::Stderr].into_iter().find(|voice| word == voice.as_str())
    }

    fn say(self, text: &str) -> io::Result<()> {
        match self {
            Self::Stdout => io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush()),
            Self::Stderr => io::stderr().write_all(text.as_bytes()),
        }
    }

    /// Gives the command the terminal of stdin in place of the output that the keeper uses.
    fn spare(self, command: &mut Command) -> io::Result<()> {
        let terminal = io::stdin().as_fd().try_clone_to_owned()?;
        match self {
            Self::Stdout => command.stdout(terminal),
            Self::Stderr => command.stderr(terminal),
        };
        Ok(())
    }
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// With an exit code.
    Exited(i32),
    /// By a signal.
    Signalled(i32),
    /// It could not be started; holds the system's error number.
    NotStarted(i32),
}

impl Fate {
    /// Converts an exit status of the system.
    #[must_use]
    pub fn of(status: ExitStatus) -> Self {
        status.signal().map_or_else(|| Self::Exited(status.code().unwrap_or_default()), Self::Signalled)
    }

    fn written(self) -> String {
        match self {
            Self::Exited(code) => format!("exit {code}\n"),
            Self::Signalled(signal) => format!("signal {signal}\n"),
            Self::NotStarted(reason) => format!("error {reason}\n"),
        }
    }

    /// Reads the keeper's report; `None` if the keeper ended without one.
    #[must_use]
    pub fn heard(mut from: impl Read) -> Option<Self> {
        let mut line = [0; 32];
        // The report is written at once, and is far shorter than what a pipe takes as a whole.
        let count = from.read(&mut line).ok()?;
        let (word, number) = std::str::from_utf8(&line[..count]).ok()?.trim().split_once(' ')?;
        let number = number.parse().ok()?;
        match word {
            "exit" => Some(Self::Exited(number)),
            "signal" => Some(Self::Signalled(number)),
            "error" => Some(Self::NotStarted(number)),
            _ => None,
        }
    }
}

/// Whether this process is the keeper.
#[must_use]
pub fn is_wanted() -> bool {
    std::env::args_os().next().is_some_and(|name| name == NAME)
}

/// Runs the command from the arguments; stdin is the terminal.
pub fn keep() {
    let mut argv = std::env::args_os().skip(1);
    let Some(voice) = argv.next().and_then(|word| Voice::heard(&word)) else { return };
    let fate = argv.next().map_or(Fate::NotStarted(0), |program| run(voice, Command::new(program).args(argv)));
    // siftd may have been killed; the session continues.
    let _ = voice.say(&fate.written());
    while family::has_others(rustix::process::getpid()) {
        std::thread::sleep(LOOK);
    }
}

fn run(voice: Voice, command: &mut Command) -> Fate {
    let reason = |error: io::Error| Fate::NotStarted(error.raw_os_error().unwrap_or_default());
    // Signals that end the command must not end the keeper. Unlike SIG_IGN, a handler is reset when the command starts.
    let heeded = signals::not_ignored().try_for_each(|signal| signal_hook::flag::register(signal, Arc::default()).map(drop));
    let started = heeded.and_then(|()| voice.spare(command)).and_then(|()| command.spawn());
    started.and_then(|mut child| child.wait()).map_or_else(reason, Fate::of)
}
