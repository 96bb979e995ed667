//! Creates the socket of a source before anything is read, so that a wrong address, path or owner is reported at start. A unix socket is created under
//! a temporary name, given its mode and owner, and only then moved into place; an existing one is replaced only if nobody listens on it any more.

use std::fs;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, chown};
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use nix::sys::socket::{setsockopt, sockopt};
use nix::unistd::{Group, User};

use super::passed::Passed;
use crate::config::{SocketMode, SourceConfig, SourceKind};

/// A non-blocking socket.
#[derive(Debug)]
pub enum Socket {
    /// Stream.
    Tcp(TcpListener),
    /// Stream.
    Unix(UnixListener),
    /// Datagrams.
    Udp(UdpSocket),
    /// Datagrams.
    UnixDatagram(UnixDatagram),
}

/// A socket, and its file.
#[derive(Debug)]
pub struct Bound {
    /// The socket.
    pub socket: Socket,
    /// The file to remove at the end; `None` for a socket that a service manager passed.
    pub file: Option<OwnFile>,
}

/// The file of a unix socket that this process made; dropping it removes the file.
#[derive(Debug)]
pub struct OwnFile {
    path: PathBuf,
    node: (u64, u64),
}

impl Drop for OwnFile {
    fn drop(&mut self) {
        let is_ours = fs::symlink_metadata(&self.path).is_ok_and(|meta| (meta.dev(), meta.ino()) == self.node);
        // Another process's socket stays; if ours cannot be removed, the next start finds it stale.
        if is_ours {
            drop(fs::remove_file(&self.path));
        }
    }
}

/// Returns the socket of a source: one that was passed, or a new one.
///
/// # Errors
/// Why there is none, and what to do.
pub fn bind(source: &SourceConfig, passed: &mut Passed) -> Result<Bound, String> {
    let fault = |error: io::Error| format!("source {:?}: {}", source.name, explained(source, &error));
    let bound = match passed.take(source) {
        Some(socket) => {
            Bound { socket: socket.map_err(|error| format!("source {:?}: the socket that was passed cannot be used: {error}", source.name))?, file: None }
        }
        None => new(source).map_err(fault)?,
    };
    prepare(source, &bound.socket).map_err(fault)?;
    Ok(bound)
}

/// Checks whether a socket could be created; leaves nothing behind.
///
/// # Errors
/// Why not, and whether that is only because another process already listens there.
pub fn check(source: &SourceConfig) -> Result<(), (String, bool)> {
    let tried = match (source.kind, &source.path) {
        (SourceKind::Unix, Some(path)) => make_way(path).and_then(|()| {
            owner(source)?;
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            Ok(rustix::fs::access(folder, rustix::fs::Access::WRITE_OK)?)
        }),
        _ => new(source).map(drop),
    };
    tried.map_err(|error| (format!("source {:?}: {}", source.name, explained(source, &error)), error.kind() == ErrorKind::AddrInUse))
}

fn new(source: &SourceConfig) -> io::Result<Bound> {
    let plain = |socket| Ok(Bound { socket, file: None });
    match (source.kind, source.address, &source.path) {
        (SourceKind::Tcp, Some(address), _) => plain(Socket::Tcp(TcpListener::bind(address)?)),
        (SourceKind::Udp, Some(address), _) => plain(Socket::Udp(UdpSocket::bind(address)?)),
        (SourceKind::Unix, _, Some(path)) => unix(source, path),
        _ => Err(io::Error::other("it has no address")),
    }
}

fn prepare(source: &SourceConfig, socket: &Socket) -> io::Result<()> {
    match socket {
        Socket::Tcp(listener) => listener.set_nonblocking(true),
        Socket::Unix(listener) => listener.set_nonblocking(true),
        Socket::Udp(socket) => {
            setsockopt(socket, sockopt::RxqOvfl, &1)?;
            socket.set_nonblocking(true)?;
            widen(source, socket)
        }
        Socket::UnixDatagram(socket) => {
            socket.set_nonblocking(true)?;
            widen(source, socket)
        }
    }
}

/// Sets the receive buffer, and warns if the system gives less.
fn widen(source: &SourceConfig, socket: &impl AsFd) -> io::Result<()> {
    if source.receive_buffer == 0 {
        return Ok(());
    }
    let wanted = usize::try_from(source.receive_buffer).unwrap_or(usize::MAX >> 1);
    // Beyond the system's limit, if this process may.
    if setsockopt(socket, sockopt::RcvBufForce, &wanted).is_err() {
        setsockopt(socket, sockopt::RcvBuf, &wanted)?;
    }
    // The kernel doubles the requested size.
    let given = nix::sys::socket::getsockopt(socket, sockopt::RcvBuf)? / 2;
    if given < wanted {
        tracing::warn!("source {}: receive_buffer is {given} bytes, {wanted} were asked for: raise it with sysctl -w net.core.rmem_max={wanted}", source.name);
    }
    Ok(())
}

fn unix(source: &SourceConfig, path: &Path) -> io::Result<Bound> {
    make_way(path)?;
    let new = beside(path);
    // Left over from a start that was killed at this point.
    drop(fs::remove_file(&new));
    let socket = match source.mode {
        SocketMode::Stream => Socket::Unix(UnixListener::bind(&new)?),
        SocketMode::Datagram => Socket::UnixDatagram(UnixDatagram::bind(&new)?),
    };
    let placed = place(source, &new, path);
    if placed.is_err() {
        drop(fs::remove_file(&new));
    }
    Ok(Bound { socket, file: Some(placed?) })
}

