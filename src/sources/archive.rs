//! Files that hold others, packed, and that are not unpacked here: known by their first bytes, with what unpacks them.

/// A form of packing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Archive {
    /// Where its mark stands.
    at: usize,
    /// Bytes that no text has there.
    mark: &'static [u8],
    /// What it is, and how it is read.
    pub says: &'static str,
}

/// Those that are known.
pub const ALL: [Archive; 10] = [
    Archive { at: 0, mark: b"\xfd7zXZ\0", says: "is compressed with xz, which is not read here: xz -dc FILE | siftd scan" },
    Archive { at: 4, mark: b"1AY&SY", says: "is compressed with bzip2, which is not read here: bzip2 -dc FILE | siftd scan" },
    Archive { at: 0, mark: b"\x04\x22\x4d\x18", says: "is compressed with lz4, which is not read here: lz4 -dc FILE | siftd scan" },
    Archive { at: 0, mark: b"LZIP\x01", says: "is compressed with lzip, which is not read here: lzip -dc FILE | siftd scan" },
    Archive { at: 0, mark: b"\x1f\x9d", says: "is compressed with compress, which is not read here: zcat FILE | siftd scan" },
    Archive { at: 0, mark: b"PK\x03\x04", says: "is a zip archive, which is not read here: unzip -p FILE | siftd scan" },
    Archive { at: 0, mark: b"7z\xbc\xaf\x27\x1c", says: "is a 7z archive, which is not read here: 7z x -so FILE | siftd scan" },
    Archive { at: 0, mark: b"Rar!\x1a\x07", says: "is a rar archive, which is not read here: unrar p -inul FILE | siftd scan" },
    Archive { at: 257, mark: b"ustar\0", says: TAR },
    Archive { at: 257, mark: b"ustar  \0", says: TAR },
];
const TAR: &str = "is a tar archive, which is not read here: tar -xOf FILE | siftd scan";

impl Archive {
    /// Whether what it holds stands in it as it is, so that it can be read all the same.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.says == TAR
    }
}

/// Whether so few first bytes may be those of an archive.
#[must_use]
pub fn may_begin(first: &[u8]) -> bool {
    ALL.iter().any(|archive| archive.at == 0 && first.len() < archive.mark.len() && archive.mark.starts_with(first))
}

/// What packed a file that begins so.
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
            assert!(of(first).is_some_and(|archive| archive.says.contains(&format!(" {word}"))), "{word}");
        }
        for first in [&b"PK is short for park"[..], b"BZh", b"1AY&SY", b"", b"\x1f\x8b\x08"] {
            assert_eq!(of(first), None);
        }
    }
}
