//! Runs a user's command as a hook: program and arguments without a shell, a record on its stdin, its output sent to
//! stderr, and a time limit.

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Longest time that a command may run.
const LIMIT: Duration = Duration::from_secs(30);
/// Between two checks whether the command has ended.
const LOOK: Duration = Duration::from_millis(5);

/// Runs `argv` to its end, or kills it after 30 s. `spawn` starts it.
///
/// # Errors
/// The command could not be started, failed, or took too long.
pub fn run(argv: &[String], record: &[u8], spawn: impl FnOnce(&mut Command) -> io::Result<Child>) -> io::Result<()> {
    let (program, args) = argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    // stdout belongs to records, or to a command that is watched.
    let output: Stdio = io::stderr().as_fd().try_clone_to_owned()?.into();
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::piped()).stdout(output);
    let mut child = spawn(&mut command)?;
    if let Some(mut stdin) = child.stdin.take() {
        let record = record.to_vec();
        // A command that does not read its stdin must not hold up the next one.
        std::thread::spawn(move || drop(stdin.write_all(&record)));
    }
    ended(&mut child, LIMIT)
}

fn ended(child: &mut Child, limit: Duration) -> io::Result<()> {
    let started = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) if !status.success() => return Err(io::Error::other(format!("it failed ({status})"))),
            // Err: code that reaps all children may have been first.
            Ok(Some(_)) | Err(_) => return Ok(()),
            Ok(None) if started.elapsed() > limit => {
                child.kill()?;
                // Otherwise it would stay a zombie as long as siftd runs.
                let _ = child.wait();
                return Err(io::Error::other(format!("ended after {} s", limit.as_secs())));
            }
            Ok(None) => std::thread::sleep(LOOK),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(argv: &[&str], record: &[u8]) -> io::Result<()> {
        run(&argv.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>(), record, Command::spawn)
    }

    #[test]
    fn one_that_fails_is_an_error() {
        ran(&["true"], b"{}\n").unwrap();
        ran(&["grep", "-q", "here"], b"here\n").unwrap();
        assert!(ran(&["false"], b"{}\n").unwrap_err().to_string().contains("exit status: 1"));
        assert!(ran(&["/nowhere/at/all"], b"").is_err());
    }

    #[test]
    fn one_that_takes_too_long_is_ended_and_leaves_nothing() {
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        let process = format!("/proc/{}", child.id());
        assert!(ended(&mut child, Duration::ZERO).unwrap_err().to_string().contains("ended after"));
        assert!(!std::path::Path::new(&process).exists(), "it is a zombie");
    }
}
