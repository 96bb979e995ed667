//! One connection: its bytes go through the framing into a stream of their own, until it ends, falls silent, or the
//! source ends. Whatever a peer sends is data; only its connection can fail.

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

/// Bytes of one read.
const READ_BYTES: usize = 8 << 10;
/// At the end of the source: what comes within this time of the last bytes has arrived already.
pub(super) const LAST: Duration = Duration::from_millis(20);
/// And no connection is read for longer then.
pub(super) const LEFTOVERS: Duration = Duration::from_millis(500);

/// Who sends.
#[derive(Clone, Debug)]
pub struct Peer {
    /// As records show it.
    pub name: String,
    /// The machine, on the network.
    pub address: Option<IpAddr>,
}

/// A connection that was taken.
pub struct Connection {
    /// Who is at the other end.
    pub peer: Peer,
    /// The source.
    pub served: Served,
    /// What its peers have sent.
    pub rates: Arc<Mutex<Rates>>,
    /// Where it says that it waits for siftd.
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
    /// TLS; none: it did not come about, which is counted and said.
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

    /// Reads all of it.
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
        // It keeps its place until then: connections that come and go leave no more behind than there may be at once.
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

    /// The source ends: what the peer has sent by now is read, for a short while.
    async fn read_leftovers(&self, reader: &mut Reader, flow: &Arc<Flow>) {
        let read = async {
            while let Ok(Some(Ok(bytes))) = timeout(LAST, next(reader)).await {
                if !flow.push(bytes).await {
                    break;
                }
            }
        };
        // Over in time or not: it was all that there is time for.
        let _ = timeout(LEFTOVERS, read).await;
    }
}

async fn next(reader: &mut Reader) -> Option<io::Result<Bytes>> {
    poll_fn(|cx| Pin::new(&mut *reader).poll_next(cx)).await
}
