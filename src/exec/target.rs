//! Where a verdict, records or a digest go: a file, stdout, or a descriptor that the caller has opened.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// What was in it goes.
    Replace,
    /// What was in it stays.
    Append,
}

/// Opens `FILE`, `-` for stdout, or `fd:N`.
///
/// # Errors
/// It cannot be written.
pub fn open(name: &Path, mode: Mode) -> io::Result<File> {
    let text = name.to_str().unwrap_or_default();
    if text == "-" {
        return Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?));
    }
    if let Some(number) = text.strip_prefix("fd:") {
        let number: u32 = number.parse().map_err(|_| io::Error::other("write fd:N with the number of an open descriptor"))?;
        // Opened anew, it has a position of its own: at the end is where nothing is lost.
        return OpenOptions::new().append(true).open(format!("/proc/self/fd/{number}"));
    }
    let mut options = OpenOptions::new();
    options.create(true);
    match mode {
        Mode::Replace => options.write(true).truncate(true),
        Mode::Append => options.append(true),
    };
    options.open(name)
}
