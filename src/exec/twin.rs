//! Keeps two pseudo-terminals in step, so that the command takes them for one. It has stdin and stderr
//! on one and stdout on the other, and programs set how keys are read on any of the three (`vim` on
//! stdin, `more` on stderr, curses on stdout). Settings of one are copied to the other before each
//! key, and otherwise soon after, since no event announces a change. Output modes stay separate.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use pty_process::blocking::Pty;
use rustix::termios::{self, LocalModes, OptionalActions, SpecialCodeIndex, Termios};

/// Interval between checks.
const LOOK: Duration = Duration::from_millis(30);
/// Interval while a program reads keys with modes set on stdout: when it ends, another program may read stdin at once.
const CLOSE_LOOK: Duration = Duration::from_millis(5);
/// All special characters, and `VMIN` and `VTIME`, which set when a read returns.
const CODES: [SpecialCodeIndex; 17] = [
    SpecialCodeIndex::VINTR,
    SpecialCodeIndex::VQUIT,
    SpecialCodeIndex::VERASE,
    SpecialCodeIndex::VKILL,
    SpecialCodeIndex::VEOF,
    SpecialCodeIndex::VTIME,
    SpecialCodeIndex::VMIN,
    SpecialCodeIndex::VSWTC,
    SpecialCodeIndex::VSTART,
    SpecialCodeIndex::VSTOP,
    SpecialCodeIndex::VSUSP,
    SpecialCodeIndex::VEOL,
    SpecialCodeIndex::VREPRINT,
    SpecialCodeIndex::VDISCARD,
    SpecialCodeIndex::VWERASE,
    SpecialCodeIndex::VLNEXT,
    SpecialCodeIndex::VEOL2,
];

/// The pair of pseudo-terminals.
pub struct Twin {
    main: File,
    apart: File,
    /// The modes that both had at the last comparison.
    met: Termios,
    /// The modes come from stdout's pseudo-terminal, and it is not in line mode.
    is_close: bool,
}

impl Twin {
    /// Pairs stdin's pseudo-terminal with stdout's; both start with the same modes.
    ///
    /// # Errors
    /// The system's error.
    pub fn new(main: &Pty, apart: &Pty) -> io::Result<Self> {
        let [main, apart] = [File::from(main.as_fd().try_clone_to_owned()?), File::from(apart.as_fd().try_clone_to_owned()?)];
        let met = termios::tcgetattr(&main)?;
        Ok(Self { main, apart, met, is_close: false })
    }

    /// Time until the next check.
    #[must_use]
    pub fn patience(&self) -> Duration {
        if self.is_close { CLOSE_LOOK } else { LOOK }
    }

    /// Copies the modes that were changed on one to the other. If both were changed, stdin's win.
    ///
    /// # Errors
    /// The system's error.
    pub fn meet(&mut self) -> io::Result<()> {
        let (main, apart) = (termios::tcgetattr(&self.main)?, termios::tcgetattr(&self.apart)?);
        if !alike(&main, &apart) {
            let is_main = !alike(&main, &self.met);
            let (from, to, at) = if is_main { (&main, &apart, &self.apart) } else { (&apart, &main, &self.main) };
            termios::tcsetattr(at, OptionalActions::Now, &joined(from, to))?;
            self.is_close = !is_main && !from.local_modes.contains(LocalModes::ICANON);
        }
        self.met = if alike(&main, &self.met) { apart } else { main };
        Ok(())
    }
}

/// Whether both read keys in the same way.
fn alike(one: &Termios, other: &Termios) -> bool {
    let same_codes = || CODES.iter().all(|&code| one.special_codes[code] == other.special_codes[code]);
    one.input_modes == other.input_modes && one.local_modes == other.local_modes && same_codes()
}

/// Returns `to` with the input settings of `from`.
fn joined(from: &Termios, to: &Termios) -> Termios {
    let mut modes = to.clone();
    modes.input_modes = from.input_modes;
    modes.local_modes = from.local_modes;
    modes.special_codes = from.special_codes.clone();
    modes
}
