//! The end of an output file: what stands there, what is appended to it, and that nobody else does.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use crate::locks;

/// Opens a file to append to it, and to read it back where that can be; one that is not there is made.
pub(super) fn append_to(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).append(true).create(true).open(path).or_else(|error| {
        // What cannot be read back, such as /dev/stderr or a pipe, can still be written.
        let plain = OpenOptions::new().append(true).open(path);
        plain.map_err(|_| error)
    })
}

/// Keeps every other siftd from writing to a file, as long as it is open: records would be mixed, and rotated under each other.
/// The lock is advisory: other programs neither see nor need it.
///
/// # Errors
/// Another one has it already.
pub(super) fn hold(file: &File, path: &Path) -> io::Result<()> {
    let meta = file.metadata()?;
    // Behind such a name is what the shell has opened, perhaps for several programs.
    let is_lent = ["/dev", "/proc"].iter().any(|folder| path.starts_with(folder));
    if is_lent || !meta.is_file() {
        return Ok(());
    }
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => {
            let who = locks::writer(meta.ino(), 0..=u64::MAX).unwrap_or_else(|| "another siftd, or another sink of this one,".to_owned());
            Err(io::Error::new(ErrorKind::ResourceBusy, format!("{who} writes to it already: give each siftd an output of its own")))
        }
        // There are file systems without locks.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(()),
    }
}

/// Reads until `space` is full or the file ends; returns how much it is.
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

/// Appends all of it.
pub(super) fn write_all(mut file: &File, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes)
}

/// Length of the line at `at`, its newline included, and whether it has one.
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

/// A file that does not end with a newline gets one.
pub(super) fn end_line(file: &File) -> io::Result<()> {
    let size = file.metadata()?.len();
    let mut last = [0];
    if size > 0 && file.read_at(&mut last, size - 1).is_ok_and(|count| count == 1) && last[0] != b'\n' {
        write_all(file, b"\n")?;
    }
    Ok(())
}
