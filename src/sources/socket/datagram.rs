//! Reads a datagram socket: each datagram is a message, each sender a stream. Datagrams that the kernel dropped because
//! nobody read in time (`SO_RXQ_OVFL`) become a `gap` record, as do those a peer sent beyond `max_peer_bytes_per_second`,
//! and what a datagram has beyond the longest that is read (only a unix socket passes such a one).

use std::collections::{HashMap, VecDeque};
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{BufMut, Bytes, BytesMut};
use nix::cmsg_space;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg};
use tokio::io::Interest;
use tokio::net::{UdpSocket, UnixDatagram};
use tokio::time::timeout;

use super::Served;
use super::lost::{Lost, add};
use super::peer::LEFTOVERS;
use super::rate::Rates;
use crate::core::event::Timestamp;
use crate::delivery::{Label, Missed, Notice, Uid, Why};
use crate::sources::clock::now;
use crate::sources::flow::Flow;

/// How much of a datagram is read. None over UDP is longer.
const MAX_BYTES: usize = 64 << 10;
/// Maximum number of senders with open streams; the one silent for longest makes room.
const MAX_SENDERS: usize = 256;
/// Maximum number of ended streams that are not processed yet: beyond that, nothing is read.
const MAX_ENDED: usize = 256;
/// A sender's stream ends after this much silence, or after `idle_timeout` if that is shorter.
const MAX_SILENCE: Duration = Duration::from_secs(60);
/// How often losses are reported.
const SAY: Duration = Duration::from_secs(1);

/// A datagram socket.
pub enum Datagrams {
    /// On the network.
    Udp(UdpSocket),
    /// On this machine.
    Unix(UnixDatagram),
}

/// A received datagram.
struct Came {
    /// Bytes that were read.
    count: usize,
    /// Bytes that did not fit, which nobody sees.
    cut: usize,
    sender: Option<SocketAddr>,
    /// Datagrams that the kernel has dropped since the socket was made.
    dropped: Option<u32>,
}

/// Reads until the source is to end, and then what has arrived.
pub async fn serve(socket: Datagrams, served: Served) {
    let mut senders = Senders::new(&served);
    let mut space = vec![0; MAX_BYTES];
    let mut stop = served.clone();
    loop {
        let pause = senders.pause();
        tokio::select! {
            biased;
            () = stop.stopped() => break,
            () = tokio::time::sleep(pause) => senders.look(&served),
            came = socket.read(&mut space) => senders.take(came, &space, &served).await,
        }
    }
    if !senders.take_leftovers(&socket, &mut space, &served).await {
        tracing::warn!("source {}: it ends while datagrams still come; those that were not read by now are lost", served.config.name);
    }
    senders.end();
}

impl Datagrams {
    async fn read(&self, space: &mut [u8]) -> io::Result<Came> {
        match self {
            Self::Udp(socket) => socket.async_io(Interest::READABLE, || receive(socket, space)).await,
            Self::Unix(socket) => socket.async_io(Interest::READABLE, || receive(socket, space)).await,
        }
    }

    fn try_read(&self, space: &mut [u8]) -> io::Result<Came> {
        match self {
            Self::Udp(socket) => receive(socket, space),
            Self::Unix(socket) => receive(socket, space),
        }
    }
}

fn receive(socket: &impl AsRawFd, space: &mut [u8]) -> io::Result<Came> {
    let room = space.len();
    let mut control = cmsg_space!(u32);
    let mut parts = [IoSliceMut::new(space)];
    // With `MSG_TRUNC`, the length is that of the whole datagram, even if less of it was read.
    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_TRUNC;
    let came = recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut parts, Some(&mut control), flags)?;
    let sender = came.address.as_ref().and_then(|address| {
        let v4 = address.as_sockaddr_in().map(|address| SocketAddr::new(IpAddr::V4(address.ip()), address.port()));
        v4.or_else(|| address.as_sockaddr_in6().map(|address| SocketAddr::new(address.ip().into(), address.port())))
    });
    let dropped = came.cmsgs()?.find_map(|message| match message {
        ControlMessageOwned::RxqOvfl(count) => Some(count),
        _ => None,
    });
    Ok(Came { count: came.bytes.min(room), cut: came.bytes.saturating_sub(room), sender, dropped })
}

