//! The command and all processes it has started, as far as they can be found: for ending a run that takes too long.

use std::collections::HashSet;
use std::fs;

use rustix::process::{Pid, Signal, getpid, kill_process};

/// Which processes belong to a command.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// The command.
    pub head: Pid,
    /// The command leads a group or session whose members all belong to it.
    pub leads: bool,
    /// Orphaned processes become children of siftd.
    pub adopts: bool,
    /// A child of siftd that does not belong to the command.
    pub stranger: Option<Pid>,
}

struct Process {
    pid: Pid,
    parent: Option<Pid>,
    group: Option<Pid>,
    session: Option<Pid>,
}

impl Family {
    /// Returns the processes that are still running.
    #[must_use]
    pub fn members(&self) -> Vec<Pid> {
        let processes = processes();
        let own = getpid();
        let mut members: HashSet<Pid> = HashSet::from([self.head]);
        let is_adopted = |process: &Process| self.adopts && process.parent == Some(own) && Some(process.pid) != self.stranger;
        let is_led = |process: &Process| self.leads && (process.group == Some(self.head) || process.session == Some(self.head));
        // A parent may come after its children in the list.
        loop {
            let before = members.len();
            let is_member = |process: &&Process| process.parent.is_some_and(|parent| members.contains(&parent)) || is_adopted(process) || is_led(process);
            let found: Vec<Pid> = processes.iter().filter(is_member).map(|process| process.pid).collect();
            members.extend(found);
            if members.len() == before {
                break;
            }
        }
        processes.iter().map(|process| process.pid).filter(|pid| members.contains(pid)).collect()
    }

    /// Sends a signal to each.
    pub fn signal(&self, signal: Signal) {
        for pid in self.members() {
            // The process may have just ended.
            let _ = kill_process(pid, signal);
        }
    }
}

/// Returns children of `leader` that have left its group, as the jobs of a shell with job control do at once.
#[must_use]
pub fn strays(leader: Pid) -> Vec<Pid> {
    let is_stray = |process: &Process| process.parent == Some(leader) && process.group != Some(leader);
    processes().into_iter().filter(is_stray).map(|process| process.pid).collect()
}

/// Whether any process other than `leader` is in its session.
#[must_use]
pub fn has_others(leader: Pid) -> bool {
    processes().iter().any(|process| process.session == Some(leader) && process.pid != leader)
}

/// Returns all processes except zombies.
fn processes() -> Vec<Process> {
    let Ok(folder) = fs::read_dir("/proc") else { return Vec::new() };
    let named = folder.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    named.filter_map(|pid: i32| process(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)).collect()
}

/// Parses `1 (name) S 0 1 1 …`; the name may contain any character.
fn process(pid: i32, stat: &str) -> Option<Process> {
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let ended = matches!(fields.next()?, "Z" | "X");
    let mut id = || Pid::from_raw(fields.next()?.parse().ok()?);
    let (parent, group, session) = (id(), id(), id());
    (!ended).then_some(Process { pid: Pid::from_raw(pid)?, parent, group, session })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_proc_says() {
        let read = process(7, "7 (a) b (c) S 3 5 4 0 -1 4194560 1").unwrap();
        assert_eq!((read.parent, read.group, read.session), (Pid::from_raw(3), Pid::from_raw(5), Pid::from_raw(4)));
        assert!(process(7, "7 (a) Z 3 5 4 0").is_none() && process(7, "nothing").is_none());
    }
}