/// Returns the name under which a socket is created.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}", std::process::id()));
    name.into()
}

/// Sets mode and owner first, then the name: before that nobody finds the socket.
fn place(source: &SourceConfig, new: &Path, path: &Path) -> io::Result<OwnFile> {
    let (owner, group) = owner(source)?;
    if owner.is_some() || group.is_some() {
        chown(new, owner, group)?;
    }
    fs::set_permissions(new, fs::Permissions::from_mode(source.permissions))?;
    let meta = fs::symlink_metadata(new)?;
    fs::rename(new, path)?;
    Ok(OwnFile { path: path.to_owned(), node: (meta.dev(), meta.ino()) })
}

/// Returns the ids of owner and group.
///
/// # Errors
/// There is no such user or group.
pub fn owner(source: &SourceConfig) -> io::Result<(Option<u32>, Option<u32>)> {
    let unknown = |what: &str, name: &str| io::Error::new(ErrorKind::NotFound, format!("there is no {what} {name:?}"));
    let user = match source.owner.as_str() {
        "" => None,
        name => Some(User::from_name(name)?.ok_or_else(|| unknown("user", name))?.uid.as_raw()),
    };
    let group = match source.group.as_str() {
        "" => None,
        name => Some(Group::from_name(name)?.ok_or_else(|| unknown("group", name))?.gid.as_raw()),
    };
    Ok((user, group))
}

/// Checks that a socket can be put there: there is nothing, or a socket on which nobody listens.
///
/// # Errors
/// There is something else, or another process listens.
pub fn make_way(path: &Path) -> io::Result<()> {
    let meta = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            return if folder.is_dir() { Ok(()) } else { Err(io::Error::new(ErrorKind::NotFound, format!("there is no folder {}", folder.display()))) };
        }
        meta => meta?,
    };
    if !meta.file_type().is_socket() {
        return Err(io::Error::new(ErrorKind::AlreadyExists, "something lies there that is no socket: move it away, or name another path"));
    }
    let is_heard = UnixStream::connect(path).map(drop).or_else(|error| match error.raw_os_error() {
        // It is a datagram socket.
        Some(libc::EPROTOTYPE) => UnixDatagram::unbound()?.connect(path),
        _ => Err(error),
    });
    match is_heard {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => Ok(()),
        Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error),
        _ => Err(io::Error::new(ErrorKind::AddrInUse, "another process listens there")),
    }
}

/// Adds to the system's message what to do about it.
fn explained(source: &SourceConfig, error: &io::Error) -> String {
    let place = match (&source.address, &source.path) {
        (Some(address), _) => address.to_string(),
        (_, Some(path)) => path.display().to_string(),
        _ => String::new(),
    };
    let mend = match error.kind() {
        ErrorKind::AddrInUse => "; stop what listens there, or choose another",
        ErrorKind::AddrNotAvailable => "; this machine has no such address",
        ErrorKind::PermissionDenied if source.address.is_some_and(|address| address.port() < 1024) => {
            "; ports below 1024 need AmbientCapabilities=CAP_NET_BIND_SERVICE or a siftd.socket unit"
        }
        ErrorKind::PermissionDenied => "; check who may write to its folder, and who may give files away",
        _ => "",
    };
    format!("cannot listen on {place}: {}{mend}", error.to_string().split(" (os error").next().unwrap_or_default())
}

impl Socket {
    /// Returns its network address, if it has one, with the actual port for port 0.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(listener) => listener.local_addr().ok(),
            Self::Udp(socket) => socket.local_addr().ok(),
            Self::Unix(_) | Self::UnixDatagram(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &Path, mode: SocketMode) -> SourceConfig {
        SourceConfig { path: Some(path.to_owned()), mode, permissions: 0o600, ..SourceConfig::new("s", SourceKind::Unix) }
    }

    #[test]
    fn a_unix_socket_has_its_mode_replaces_a_stale_one_and_goes() {
        for mode in [SocketMode::Stream, SocketMode::Datagram] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("log.sock");
            // The listener is gone, but the file still exists.
            drop(UnixListener::bind(&path).unwrap());
            let bound = bind(&source(&path, mode), &mut Passed::default()).unwrap();
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
            let second = bind(&source(&path, mode), &mut Passed::default()).unwrap_err();
            assert!(second.contains("another process listens there"), "{second}");
            drop(bound);
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        }
    }

    #[test]
    fn what_is_no_socket_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.sock");
        fs::write(&path, "precious").unwrap();
        let why = bind(&source(&path, SocketMode::Stream), &mut Passed::default()).unwrap_err();
        assert!(why.contains("no socket") && fs::read(&path).unwrap() == b"precious", "{why}");
        let nowhere = bind(&source(&folder.path().join("a/b"), SocketMode::Stream), &mut Passed::default()).unwrap_err();
        assert!(nowhere.contains("there is no folder"), "{nowhere}");
        let nobody = SourceConfig { owner: "nobody-of-that-name".into(), ..source(&folder.path().join("x"), SocketMode::Stream) };
        let why = bind(&nobody, &mut Passed::default()).unwrap_err();
        assert!(why.contains("there is no user \"nobody-of-that-name\""), "{why}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn an_address_in_use_is_named() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let source = SourceConfig { address: taken.local_addr().ok(), ..SourceConfig::new("s", SourceKind::Tcp) };
        let why = bind(&source, &mut Passed::default()).unwrap_err();
        assert!(why.contains("source \"s\": cannot listen on 127.0.0.1:") && why.contains("stop what listens there"), "{why}");
    }
}
