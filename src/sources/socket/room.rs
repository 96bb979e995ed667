//! Room for the connections of a source. A connection that waits for siftd, because its peer has ended or
//! sends faster than siftd reads, gives its place back soon: a new one meanwhile waits in the kernel's queue
//! and loses nothing. Only if peers that may stay for ever have all places is there no point in waiting.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// How long to wait for a place before checking who has them: a connection that was just accepted and has already ended shows that only when it is read.
const PATIENCE: Duration = Duration::from_millis(200);

/// The places of one source.
pub(super) struct Room {
    places: Arc<Semaphore>,
    busy: Busy,
    /// Whether all places were taken for good at the last check.
    was_full: bool,
}

/// Counts the connections of a source that wait for siftd, not for their peers.
#[derive(Clone, Debug, Default)]
pub struct Busy(Arc<AtomicUsize>);

/// One such connection, counted until it is dropped.
struct Counted<'a>(&'a AtomicUsize);

impl Room {
    /// Allows `most` connections at once.
    pub fn new(most: usize) -> Self {
        Self { places: Arc::new(Semaphore::new(most)), busy: Busy::default(), was_full: false }
    }

    /// Returns the counter in which connections note that they wait.
    pub fn busy(&self) -> Busy {
        self.busy.clone()
    }

    /// Returns the place for the next connection once there is one; `None` if peers have all of them.
    pub async fn place(&mut self) -> Option<OwnedSemaphorePermit> {
        loop {
            if let Some(place) = self.free_place() {
                return Some(place);
            }
            if self.was_full && !self.busy.is_any() {
                return None;
            }
            if let Ok(Ok(place)) = timeout(PATIENCE, self.places.clone().acquire_owned()).await {
                return Some(place);
            }
            self.was_full = true;
        }
    }

    /// Returns a place, if one is free now.
    pub fn free_place(&mut self) -> Option<OwnedSemaphorePermit> {
        let place = self.places.clone().try_acquire_owned().ok();
        self.was_full &= place.is_none();
        place
    }

    /// Returns the next place that comes free, whoever gives it back.
    pub async fn next_place(&self) -> Option<OwnedSemaphorePermit> {
        self.places.clone().acquire_owned().await.ok()
    }
}

impl Busy {
    /// Runs work that siftd does for a connection, counted as waiting.
    pub async fn during<T>(&self, work: impl Future<Output = T>) -> T {
        self.0.fetch_add(1, Ordering::AcqRel);
        let _counted = Counted(&self.0);
        work.await
    }

    fn is_any(&self) -> bool {
        self.0.load(Ordering::Acquire) > 0
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_place_that_waits_for_us_is_waited_for_and_one_of_a_peer_is_not() {
        let mut room = Room::new(1);
        let (busy, place) = (room.busy(), room.place().await.expect("it is free"));
        assert!(room.place().await.is_none());
        let (let_go, gone) = tokio::sync::oneshot::channel::<()>();
        let looked_at = tokio::spawn(async move {
            busy.during(async { gone.await.expect("somebody looks") }).await;
            drop(place);
        });
        tokio::task::yield_now().await;
        assert!(timeout(PATIENCE * 3, room.place()).await.is_err());
        let_go.send(()).expect("it waits");
        assert!(room.place().await.is_some());
        looked_at.await.expect("it has ended");
    }
}
