//! What the invariants' tests share: engines, a seeded generator, and documents built from what the rules know.

use std::sync::{Arc, OnceLock};

use siftd::core::engine::{Engine, Limits};
use siftd::core::event::{Event, Timestamp};
use siftd::core::extract::Origin;
use siftd::core::pipeline::Stream;
use siftd::rules::RuleSet;

/// The time at which these logs are read.
pub const NOW: Timestamp = Timestamp(1_790_000_000_000_000);

/// Returns an engine with the built-in rules and these limits.
pub fn engine(limits: Limits) -> Arc<Engine> {
    Arc::new(Engine::new(RuleSet::compiled(), limits))
}

/// Returns an engine with the built-in rules and default limits.
pub fn usual() -> Arc<Engine> {
    static ENGINE: OnceLock<Arc<Engine>> = OnceLock::new();
    Arc::clone(ENGINE.get_or_init(|| engine(Limits::default())))
}

pub fn stream(engine: &Arc<Engine>) -> Stream {
    Stream::new(Arc::clone(engine), Origin::default())
}

/// Returns the events of `bytes`, passed as one chunk.
pub fn events(engine: &Arc<Engine>, bytes: impl AsRef<[u8]>) -> Vec<Event> {
    let (mut stream, mut out) = (stream(engine), Vec::new());
    stream.push(bytes.as_ref(), NOW, &mut out);
    stream.finish(NOW, &mut out);
    out
}

/// Returns the events of `bytes` under the usual rules.
pub fn scan(bytes: impl AsRef<[u8]>) -> Vec<Event> {
    events(&usual(), bytes)
}

/// Returns what must be equal whatever the chunks: everything except the context lines after the event.
pub fn essence(event: &Event) -> String {
    let Event { id, line_num, line_end, offset, inner, rule, text, multiline, signature, truncated, key, io, .. } = event;
    let whole = format!("{id} {signature} {key:?} {io:?} {text:?} {multiline:?}");
    let shown: String = text.chars().take(60).collect();
    format!("{line_num}-{line_end} @{offset}.{inner} {rule} cut {truncated}: {shown:?} {}", hash(&whole))
}

fn hash(text: &str) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

pub fn essences(events: &[Event]) -> Vec<String> {
    events.iter().map(essence).collect()
}

/// Returns line numbers and ids, sorted.
pub fn ids(events: &[Event]) -> Vec<(u64, String)> {
    let mut ids: Vec<_> = events.iter().map(|event| (event.line_num, event.id.to_string())).collect();
    ids.sort();
    ids
}

/// A generator whose only state is its seed (SplitMix64).
#[derive(Clone)]
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `n`, which must not be 0.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

/// All texts that the rules contain, as lines.
pub struct Parts {
    /// Literals, as written in the rules.
    pub literals: Vec<String>,
    /// Example texts, of one or more lines.
    pub examples: Vec<String>,
}

pub fn parts() -> &'static Parts {
    static PARTS: OnceLock<Parts> = OnceLock::new();
    PARTS.get_or_init(|| {
        let rules = RuleSet::builtin();
        let entries = &rules.entries;
        let literals = entries.iter().flat_map(|entry| entry.gate.literals.clone()).collect();
        let own = entries.iter().map(|entry| &entry.examples).chain(rules.cancels.iter().map(|cancel| &cancel.examples));
        let examples = own.flat_map(|examples| examples.matching.iter().chain(&examples.no_match)).cloned().collect();
        Parts { literals, examples }
    })
}

const PLAIN: &[&str] = &[
    "",
    "   ",
    "Listening on 0.0.0.0:8080",
    "  at rest, the pump is quiet",
    "GET /health 200 3ms",
    "\u{2713} all good",
    "    return x",
    "},",
    "> build",
    "---",
    "  12 | let a = b;",
    "   Compiling siftd v0.1.0",
    "done",
    "fermé à clé",
];
const PREFIXES: &[&str] = &[
    "2026-09-21T10:00:00Z ",
    "2026-09-21 10:00:00,123 ERROR [main] ",
    "2026-09-21 10:00:00 INFO ",
    "web_1  | ",
    "db_1   | ",
    "[worker 3] ",
    "3 | ",
    "Sep 21 10:00:00 host app[17]: ",
    "I0921 10:00:00.000000       1 main.go:7] ",
    "    ",
    "\t",
    "E   ",
    "# ",
    "> ",
    "+ ",
];

