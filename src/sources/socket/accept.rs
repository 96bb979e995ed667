//! Serves a stream socket: takes connections up to `max_connections`, each in a task of its own, and turns away what is
//! beyond. A peer that is turned away, silent or broken costs the others nothing.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nix::sys::socket::{setsockopt, sockopt};
use tokio::io::AsyncRead;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use super::Served;
use super::peer::{Connection, Peer};
use super::rate::Rates;
use super::said::Said;
use crate::sources::tls::Acceptor;

/// After a connection that could not be taken, mostly for want of descriptors.
const AGAIN: Duration = Duration::from_millis(200);
/// A silent peer is asked whether it is still there after so many seconds, and then so often.
const KEEPALIVE_SECONDS: u32 = 60;

/// A listener.
pub enum Listener {
    /// With TLS or without.
    Tcp(TcpListener, Option<Acceptor>),
    /// On this machine.
    Unix(UnixListener),
}

/// A stream of any kind.
type Stream = Box<dyn AsyncRead + Send + Unpin>;

/// Serves until the source is to end; then what has arrived is read, and every connection closed.
pub async fn serve(listener: Listener, mut served: Served) {
    let room = Arc::new(Semaphore::new(served.config.max_connections as usize));
    let rates = Arc::new(Mutex::new(Rates::new(served.config.max_peer_bytes_per_second)));
    let (mut tasks, mut too_many, mut faults) = (JoinSet::new(), Said::default(), Said::default());
    loop {
        let came = tokio::select! {
            () = served.stopped() => break,
            Some(_) = tasks.join_next() => continue,
            came = accept(&listener) => came,
        };
        let (stream, peer) = match came {
            Ok(came) => came,
            Err(error) => {
                if let Some(count) = faults.happened(Instant::now()) {
                    tracing::warn!("source {}: {count} connections could not be taken: {error}", served.config.name);
                }
                tokio::time::sleep(AGAIN).await;
                continue;
            }
        };
        let Ok(place) = room.clone().try_acquire_owned() else {
            served.counted.refused.of("too_many").add(1);
            if let Some(count) = too_many.happened(Instant::now()) {
                tracing::warn!(
                    "source {}: max_connections ({}) is reached, {count} turned away, the last from {}",
                    served.config.name,
                    served.config.max_connections,
                    peer.name
                );
            }
            continue;
        };
        served.counted.accepted.add(1);
        served.counted.connections.add(1);
        let connection = Connection { peer, served: served.clone(), rates: rates.clone() };
        tasks.spawn(one(stream, connection, place));
    }
    drop(listener);
    while tasks.join_next().await.is_some() {}
}

/// What was accepted, before its handshake.
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

/// A peer that has gone without a word is noticed, however long `idle_timeout` is.
fn keep_alive(stream: &TcpStream) {
    let asked = setsockopt(stream, sockopt::KeepAlive, &true)
        .and_then(|()| setsockopt(stream, sockopt::TcpKeepIdle, &KEEPALIVE_SECONDS))
        .and_then(|()| setsockopt(stream, sockopt::TcpKeepInterval, &(KEEPALIVE_SECONDS / 4)));
    if let Err(error) = asked {
        tracing::debug!("keepalive: {error}");
    }
}

/// Who is at the other end of a unix socket, as the kernel says.
fn credentials(stream: &UnixStream) -> String {
    let Ok(known) = stream.peer_cred() else { return String::new() };
    known.pid().map_or_else(|| format!("uid {}", known.uid()), |pid| format!("pid {pid} uid {}", known.uid()))
}

/// One connection, from its handshake to its end.
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
