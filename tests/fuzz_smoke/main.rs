//! Runs the bodies of the fuzz targets on the fixtures, seeded mutations of them and hostile
//! text, as part of plain `cargo test`. `SIFTD_ROUNDS=100` runs a hundred times as many.

mod body;
mod texts;

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

/// Returns a piece of a log with bytes and lines changed, doubled, moved or taken from another log.
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

/// Parts of tokens and text that surrounds them, to be joined in any order.
const PARTS: &[&[u8]] = &[
    b"\"",
    b"'",
    b"`",
    b"\\",
    b"/",
    b"(",
    b")",
    b"[",
    b"]",
    b"{",
    b"}",
    b"<",
    b">",
    b":",
    b"::",
    b"=",
    b",",
    b".",
    b"..",
    b"-",
    b"+",
    b"_",
    b"@",
    b"#",
    b"%",
    b"~",
    b"|",
    b" | ",
    b" ",
    b"  ",
    b"\t",
    b"\n",
    b"\r",
    b"\r\n",
    b"\0",
    b"\x08",
    b"\x7f",
    b"\x1b[31m",
    b"\x1b]0;",
    b"\x1b\\",
    b"\\u001b[",
    b"\\n",
    b"\xff",
    b"\xc2",
    b"\xe2\x80",
    b"\xed\xa0\x80",
    b"\xf0\x9f\x92\xa5",
    b"\xc2\xb5s",
    b"\xc2\x85",
    b"\xc3\xa9",
    b"\xe2\x80\x98",
    b"\xe2\x80\xae",
    b"\xe2\xb1\xa0",
    b"\xcc\x81",
    b"\xef\xbb\xbf",
    b"\xef\xbc\x95",
    b"\xf3\xa0\x81\x81",
    b"0",
    b"7",
    b"12",
    b"404",
    b"99999999999",
    b"18446744073709551616",
    b"-9223372036854775808",
    b"1e999",
    b"0x",
    b"0xdeadbeef",
    b"1.2.3",
    b"10.0.0.1",
    b"fe80::1",
    b"1:2:3:4:5:6:7:8",
    b"3KiB",
    b"12 MB",
    b"1,234",
    b"50%",
    b"550e8400-e29b-41d4-a716-446655440000",
    b"9f86d081884c7d65",
    b"-7d9f8b6c5-x2x4z",
    b"aB3dE5fG7hI9jK1lM3nO5pQ7",
    b"2026-01-02",
    b"T03:04:05",
    b"03:04:05.123456",
    b"Z",
    b"+05:30",
    b" UTC",
    b"Jan  2 ",
    b"Sun",
    b"Thu, ",
    b"06/Nov/1994:08:49:37 ",
    b"1695668091.895450 ",
    b"@400000004a3e2ad42a3b1c2d",
    b"@4000000",
    b"0517 15:04:22.6",
    b"[   12.345678]",
    b"<134>",
    b"<134>1 ",
    b"00O ",
    b"E/Tag( 1):",
    b"[1,0]<stderr>: ",
    b"stderr F ",
    b"host prog[1]: ",
    b"web_1  | ",
    b"worker 3",
    b"https://u:p@a.b/c?d",
    b"file:///",
    b"C:\\a\\b.txt",
    b"/tmp/tmpab12cd9x",
    b"./a/b.rs:3:5",
    b"a.b@example.com",
    b"ERROR",
    b"error",
    b"Error:",
    b"error[E0308]: ",
    b"panic",
    b"level=error ",
    b"msg=\"",
    b"{\"level\":\"error\",\"msg\":\"",
    b"\"}",
    b"{\"severitynumber\":",
    b"\"time\":",
    b"null",
    b"exit code ",
    b"status ",
    b"HTTP/1.1 ",
    b"resets at ",
    b"errno",
    b"password=",
    b"token: ",
    b"Bearer ",
    b"AKIAIOSFODNN7EXAMPLE",
    b"ghp_",
    b"eyJhbGciOi.eyJ.x",
    b"-----BEGIN RSA PRIVATE KEY-----",
    b"-----END RSA PRIVATE KEY-----",
    b"Traceback (most recent call last):",
    b"  File \"a.py\", line 3, in f",
    b"    at f (a.js:3:5)",
    b"Caused by: ",
    b"::stop-commands::",
    b"##vso[",
    b"::error ",
    b"lambda$3",
    b".func1",
    b"::h0123456789abcdef",
    b"PIPELINE_",
    b"ENOENT",
    b"tmp.",
    b"user=",
    b"[[rule]]\n",
    b"[family]\n",
    b"id = \"",
    b"regex = '",
    b"literals = [",
    b"- pattern: ",
    b"&a ",
    b"[limits]\n",
    b"max_line_bytes = ",
    b"\"4 KiB\"",
];

/// Returns up to 24 parts or bytes in any order.
fn hostile(rng: &mut Rng) -> Vec<u8> {
    let mut text = Vec::new();
    for _ in 0..1 + rng.below(24) {
        match rng.below(8) {
            0 => text.push(rng.below(256) as u8),
            1 => text.extend(char::from_u32(rng.below(0x11_0000) as u32).unwrap_or('\u{fffd}').to_string().bytes()),
            _ => text.extend_from_slice(PARTS[rng.below(PARTS.len())]),
        }
    }
    text
}

fn rounds() -> u64 {
    std::env::var("SIFTD_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(1)
}

/// Runs `check` on the input that `make` creates from each seed; a failure names its seed.
fn each_seed(count: u64, make: impl Fn(&mut Rng) -> Vec<u8>, check: fn(&[u8])) {
    for seed in 0..count * rounds() {
        let input = make(&mut Rng(seed));
        let held = std::panic::catch_unwind(|| check(&input));
        assert!(held.is_ok(), "seed {seed}: {:?}", String::from_utf8_lossy(&input));
    }
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
    each_seed(120, |rng| mutated(rng, &logs), body::check);
}

#[test]
fn hostile_texts_hold() {
    each_seed(2000, hostile, texts::check);
}

/// Each control character takes six bytes in a record.
#[test]
fn texts_of_control_characters_hold() {
    for byte in 0..b' ' {
        [10, 40, 100, 3000].iter().for_each(|length| texts::check(&vec![byte; *length]));
    }
}

#[test]
fn hostile_streams_hold() {
    each_seed(200, |rng| (0..3).flat_map(|_| hostile(rng)).collect(), body::check);
}
