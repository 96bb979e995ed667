//! Who leads a session that a command has for itself: a small process of siftd's own, so that the command's end is not
//! the session's, which would hang up on all that it leaves behind. It starts the command, tells siftd how that ended,
//! and stays for as long as somebody else is in the session.

use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::time::Duration;

use super::family;
use super::signals;

/// What this process is called; its arguments are a [`Voice`] and the command.
pub const NAME: &str = "siftd-session";
/// Between two looks at who is left.
const LOOK: Duration = Duration::from_millis(200);

/// On which of its outputs siftd listens; the command has the terminal of stdin there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Voice {
    /// The other output is the command's stderr.
    Stdout,
    /// The other output is the command's stdout.
    Stderr,
}

impl Voice {
    /// As an argument.
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

    /// Gives a command the terminal of stdin for the output that is taken.
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
    /// It could not be started, for this reason of the system's.
    NotStarted(i32),
}

impl Fate {
    /// As the system says it.
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

    /// Reads what the keeper tells; `None` when it has ended without a word.
    #[must_use]
    pub fn heard(mut from: impl Read) -> Option<Self> {
        let mut line = [0; 32];
        // It is written at once, and far shorter than what a pipe takes whole.
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

/// Whether this is that process.
#[must_use]
pub fn is_wanted() -> bool {
    std::env::args_os().next().is_some_and(|name| name == NAME)
}

/// Runs the command of the arguments; the terminal is on stdin.
pub fn keep() {
    let mut argv = std::env::args_os().skip(1);
    let Some(voice) = argv.next().and_then(|word| Voice::heard(&word)) else { return };
    let fate = argv.next().map_or(Fate::NotStarted(0), |program| run(voice, Command::new(program).args(argv)));
    // siftd may have been killed; the session goes on.
    let _ = voice.say(&fate.written());
    while family::has_others(rustix::process::getpid()) {
        std::thread::sleep(LOOK);
    }
}

fn run(voice: Voice, command: &mut Command) -> Fate {
    let reason = |error: io::Error| Fate::NotStarted(error.raw_os_error().unwrap_or_default());
    // What ends the command must not end this process; a handler, unlike SIG_IGN, does not outlive the command's start.
    let heeded = signals::not_ignored().try_for_each(|signal| signal_hook::flag::register(signal, Arc::default()).map(drop));
    let started = heeded.and_then(|()| voice.spare(command)).and_then(|()| command.spawn());
    started.and_then(|mut child| child.wait()).map_or_else(reason, Fate::of)
}
