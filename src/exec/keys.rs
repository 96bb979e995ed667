//! Keys on their way to a command that has a session of its own: they all go to the pseudo-terminal of its stdin. Those that
//! make signals are told to siftd's own group, too, and those that hold output hold both outputs.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use pty_process::blocking::Pty;
use rustix::process::{Pid, Signal, getpgrp, getpid, kill_process, kill_process_group};
use rustix::termios::{self, InputModes, LocalModes, SpecialCodeIndex, Termios};

use super::twin::Twin;
use super::waiting;

/// Keys that are read at once.
pub const KEYS: usize = 4096;

/// The way of the keys, laid before the command starts.
pub struct Keys {
    ends: Ends,
    twin: Option<Twin>,
}

impl Keys {
    /// To `main`, which has the command's stdin; `apart` has its stdout, if that is another one.
    ///
    /// # Errors
    /// What the system says.
    pub fn new(main: &Pty, apart: Option<&Pty>) -> io::Result<Self> {
        let ends = Ends { main: End::new(main)?, apart: apart.map(End::new).transpose()? };
        Ok(Self { ends, twin: apart.map(|apart| Twin::new(main, apart)).transpose()? })
    }

    /// Hands keys over until `stop` ends; `leader` leads the command's session.
    ///
    /// # Errors
    /// What the system says.
    pub fn hand_over(mut self, leader: Pid, stop: Arc<OwnedFd>) -> io::Result<()> {
        let mut stdin = File::from(io::stdin().as_fd().try_clone_to_owned()?);
        std::thread::spawn(move || {
            let mut typed = [0; KEYS];
            while let Ok([ready, false]) = waiting::readable([stdin.as_fd(), stop.as_fd()], self.twin.as_ref().map(Twin::patience)) {
                let count = match ready.then(|| stdin.read(&mut typed)) {
                    None => 0,
                    Some(Ok(count @ 1..)) => count,
                    Some(_) => break,
                };
                if self.press(&typed[..count], leader, &stop).is_err() {
                    break;
                }
            }
        });
        Ok(())
    }

    /// What a program has set to read keys must hold where they go before they come.
    fn press(&mut self, typed: &[u8], leader: Pid, stop: &OwnedFd) -> io::Result<()> {
        self.twin.as_mut().map_or(Ok(()), Twin::meet)?;
        if typed.is_empty() { Ok(()) } else { self.ends.press(typed, leader, stop) }
    }
}

struct Ends {
    main: End,
    apart: Option<End>,
}

impl Ends {
    /// Keys that make signals are for the session's terminal, whose group they reach; but that group is not siftd's, in which
    /// a script may wait that a terminal would have told, too. Where a shell in the session has put a job of its own in
    /// front, they are for that job alone.
    fn press(&mut self, typed: &[u8], leader: Pid, stop: &OwnedFd) -> io::Result<()> {
        let signals = self.main.signals(typed);
        let is_in_front = termios::tcgetpgrp(&self.main.0).map_or(true, |group| group == leader);
        for &signal in signals.iter().filter(|_| is_in_front) {
            match signal {
                Signal::TSTP => kill_process(getpid(), signal)?,
                _ => kill_process_group(getpgrp(), signal)?,
            }
        }
        if let Some(apart) = &mut self.apart {
            let flow = self.main.flow(typed, !signals.is_empty());
            apart.write(&flow, stop)?;
        }
        self.main.write(typed, stop)
    }
}

/// siftd's end of a pseudo-terminal.
pub struct End(File);

impl End {
    /// # Errors
    /// What the system says.
    pub fn new(pty: &Pty) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(pty, true)?;
        Ok(Self(File::from(pty.as_fd().try_clone_to_owned()?)))
    }

    /// Its modes, if a program has taken it out of line mode.
    pub fn listens(&self) -> Option<Termios> {
        termios::tcgetattr(&self.0).ok().filter(|modes| !modes.local_modes.contains(LocalModes::ICANON))
    }

    /// The keys among them that hold output or let it go on; one that makes a signal lets it go on, too.
    fn flow(&self, typed: &[u8], made_signal: bool) -> Vec<u8> {
        let Some(modes) = termios::tcgetattr(&self.0).ok().filter(|modes| modes.input_modes.contains(InputModes::IXON)) else { return Vec::new() };
        let keys = [SpecialCodeIndex::VSTOP, SpecialCodeIndex::VSTART].map(|index| modes.special_codes[index]);
        let flow = typed.iter().copied().filter(|key| keys.contains(key));
        flow.chain(made_signal.then_some(keys[1])).collect()
    }

    /// The signals that keys make, where they are not merely read.
    fn signals(&self, typed: &[u8]) -> Vec<Signal> {
        let Ok(modes) = termios::tcgetattr(&self.0) else { return Vec::new() };
        let made = [(SpecialCodeIndex::VINTR, Signal::INT), (SpecialCodeIndex::VQUIT, Signal::QUIT), (SpecialCodeIndex::VSUSP, Signal::TSTP)];
        let made = made.into_iter().filter(|(index, _)| modes.local_modes.contains(LocalModes::ISIG) && typed.contains(&modes.special_codes[*index]));
        made.map(|(_, signal)| signal).collect()
    }

    /// Writes keys, until `stop` ends.
    ///
    /// # Errors
    /// What the system says.
    pub fn write(&mut self, mut typed: &[u8], stop: &OwnedFd) -> io::Result<()> {
        while !typed.is_empty() {
            match self.0.write(typed) {
                Ok(count) => typed = &typed[count..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if !waiting::writable(self.0.as_fd(), stop.as_fd())? {
                        return Err(io::ErrorKind::BrokenPipe.into());
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