/// Returns a document of complete and partial errors, in every wrapping that may hide a literal.
pub fn document(rng: &mut Rng) -> Vec<u8> {
    let mut out = Vec::new();
    for _ in 0..1 + rng.below(12) {
        for line in passage(rng) {
            dress(rng, &line, &mut out);
        }
    }
    if rng.one_in(3) {
        out.pop();
    }
    if rng.one_in(12) { wide(rng, &out) } else { out }
}

fn passage(rng: &mut Rng) -> Vec<String> {
    let parts = parts();
    let text = match rng.below(8) {
        0 => rng.pick(&parts.literals).clone(),
        1 => format!("{}{} {}", rng.pick(PLAIN), rng.pick(&parts.literals), rng.pick(PLAIN)),
        2 => rng.pick(PLAIN).to_string(),
        _ => rng.pick(&parts.examples).clone(),
    };
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    match rng.below(8) {
        0 => {
            let prefix = *rng.pick(PREFIXES);
            lines.iter_mut().for_each(|line| line.insert_str(0, prefix));
        }
        1 => lines.iter_mut().take(1).for_each(|line| {
            let prefix = *rng.pick(PREFIXES);
            line.insert_str(0, prefix);
        }),
        // Two interleaved writers.
        2 => {
            let other = rng.pick(&parts.examples).lines().map(|line| format!("db_1  | {line}"));
            let mut both: Vec<String> = Vec::new();
            let mut others = other.collect::<Vec<_>>().into_iter();
            for line in &lines {
                both.extend(others.by_ref().take(rng.below(3)));
                both.push(format!("web_1 | {line}"));
            }
            both.extend(others);
            lines = both;
        }
        3 => lines.truncate(1 + rng.below(lines.len().max(1))),
        _ => {}
    }
    lines
}

fn dress(rng: &mut Rng, line: &str, out: &mut Vec<u8>) {
    let at = line.floor_char_boundary(rng.below(line.len() + 1));
    let (head, tail) = line.split_at(at);
    let time = "2026-09-21T10:00:00.000000000Z";
    let io = *rng.pick(&["stdout", "stderr"]);
    let escaped = *rng.pick(ESCAPED);
    let json = |text: &str| json_string(text, escaped);
    let text = match rng.below(24) {
        0 => format!("\u{1b}[31m{head}\u{1b}[0m{tail}\u{1b}[0m"),
        1 => format!("{head}\\u001b[0m{tail}"),
        2 => format!("{head}{}[1m{tail}", rng.pick(&["\\x1b", "\\033", "\\e", "\\u001B"])),
        3 => format!("{head}\u{1b}]0;title\u{7}{tail}"),
        4 => format!("{{\"msg\":{},\"pid\":7}}", json(line)),
        5 => format!("{{\"level\":\"{}\",\"msg\":{}}}", rng.pick(&["info", "error", "fatal", "warn"]), json(line)),
        6 => format!("{{\"a\":{{\"stderr\":{}}}}}", json(&format!("ok\n{line}\nend"))),
        7 => format!("{time} {io} F {line}"),
        8 => format!("{time} {io} P {head}\n{time} {io} F {tail}"),
        9 => format!("{time} stdout P {head}\n{time} stderr F between\n{time} stdout F {tail}"),
        10 => format!("{{\"log\":{},\"stream\":\"{io}\",\"time\":\"{time}\"}}", json(&format!("{line}\n"))),
        11 => {
            let piece = json(&format!("{}{head}", "z".repeat(16 << 10)));
            format!(
                "{{\"log\":{piece},\"stream\":\"{io}\",\"time\":\"{time}\"}}\n{{\"log\":{},\"stream\":\"{io}\",\"time\":\"{time}\"}}",
                json(&format!("{tail}\n"))
            )
        }
        12 => format!("{{\"Time\":\"{time}\",\"Action\":\"output\",\"Package\":\"p\",\"Test\":\"T\",\"Output\":{}}}", json(&format!("{line}\n"))),
        13 => format!("10%\r20%\r{line}\r"),
        14 => format!("{line}\r100%"),
        15 => format!("{line}\r"),
        16 => format!("{}{line}", "x".repeat(rng.below(3000))),
        17 => format!("{line}{}", ".".repeat(rng.below(3000))),
        18 => format!("level={} msg={}", rng.pick(&["info", "error"]), json(line)),
        _ => line.to_owned(),
    };
    out.extend_from_slice(text.as_bytes());
    if rng.one_in(40) {
        let at = out.len() - rng.below(text.len() + 1);
        out.insert(at, *rng.pick(&[0xff, 0x00, 0x1b, b'\\', b'"', 0xf0, b'\r', 0x08]));
    }
    out.push(b'\n');
}

