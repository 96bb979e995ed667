//! The fuzz target's body over the fixtures and seeded mutations of them, so that plain `cargo test`
//! has it. `SIFTD_ROUNDS=100` runs a hundred times as many.

mod body;

use std::path::Path;

/// SplitMix64.
struct Rng(u64);

impl Rng {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n as u64) as usize
    }
}

fn fixtures() -> Vec<Vec<u8>> {
    let mut logs = Vec::new();
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures"), &mut logs);
    assert!(logs.len() > 20);
    logs
}

fn collect(folder: &Path, logs: &mut Vec<Vec<u8>>) {
    let mut paths: Vec<_> = std::fs::read_dir(folder).expect("fixtures").map(|entry| entry.expect("fixtures").path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            collect(&path, logs);
        } else if path.extension().is_some_and(|extension| extension == "log") {
            logs.push(std::fs::read(path).expect("a fixture"));
        }
    }
}

/// A piece of a log, with bytes and lines changed, doubled, moved or taken from another.
fn mutated(rng: &mut Rng, logs: &[Vec<u8>]) -> Vec<u8> {
    let mut log: Vec<u8> = (0..4).map(|_| rng.below(256) as u8).collect();
    for _ in 0..1 + rng.below(3) {
        let from = &logs[rng.below(logs.len())];
        let start = rng.below(from.len() + 1);
        log.extend_from_slice(&from[start..(start + rng.below(3000)).min(from.len())]);
    }
    for _ in 0..rng.below(8) {
        if log.len() < 8 {
            break;
        }
        let at = rng.below(log.len());
        match rng.below(6) {
            0 => log[at] = rng.below(256) as u8,
            1 => log[at] ^= 1 << rng.below(8),
            2 => log.insert(at, b"\n\r\x1b\\\"{[: |\0"[rng.below(11)]),
            3 => drop(log.remove(at)),
            4 => log.truncate(at + 4),
            _ => log.extend_from_within(at..),
        }
    }
    log
}

#[test]
fn fixtures_hold_whole() {
    for (n, log) in fixtures().iter().enumerate() {
        let n = n as u8;
        body::check(&[&[n, n >> 1, n, n][..], &log[..log.len().min(20_000)]].concat());
    }
}

#[test]
fn mutations_hold() {
    let logs = fixtures();
    let rounds: u64 = std::env::var("SIFTD_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(1);
    for seed in 0..120 * rounds {
        let input = mutated(&mut Rng(seed), &logs);
        let held = std::panic::catch_unwind(|| body::check(&input));
        assert!(held.is_ok(), "seed {seed}: {:?}", String::from_utf8_lossy(&input));
    }
}
