//! The older generations of an output file; `events.ndjson.1` is the youngest. They
//! are shifted before a rotation and compressed after it; the oldest is removed.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::{Duration, UNIX_EPOCH};

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::core::event::Timestamp;
use crate::delivery::is_output;

/// The smallest possible gzip file: header and trailer.
const GZIP_MIN: u64 = 18;

/// Returns `path.N`, or `path.N.gz`.
#[must_use]
pub fn name(path: &Path, number: u32, packed: bool) -> PathBuf {
    let mut name: OsString = path.as_os_str().to_owned();
    name.push(format!(".{number}{}", if packed { ".gz" } else { "" }));
    PathBuf::from(name)
}

/// Returns all files that are, or were, the output: `path` and `path.…`.
#[must_use]
pub fn all(path: &Path) -> Vec<PathBuf> {
    let (Some(folder), Some(base)) = (path.parent(), path.file_name()) else { return vec![path.to_owned()] };
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_ours =
        |name: &OsString| name.as_encoded_bytes().strip_prefix(base.as_encoded_bytes()).is_some_and(|rest| rest.is_empty() || b".-".contains(&rest[0]));
    entries.filter(|entry| is_ours(&entry.file_name())).map(|entry| folder.join(entry.file_name())).collect()
}

/// As [`all`], but only names that siftd or a rotation gives: `app.log` is not the output `app`, though it may be
/// what became of it, if it is the same file.
#[must_use]
pub fn own(path: &Path) -> Vec<PathBuf> {
    let base = path.file_name().unwrap_or_default().as_encoded_bytes();
    let is_own = |name: &OsStr| name.as_encoded_bytes().strip_prefix(base).is_some_and(is_output);
    all(path).into_iter().filter(|path| path.file_name().is_some_and(is_own)).collect()
}

/// Moves `path` to `path.1`, and each older generation one further. Those beyond `keep` are removed, except the
/// new `path.1`, which is left to [`settling`]. An interruption leaves a gap in the numbers but loses nothing.
///
/// # Errors
/// A file cannot be renamed.
pub fn shift(path: &Path, keep: u32) -> io::Result<()> {
    let mut last = 1;
    while name(path, last, false).exists() || name(path, last, true).exists() {
        last += 1;
    }
    for number in (1..last).rev() {
        for packed in [false, true] {
            let old = name(path, number, packed);
            if number >= keep {
                remove(&old)?;
            } else if old.exists() {
                fs::rename(&old, name(path, number + 1, packed))?;
            }
        }
    }
    fs::rename(path, name(path, 1, false))
}

/// Whether `path.1` must be compressed or removed once it is no longer needed to find out what was written,
/// or is there twice.
#[must_use]
pub fn is_unsettled(path: &Path, keep: u32, packs: bool) -> bool {
    name(path, 1, false).is_file() && (keep == 0 || packs || is_twice(path))
}

/// Removes `path.1` if no older files are kept, else compresses it if `packs`, in a thread of its own; failures are logged.
#[must_use]
pub fn settling(path: PathBuf, keep: u32, packs: bool) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let first = name(&path, 1, false);
        let done = match packs {
            _ if keep == 0 => remove(&first),
            true => pack(&first),
            false => remove(&name(&path, 1, true)),
        };
        if let Err(error) = done {
            tracing::warn!("{}: cannot be compressed or removed: {error}", first.display());
        }
    })
}

/// Whether `path.1.gz` holds what `path.1` holds: [`pack`] was interrupted before it removed the latter.
fn is_twice(path: &Path) -> bool {
    let len = name(path, 1, false).metadata().map(|meta| meta.len());
    matches!((len, unpacked_len(&name(path, 1, true))), (Ok(len), Ok(Some(packed))) if packed == len as u32)
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Compresses `path` to `path.gz`, readable by the same users, and removes `path`. An interruption leaves `path` whole.
///
/// # Errors
/// Those of the file system; nothing has changed then.
pub fn pack(path: &Path) -> io::Result<()> {
    let packed = |end: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        PathBuf::from(name)
    };
    let half = packed(".gz.tmp");
    let done = pack_as(path, &half).and_then(|()| fs::rename(&half, packed(".gz")));
    if done.is_err() {
        // Its disk may be the full one.
        let _ = remove(&half);
    }
    done?;
    remove(path)
}

fn pack_as(path: &Path, packed: &Path) -> io::Result<()> {
    // A leftover from an interruption would keep its own owner and permissions.
    remove(packed)?;
    let mut from = File::open(path)?;
    let meta = from.metadata()?;
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(packed)?;
    // Only root may change the owner.
    let _ = fchown(&file, Some(meta.uid()), Some(meta.gid()));
    file.set_permissions(meta.permissions())?;
    let mut to = GzEncoder::new(file, Compression::default());
    io::copy(&mut from, &mut to)?;
    let mut file = to.finish()?;
    file.flush()?;
    file.sync_all()
}

