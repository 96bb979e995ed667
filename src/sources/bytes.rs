//! Bytes at an offset, of a file or of a compressed file's content. Content is
//! unpacked from the beginning; going back further than about 64 KiB starts over.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use super::discover::is_packed;
use super::input::{HEAD_BYTES, fill, unpacked};

/// Recently unpacked bytes to keep.
const RECENT_BYTES: usize = 96 << 10;
/// Bytes to unpack at once.
const STEP_BYTES: usize = 32 << 10;

/// A source that can be read at any offset.
pub trait ReadAt {
    /// Reads some bytes at `offset`; 0 means the end.
    ///
    /// # Errors
    /// Those of the file system or the decompressor.
    fn read_at(&self, space: &mut [u8], offset: u64) -> io::Result<usize>;
}

impl ReadAt for File {
    fn read_at(&self, space: &mut [u8], offset: u64) -> io::Result<usize> {
        FileExt::read_at(self, space, offset)
    }
}

/// A file being read.
pub enum Bytes {
    /// The file as it is.
    Plain(File),
    /// The content of a compressed file.
    Packed(Arc<File>, RefCell<Packed>),
}

/// The state of unpacking.
#[derive(Default)]
pub struct Packed {
    rest: Option<Box<dyn Read + Send>>,
    /// Bytes unpacked so far.
    at: u64,
    /// The last of these bytes.
    recent: Vec<u8>,
}

impl Bytes {
    /// Wraps an open file; its name says whether it is compressed, its first bytes how.
    #[must_use]
    pub fn new(file: File, path: &Path) -> Self {
        if is_packed(path) { Self::Packed(Arc::new(file), RefCell::default()) } else { Self::Plain(file) }
    }

    /// Returns the file itself.
    #[must_use]
    pub fn file(&self) -> &File {
        match self {
            Self::Plain(file) => file,
            Self::Packed(file, _) => file,
        }
    }

    /// Whether it is compressed: then it is read once, from its beginning to its end.
    #[must_use]
    pub fn is_packed(&self) -> bool {
        matches!(self, Self::Packed(..))
    }
}

impl ReadAt for Bytes {
    fn read_at(&self, space: &mut [u8], offset: u64) -> io::Result<usize> {
        match self {
            Self::Plain(file) => FileExt::read_at(file, space, offset),
            Self::Packed(file, packed) => packed.borrow_mut().read_at(file, space, offset),
        }
    }
}

impl Packed {
    fn read_at(&mut self, file: &Arc<File>, space: &mut [u8], offset: u64) -> io::Result<usize> {
        if offset + (self.recent.len() as u64) < self.at {
            *self = Self::default();
        }
        let mut count = 0;
        while count < space.len() {
            let wanted = offset + count as u64;
            if self.at <= wanted {
                match self.unpack(file) {
                    Ok(0) => break,
                    Ok(_) => continue,
                    // Hand over what came before the error; the next read reports it.
                    Err(_) if count > 0 => break,
                    Err(error) => return Err(error),
                }
            }
            let from = self.recent.len() - (self.at - wanted) as usize;
            let more = (space.len() - count).min(self.recent.len() - from);
            space[count..count + more].copy_from_slice(&self.recent[from..from + more]);
            count += more;
        }
        Ok(count)
    }

    /// Unpacks the next bytes; returns 0 if there are no more.
    fn unpack(&mut self, file: &Arc<File>) -> io::Result<usize> {
        let rest = match &mut self.rest {
            Some(rest) => rest,
            None => {
                let mut from = WholeFile { file: file.clone(), at: 0 };
                let mut head = vec![0; HEAD_BYTES];
                let count = fill(&mut from, &mut head)?;
                head.truncate(count);
                self.rest.insert(unpacked(&head, from))
            }
        };
        let kept = self.recent.len();
        if kept + STEP_BYTES > 2 * RECENT_BYTES {
            self.recent.drain(..kept - RECENT_BYTES);
        }
        let kept = self.recent.len();
        self.recent.resize(kept + STEP_BYTES, 0);
        let got = fill(rest, &mut self.recent[kept..]);
        let count = got.as_ref().map_or(0, |count| *count);
        self.recent.truncate(kept + count);
        self.at += count as u64;
        got
    }
}

/// Reads a file from its beginning, independently of other readers.
struct WholeFile {
    file: Arc<File>,
    at: u64,
}

impl Read for WholeFile {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        loop {
            match FileExt::read_at(&*self.file, space, self.at) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                got => {
                    self.at += got.as_ref().map_or(0, |count| *count as u64);
                    return got;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_compressed_file_is_read_at_any_offset() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.log.gz");
        let whole: Vec<u8> = (0..60_000).flat_map(|n| format!("line {n}\n").into_bytes()).collect();
        let mut gzip = flate2::write::GzEncoder::new(File::create(&path).unwrap(), flate2::Compression::fast());
        gzip.write_all(&whole).unwrap();
        gzip.finish().unwrap();
        let bytes = Bytes::new(File::open(&path).unwrap(), &path);
        let mut space = vec![0; 1000];
        for offset in [0, 10, 300_000, 299_950, 5, whole.len() - 20, 200_000] {
            let count = bytes.read_at(&mut space, offset as u64).unwrap();
            let wanted = &whole[offset..whole.len().min(offset + 1000)];
            assert!(space[..count] == *wanted, "{count} at {offset}");
        }
        assert_eq!(bytes.read_at(&mut space, whole.len() as u64).unwrap(), 0);
    }
}
