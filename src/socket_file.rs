//! Unix sockets as files. A socket is made under another name, gets its mode and owner, and only then takes its place, so
//! that nobody finds it half made; it takes the place of another socket only if nobody listens on that one, and never that
//! of another file. This module decides neither who may use a socket nor what is read from it.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::{Path, PathBuf};

/// Most bytes of a socket's path (unix(7)).
pub const MAX_PATH_BYTES: usize = 107;

/// Most bytes of a name under which a socket is made, without the process's number.
const MAX_NAME_BYTES: usize = 72;

/// The file of a socket that this process made; dropping it removes the file.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    /// Device and inode.
    node: (u64, u64),
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Another process may have taken over the path. If ours cannot be removed, the next start finds it stale.
        if fs::symlink_metadata(&self.path).is_ok_and(|meta| node(&meta) == self.node) {
            drop(fs::remove_file(&self.path));
        }
    }
}

fn node(meta: &Metadata) -> (u64, u64) {
    (meta.dev(), meta.ino())
}

/// Makes a socket at `path`: `bind` makes it at the path that it is given, `permit` sets mode and owner of the file at
/// the path that it is given. After an error nothing is left behind.
///
/// # Errors
/// Those of [`check_free`], `bind` and `permit`, and of the file system.
pub fn create<S>(path: &Path, bind: impl FnOnce(&Path) -> io::Result<S>, permit: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<(S, SocketFile)> {
    check_free(path)?;
    let new = beside(path);
    // Left over from a start that was killed at this point.
    drop(fs::remove_file(&new));
    let (_folder, short) = short(&new)?;
    let socket = bind(&short)?;
    let placed = permit(&new).and_then(|()| place(&new, path));
    if placed.is_err() {
        drop(fs::remove_file(&new));
    }
    Ok((socket, placed?))
}

/// Returns the path under which a socket is made. Its name is so short that it can be reached through the open folder.
fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().as_bytes();
    let mut new = OsStr::from_bytes(&name[..name.len().min(MAX_NAME_BYTES)]).to_owned();
    new.push(format!(".{}", std::process::id()));
    folder(path).join(new)
}

fn place(new: &Path, path: &Path) -> io::Result<SocketFile> {
    let node = node(&fs::symlink_metadata(new)?);
    fs::rename(new, path)?;
    Ok(SocketFile { path: path.to_owned(), node })
}

/// Checks that a socket can be put there: there is nothing, or a socket on which nobody listens.
///
/// # Errors
/// There is something else (`AlreadyExists`), another process listens (`AddrInUse`), that cannot be found out, or there is
/// no such folder.
pub fn check_free(path: &Path) -> io::Result<()> {
    let meta = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let folder = folder(path);
            return if folder.is_dir() { Ok(()) } else { Err(io::Error::new(ErrorKind::NotFound, format!("there is no folder {}", folder.display()))) };
        }
        meta => meta?,
    };
    if !meta.file_type().is_socket() {
        return Err(io::Error::new(ErrorKind::AlreadyExists, "something lies there that is no socket"));
    }
    let (_folder, short) = short(path)?;
    let heard = UnixStream::connect(&short).map(drop).or_else(|error| match error.raw_os_error() {
        // It is a datagram socket.
        Some(libc::EPROTOTYPE) => UnixDatagram::unbound()?.connect(&short),
        _ => Err(error),
    });
    match heard {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => Ok(()),
        Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error),
        _ => Err(io::Error::new(ErrorKind::AddrInUse, "another process listens there")),
    }
}

/// Returns the folder of a path.
#[must_use]
pub fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Returns a path for a socket that fits into [`MAX_PATH_BYTES`]. A longer one is reached through its open folder, which
/// is returned too and must be kept.
///
/// # Errors
/// The folder cannot be opened.
pub fn short(path: &Path) -> io::Result<(Option<File>, PathBuf)> {
    if path.as_os_str().len() <= MAX_PATH_BYTES {
        return Ok((None, path.to_owned()));
    }
    // Whoever may make a file in a folder need not be allowed to list it.
    let folder = OpenOptions::new().read(true).custom_flags(libc::O_PATH | libc::O_DIRECTORY).open(folder(path))?;
    let short = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd())).join(path.file_name().unwrap_or_default());
    Ok((Some(folder), short))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixListener;

    use super::*;

    fn created(path: &Path) -> io::Result<(UnixListener, SocketFile)> {
        create(path, |path| UnixListener::bind(path), |path| fs::set_permissions(path, fs::Permissions::from_mode(0o660)))
    }

    #[test]
    fn a_socket_replaces_a_stale_one_and_goes_unless_its_name_is_somebody_elses() {
        let folder = tempfile::tempdir().unwrap();
        let long = folder.path().join("f".repeat(200));
        fs::create_dir(&long).unwrap();
        for path in [folder.path().join("s.sock"), long.join("s.sock")] {
            let names = || fs::read_dir(path.parent().unwrap()).unwrap().filter(|entry| entry.as_ref().unwrap().path().extension().is_some()).count();
            let (_folder, short) = short(&path).unwrap();
            // Nobody listens any more, but the file is still there.
            drop(UnixListener::bind(&short).unwrap());
            let (listener, file) = created(&path).unwrap();
            assert_eq!((path.metadata().unwrap().permissions().mode() & 0o777, names()), (0o660, 1));
            assert_eq!(created(&path).unwrap_err().kind(), ErrorKind::AddrInUse);
            drop((listener, file));
            assert_eq!(names(), 0);
            let (_listener, file) = created(&path).unwrap();
            fs::remove_file(&path).unwrap();
            let _other = UnixListener::bind(&short).unwrap();
            drop(file);
            assert_eq!(names(), 1);
            fs::remove_file(&path).unwrap();
            fs::write(&path, "a file").unwrap();
            assert_eq!((created(&path).unwrap_err().kind(), names()), (ErrorKind::AlreadyExists, 1));
        }
    }

    #[test]
    fn a_datagram_socket_in_use_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.sock");
        let socket = UnixDatagram::bind(&path).unwrap();
        assert_eq!(created(&path).unwrap_err().kind(), ErrorKind::AddrInUse);
        drop(socket);
        assert!(created(&path).is_ok());
    }

    #[test]
    fn nothing_is_left_of_a_socket_that_may_not_have_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.sock");
        let why = create(&path, |path| UnixListener::bind(path), |_| Err(ErrorKind::PermissionDenied.into())).unwrap_err();
        assert_eq!((why.kind(), fs::read_dir(folder.path()).unwrap().count()), (ErrorKind::PermissionDenied, 0));
        let nowhere = created(&folder.path().join("a/b")).unwrap_err().to_string();
        assert!(nowhere.contains("there is no folder"), "{nowhere}");
    }

    #[test]
    fn a_path_as_long_as_can_be_has_room_for_the_other_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s".repeat(MAX_PATH_BYTES - folder.path().as_os_str().len() - 1));
        let _made = created(&path).unwrap();
        assert!(UnixStream::connect(&path).is_ok());
    }
}
