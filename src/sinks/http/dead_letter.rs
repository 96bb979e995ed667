//! Records that a server refuses for good: an NDJSON file, one line each, with the reason. The operator inspects it, fixes the cause and sends the
//! records again; siftd never reads it. It is bounded: once it is full, the sink waits. After a kill a record may appear in it twice, with the same id.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use super::answer::Refusal;
use super::batch::Row;
use crate::core::event::Timestamp;
use crate::json::Object;
use crate::sinks::generations::sync_folder;
use crate::sinks::record::rfc3339;

/// The file.
#[derive(Clone, Debug)]
pub struct DeadLetter {
    /// Where it is.
    pub path: PathBuf,
    /// Maximum size in bytes; an empty file takes any record.
    pub max_bytes: u64,
}

impl DeadLetter {
    /// Appends records as long as there is room, and syncs them to disk; returns how many.
    ///
    /// # Errors
    /// The file cannot be written, or is full already.
    pub(super) fn append(&self, sink: &str, refused: &[(Row, Refusal)], now: Timestamp) -> io::Result<usize> {
        let mut file = self.open().map_err(|why| self.fault(&why))?;
        let mut size = file.metadata()?.len();
        let mut text = torn_end(&mut file, size).map_err(|why| self.fault(&why))?;
        let mut count = 0;
        for (row, refusal) in refused {
            let from = text.len();
            line(&mut text, sink, row, refusal, now);
            if size + text.len() as u64 > self.max_bytes && (size > 0 || from > 0) {
                text.truncate(from);
                break;
            }
            count += 1;
        }
        if count == 0 && !refused.is_empty() {
            let full = format!("is full, with {size} of {} bytes (dead_letter_max): move it away, and find out why records are refused", self.max_bytes);
            return Err(self.fault(&io::Error::other(full)));
        }
        size += text.len() as u64;
        file.write_all(&text).and_then(|()| file.sync_data()).map_err(|why| self.fault(&why))?;
        if size == text.len() as u64 {
            sync_folder(&self.path);
        }
        Ok(count)
    }

    fn open(&self) -> io::Result<File> {
        // Refused records may hold what others must not read.
        OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(&self.path)
    }

    fn fault(&self, why: &io::Error) -> io::Error {
        let what = if why.kind() == ErrorKind::Other { String::new() } else { "dead letters cannot be written: ".to_owned() };
        io::Error::other(format!("{what}{} {why}", self.path.display()))
    }
}

/// Returns the newline that ends a line left incomplete by an interrupted write.
fn torn_end(file: &mut File, size: u64) -> io::Result<Vec<u8>> {
    let mut last = [b'\n'];
    if size > 0 {
        file.seek(SeekFrom::Start(size - 1))?;
        file.read_exact(&mut last)?;
    }
    Ok(if last == *b"\n" { Vec::new() } else { vec![b'\n'] })
}

fn line(out: &mut Vec<u8>, sink: &str, row: &Row, refusal: &Refusal, now: Timestamp) {
    let mut object = Object::new(out);
    object.member("at", rfc3339(now)).member("sink", sink).member("status", refusal.status);
    object.member("reason", refusal.reason.as_str()).raw("record", &row.bytes).end();
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(count: u64) -> Vec<(Row, Refusal)> {
        let one = |number| {
            let row = Row { number, id: String::new(), bytes: format!("{{\"n\":{number}}}").into() };
            (row, Refusal { status: 400, reason: "a \"bad\" one".into() })
        };
        (1..=count).map(one).collect()
    }

    #[test]
    fn lines_are_whole_bounded_and_for_the_owner() {
        let folder = tempfile::tempdir().unwrap();
        let file = DeadLetter { path: folder.path().join("dead.ndjson"), max_bytes: 260 };
        assert_eq!(file.append("s", &refused(2), Timestamp(0)).unwrap(), 2);
        let text = std::fs::read_to_string(&file.path).unwrap();
        let first = r#"{"at":"1970-01-01T00:00:00.000000Z","sink":"s","status":400,"reason":"a \"bad\" one","record":{"n":1}}"#;
        assert_eq!(text.lines().next(), Some(first));
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(&file.path).unwrap().permissions().mode() & 0o777, 0o600);
        // A write that was cut off.
        std::fs::write(&file.path, format!("{first}\n{{\"at")).unwrap();
        assert_eq!(file.append("s", &refused(3), Timestamp(0)).unwrap(), 1, "there is room for one more");
        let text = std::fs::read_to_string(&file.path).unwrap();
        assert_eq!(text, format!("{first}\n{{\"at\n{first}\n"));
        let why = file.append("s", &refused(1), Timestamp(0)).unwrap_err().to_string();
        assert!(why.contains("dead.ndjson is full, with 211 of 260 bytes (dead_letter_max)"), "{why}");
        std::fs::remove_file(&file.path).unwrap();
        let small = DeadLetter { max_bytes: 10, ..file };
        assert_eq!(small.append("s", &refused(2), Timestamp(0)).unwrap(), 1, "an empty one takes any record");
        let nowhere = DeadLetter { path: folder.path().join("none/dead.ndjson"), ..small };
        let why = nowhere.append("s", &refused(1), Timestamp(0)).unwrap_err().to_string();
        assert!(why.contains("dead letters cannot be written") && why.contains("No such file"), "{why}");
    }
}
