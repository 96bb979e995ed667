//! Sockets that a service manager has opened and passed (`LISTEN_FDS`, `LISTEN_FDNAMES`). A source takes the
//! one that has its name (`FileDescriptorName=`), otherwise the one that listens on its address or path.

use std::io;

use listenfd::ListenFd;

use super::bind::Socket;
use crate::config::{SocketMode, SourceConfig, SourceKind};

/// Sockets that no source has taken yet.
#[derive(Debug, Default)]
pub struct Passed(Vec<(String, Socket)>);

impl Passed {
    /// Takes the sockets passed to this process. Must be called before any thread is started: it
    /// removes the variables, so that no process started by siftd takes the sockets for its own.
    #[must_use]
    pub fn from_env() -> Self {
        let names = std::env::var("LISTEN_FDNAMES").unwrap_or_default();
        let mut names = names.split(':').map(str::to_owned);
        let mut all = ListenFd::from_env();
        let mut passed = Self::default();
        for at in 0..all.len() {
            let name = names.next().unwrap_or_default();
            match taken(&mut all, at) {
                Some(socket) => passed.0.push((name, socket)),
                None => tracing::warn!("socket {name:?} (number {at}) that was passed is of no kind that a source has"),
            }
        }
        passed
    }

    /// Takes the socket for a source, if there is one.
    pub fn take(&mut self, source: &SourceConfig) -> Option<io::Result<Socket>> {
        let named = self.0.iter().position(|(name, _)| *name == source.name);
        let at = named.or_else(|| self.0.iter().position(|(_, socket)| is_kind(socket, source) && is_place(socket, source)))?;
        let (name, socket) = self.0.swap_remove(at);
        Some(match is_kind(&socket, source) {
            true => Ok(socket),
            false => Err(io::Error::other(format!("{name:?} is no {} socket", wanted(source)))),
        })
    }

    /// Returns the names of those that no source has taken.
    pub fn left(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }
}

fn wanted(source: &SourceConfig) -> String {
    match (source.kind, source.mode) {
        (SourceKind::Unix, mode) => format!("unix {}", mode.as_str()),
        (kind, _) => kind.as_str().to_owned(),
    }
}

/// The library checks family and type itself; a socket that does not fit stays where it is.
fn taken(all: &mut ListenFd, at: usize) -> Option<Socket> {
    if let Ok(Some(listener)) = all.take_tcp_listener(at) {
        return Some(Socket::Tcp(listener));
    }
    if let Ok(Some(socket)) = all.take_udp_socket(at) {
        return Some(Socket::Udp(socket));
    }
    if let Ok(Some(listener)) = all.take_unix_listener(at) {
        return Some(Socket::Unix(listener));
    }
    let Ok(Some(socket)) = all.take_unix_datagram(at) else { return None };
    Some(Socket::UnixDatagram(socket))
}

fn is_kind(socket: &Socket, source: &SourceConfig) -> bool {
    match socket {
        Socket::Tcp(_) => source.kind == SourceKind::Tcp,
        Socket::Udp(_) => source.kind == SourceKind::Udp,
        Socket::Unix(_) => source.kind == SourceKind::Unix && source.mode == SocketMode::Stream,
        Socket::UnixDatagram(_) => source.kind == SourceKind::Unix && source.mode == SocketMode::Datagram,
    }
}

fn is_place(socket: &Socket, source: &SourceConfig) -> bool {
    let path = match socket {
        Socket::Unix(listener) => listener.local_addr(),
        Socket::UnixDatagram(socket) => socket.local_addr(),
        Socket::Tcp(_) | Socket::Udp(_) => return socket.address().is_some() && socket.address() == source.address,
    };
    path.is_ok_and(|address| address.as_pathname().is_some() && address.as_pathname() == source.path.as_deref())
}
