//! Identifies streams, so that the same error in the same place has the same id whoever reads it again, and names the host.

use std::hash::{BuildHasher, RandomState};
use std::path::{Component, Path, PathBuf};

use md5::{Digest, Md5};

use crate::delivery::Node;
use crate::sources::clock::now;

/// Identifies a file in `scan` by its path, its first 4 KiB as stored, and `--run-id`. `./a`, `.//a` and `a` are
/// one path; a relative and an absolute one are two, or no log of a build would have the same ids on two machines.
pub fn of_file(path: &str, head: &[u8], run_id: &str) -> [u8; 16] {
    let path: PathBuf = Path::new(path).components().filter(|part| *part != Component::CurDir).collect();
    hash(&[b"siftd-scan-1", path.as_os_str().as_encoded_bytes(), head, run_id.as_bytes()])
}

/// Returns a different value on each call: for stdin, whose bytes never come again.
pub fn nonce() -> [u8; 16] {
    let random = RandomState::new().hash_one(now().0);
    hash(&[b"siftd-nonce-1", &random.to_be_bytes(), &now().0.to_be_bytes(), &std::process::id().to_be_bytes()])
}

/// Returns the MD5 of the parts, each preceded by its length.
pub fn hash(parts: &[&[u8]]) -> [u8; 16] {
    let mut hash = Md5::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

/// Returns the name of this machine.
pub fn host() -> String {
    let said = std::fs::read_to_string("/proc/sys/kernel/hostname").or_else(|_| std::fs::read_to_string("/etc/hostname"));
    let name = said.unwrap_or_default().trim().to_owned();
    if name.is_empty() { std::env::var("HOSTNAME").unwrap_or_else(|_| "localhost".to_owned()) } else { name }
}

/// Identifies a file in `run` by this machine, the source's name, and the file's device, inode and birth time.
pub fn of_followed(source: &str, file: Node) -> [u8; 16] {
    let machine = std::fs::read("/etc/machine-id").unwrap_or_default();
    hash(&[b"siftd-run-1", &machine, source.as_bytes(), &file.dev.to_be_bytes(), &file.ino.to_be_bytes(), &file.born.to_be_bytes()])
}