/// All senders.
struct Senders {
    streams: HashMap<Option<SocketAddr>, (Arc<Flow>, Instant)>,
    /// Ended streams, oldest first.
    ended: VecDeque<Arc<Flow>>,
    rates: Rates,
    /// For records about the source itself.
    own: Arc<Flow>,
    silence: Duration,
    lost: Losses,
    looked_at: Instant,
}

impl Senders {
    fn new(served: &Served) -> Self {
        Self {
            streams: HashMap::new(),
            ended: VecDeque::new(),
            rates: Rates::new(served.config.max_peer_bytes_per_second),
            own: served.intake.open(served.label(), served.reading()),
            silence: served.config.idle_timeout.min(MAX_SILENCE),
            lost: Losses::default(),
            looked_at: Instant::now(),
        }
    }

    async fn take(&mut self, came: io::Result<Came>, space: &[u8], served: &Served) {
        let came = match came {
            Ok(came) => came,
            Err(error) => {
                tracing::debug!("source {}: {error}", served.config.name);
                tokio::time::sleep(Duration::from_millis(10)).await;
                return;
            }
        };
        served.counted.datagrams.add(1);
        if let Some(dropped) = came.dropped {
            self.lost.dropped_by_now(dropped, now());
        }
        if !self.rates.takes(came.sender.map(|sender| sender.ip()), came.count, Instant::now()) {
            self.lost.withheld(now());
            served.counted.refused.of("rate").add(1);
            return;
        }
        if came.cut > 0 {
            self.lost.cut(came.cut, now());
        }
        let message = lines(&space[..came.count]);
        if !message.is_empty() {
            self.stream(came.sender, served).await.push(message).await;
        }
    }

    /// Reads what has arrived by now, as far as there is time: a sender that continues
    /// may refill the buffer as fast as it is read. Returns `false` if there may be more.
    async fn take_leftovers(&mut self, socket: &Datagrams, space: &mut [u8], served: &Served) -> bool {
        let until = Instant::now() + LEFTOVERS;
        let rest = async {
            while Instant::now() < until {
                let Ok(came) = socket.try_read(space) else { return true };
                self.take(Ok(came), space, served).await;
            }
            false
        };
        timeout(LEFTOVERS, rest).await.unwrap_or(false)
    }

    async fn stream(&mut self, sender: Option<SocketAddr>, served: &Served) -> Arc<Flow> {
        let at = Instant::now();
        if let Some((flow, last)) = self.streams.get_mut(&sender) {
            *last = at;
            return flow.clone();
        }
        if self.streams.len() >= MAX_SENDERS
            && let Some(oldest) = self.streams.iter().min_by_key(|(_, (_, last))| *last).map(|(sender, _)| *sender)
            && let Some((flow, _)) = self.streams.remove(&oldest)
        {
            flow.end();
            self.ended.push_back(flow);
        }
        // A peer that invents senders must wait for the streams of those it has invented.
        while self.ended.len() >= MAX_ENDED
            && let Some(flow) = self.ended.pop_front()
        {
            flow.finished().await;
        }
        let peer = sender.map(|sender| sender.to_string()).unwrap_or_default();
        let flow = served.intake.open(Label { peer, ..served.label() }, served.reading());
        self.streams.insert(sender, (flow.clone(), at));
        served.counted.connections.set(self.streams.len() as u64);
        flow
    }

    /// Returns the time until the next check.
    fn pause(&self) -> Duration {
        let pause = if self.lost.is_any() { SAY } else { self.silence.max(SAY) };
        pause.saturating_sub(self.looked_at.elapsed())
    }

    /// Reports losses, and ends streams that have fallen silent.
    fn look(&mut self, served: &Served) {
        self.looked_at = Instant::now();
        self.say(&served.config.name);
        let silence = self.silence;
        for (_, (flow, _)) in self.streams.extract_if(|_, (_, last)| last.elapsed() >= silence) {
            flow.end();
            self.ended.push_back(flow);
        }
        self.ended.retain(|flow| !flow.is_finished());
        served.counted.connections.set(self.streams.len() as u64);
    }

