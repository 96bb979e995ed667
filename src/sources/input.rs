//! One finished input: a file or stdin, opened, with its head read, and decompressed if its first bytes
//! say so. It sits between `expand` and the stream. It passes on bytes and counts them; it knows no lines.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Cursor, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::archive;
use super::gz::{self, Gz};
use super::interrupt::Interrupt;
use super::own;
use super::zst::Zst;

/// Bytes at the start of a file that distinguish it from others, and enter the ids of its events.
pub const HEAD_BYTES: usize = 4096;
/// What a pipe can hold: after an interrupt, at most this much of a live input is read, even if a writer continues.
const LAST_BYTES: usize = 1 << 20;
/// Buffer in front of a decompressor.
const PACKED_BYTES: usize = 64 << 10;
pub(super) const GZIP: &[u8] = &gz::MAGIC;
pub(super) const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// Device and inode: identifies a file, whatever its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// Device.
    pub dev: u64,
    /// Inode.
    pub ino: u64,
}

impl Identity {
    /// Returns the identity of what a path leads to.
    ///
    /// # Errors
    /// Those of `stat`.
    pub fn at(path: &Path) -> io::Result<Self> {
        std::fs::metadata(path).map(|meta| Self { dev: meta.dev(), ino: meta.ino() })
    }

    /// Returns the identity of an open file.
    ///
    /// # Errors
    /// Those of `fstat`.
    pub fn of(file: &File) -> io::Result<Self> {
        file.metadata().map(|meta| Self { dev: meta.dev(), ino: meta.ino() })
    }
}

/// An opened input.
pub struct Opened {
    /// Its first bytes as they are stored, at most [`HEAD_BYTES`].
    pub head: Vec<u8>,
    /// The whole input, decompressed.
    pub bytes: Box<dyn Read + Send>,
    /// Whether each read returns what is available, so that a live writer is not kept waiting.
    pub live: bool,
    /// The stored size in bytes, if it is a regular file.
    pub size: Option<u64>,
    /// Whether it is known to end after its head.
    pub ended: bool,
}

impl Opened {
    /// Returns the first bytes as they are read, unpacked if necessary.
    ///
    /// # Errors
    /// Those of the reader.
    pub fn first(&mut self) -> io::Result<Vec<u8>> {
        if ![GZIP, ZSTD].iter().any(|magic| self.head.starts_with(magic)) {
            return Ok(self.head.clone());
        }
        let mut first = vec![0; HEAD_BYTES];
        let count = fill(&mut self.bytes, &mut first)?;
        first.truncate(count);
        let rest = std::mem::replace(&mut self.bytes, Box::new(io::empty()));
        self.bytes = Box::new(Cursor::new(first.clone()).chain(rest));
        Ok(first)
    }

    /// Whether its first `count` bytes are the whole input.
    #[must_use]
    pub fn is_whole(&self, count: usize) -> bool {
        self.size == Some(count as u64) || (self.ended && count == self.head.len())
    }
}

/// Hooks to observe and to end the reading.
#[derive(Clone, Default)]
pub struct Watched {
    /// Counts the bytes read, as they are stored.
    pub read: Arc<AtomicU64>,
    /// Ends a live input.
    pub interrupt: Option<Arc<Interrupt>>,
}

/// Opens a file.
///
/// # Errors
/// It does not exist, is a folder, or may not be read.
pub fn file(path: &Path, watched: Watched) -> io::Result<Opened> {
    // Opening a FIFO waits for a writer regardless of signals; waiting in the first read instead heeds them.
    let inner = if watched.interrupt.is_some() { open_at_once(path)? } else { File::open(path)? };
    let meta = inner.metadata()?;
    if meta.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    let live = !meta.is_file();
    let mut file = Counted { inner, watched, live, last: LAST_BYTES };
    let mut head = vec![0; HEAD_BYTES];
    let count = fill(&mut file, &mut head)?;
    head.truncate(count);
    Ok(Opened { bytes: unpacked(&head, file), head, live, size: meta.is_file().then_some(meta.len()), ended: false })
}