/// What JSON encoders escape although they need not; `é` stands for all characters outside ASCII.
const ESCAPED: &[&str] = &["", "", "", "é", "é/", "<>&", "<>&='", "é<>&'+`\""];

/// Returns a JSON string in which these characters are escaped as well.
fn json_string(text: &str, escaped: &str) -> String {
    let whole = serde_json::to_string(text).unwrap_or_default();
    let large = escaped.contains('"');
    let mut out = String::new();
    let mut rest = whole.chars().peekable();
    while let Some(c) = rest.next() {
        let next = rest.peek().copied();
        match (c, next) {
            ('\\', Some('"')) if large => {
                rest.next();
                out.push_str("\\u0022");
            }
            ('\\', Some(next)) => {
                rest.next();
                out.extend([c, next]);
            }
            ('/', _) if escaped.contains('/') => out.push_str("\\/"),
            (c, _) if c != '"' && escaped.contains(if c.is_ascii() { c } else { 'é' }) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    out += &if large { format!("\\u{unit:04X}") } else { format!("\\u{unit:04x}") };
                }
            }
            (c, _) => out.push(c),
        }
    }
    out
}

/// Encodes the text as UTF-16 with a byte order mark.
pub fn wide(rng: &mut Rng, text: &[u8]) -> Vec<u8> {
    let big = rng.one_in(2);
    let units = String::from_utf8_lossy(text).encode_utf16().collect::<Vec<_>>();
    let bytes = |unit: u16| if big { unit.to_be_bytes() } else { unit.to_le_bytes() };
    std::iter::once(0xfeff).chain(units).flat_map(bytes).collect()
}

/// Runs `holds` on documents made from seeds; a failure shows the seed and
/// the smallest failing document. `SIFTD_ROUNDS=50` runs fifty times as many.
pub fn for_documents(count: u64, first_seed: u64, holds: impl Fn(&[u8], u64) -> Result<(), String>) {
    let rounds = std::env::var("SIFTD_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(1);
    for seed in first_seed..first_seed + count * rounds {
        let document = document(&mut Rng(seed));
        if let Err(why) = holds(&document, seed) {
            let small = smallest(document, |bytes| holds(bytes, seed).is_err());
            let why = holds(&small, seed).err().unwrap_or(why);
            panic!("seed {seed}: {:?}\n{why}", String::from_utf8_lossy(&small));
        }
    }
}

/// Returns `bytes` without the lines that the failure does not need.
fn smallest(mut bytes: Vec<u8>, fails: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let mut at = 0;
    loop {
        let lines: Vec<&[u8]> = bytes.split_inclusive(|b| *b == b'\n').collect();
        if at >= lines.len() {
            return bytes;
        }
        let without: Vec<u8> = lines.iter().enumerate().filter(|(i, _)| *i != at).flat_map(|(_, line)| line.iter().copied()).collect();
        if fails(&without) { bytes = without } else { at += 1 }
    }
}

/// Describes where two lists differ.
pub fn same<T: PartialEq + std::fmt::Debug>(left: &[T], right: &[T]) -> Result<(), String> {
    if left == right {
        return Ok(());
    }
    let only = |a: &[T], b: &[T]| a.iter().filter(|x| !b.contains(x)).map(|x| format!("  {x:?}")).collect::<Vec<_>>().join("\n");
    Err(format!("only left:\n{}\nonly right:\n{}\n({} and {})", only(left, right), only(right, left), left.len(), right.len()))
}
