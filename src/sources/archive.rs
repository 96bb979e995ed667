//! Archives and compressed files that siftd does not unpack: recognised by their first bytes, with the program that unpacks them.

use std::path::Path;

/// A format of packed files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Archive {
    /// Where its magic number is.
    at: usize,
    /// The magic number: bytes that no text has there.
    mark: &'static [u8],
    /// What the format is, for messages.
    what: &'static str,
    /// The command that prints the content, to be followed by the file's name.
    unpack: &'static str,
}

/// The known formats.
pub const ALL: [Archive; 10] = [
    Archive { at: 0, mark: b"\xfd7zXZ\0", what: "compressed with xz", unpack: "xz -dc" },
    Archive { at: 4, mark: b"1AY&SY", what: "compressed with bzip2", unpack: "bzip2 -dc" },
    Archive { at: 0, mark: b"\x04\x22\x4d\x18", what: "compressed with lz4", unpack: "lz4 -dc" },
    Archive { at: 0, mark: b"LZIP\x01", what: "compressed with lzip", unpack: "lzip -dc" },
    Archive { at: 0, mark: b"\x1f\x9d", what: "compressed with compress", unpack: "zcat" },
    Archive { at: 0, mark: b"PK\x03\x04", what: "a zip archive", unpack: "unzip -p" },
    Archive { at: 0, mark: b"7z\xbc\xaf\x27\x1c", what: "a 7z archive", unpack: "7z x -so" },
    Archive { at: 0, mark: b"Rar!\x1a\x07", what: "a rar archive", unpack: "unrar p -inul" },
    Archive { at: 257, mark: b"ustar\0", what: "a tar archive", unpack: TAR },
    Archive { at: 257, mark: b"ustar  \0", what: "a tar archive", unpack: TAR },
];
/// Unpacks tar, the only format that does not compress.
const TAR: &str = "tar -xOf";

impl Archive {
    /// Says what the file at `path`, if it has one, is, and how `command` of siftd can read it.
    #[must_use]
    pub fn advice(self, command: &str, path: Option<&Path>) -> String {
        format!("is {}, which is not read here: {} {} | siftd {command}", self.what, self.unpack, named(path))
    }

    /// Whether the archive holds its content uncompressed, so that it can be read all the same.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.unpack == TAR
    }
}

/// Returns the name of a file for a shell.
pub(super) fn named(path: Option<&Path>) -> String {
    let quoted = path.and_then(Path::to_str).and_then(|name| shlex::try_quote(name).ok());
    quoted.map_or_else(|| "FILE".to_owned(), |name| name.into_owned())
}

/// Whether these few first bytes may begin an archive.
#[must_use]
pub fn may_begin(first: &[u8]) -> bool {
    ALL.iter().any(|archive| archive.at == 0 && first.len() < archive.mark.len() && archive.mark.starts_with(first))
}

/// Returns the format of a file that begins with these bytes.
#[must_use]
pub fn of(first: &[u8]) -> Option<Archive> {
    ALL.into_iter().find(|archive| first.get(archive.at..).is_some_and(|rest| rest.starts_with(archive.mark)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archives_are_known_by_their_first_bytes_and_logs_are_none() {
        let tar = [&[b'x'; 257][..], b"ustar\x0000"].concat();
        for (first, word) in [(&b"\xfd7zXZ\0\0\x04"[..], "xz"), (b"BZh91AY&SY", "bzip2"), (b"PK\x03\x04\x14", "zip"), (&tar, "tar")] {
            assert!(of(first).is_some_and(|archive| archive.advice("scan", None).contains(&format!(" {word}"))), "{word}");
        }
        let said = of(b"\xfd7zXZ\0").map(|archive| archive.advice("scan", Some(Path::new("my logs/a.xz"))));
        assert!(said.is_some_and(|said| said.ends_with(": xz -dc 'my logs/a.xz' | siftd scan")));
        for first in [&b"PK is short for park"[..], b"BZh", b"1AY&SY", b"", b"\x1f\x8b\x08"] {
            assert_eq!(of(first), None);
        }
    }
}