/// Whether a file of this length, begun at `since`, exists in compressed form: another program has then rotated it.
#[must_use]
pub fn is_packed(path: &Path, len: u64, since: Timestamp) -> bool {
    let since = UNIX_EPOCH + Duration::from_micros(since.0.unsigned_abs());
    let is_it = |packed: &PathBuf| -> io::Result<bool> { Ok(packed.symlink_metadata()?.modified()? >= since && unpacked_len(packed)? == Some(len as u32)) };
    let is_gzip = |packed: &PathBuf| packed.extension().is_some_and(|end| end == "gz");
    len > 0 && all(path).iter().filter(|packed| is_gzip(packed)).any(|packed| is_it(packed).unwrap_or(false))
}

/// Returns the length of a gzip file's content, modulo 2³²; `None` if it cannot be a gzip file.
fn unpacked_len(packed: &Path) -> io::Result<Option<u32>> {
    let meta = packed.symlink_metadata()?;
    if !meta.is_file() || meta.len() < GZIP_MIN {
        return Ok(None);
    }
    // It stands at the end (RFC 1952, ISIZE).
    let mut end = [0; 4];
    File::open(packed)?.read_exact_at(&mut end, meta.len() - 4)?;
    Ok(Some(u32::from_le_bytes(end)))
}

/// Makes files created or renamed in the folder of `path` survive a power failure.
pub fn sync_folder(path: &Path) {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Some file systems cannot do this; names are then as durable as the file system makes them.
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_compressed_file_is_for_the_same_readers_and_a_failure_leaves_no_half() {
        let dir = tempfile::tempdir().unwrap();
        for mode in [0o600, 0o640, 0o666] {
            let path = dir.path().join(format!("{mode:o}"));
            fs::write(&path, "{}\n").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            pack(&path).unwrap();
            let packed = path.with_extension("gz");
            assert_eq!(packed.metadata().unwrap().permissions().mode() & 0o777, mode);
            fs::remove_file(packed).unwrap();
        }
        let path = dir.path().join("e.1");
        fs::write(&path, "{}\n").unwrap();
        // Its place is taken.
        fs::create_dir(dir.path().join("e.1.gz")).unwrap();
        assert!(pack(&path).is_err());
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), fs::read_dir(dir.path()).unwrap().count()), ("{}\n", 2));
    }

    #[test]
    fn a_log_beside_the_output_is_not_the_output() {
        let dir = tempfile::tempdir().unwrap();
        let (ours, others) = (["app", "app.1", "app.2.gz", "app.3.gz.tmp", "app-20261122"], ["app.log", "app-notes", "app.bak", "app.1.tmp", "apple"]);
        ours.iter().chain(&others).for_each(|name| fs::write(dir.path().join(name), "").unwrap());
        let mut found = own(&dir.path().join("app"));
        found.sort();
        let mut wanted = ours.map(|name| dir.path().join(name));
        wanted.sort();
        assert_eq!(found, wanted);
    }

    #[test]
    fn a_compression_that_was_interrupted_leaves_no_second_copy_when_it_is_switched_off() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("e.ndjson");
        fs::write(&path, "1").unwrap();
        shift(&path, 3).unwrap();
        let first = name(&path, 1, false);
        pack(&first).unwrap();
        fs::write(&first, "1").unwrap();
        if is_unsettled(&path, 3, false) {
            settling(path.clone(), 3, false).join().unwrap();
        }
        fs::write(&path, "2").unwrap();
        shift(&path, 3).unwrap();
        assert!(name(&path, 2, false).is_file());
        assert_eq!(all(&path).len(), 2, "{:?}", all(&path));
        // Another file in that place is somebody's own.
        fs::write(name(&path, 1, true), [7; 40]).unwrap();
        assert!(!is_unsettled(&path, 3, false));
    }

    #[test]
    fn generations_move_up_and_the_oldest_goes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("e.ndjson");
        for round in 1..=5 {
            fs::write(&path, round.to_string()).unwrap();
            shift(&path, 3).unwrap();
            if round % 2 == 0 {
                pack(&name(&path, 1, false)).unwrap();
            }
        }
        let read = |number| fs::read_to_string(name(&path, number, false));
        assert_eq!((read(1).unwrap(), read(3).unwrap()), ("5".into(), "3".into()));
        let mut text = String::new();
        flate2::read::GzDecoder::new(File::open(name(&path, 2, true)).unwrap()).read_to_string(&mut text).unwrap();
        assert_eq!(text, "4");
        assert_eq!(all(&path).len(), 3);
        let is_there = |len, since| is_packed(&path, len, Timestamp(since));
        assert!(is_there(1, 0) && !is_there(2, 0) && !is_there(0, 0));
        assert!(!is_there(1, i64::MAX / 2), "one of before it was begun");
        fs::write(&path, "6").unwrap();
        shift(&path, 0).unwrap();
        assert!(is_unsettled(&path, 0, false) && !is_unsettled(&path, 1, false));
        settling(path.clone(), 0, false).join().unwrap();
        assert!(!is_unsettled(&path, 0, true));
        assert!(all(&path).is_empty(), "{:?}", all(&path));
    }
}
