//! One connection to a peer, plain or with TLS. Bytes are handed over without waiting; whatever the peer sends
//! is read and dropped, because it shows whether the peer is still there. This module knows nothing of records.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};

/// The send buffer to ask for; the kernel takes twice as much. Small, because this much is sent again after a disconnect.
const SEND_BUFFER_BYTES: usize = 64 << 10;
/// The kernel takes the last piece whole, even beyond the buffer.
const LAST_PIECE_BYTES: usize = 64 << 10;
/// What TLS may buffer before the kernel does.
const TLS_BUFFER_BYTES: usize = 64 << 10;
/// Bytes to read from the peer at once; more is read later.
const MAX_HEARD_BYTES: usize = 64 << 10;

/// Where the peer is.
#[derive(Clone)]
pub enum Target {
    /// `host:port`, and the trust settings for TLS.
    Tcp(String, Option<Arc<ClientConfig>>),
    /// A unix socket's path.
    Unix(PathBuf),
}

impl Target {
    /// Returns the target for messages.
    #[must_use]
    pub fn shown(&self) -> String {
        match self {
            Self::Tcp(address, None) => format!("tcp {address}"),
            Self::Tcp(address, Some(_)) => format!("tcp {address} (TLS)"),
            Self::Unix(path) => format!("unix {}", path.display()),
        }
    }
}

enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// An open connection.
pub struct Connection {
    socket: Socket,
    tls: Option<Box<ClientConnection>>,
    /// Maximum bytes in flight: everything written before the last `in_flight_max` bytes has reached the peer.
    pub in_flight_max: u64,
}

impl Connection {
    /// Connects and negotiates TLS, both within `longest`.
    ///
    /// # Errors
    /// The peer cannot be found, does not listen, does not answer, or is not trusted.
    pub fn open(target: &Target, longest: Duration) -> io::Result<Self> {
        let until = Instant::now() + longest;
        let (socket, tls) = match target {
            Target::Unix(path) => (Socket::Unix(connect_unix(path)?), None),
            Target::Tcp(address, tls) => {
                let stream = connect_tcp(address, until, longest)?;
                let tls = tls.as_ref().map(|config| session(address, config.clone())).transpose()?;
                (Socket::Tcp(stream), tls)
            }
        };
        let own = if tls.is_some() { TLS_BUFFER_BYTES } else { 0 };
        let in_flight_max = (sockopt::socket_send_buffer_size(&socket)? + LAST_PIECE_BYTES + own) as u64;
        let mut connection = Self { in_flight_max, socket, tls };
        connection.agree(until)?;
        Ok(connection)
    }

