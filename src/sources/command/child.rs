//! One process: what to run, as whom and where; its process group, and how it is ended.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::unistd::{Uid, User};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitOptions, kill_process_group, test_kill_process_group, waitpgid};
use tokio::process::Command;

use super::Outputs;
use crate::config::SourceConfig;
use crate::sources::argv;
use crate::sources::socket::Served;
use crate::words::Io;

/// How often a group that is ending is checked.
const LOOK: Duration = Duration::from_millis(10);

/// What to run.
#[derive(Clone, Debug)]
pub struct Program {
    argv: Vec<String>,
    /// `argv` as records show it, without secrets.
    pub shown: Vec<String>,
    environment: Vec<(String, String)>,
    directory: Option<PathBuf>,
    /// Ids of the user and of its group.
    user: Option<(u32, u32)>,
}

/// How a process ended.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// Its exit code, if it had one.
    pub code: Option<i32>,
    /// The signal that ended it, if one did.
    pub signal: Option<i32>,
    /// It was told to end.
    pub was_stopped: bool,
    /// How long it ran.
    pub ran: Duration,
}

impl Program {
    /// Prepares the program of a source.
    ///
    /// # Errors
    /// There is no such program, folder or user; or only root could run it.
    pub fn new(config: &SourceConfig) -> Result<Self, String> {
        let fault = |why: String| format!("source {:?}: {why}", config.name);
        let user = user(&config.user).map_err(fault)?;
        if let Some(folder) = config.directory.as_ref().filter(|folder| !folder.is_dir()) {
            return Err(fault(format!("there is no folder {}, where it is to run", folder.display())));
        }
        let name = config.argv.first().map(String::as_str).unwrap_or_default();
        let path = config.environment.get("PATH").map(OsString::from).or_else(|| std::env::var_os("PATH")).unwrap_or_default();
        find(name, config.directory.as_deref(), &path).map_err(fault)?;
        let words: Vec<OsString> = config.argv.iter().map(OsString::from).collect();
        Ok(Self {
            argv: config.argv.clone(),
            shown: argv::shown(&words),
            environment: config.environment.clone().into_iter().collect(),
            directory: config.directory.clone(),
            user,
        })
    }

    /// Returns the same program with further arguments appended.
    #[must_use]
    pub fn with(&self, more: &[String]) -> Self {
        let mut other = self.clone();
        other.argv.extend_from_slice(more);
        other
    }

    fn command(&self) -> Command {
        let mut words = self.argv.iter();
        let mut command = Command::new(words.next().map(String::as_str).unwrap_or_default());
        command.args(words).envs(self.environment.iter().map(|(name, value)| (name, value)));
        // The child must not take siftd's notification socket and passed sockets for its own.
        for name in ["NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC", "LISTEN_FDNAMES"] {
            if !self.environment.iter().any(|(given, _)| given == name) {
                command.env_remove(name);
            }
        }
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        if let Some((user, group)) = self.user {
            command.uid(user).gid(group);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        command
    }

    /// Starts the program in a process group of its own. Must be called within a runtime.
    ///
    /// # Errors
    /// Those of the system.
    pub fn start(&self) -> io::Result<Child> {
        let child = self.command().spawn()?;
        let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        Ok(Child { child, group, begun: Instant::now(), pipes: Vec::new() })
    }

    /// Runs the program and returns everything it prints to stdout. Whoever does not wait for that ends it.
    ///
    /// # Errors
    /// It cannot be started.
    pub async fn output(&self) -> io::Result<Vec<u8>> {
        Ok(self.command().stderr(Stdio::null()).kill_on_drop(true).output().await?.stdout)
    }
}

/// Returns the ids of a user, if siftd may run something as that user.
fn user(name: &str) -> Result<Option<(u32, u32)>, String> {
    if name.is_empty() {
        return Ok(None);
    }
    let user = User::from_name(name).map_err(|error| format!("user {name:?}: {error}"))?;
    let user = user.ok_or_else(|| format!("there is no user {name:?}: make it, or name another one"))?;
    if user.uid != Uid::effective() && !Uid::effective().is_root() {
        return Err(format!("only root can run a command as user {name:?}: leave `user` out, or run siftd as root"));
    }
    Ok(Some((user.uid.as_raw(), user.gid.as_raw())))
}

/// Checks that the program exists and can be executed.
fn find(name: &str, directory: Option<&Path>, path: &OsString) -> Result<(), String> {
    let is_program = |file: &Path| fs::metadata(file).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0);
    if name.contains('/') {
        let file = directory.map_or_else(|| PathBuf::from(name), |directory| directory.join(name));
        let why = if file.exists() { "cannot be executed: check its mode" } else { "is not there: correct argv" };
        return if is_program(&file) { Ok(()) } else { Err(format!("program {} {why}", file.display())) };
    }
    if std::env::split_paths(path).any(|folder| is_program(&folder.join(name))) {
        return Ok(());
    }
    Err(format!("there is no program {name:?} in PATH: install it, or give its whole path in argv"))
}

