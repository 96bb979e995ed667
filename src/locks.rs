//! Finds the process that holds a lock on a file in the kernel's list (proc(5), `/proc/locks`), so that messages can name it.

use std::fs;
use std::ops::RangeInclusive;

/// Returns another process with a write lock on any of these bytes
/// of a file, described for a message; `None` if none is known.
#[must_use]
pub fn writer(inode: u64, bytes: RangeInclusive<u64>) -> Option<String> {
    let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
    listed(&locks, inode, bytes).map(described)
}

fn listed(locks: &str, inode: u64, bytes: RangeInclusive<u64>) -> Option<u32> {
    let own = std::process::id();
    locks.lines().find_map(|line| {
        // 1: POSIX  ADVISORY  WRITE 4711 08:01:131 120 120
        let words: Vec<&str> = line.split_whitespace().collect();
        let [.., kind, pid, place, from, to] = words[..] else { return None };
        let from: u64 = from.parse().ok()?;
        let to: u64 = to.parse().unwrap_or(u64::MAX);
        let pid: u32 = pid.parse().ok().filter(|pid| *pid != own)?;
        let is_it = kind == "WRITE" && place.rsplit(':').next()?.parse() == Ok(inode) && from <= *bytes.end() && to >= *bytes.start();
        is_it.then_some(pid)
    })
}

fn described(pid: u32) -> String {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    match name.trim() {
        "" => format!("process {pid}"),
        name => format!("process {pid} ({name})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_writer_is_found_in_the_kernels_list() {
        let locks = "1: POSIX  ADVISORY  READ 41 08:01:131 123 123\n2: POSIX  ADVISORY  WRITE 42 08:01:131 124 124\n\
                     3: POSIX  ADVISORY  WRITE 43 08:01:131 120 120\n4: FLOCK  ADVISORY  WRITE 44 00:1a:9 0 EOF\n5: -> POSIX\n";
        assert_eq!(listed(locks, 131, 120..=120), Some(43));
        assert_eq!(listed(locks, 9, 0..=u64::MAX), Some(44));
        assert_eq!(listed(locks, 7, 0..=u64::MAX), None);
    }
}