/// Opens a file that is waited for before each read: without that wait, a FIFO without a writer would seem to be at its end.
fn open_at_once(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    let flags = rustix::fs::fcntl_getfl(&file)?;
    rustix::fs::fcntl_setfl(&file, flags - rustix::fs::OFlags::NONBLOCK)?;
    Ok(file)
}

/// Opens stdin.
///
/// # Errors
/// It may not be read.
pub fn stdin(watched: Watched) -> io::Result<Opened> {
    let inner = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let meta = inner.metadata()?;
    let mut stdin = Counted { inner, watched, live: true, last: LAST_BYTES };
    let mut head = vec![0; HEAD_BYTES];
    let (mut count, mut ended) = (0, false);
    while count < head.len() && !ended {
        let more = retried(&mut stdin, &mut head[count..])?;
        count += more;
        ended = more == 0;
        // A first piece that could be the beginning of a magic number is too short to judge.
        let is_short = |magic: &&[u8]| count < magic.len() && magic.starts_with(&head[..count]);
        if !([GZIP, ZSTD].iter().any(is_short) || archive::may_begin(&head[..count]) || own::may_begin(&head[..count])) {
            break;
        }
    }
    head.truncate(count);
    Ok(Opened { bytes: unpacked(&head, stdin), head, live: true, size: meta.is_file().then_some(meta.len()), ended })
}

/// Returns the content of an input whose first bytes are `head`; if it is damaged, everything before the damage.
pub(super) fn unpacked(head: &[u8], rest: impl Read + Send + 'static) -> Box<dyn Read + Send> {
    let all = Cursor::new(head.to_vec()).chain(rest);
    if head.starts_with(GZIP) {
        Box::new(UntilFault::new(Gz::new(BufReader::with_capacity(PACKED_BYTES, all))))
    } else if head.starts_with(ZSTD) {
        Box::new(UntilFault::new(Zst::new(BufReader::with_capacity(PACKED_BYTES, all))))
    } else {
        Box::new(all)
    }
}

/// A decompressor that, once it has failed, fails in the same way on every later read.
struct UntilFault<R> {
    inner: R,
    fault: Option<(io::ErrorKind, String)>,
}

impl<R> UntilFault<R> {
    fn new(inner: R) -> Self {
        Self { inner, fault: None }
    }
}

impl<R: Read> Read for UntilFault<R> {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        if let Some((kind, why)) = &self.fault {
            return Err(io::Error::new(*kind, why.clone()));
        }
        self.inner.read(space).inspect_err(|error| {
            if error.kind() != io::ErrorKind::Interrupted {
                self.fault = Some((error.kind(), error.to_string()));
            }
        })
    }
}

/// Reads until `space` is full or the input ends; returns the number of bytes. What
/// was read before an error is returned first; the next read reports the error.
///
/// # Errors
/// Those of the reader.
pub fn fill(reader: &mut impl Read, space: &mut [u8]) -> io::Result<usize> {
    let mut count = 0;
    while count < space.len() {
        match retried(reader, &mut space[count..]) {
            Ok(0) => break,
            Ok(more) => count += more,
            Err(error) if count == 0 => return Err(error),
            Err(_) => break,
        }
    }
    Ok(count)
}

/// Reads once, retrying after signals.
///
/// # Errors
/// Those of the reader.
pub fn retried(reader: &mut impl Read, space: &mut [u8]) -> io::Result<usize> {
    loop {
        match reader.read(space) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

/// Counts the bytes read; after an interrupt, a live input ends once nothing waits to be read.
struct Counted {
    inner: File,
    watched: Watched,
    live: bool,
    /// Bytes still to be read after an interrupt.
    last: usize,
}

impl Read for Counted {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        let interrupt = self.watched.interrupt.as_ref().filter(|_| self.live);
        if let Some(interrupt) = interrupt
            && !interrupt.readable(self.inner.as_fd())?
        {
            return Ok(0);
        }
        let is_last = interrupt.is_some_and(|interrupt| interrupt.caught().is_some());
        let end = if is_last { space.len().min(self.last) } else { space.len() };
        let count = self.inner.read(&mut space[..end])?;
        if is_last {
            self.last -= count;
        }
        self.watched.read.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}
