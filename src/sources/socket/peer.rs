//! One connection: its bytes go through the framing into a stream of their own, until it ends, falls
//! silent, or the source ends. Whatever a peer sends is data; only its own connection can fail.

use std::future::poll_fn;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_core::Stream;
use tokio::io::AsyncRead;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_util::codec::FramedRead;

use super::Served;
use super::rate::Rates;
use super::room::Busy;
use crate::delivery::Label;
use crate::sources::codec::Frames;
use crate::sources::flow::Flow;
use crate::sources::tls::Acceptor;

/// Bytes per read.
const READ_BYTES: usize = 8 << 10;
/// When the source ends, what comes within this time of the last bytes counts as already arrived.
pub(super) const LAST: Duration = Duration::from_millis(20);
/// Maximum time for which a connection is then still read.
pub(super) const LEFTOVERS: Duration = Duration::from_millis(500);

/// The sender.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Its name in records.
    pub name: String,
    /// Its IP address, if it is on the network.
    pub address: Option<IpAddr>,
}

/// An accepted connection.
pub struct Connection {
    /// The other end.
    pub peer: Peer,
    /// The source.
    pub served: Served,
    /// The rates of the source's peers.
    pub rates: Arc<Mutex<Rates>>,
    /// Counts connections that wait for siftd.
    pub busy: Busy,
}

/// Why a connection ended.
enum End {
    Closed,
    Silent,
    Stopped,
}

type Reader = FramedRead<Box<dyn AsyncRead + Send + Unpin>, Frames>;

impl Connection {
    /// Makes the TLS handshake; `None` if it failed, which is counted and logged.
    pub async fn handshake(&self, stream: TcpStream, acceptor: &Acceptor) -> Option<Box<dyn AsyncRead + Send + Unpin>> {
        let mut served = self.served.clone();
        let done = tokio::select! {
            () = served.stopped() => return None,
            done = acceptor.accept(stream) => done,
        };
        match done {
            Ok(stream) => Some(Box::new(stream)),
            Err(error) => {
                self.served.counted.refused.of("tls").add(1);
                acceptor.failed(&self.served.config.name, &self.peer.name, &error);
                None
            }
        }
    }

    /// Reads the connection to its end.
    pub async fn run(mut self, stream: Box<dyn AsyncRead + Send + Unpin>) {
        let label = Label { peer: self.peer.name.clone(), ..self.served.label() };
        let flow = self.served.intake.open(label, self.served.reading());
        let frames = Frames::new(self.served.config.framing, self.served.counted.refused.of("framing"));
        let mut reader = FramedRead::with_capacity(stream, frames, READ_BYTES);
        match self.read(&mut reader, &flow).await {
            End::Closed => {}
            End::Silent => {
                self.served.counted.refused.of("idle").add(1);
                tracing::info!("source {}: {} was silent for idle_timeout and is closed", self.served.config.name, self.peer.name);
            }
            End::Stopped => self.read_leftovers(&mut reader, &flow).await,
        }
        flow.end();
        // It keeps its place until then, so that no more streams are pending than there may be connections.
        self.busy.during(flow.finished()).await;
    }

    async fn read(&mut self, reader: &mut Reader, flow: &Arc<Flow>) -> End {
        let idle = self.served.config.idle_timeout;
        loop {
            let came = tokio::select! {
                biased;
                () = self.served.stopped() => return End::Stopped,
                came = timeout(idle, next(reader)) => came,
            };
            match came {
                Err(_) => return End::Silent,
                Ok(None) => return End::Closed,
                Ok(Some(Err(error))) => {
                    tracing::debug!("source {}: {}: {error}", self.served.config.name, self.peer.name);
                    return End::Closed;
                }
                Ok(Some(Ok(bytes))) => {
                    let wait = self.rates.lock().unwrap_or_else(PoisonError::into_inner).sent(self.peer.address, bytes.len(), Instant::now());
                    if !self.busy.during(flow.push(bytes)).await {
                        return End::Closed;
                    }
                    if !wait.is_zero() {
                        tokio::select! {
                            () = self.served.stopped() => return End::Stopped,
                            () = tokio::time::sleep(wait) => {}
                        }
                    }
                }
            }
        }
    }

    /// Reads for a short while what the peer has sent before the source ended.
    async fn read_leftovers(&self, reader: &mut Reader, flow: &Arc<Flow>) {
        let read = async {
            while let Ok(Some(Ok(bytes))) = timeout(LAST, next(reader)).await {
                if !flow.push(bytes).await {
                    break;
                }
            }
        };
        // It does not matter whether the time was enough.
        let _ = timeout(LEFTOVERS, read).await;
    }
}

async fn next(reader: &mut Reader) -> Option<io::Result<Bytes>> {
    poll_fn(|cx| Pin::new(&mut *reader).poll_next(cx)).await
}
