//! `max_peer_bytes_per_second`: what each machine may send. Time is an argument. A stream's reader
//! waits as long as this module says, and so does its peer; an excess datagram is left out and counted.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Maximum number of machines to remember; beyond that, those silent for a second are forgotten.
const MAX_PEERS: usize = 10_000;

/// What all peers have sent recently.
#[derive(Debug, Default)]
pub struct Rates {
    per_second: u64,
    peers: HashMap<Option<IpAddr>, Bucket>,
}

/// How far a peer is ahead of its allowance.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    /// Bytes sent ahead of the allowance.
    ahead: f64,
    at: Instant,
}

impl Rates {
    /// Allows `per_second` bytes per second; 0: no limit.
    #[must_use]
    pub fn new(per_second: u64) -> Self {
        Self { per_second, peers: HashMap::new() }
    }

    /// Counts the bytes a peer has sent, and returns how long to wait before it is read again. Peers without an address count as one.
    pub fn sent(&mut self, peer: Option<IpAddr>, bytes: usize, now: Instant) -> Duration {
        if self.per_second == 0 {
            return Duration::ZERO;
        }
        let rate = self.per_second as f64;
        let bucket = self.bucket(peer, now);
        bucket.ahead += bytes as f64;
        // One second's allowance may come at once.
        Duration::try_from_secs_f64((bucket.ahead / rate - 1.0).max(0.0)).unwrap_or(Duration::MAX)
    }

    /// Whether a datagram of this size may still be taken; it is counted if so.
    pub fn takes(&mut self, peer: Option<IpAddr>, bytes: usize, now: Instant) -> bool {
        if self.per_second == 0 {
            return true;
        }
        let rate = self.per_second as f64;
        let bucket = self.bucket(peer, now);
        let takes = bucket.ahead < rate;
        bucket.ahead += if takes { bytes as f64 } else { 0.0 };
        takes
    }

    fn bucket(&mut self, peer: Option<IpAddr>, now: Instant) -> &mut Bucket {
        if self.peers.len() >= MAX_PEERS && !self.peers.contains_key(&peer) {
            self.peers.retain(|_, bucket| now.duration_since(bucket.at) < Duration::from_secs(1));
        }
        let rate = self.per_second as f64;
        // If there are more within a second, the further ones share one bucket.
        let peer = if self.peers.len() >= MAX_PEERS && !self.peers.contains_key(&peer) { None } else { peer };
        let bucket = self.peers.entry(peer).or_insert(Bucket { ahead: 0.0, at: now });
        bucket.ahead = (bucket.ahead - rate * now.duration_since(bucket.at).as_secs_f64()).max(0.0);
        bucket.at = now;
        bucket
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Option<IpAddr> = Some(IpAddr::V4(std::net::Ipv4Addr::new(127, 0, 0, 1)));
    const OTHER: Option<IpAddr> = Some(IpAddr::V4(std::net::Ipv4Addr::new(127, 0, 0, 2)));

    #[test]
    fn a_peer_waits_for_what_it_has_sent_too_much() {
        let (mut rates, start) = (Rates::new(1000), Instant::now());
        assert_eq!(rates.sent(ONE, 1000, start), Duration::ZERO);
        assert_eq!(rates.sent(ONE, 500, start), Duration::from_millis(500));
        assert_eq!(rates.sent(OTHER, 900, start), Duration::ZERO, "others do not wait for it");
        assert_eq!(rates.sent(ONE, 500, start + Duration::from_secs(1)), Duration::ZERO);
        assert_eq!(Rates::new(0).sent(ONE, usize::MAX, start), Duration::ZERO);
    }

    #[test]
    fn datagrams_are_left_out_until_there_is_room() {
        let (mut rates, start) = (Rates::new(1000), Instant::now());
        assert_eq!((0..9).filter(|_| rates.takes(ONE, 400, start)).count(), 3);
        assert!(rates.takes(OTHER, 400, start));
        assert!(rates.takes(ONE, 400, start + Duration::from_secs(1)));
    }

    #[test]
    fn memory_is_bounded() {
        let (mut rates, start) = (Rates::new(1000), Instant::now());
        for n in 0..3 * MAX_PEERS as u32 {
            rates.sent(Some(IpAddr::V4(n.into())), 10, start);
        }
        assert!(rates.peers.len() <= MAX_PEERS + 1);
    }
}
