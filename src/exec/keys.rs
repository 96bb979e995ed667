//! Passes keys to a command that has a session of its own: all go to the pseudo-terminal of its stdin.
//! Keys that make signals also signal siftd's own group; keys that pause output pause both outputs.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use pty_process::blocking::Pty;
use rustix::process::{Pid, Signal, getpgrp, getpid, kill_process, kill_process_group};
use rustix::termios::{self, InputModes, LocalModes, SpecialCodeIndex, Termios};

use super::twin::Twin;
use super::waiting;

/// Maximum number of key bytes per read.
pub const KEYS: usize = 4096;

/// The path of the keys, set up before the command starts.
pub struct Keys {
    ends: Ends,
    twin: Option<Twin>,
}

impl Keys {
    /// Creates the path to `main`, the command's stdin. `apart` is
    /// the command's stdout if that is a different pseudo-terminal.
    ///
    /// # Errors
    /// The system's error.
    pub fn new(main: &Pty, apart: Option<&Pty>) -> io::Result<Self> {
        let ends = Ends { main: End::new(main)?, apart: apart.map(End::new).transpose()? };
        Ok(Self { ends, twin: apart.map(|apart| Twin::new(main, apart)).transpose()? })
    }

    /// Passes keys on until `stop` is closed; `leader` is the leader of the command's session.
    ///
    /// # Errors
    /// The system's error.
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

    /// Modes that a program has set must apply to the stdin pseudo-terminal before the keys arrive there.
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
    /// Keys that make signals go to the session's terminal and so reach its foreground group. siftd's own group,
    /// in which a script may be waiting, would get no signal, although a real terminal would send it one. If a
    /// shell in the session has put a job of its own in the foreground, the keys are meant for that job alone.
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
    /// The system's error.
    pub fn new(pty: &Pty) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(pty, true)?;
        Ok(Self(File::from(pty.as_fd().try_clone_to_owned()?)))
    }

    /// Returns its modes if a program has switched it out of line mode.
    pub fn listens(&self) -> Option<Termios> {
        termios::tcgetattr(&self.0).ok().filter(|modes| !modes.local_modes.contains(LocalModes::ICANON))
    }

    /// Returns the keys that pause output or resume it. A key that makes a signal also resumes it.
    fn flow(&self, typed: &[u8], made_signal: bool) -> Vec<u8> {
        let Some(modes) = termios::tcgetattr(&self.0).ok().filter(|modes| modes.input_modes.contains(InputModes::IXON)) else { return Vec::new() };
        let keys = [SpecialCodeIndex::VSTOP, SpecialCodeIndex::VSTART].map(|index| modes.special_codes[index]);
        let flow = typed.iter().copied().filter(|key| keys.contains(key));
        flow.chain(made_signal.then_some(keys[1])).collect()
    }

    /// Returns the signals that the keys make, unless they are read as plain input.
    fn signals(&self, typed: &[u8]) -> Vec<Signal> {
        let Ok(modes) = termios::tcgetattr(&self.0) else { return Vec::new() };
        let made = [(SpecialCodeIndex::VINTR, Signal::INT), (SpecialCodeIndex::VQUIT, Signal::QUIT), (SpecialCodeIndex::VSUSP, Signal::TSTP)];
        let made = made.into_iter().filter(|(index, _)| modes.local_modes.contains(LocalModes::ISIG) && typed.contains(&modes.special_codes[*index]));
        made.map(|(_, signal)| signal).collect()
    }

    /// Writes keys until `stop` is closed.
    ///
    /// # Errors
    /// The system's error.
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
