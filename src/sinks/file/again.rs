//! Finds the file of the last run by its inode, under whatever name it has by now, and determines its
//! true end: what was written after the committed end is compared with the records that could be there.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use super::super::tail::{append_to, end_line, hold, line_at, read_at, write_all};
use super::{OutboxReader, Output, older};
use crate::core::event::Timestamp;

impl Output {
    /// Finds the file of the last run and its true end, or begins one if there is none.
    pub(super) fn open(&mut self, outbox: &mut dyn OutboxReader, now: Timestamp) -> io::Result<()> {
        self.claim(outbox);
        let old = self.find_old()?;
        match old {
            Some((path, file)) => {
                hold(&file, &self.options.path)?;
                self.reconcile(&file, outbox)?;
                if path == self.options.path {
                    self.file = Some(file);
                    self.dirty_since = Some(now);
                    self.begin();
                    return Ok(());
                }
            }
            // Committed records are not written again, so only records after them are worth a
            // warning. A file that was compressed at its committed length had none after them.
            None if self.mark.node.ino != 0
                && outbox.after(self.mark.seq)?.is_some()
                && !older::is_packed(&self.options.path, self.mark.len, self.mark.since) =>
            {
                tracing::warn!(
                    "{}: the file that was written last is not there (its path was changed, or it was removed or cut); records that may have been in it are written again",
                    self.options.path.display()
                )
            }
            None => {}
        }
        self.enter(outbox, now)
    }

    /// Finds the file written last, if it is whole: at its path or under an older name.
    fn find_old(&self) -> io::Result<Option<(PathBuf, File)>> {
        if self.mark.node.ino == 0 {
            return Ok(None);
        }
        for path in older::all(&self.options.path) {
            let Ok(meta) = path.symlink_metadata() else { continue };
            if meta.is_file() && meta.ino() == self.mark.node.ino && meta.len() >= self.mark.len {
                return Ok(Some((path.clone(), append_to(&path)?)));
            }
        }
        Ok(None)
    }

    /// Compares what follows the committed end with the records that could be there.
    fn reconcile(&mut self, file: &File, outbox: &mut dyn OutboxReader) -> io::Result<()> {
        let (mut at, mut seq) = (self.mark.len, self.mark.seq);
        let size = file.metadata()?.len();
        let mut foreign = 0;
        'records: while let Some(chunk) = outbox.after(seq)? {
            let from = seq;
            for (number, head, record) in chunk.after(from) {
                let mut wanted = Vec::new();
                self.options.choose.write(head, record, &mut wanted);
                while !wanted.is_empty() {
                    let mut there = vec![0; wanted.len()];
                    let count = read_at(file, &mut there, at)?;
                    if there[..count] == wanted[..count] {
                        if count < wanted.len() {
                            if count == 0 {
                                break 'records;
                            }
                            // A torn end: write the rest of this record.
                            write_all(file, &wanted[count..])?;
                        }
                        at += wanted.len() as u64;
                        break;
                    }
                    let (bytes, is_whole) = line_at(file, at, size)?;
                    foreign += bytes;
                    at += bytes;
                    if !is_whole {
                        write_all(file, b"\n")?;
                        at += 1;
                        break 'records;
                    }
                }
                seq = number;
            }
        }
        if at < size {
            foreign += size - at;
        }
        if foreign > 0 {
            tracing::warn!("{}: {foreign} bytes that siftd did not write", self.options.path.display());
            end_line(file)?;
        }
        (self.mark.seq, self.mark.len) = (seq, file.metadata()?.len());
        Ok(())
    }
}
