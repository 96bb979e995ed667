//! Writes the output of inputs that are read in parallel, in the order of the inputs. The first unfinished
//! input writes straight through. A later one buffers its output up to a bound, and then waits for its turn.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Maximum number of bytes that an input buffers before it waits.
const MAX_WAITING_BYTES: usize = 1 << 20;
/// Maximum number of bytes held for all finished inputs.
const MAX_HELD_BYTES: usize = 4 << 20;

/// The output that all inputs share.
pub struct Order {
    state: Mutex<State>,
    turn: Condvar,
}

struct State {
    out: File,
    front: usize,
    held: BTreeMap<usize, Vec<u8>>,
    held_bytes: usize,
    /// Leave out the very first byte: the comma before the first item of a list.
    drop_first: bool,
    /// What comes before all inputs, while the file still has its former content.
    before: Option<Vec<u8>>,
    failed: Option<io::Error>,
}

impl Order {
    pub fn new(out: File, drop_first: bool) -> Self {
        let state = State { out, front: 0, held: BTreeMap::new(), held_bytes: 0, drop_first, before: None, failed: None };
        Self { state: Mutex::new(state), turn: Condvar::new() }
    }

    /// The same for a file that keeps its content until [`begin`](Self::begin).
    pub fn keeping(out: File, drop_first: bool) -> Self {
        let order = Self::new(out, drop_first);
        order.lock().before = Some(Vec::new());
        order
    }

    /// Empties the file and writes what has waited for that. Does nothing if writing has begun.
    pub fn begin(&self) -> io::Result<()> {
        let mut state = self.lock();
        if let Some(before) = state.before.take() {
            match state.out.set_len(0) {
                Ok(()) => state.write(&before),
                Err(error) => state.failed = Some(error),
            }
        }
        self.checked(&state)
    }

    /// Whether the file still has its former content.
    pub fn is_kept(&self) -> bool {
        self.lock().before.is_some()
    }

    /// Writes what input `index` has so far if it is its turn; otherwise leaves it in `bytes` while there is room.
    pub fn write(&self, index: usize, bytes: &mut Vec<u8>) -> io::Result<()> {
        let mut state = self.lock();
        while state.front != index && bytes.len() >= MAX_WAITING_BYTES && state.failed.is_none() {
            state = self.wait(state);
        }
        if state.front == index && state.failed.is_none() {
            state.put(bytes);
            bytes.clear();
        }
        self.checked(&state)
    }

    /// Ends input `index`; `bytes` is the rest of its output.
    pub fn finish(&self, index: usize, bytes: Vec<u8>) -> io::Result<()> {
        let mut state = self.lock();
        while state.front != index && state.held_bytes + bytes.len() > MAX_HELD_BYTES && state.failed.is_none() {
            state = self.wait(state);
        }
        self.checked(&state)?;
        if state.front == index {
            state.put(&bytes);
            state.next();
            self.turn.notify_all();
        } else {
            state.held_bytes += bytes.len();
            state.held.insert(index, bytes);
        }
        self.checked(&state)
    }

    /// Writes what comes before or after all inputs.
    pub fn outside(&self, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.lock();
        state.write(bytes);
        self.checked(&state)
    }

    /// Returns an earlier write error, and wakes all waiting inputs so that each gets it.
    fn checked(&self, state: &State) -> io::Result<()> {
        match &state.failed {
            None => Ok(()),
            Some(error) => {
                self.turn.notify_all();
                // Worded by the system, as in every other command.
                Err(error.raw_os_error().map_or_else(|| error.kind().into(), io::Error::from_raw_os_error))
            }
        }
    }

    /// A poisoned lock means that a worker panicked, which ends the process anyway.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.turn.wait(state).unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn put(&mut self, bytes: &[u8]) {
        let from = usize::from(self.drop_first && !bytes.is_empty());
        self.drop_first &= bytes.is_empty();
        self.write(&bytes[from..]);
    }

    fn write(&mut self, bytes: &[u8]) {
        if let Some(before) = &mut self.before {
            before.extend_from_slice(bytes);
        } else if let Err(error) = self.out.write_all(bytes) {
            self.failed = Some(error);
        }
    }

    /// Passes the turn to the next input, and writes the output of those that have already ended.
    fn next(&mut self) {
        self.front += 1;
        while let Some(bytes) = self.held.remove(&self.front) {
            self.held_bytes -= bytes.len();
            self.put(&bytes);
            self.front += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Seek};

    #[test]
    fn keeps_the_order_whoever_is_first() {
        let mut file = tempfile::tempfile().unwrap();
        let order = Order::new(file.try_clone().unwrap(), true);
        order.finish(2, b",c".to_vec()).unwrap();
        let mut early = b",b".to_vec();
        order.write(1, &mut early).unwrap();
        assert_eq!(early, b",b");
        order.finish(0, b",a".to_vec()).unwrap();
        order.finish(1, early).unwrap();
        order.outside(b"]").unwrap();
        let mut text = String::new();
        file.rewind().unwrap();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(text, "a,b,c]");
    }

    #[test]
    fn a_file_keeps_its_content_until_it_is_begun() {
        let mut file = tempfile::tempfile().unwrap();
        let read = |file: &mut File| {
            let mut text = String::new();
            file.rewind().unwrap();
            file.read_to_string(&mut text).unwrap();
            file.rewind().unwrap();
            text
        };
        file.write_all(b"of an earlier scan").unwrap();
        file.rewind().unwrap();
        let order = Order::keeping(file.try_clone().unwrap(), false);
        order.outside(b"[").unwrap();
        order.finish(0, Vec::new()).unwrap();
        assert!(order.is_kept());
        assert_eq!(read(&mut file), "of an earlier scan");
        order.begin().unwrap();
        order.begin().unwrap();
        order.finish(1, b"a".to_vec()).unwrap();
        order.outside(b"]").unwrap();
        assert!(!order.is_kept());
        assert_eq!(read(&mut file), "[a]");
    }

    #[test]
    fn a_failed_write_frees_those_who_wait() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let order = Order::new(full, false);
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| order.write(1, &mut vec![0; MAX_WAITING_BYTES]));
            assert!(order.write(0, &mut vec![0]).is_err());
            assert!(waits.join().unwrap().is_err());
        });
        assert!(order.finish(2, Vec::new()).is_err());
    }

    #[test]
    fn many_workers_with_much_output_neither_block_nor_mix() {
        let mut file = tempfile::tempfile().unwrap();
        let order = Order::new(file.try_clone().unwrap(), false);
        let next = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    loop {
                        let index = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                        if index >= 64 {
                            break;
                        }
                        let mut bytes = Vec::new();
                        for _ in 0..4 {
                            bytes.extend(std::iter::repeat_n(index as u8, 600 << 10));
                            order.write(index, &mut bytes).unwrap();
                        }
                        order.finish(index, bytes).unwrap();
                    }
                });
            }
        });
        let mut all = Vec::new();
        file.rewind().unwrap();
        file.read_to_end(&mut all).unwrap();
        assert_eq!(all.len(), 64 * 4 * (600 << 10));
        assert!(all.is_sorted());
    }
}