    fn agree(&mut self, until: Instant) -> io::Result<()> {
        while let Some(tls) = self.tls.as_mut().filter(|tls| tls.is_handshaking()) {
            let wants_write = tls.wants_write();
            if wants_write {
                match tls.write_tls(&mut self.socket) {
                    Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(error),
                    _ => {}
                }
            }
            if self.hear()? {
                return Err(io::Error::new(ErrorKind::UnexpectedEof, "the peer ended the connection before TLS was agreed on"));
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::Error::new(ErrorKind::TimedOut, "the peer did not agree on TLS in time"));
            }
            if self.tls.as_ref().is_some_and(|tls| tls.is_handshaking()) {
                self.wait(self.tls.as_ref().is_some_and(|tls| tls.wants_write()), left);
            }
        }
        Ok(())
    }

    /// Writes bytes; returns how many were taken, 0 if none can be now.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else {
            return match self.socket.write(bytes) {
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(0),
                done => done,
            };
        };
        let taken = tls.writer().write(bytes)?;
        self.flush()?;
        Ok(taken)
    }

    /// Flushes what TLS still buffers; returns `true` if it buffers nothing any more.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn flush(&mut self) -> io::Result<bool> {
        let Some(tls) = &mut self.tls else { return Ok(true) };
        while tls.wants_write() {
            match tls.write_tls(&mut self.socket) {
                Ok(_) => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Reads what the peer sends and drops it; returns `true` if the peer has closed its side.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn hear(&mut self) -> io::Result<bool> {
        let mut heard = 0;
        let mut space = [0; 4096];
        while heard < MAX_HEARD_BYTES {
            let read = match &mut self.tls {
                None => self.socket.read(&mut space),
                Some(tls) => read_tls(tls, &mut self.socket, &mut space),
            };
            match read {
                Ok(0) => return Ok(true),
                Ok(count) => heard += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    /// Waits until the peer sends something, or can take something (`to_write`), for at most `longest`.
    pub fn wait(&self, to_write: bool, longest: Duration) {
        let flags = if to_write { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        let time = Timespec { tv_sec: longest.as_secs() as i64, tv_nsec: i64::from(longest.subsec_nanos()) };
        // The next read shows any error.
        let _ = poll(&mut [PollFd::new(&self.socket, flags)], Some(&time));
    }

    /// Closes our side. A peer that closes its side after that has read everything: a peer that leaves bytes unread resets the connection instead.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn finish(&mut self) -> io::Result<()> {
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
            self.flush()?;
        }
        match &self.socket {
            Socket::Tcp(stream) => stream.shutdown(Shutdown::Write),
            Socket::Unix(stream) => stream.shutdown(Shutdown::Write),
        }
    }
}

/// Reads bytes from the peer, whether or not they contain plaintext.
fn read_tls(tls: &mut ClientConnection, socket: &mut Socket, space: &mut [u8]) -> io::Result<usize> {
    let count = tls.read_tls(socket)?;
    let state = tls.process_new_packets().map_err(|why| {
        // Tell the peer why, if it listens.
        io::Error::other(format!("TLS: {why}"))
    });
    if state.is_err() {
        drop(tls.write_tls(socket));
    }
    if state?.peer_has_closed() {
        return Ok(0);
    }
    // TLS buffers are bounded: empty them before reading more.
    while tls.reader().read(space).is_ok_and(|count| count > 0) {}
    Ok(count)
}

fn session(address: &str, config: Arc<ClientConfig>) -> io::Result<Box<ClientConnection>> {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host).trim_matches(['[', ']']);
    let name = ServerName::try_from(host.to_owned()).map_err(|_| io::Error::other(format!("`{host}` is no name that a certificate can have")))?;
    let mut tls = ClientConnection::new(config, name).map_err(io::Error::other)?;
    tls.set_buffer_limit(Some(TLS_BUFFER_BYTES));
    Ok(Box::new(tls))
}

fn connect_tcp(address: &str, until: Instant, longest: Duration) -> io::Result<TcpStream> {
    let mut why = io::Error::new(ErrorKind::NotFound, "the name has no address");
    let all: Vec<SocketAddr> = address.to_socket_addrs()?.collect();
    for (at, address) in all.iter().enumerate() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::Error::new(ErrorKind::TimedOut, "nobody answered in time"));
        }
        // An address that leads nowhere must leave time for the others.
        match TcpStream::connect_timeout(address, left / (all.len() - at) as u32) {
            Ok(stream) => {
                prepare(&stream, longest)?;
                return Ok(stream);
            }
            Err(error) => why = error,
        }
    }
    Err(why)
}

fn prepare(stream: &TcpStream, longest: Duration) -> io::Result<()> {
    stream.set_nonblocking(true)?;
    stream.set_nodelay(true)?;
    sockopt::set_socket_send_buffer_size(stream, SEND_BUFFER_BYTES)?;
    // Detect a peer that vanished silently, with or without something to send.
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, Duration::from_secs(60))?;
    let millis = u32::try_from(longest.as_millis()).unwrap_or(u32::MAX);
    if cfg!(target_os = "linux") {
        sockopt::set_tcp_user_timeout(stream, millis)?;
    }
    Ok(())
}

/// Connects without blocking: a listener whose queue is full would block for ever.
fn connect_unix(path: &Path) -> io::Result<UnixStream> {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket: OwnedFd = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    sockopt::set_socket_send_buffer_size(&socket, SEND_BUFFER_BYTES)?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket.into())
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
        }
    }
}

impl Read for Socket {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(space),
            Self::Unix(stream) => stream.read(space),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
