//! Starts the command: sets up pipes, or pseudo-terminals where siftd's
//! own streams are terminals, and its process group or session.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use pty_process::blocking::Pty;
use rustix::process::{Pid, Signal, getpgrp, getpid, kill_process, kill_process_group};

use super::borrowed::Borrowed;
use super::family;
use super::keeper::{self, Voice};
use super::keys::Keys;
use super::signals;
use super::terminal::{self, Around, Raw, Wiring};

/// A running command.
pub struct Started {
    /// The command's process, or the keeper's.
    pub pid: Pid,
    /// The pipe through which the keeper of the session reports how the command ended.
    pub fate: Option<io::PipeReader>,
    /// The command's stdout and stderr, until they are taken.
    pub outputs: Option<(File, File)>,
    around: Around,
    ptys: Vec<Pty>,
    raw: Option<Raw>,
    _keys: Option<Borrowed>,
}

/// Where the command writes: the command's end and siftd's end.
struct Output {
    theirs: Stdio,
    ours: Option<File>,
    pty: Option<Pty>,
}

impl Output {
    fn new(around: Around, is_terminal: bool, real: impl AsFd) -> io::Result<Self> {
        if !is_terminal {
            return Ok(Self { theirs: Stdio::piped(), ours: None, pty: None });
        }
        let (pty, pts) = around.open(real)?;
        let theirs = pts.as_fd().try_clone_to_owned()?.into();
        Ok(Self { theirs, ours: Some(File::from(pty.as_fd().try_clone_to_owned()?)), pty: Some(pty) })
    }
}

/// Starts `argv`; `stop` is closed once the command has ended.
///
/// # Errors
/// The command cannot be run.
pub fn start(argv: &[OsString], around: Around, stop: &Arc<OwnedFd>) -> io::Result<Started> {
    let (program, args) = argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    if around.wiring == Wiring::Session {
        return in_session(program, args, around, stop);
    }
    let stderr = Output::new(around, around.stderr, io::stderr())?;
    let stdout = Output::new(around, around.stdout, io::stdout())?;
    let mut command = Command::new(program);
    command.args(args).stdout(stdout.theirs).stderr(stderr.theirs);
    if around.wiring == Wiring::Own {
        command.process_group(0);
    }
    let child = signals::as_before(|| command.spawn())?;
    // siftd must not keep the command's ends of the pseudo-terminals open.
    drop(command);
    let borrowed = match &stderr.pty {
        Some(pty) if around.wiring == Wiring::Shared => Some(Borrowed::watch(pty, stop.clone())?),
        _ => None,
    };
    let ptys = [stdout.pty, stderr.pty].into_iter().flatten().collect();
    let started = started(child, stdout.ours, stderr.ours, (around, ptys, None))?;
    Ok(Started { _keys: borrowed, ..started })
}

/// stdin and stderr share one pseudo-terminal, as shells and pagers expect;
/// stdout has the other one. If stderr is no terminal, there is only one.
fn in_session(program: &OsString, args: &[OsString], around: Around, stop: &Arc<OwnedFd>) -> io::Result<Started> {
    let (main, pts) = around.open(io::stdin())?;
    let (fate, told) = io::pipe()?;
    let keeper = pty_process::blocking::Command::new("/proc/self/exe").arg0(keeper::NAME);
    let stdout = if around.stderr { Some(Output::new(around, true, io::stdout())?) } else { None };
    let (keeper, apart, ours) = match stdout {
        Some(Output { theirs, ours, pty }) => (keeper.arg(Voice::Stderr.as_str()).stdout(theirs).stderr(told), pty, ours),
        None => (keeper.arg(Voice::Stdout.as_str()).stdout(told).stderr(Stdio::piped()), None, None),
    };
    let keeper = keeper.arg(program).args(args);
    // Not earlier: the pseudo-terminals start with the terminal's original modes.
    let raw = Raw::enter()?;
    let keys = Keys::new(&main, apart.as_ref())?;
    let child = signals::as_before(|| keeper.spawn(pts).map_err(terminal::into_io))?;
    keys.hand_over(Pid::from_child(&child), stop.clone())?;
    let shared = Some(File::from(main.as_fd().try_clone_to_owned()?));
    let (stdout, stderr) = if around.stderr { (ours, shared) } else { (shared, None) };
    // The pseudo-terminal whose resize sends the signal comes last, so that both have the new size by then.
    let ptys = apart.into_iter().chain([main]).collect();
    let started = started(child, stdout, stderr, (around, ptys, Some(raw)))?;
    Ok(Started { fate: Some(fate), ..started })
}

fn started(mut child: Child, stdout: Option<File>, stderr: Option<File>, rest: (Around, Vec<Pty>, Option<Raw>)) -> io::Result<Started> {
    let pid = Pid::from_child(&child);
    let piped = |pipe: Option<OwnedFd>| pipe.map(File::from).ok_or_else(|| io::Error::other("no pipe to the command"));
    let stdout = stdout.map_or_else(|| piped(child.stdout.take().map(Into::into)), Ok)?;
    let stderr = stderr.map_or_else(|| piped(child.stderr.take().map(Into::into)), Ok)?;
    let (around, ptys, raw) = rest;
    Ok(Started { pid, fate: None, outputs: Some((stdout, stderr)), around, ptys, raw, _keys: None })
}

impl Started {
    /// How the command is tied to siftd.
    #[must_use]
    pub fn wiring(&self) -> Wiring {
        self.around.wiring
    }

    /// Passes the new window size on.
    pub fn resize(&self) {
        self.ptys.iter().for_each(|pty| self.around.resize(pty));
    }

    /// Passes a signal on: to the command's group if it has one of its own, otherwise to the command alone.
    pub fn signal(&self, signal: Signal) {
        // The command may have just ended.
        let _ = match self.wiring() {
            Wiring::Shared => kill_process(self.pid, signal),
            Wiring::Own | Wiring::Session => kill_process_group(self.pid, signal),
        };
        if self.wiring() == Wiring::Session {
            family::strays(self.pid).into_iter().for_each(|pid| _ = kill_process(pid, signal));
        }
    }

    /// Stops together with the command until siftd is continued, as a terminal stops a whole group.
    /// In a session of its own, no shell could continue the command, so only SIGSTOP stops it there.
    ///
    /// # Errors
    /// The terminal cannot be made raw again.
    pub fn stop(&self) -> io::Result<()> {
        let Some(raw) = &self.raw else {
            self.signal(Signal::TSTP);
            // As the terminal would have done to the command's caller.
            let _ = kill_process(getpid(), Signal::STOP);
            return Ok(());
        };
        self.signal(Signal::STOP);
        raw.leave();
        // The kernel ignores this if no shell waits for the group; siftd then simply goes on.
        signals::as_before(|| Ok(kill_process_group(getpgrp(), Signal::TSTP)?))?;
        raw.again()?;
        self.resize();
        self.signal(Signal::CONT);
        Ok(())
    }
}
