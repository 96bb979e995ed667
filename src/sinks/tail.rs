//! The end of an output file: reading it, appending to it, and keeping other writers out.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use crate::locks;

/// Opens a file for appending, and for reading back if possible; creates it if it does not exist.
pub(super) fn append_to(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).append(true).create(true).open(path).or_else(|error| {
        // What cannot be read back, such as /dev/stderr or a pipe, may still be writable.
        let plain = OpenOptions::new().append(true).open(path);
        plain.map_err(|_| error)
    })
}

/// Keeps every other siftd from writing to a file while it is open: records would be mixed, and each
/// would rotate files under the other. The lock is advisory: other programs neither see nor need it.
///
/// # Errors
/// Another siftd holds it already.
pub(super) fn hold(file: &File, path: &Path) -> io::Result<()> {
    let meta = file.metadata()?;
    // The shell has opened what such a name stands for, perhaps for several programs.
    let is_lent = ["/dev", "/proc"].iter().any(|folder| path.starts_with(folder));
    if is_lent || !meta.is_file() {
        return Ok(());
    }
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => {
            let who = locks::writer(meta.ino(), 0..=u64::MAX).unwrap_or_else(|| "another siftd, or another sink of this one,".to_owned());
            Err(io::Error::new(ErrorKind::ResourceBusy, format!("{who} writes to it already: give each siftd an output of its own")))
        }
        // Some file systems have no locks.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(()),
    }
}

/// Reads until `space` is full or the file ends; returns the number of bytes.
pub(super) fn read_at(file: &File, space: &mut [u8], at: u64) -> io::Result<usize> {
    let mut count = 0;
    while count < space.len() {
        match file.read_at(&mut space[count..], at + count as u64)? {
            0 => break,
            more => count += more,
        }
    }
    Ok(count)
}

/// Appends all bytes.
pub(super) fn write_all(mut file: &File, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes)
}

/// Returns the length of the line at `at`, including its newline, and whether it has one.
pub(super) fn line_at(file: &File, at: u64, size: u64) -> io::Result<(u64, bool)> {
    let mut space = vec![0; 64 << 10];
    let mut end = at;
    loop {
        let count = read_at(file, &mut space, end)?;
        if let Some(newline) = memchr::memchr(b'\n', &space[..count]) {
            return Ok((end + newline as u64 + 1 - at, true));
        }
        end += count as u64;
        if count == 0 || end >= size {
            return Ok((end - at, false));
        }
    }
}

/// Appends a newline to a file that does not end with one.
pub(super) fn end_line(file: &File) -> io::Result<()> {
    let size = file.metadata()?.len();
    let mut last = [0];
    if size > 0 && file.read_at(&mut last, size - 1).is_ok_and(|count| count == 1) && last[0] != b'\n' {
        write_all(file, b"\n")?;
    }
    Ok(())
}