/// A process, and its process group.
pub struct Child {
    child: tokio::process::Child,
    group: Option<Pid>,
    begun: Instant,
    /// Its outputs once more, to see whether any process can still write to them.
    pipes: Vec<OwnedFd>,
}

impl Child {
    /// Takes the process's outputs.
    pub fn take_outputs(&mut self) -> Outputs {
        let mut outputs = Outputs::new();
        if let Some(stdout) = self.child.stdout.take() {
            self.pipes.extend(stdout.as_fd().try_clone_to_owned());
            outputs.push((Io::Stdout, Box::new(stdout)));
        }
        if let Some(stderr) = self.child.stderr.take() {
            self.pipes.extend(stderr.as_fd().try_clone_to_owned());
            outputs.push((Io::Stderr, Box::new(stderr)));
        }
        outputs
    }

    /// Waits until the process ends, or stops its whole group when the source is to end.
    pub async fn wait(&mut self, served: &mut Served) -> Ended {
        let timeout = served.config.stop_timeout;
        tokio::select! {
            status = self.child.wait() => self.ended(status, false),
            () = served.stopped() => self.stop(timeout).await,
        }
    }

    async fn stop(&mut self, timeout: Duration) -> Ended {
        let until = Instant::now() + timeout;
        self.signal(Signal::TERM);
        let status = match tokio::time::timeout(timeout, self.child.wait()).await {
            Ok(status) => status,
            Err(_) => {
                self.signal(Signal::KILL);
                self.child.wait().await
            }
        };
        self.see_off(until).await;
        self.ended(status, true)
    }

    /// Ends what the process, which has ended, has left of its group: SIGTERM, and SIGKILL after `timeout`. Returns whether it has left anything.
    pub async fn end_group(&self, timeout: Duration) -> bool {
        let is_left = self.has_group();
        if is_left {
            self.signal(Signal::TERM);
            self.see_off(Instant::now() + timeout).await;
        }
        is_left
    }

    /// Waits for the end of a group that was told to end, and kills what is left of it at `until`.
    async fn see_off(&self, until: Instant) {
        while self.has_group() {
            if Instant::now() >= until {
                return self.signal(Signal::KILL);
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    fn signal(&self, signal: Signal) {
        if let Some(Err(error)) = self.group.map(|group| kill_process_group(group, signal)) {
            // It has ended meanwhile.
            tracing::debug!("{signal:?} to the group of a command: {error}");
        }
    }

    /// Whether the group has members, now that the process has ended.
    fn has_group(&self) -> bool {
        let Some(group) = self.group else { return false };
        // The orphans of a container become children of its first process, which may be siftd; as zombies they would count as members.
        while matches!(waitpgid(group, WaitOptions::NOHANG), Ok(Some(_))) {}
        test_kill_process_group(group).is_ok()
    }

    /// Whether any process can still write to an output.
    pub fn is_held(&self) -> bool {
        let is_open = |pipe: &OwnedFd| {
            let mut polled = [PollFd::new(pipe, PollFlags::empty())];
            // HUP comes unasked, as soon as nobody has the other end open.
            poll(&mut polled, Some(&Timespec::default())).is_ok() && !polled[0].revents().contains(PollFlags::HUP)
        };
        self.pipes.iter().any(is_open)
    }

    fn ended(&self, status: io::Result<ExitStatus>, was_stopped: bool) -> Ended {
        use std::os::unix::process::ExitStatusExt;
        let status = status.ok();
        let (code, signal) = (status.and_then(|status| status.code()), status.and_then(|status| status.signal()));
        Ended { code, signal, was_stopped, ran: self.begun.elapsed() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::SourceKind;

    #[test]
    fn what_cannot_be_run_is_named() {
        let config = |argv: &str| SourceConfig { argv: vec![argv.to_owned()], ..SourceConfig::new("s", SourceKind::Command) };
        assert!(Program::new(&config("sh")).is_ok() && Program::new(&config("/bin/sh")).is_ok());
        for (config, said) in [
            (config("no-such-program-anywhere"), "there is no program \"no-such-program-anywhere\" in PATH"),
            (config("/etc/passwd"), "program /etc/passwd cannot be executed"),
            (config("/no/such"), "program /no/such is not there"),
            (SourceConfig { directory: Some("/no/such".into()), ..config("sh") }, "there is no folder /no/such"),
            (SourceConfig { user: "nobody-of-that-name".into(), ..config("sh") }, "there is no user \"nobody-of-that-name\""),
        ] {
            let why = Program::new(&config).unwrap_err();
            assert!(why.contains("source \"s\"") && why.contains(said), "{why}");
        }
    }
}
