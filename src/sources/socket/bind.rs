//! Creates the socket of a source before anything is read, so that a wrong address, path or owner is reported at start.
//! The file of a unix socket is put in its place by `socket_file`; this module says whose it is.

use std::fs;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::fd::AsFd;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::path::Path;

use nix::sys::socket::{setsockopt, sockopt};
use nix::unistd::{Group, User};

use super::passed::Passed;
use crate::config::{SocketMode, SourceConfig, SourceKind};
use crate::socket_file::{self, SocketFile};

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
    pub file: Option<SocketFile>,
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
        (SourceKind::Unix, Some(path)) => check_length(path).and_then(|()| socket_file::check_free(path)).and_then(|()| {
            owner(source)?;
            Ok(rustix::fs::access(socket_file::folder(path), rustix::fs::Access::WRITE_OK)?)
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

/// Checks that programs can connect to a path: they do not know the ways around the limit that `socket_file` knows.
fn check_length(path: &Path) -> io::Result<()> {
    let (len, most) = (path.as_os_str().len(), socket_file::MAX_PATH_BYTES);
    if len <= most { Ok(()) } else { Err(io::Error::other(format!("the path of a socket has at most {most} bytes, this one has {len}: name a shorter one"))) }
}

fn unix(source: &SourceConfig, path: &Path) -> io::Result<Bound> {
    check_length(path)?;
    let bind = |path: &Path| match source.mode {
        SocketMode::Stream => UnixListener::bind(path).map(Socket::Unix),
        SocketMode::Datagram => UnixDatagram::bind(path).map(Socket::UnixDatagram),
    };
    let (socket, file) = socket_file::create(path, bind, |path| permit(source, path))?;
    Ok(Bound { socket, file: Some(file) })
}

/// Sets owner and mode.
fn permit(source: &SourceConfig, path: &Path) -> io::Result<()> {
    let (owner, group) = owner(source)?;
    if owner.is_some() || group.is_some() {
        chown(path, owner, group)?;
    }
    fs::set_permissions(path, fs::Permissions::from_mode(source.permissions))
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

/// Adds to the system's message what to do about it.
fn explained(source: &SourceConfig, error: &io::Error) -> String {
    let place = match (&source.address, &source.path) {
        (Some(address), _) => address.to_string(),
        (_, Some(path)) => path.display().to_string(),
        _ => String::new(),
    };
    let mend = match error.kind() {
        ErrorKind::AddrInUse => "; stop what listens there, or choose another",
        ErrorKind::AlreadyExists => "; move it away, or name another path",
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
    fn a_path_too_long_for_a_socket_is_refused_before_the_start_too() {
        let folder = tempfile::tempdir().unwrap();
        let path = |len: usize| folder.path().join("s".repeat(len - folder.path().as_os_str().len() - 1));
        for (len, is_good) in [(100, true), (107, true), (108, false), (200, false)] {
            let source = source(&path(len), SocketMode::Stream);
            let said = [check(&source).err().map(|(why, _)| why), bind(&source, &mut Passed::default()).err()];
            assert!(said.iter().all(|why| why.as_ref().is_none_or(|why| why.contains("at most 107 bytes")) && why.is_none() == is_good), "{len}: {said:?}");
        }
    }

    #[test]
    fn an_address_in_use_is_named() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let source = SourceConfig { address: taken.local_addr().ok(), ..SourceConfig::new("s", SourceKind::Tcp) };
        let why = bind(&source, &mut Passed::default()).unwrap_err();
        assert!(why.contains("source \"s\": cannot listen on 127.0.0.1:") && why.contains("stop what listens there"), "{why}");
    }
}
