//! Serves a stream socket: accepts at most `max_connections` connections, each in a task of its own. Further ones wait
//! if a place will come free by itself. Otherwise they are turned away on the network, but wait on this machine, where
//! the kernel makes the writer wait as well. A peer that is turned away, silent or broken costs the others nothing.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nix::sys::socket::{setsockopt, sockopt};
use tokio::io::AsyncRead;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::Served;
use super::peer::{Connection, LAST, LEFTOVERS, Peer};
use super::rate::Rates;
use super::refused::Refused;
use super::room::Room;
use super::said::Said;
use crate::sources::tls::Acceptor;

/// Pause after a connection that could not be accepted, mostly for want of descriptors.
const AGAIN: Duration = Duration::from_millis(200);
/// A silent peer is probed after this many seconds, and then every quarter of that.
const KEEPALIVE_SECONDS: u32 = 60;

/// A listener.
pub enum Listener {
    /// On the network, with or without TLS.
    Tcp(TcpListener, Option<Acceptor>),
    /// On this machine.
    Unix(UnixListener),
}

/// A stream of any kind.
type Stream = Box<dyn AsyncRead + Send + Unpin>;

/// Serves until the source is to end; then reads what has arrived and closes every connection.
pub async fn serve(listener: Listener, served: Served) {
    let mut door = Door::new(served);
    let mut stop = door.served.clone();
    loop {
        // A connection that must wait is not accepted: only what was accepted can be lost.
        let place = tokio::select! {
            () = stop.stopped() => break,
            Some(_) = door.tasks.join_next() => continue,
            () = door.refused.due() => {
                door.refused.say(&door.served);
                continue;
            }
            place = door.room.place() => place,
        };
        if place.is_none() && !listener.turns_away() {
            door.report_full();
            tokio::select! {
                () = stop.stopped() => break,
                place = door.room.next_place() => drop(place),
            }
            continue;
        }
        tokio::select! {
            () = stop.stopped() => break,
            Some(_) = door.tasks.join_next() => {}
            () = door.refused.due() => door.refused.say(&door.served),
            came = accept(&listener) => door.came(came, place).await,
        }
    }
    door.close(listener).await;
}

/// The accepted connections, and what is needed to accept more.
struct Door {
    served: Served,
    room: Room,
    rates: Arc<Mutex<Rates>>,
    tasks: JoinSet<()>,
    refused: Refused,
    full: Said,
    faults: Said,
}

impl Door {
    fn new(served: Served) -> Self {
        let room = Room::new(served.config.max_connections as usize);
        let rates = Arc::new(Mutex::new(Rates::new(served.config.max_peer_bytes_per_second)));
        Self { served, room, rates, tasks: JoinSet::new(), refused: Refused::default(), full: Said::default(), faults: Said::default() }
    }

    /// Takes a connection with its place; `None`: no place was free while waiting for it.
    async fn came(&mut self, came: io::Result<(Raw, Peer)>, place: Option<OwnedSemaphorePermit>) {
        let (stream, peer) = match came {
            Ok(came) => came,
            Err(error) => {
                if let Some(count) = self.faults.happened(Instant::now()) {
                    tracing::warn!("source {}: {count} connections could not be taken: {error}", self.served.config.name);
                }
                return tokio::time::sleep(AGAIN).await;
            }
        };
        let Some(place) = place.or_else(|| self.room.free_place()) else { return self.refused.happened(&peer.name, &self.served) };
        self.served.counted.accepted.add(1);
        self.served.counted.connections.add(1);
        let connection = Connection { peer, served: self.served.clone(), rates: self.rates.clone(), busy: self.room.busy() };
        self.tasks.spawn(one(stream, connection, place));
    }

    /// Reports that further connections wait.
    fn report_full(&mut self) {
        if self.full.happened(Instant::now()).is_some() {
            let (name, most) = (&self.served.config.name, self.served.config.max_connections);
            tracing::warn!("source {name}: max_connections ({most}) is reached, further ones wait until one ends");
        }
    }

    /// Ends the source: accepts the connections already waiting, as far as there is time.
    async fn close(mut self, listener: Listener) {
        let rest = async {
            while let Ok(came @ Ok(_)) = timeout(LAST, accept(&listener)).await {
                let place = self.room.next_place().await;
                self.came(came, place).await;
            }
        };
        // It does not matter whether the time was enough.
        let _ = timeout(LEFTOVERS, rest).await;
        drop(listener);
        self.refused.end(&self.served);
        while self.tasks.join_next().await.is_some() {}
    }
}

impl Listener {
    /// Whether a connection without a place is turned away: nobody should be kept waiting over the network.
    fn turns_away(&self) -> bool {
        matches!(self, Self::Tcp(..))
    }
}

/// An accepted connection, before its handshake.
enum Raw {
    Plain(Stream),
    Tls(TcpStream, Acceptor),
}

async fn accept(listener: &Listener) -> io::Result<(Raw, Peer)> {
    match listener {
        Listener::Tcp(listener, tls) => {
            let (stream, address) = listener.accept().await?;
            keep_alive(&stream);
            let peer = Peer { name: address.to_string(), address: Some(address.ip().to_canonical()) };
            let raw = match tls {
                Some(acceptor) => Raw::Tls(stream, acceptor.clone()),
                None => Raw::Plain(Box::new(stream)),
            };
            Ok((raw, peer))
        }
        Listener::Unix(listener) => {
            let (stream, _) = listener.accept().await?;
            let peer = Peer { name: credentials(&stream), address: None };
            Ok((Raw::Plain(Box::new(stream)), peer))
        }
    }
}

/// Detects a peer that vanished silently, however long `idle_timeout` is.
fn keep_alive(stream: &TcpStream) {
    let asked = setsockopt(stream, sockopt::KeepAlive, &true)
        .and_then(|()| setsockopt(stream, sockopt::TcpKeepIdle, &KEEPALIVE_SECONDS))
        .and_then(|()| setsockopt(stream, sockopt::TcpKeepInterval, &(KEEPALIVE_SECONDS / 4)));
    if let Err(error) = asked {
        tracing::debug!("keepalive: {error}");
    }
}

/// Returns who is at the other end of a unix socket, as reported by the kernel.
fn credentials(stream: &UnixStream) -> String {
    let Ok(known) = stream.peer_cred() else { return String::new() };
    known.pid().map_or_else(|| format!("uid {}", known.uid()), |pid| format!("pid {pid} uid {}", known.uid()))
}

/// Runs one connection, from its handshake to its end.
async fn one(raw: Raw, connection: Connection, place: OwnedSemaphorePermit) {
    let counted = connection.served.counted.clone();
    let stream: Option<Stream> = match raw {
        Raw::Plain(stream) => Some(stream),
        Raw::Tls(stream, acceptor) => connection.handshake(stream, &acceptor).await,
    };
    if let Some(stream) = stream {
        connection.run(stream).await;
    }
    counted.connections.sub(1);
    drop(place);
}
