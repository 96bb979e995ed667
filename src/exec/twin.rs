//! Two pseudo-terminals that a command must take for one: it has stdin and stderr on one of them and stdout on the other, and
//! programs set how keys are read on any of the three (`vim` on stdin, `more` on stderr, curses on stdout). What is set on
//! one comes to hold for both: before each key, and soon after at the latest, for no event tells of it. What is done to
//! output remains each one's own.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use pty_process::blocking::Pty;
use rustix::termios::{self, LocalModes, OptionalActions, SpecialCodeIndex, Termios};

/// Between two looks.
const LOOK: Duration = Duration::from_millis(30);
/// The same while a program reads keys by what it has set on stdout: when it ends, others may ask stdin at once.
const CLOSE_LOOK: Duration = Duration::from_millis(5);
/// All keys that mean something, and how many make a read.
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

/// The pair.
pub struct Twin {
    main: File,
    apart: File,
    /// What both had when they last met.
    met: Termios,
    /// The other one than stdin's rules, and not line by line.
    is_close: bool,
}

impl Twin {
    /// Of stdin's and the other one; both begin alike.
    ///
    /// # Errors
    /// What the system says.
    pub fn new(main: &Pty, apart: &Pty) -> io::Result<Self> {
        let [main, apart] = [File::from(main.as_fd().try_clone_to_owned()?), File::from(apart.as_fd().try_clone_to_owned()?)];
        let met = termios::tcgetattr(&main)?;
        Ok(Self { main, apart, met, is_close: false })
    }

    /// How long until the next look.
    #[must_use]
    pub fn patience(&self) -> Duration {
        if self.is_close { CLOSE_LOOK } else { LOOK }
    }

    /// Gives one the modes that were set on the other; where both were set, stdin's win.
    ///
    /// # Errors
    /// What the system says.
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

/// Whether keys are read in the same way.
fn alike(one: &Termios, other: &Termios) -> bool {
    let same_codes = || CODES.iter().all(|&code| one.special_codes[code] == other.special_codes[code]);
    one.input_modes == other.input_modes && one.local_modes == other.local_modes && same_codes()
}

/// `to`, but for how keys are read.
fn joined(from: &Termios, to: &Termios) -> Termios {
    let mut modes = to.clone();
    modes.input_modes = from.input_modes;
    modes.local_modes = from.local_modes;
    modes.special_codes = from.special_codes.clone();
    modes
}