    fn say(&mut self, source: &str) {
        for (notice, what) in self.lost.take(&self.own.uid) {
            tracing::warn!("source {source}: {what}");
            self.own.notice(notice);
        }
    }

    fn end(mut self) {
        let name = self.own.label.source.clone();
        self.say(&name);
        self.own.end();
        self.streams.into_values().for_each(|(flow, _)| flow.end());
    }
}

/// Turns a datagram into lines: without the padding of senders, and with a final newline.
fn lines(datagram: &[u8]) -> Bytes {
    let end = datagram.iter().rposition(|byte| !matches!(byte, 0 | b'\n' | b'\r')).map_or(0, |at| at + 1);
    if end == 0 {
        return Bytes::new();
    }
    let mut out = BytesMut::with_capacity(end + 1);
    out.put_slice(&datagram[..end]);
    out.put_u8(b'\n');
    out.freeze()
}

/// What was lost since the last report.
#[derive(Debug, Default)]
struct Losses {
    known: u32,
    dropped: Option<Lost>,
    withheld: Option<Lost>,
    /// Bytes.
    cut: Option<Lost>,
}

impl Losses {
    /// Takes the current value of the kernel's counter, which wraps.
    fn dropped_by_now(&mut self, count: u32, at: Timestamp) {
        let more = count.wrapping_sub(std::mem::replace(&mut self.known, count));
        if more > 0 {
            add(&mut self.dropped, u64::from(more), at);
        }
    }

    fn withheld(&mut self, at: Timestamp) {
        add(&mut self.withheld, 1, at);
    }

    /// Takes the bytes of a datagram that were not read.
    fn cut(&mut self, bytes: usize, at: Timestamp) {
        add(&mut self.cut, bytes as u64, at);
    }

    fn is_any(&self) -> bool {
        self.dropped.is_some() || self.withheld.is_some() || self.cut.is_some()
    }

    /// Returns the records to write, each with a text for the log.
    fn take(&mut self, uid: &Uid) -> Vec<(Notice, String)> {
        let mut all = Vec::new();
        let mut say = |lost: Option<Lost>, why, missed: fn(u64) -> Missed, what: &str| {
            all.extend(lost.map(|lost| (lost.notice(uid, why, missed), format!("{} {what}", lost.count))));
        };
        let dropped = "datagrams were dropped by the kernel because they came faster than they were read: raise receive_buffer";
        say(self.dropped.take(), Why::UdpLoss, Missed::Datagrams, dropped);
        let withheld = "datagrams were left out: their senders are beyond max_peer_bytes_per_second";
        say(self.withheld.take(), Why::RateLimit, Missed::Datagrams, withheld);
        let cut = "bytes were cut off datagrams of more than 64 KiB: send less in one, or use a stream";
        say(self.cut.take(), Why::DatagramCut, Missed::Bytes, cut);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_dropped_is_the_difference() {
        let mut lost = Losses::default();
        lost.dropped_by_now(0, Timestamp(1));
        assert!(!lost.is_any());
        lost.dropped_by_now(u32::MAX - 1, Timestamp(2));
        lost.dropped_by_now(3, Timestamp(5));
        lost.withheld(Timestamp(6));
        lost.cut(12, Timestamp(7));
        let said = lost.take(&[1; 16]);
        let missed = said.iter().map(|(notice, _)| if let Notice::Gap { missed, .. } = notice { *missed } else { Missed::Unknown });
        assert_eq!(missed.collect::<Vec<_>>(), [Missed::Datagrams(u64::from(u32::MAX) + 4), Missed::Datagrams(1), Missed::Bytes(12)]);
        let Notice::Gap { why: Why::UdpLoss, from: Timestamp(2), to: Timestamp(5), .. } = said[0].0 else { panic!("{said:?}") };
        assert!(lost.take(&[1; 16]).is_empty());
    }

    #[test]
    fn a_datagram_is_a_line_or_several() {
        for (datagram, wanted) in [("<11>a", "<11>a\n"), ("<11>a\n\0", "<11>a\n"), ("a\nb", "a\nb\n"), ("\n\0", ""), ("", "")] {
            assert_eq!(lines(datagram.as_bytes()), wanted);
        }
    }
}
