//! Logs from a seed: the same seed gives the same bytes on every machine. `ordinary` writes the lines that
//! are not errors, `alike` those among them that look like one, `fault` the errors; this file mixes them and
//! records the truth. Every fault is followed by an ordinary line, so that two faults never merge into one.

mod alike;
mod fault;
mod ordinary;
mod random;
pub mod size;

use std::io::{self, Write};

use random::Random;

/// Percentage of ordinary lines that look like an error.
const ALIKE_PERCENT: u64 = 38;
/// Percentage of faults that are traces of several lines.
const TRACE_PERCENT: u64 = 40;
/// Number of faults, and of lines, written to determine their mean length.
const SAMPLE: u64 = 20_000;

/// What to write.
#[derive(Clone, Copy, Debug)]
pub struct Recipe {
    /// Minimum size in bytes; the last line is finished.
    pub bytes: u64,
    /// Share of lines that begin an error, 0 to 0.3.
    pub rate: f64,
    pub seed: u64,
    /// Whether ordinary lines may look like errors.
    pub look_alikes: bool,
}

/// An error that was written.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// 1-based number of its first line.
    pub line: u64,
    /// Offset of its first byte.
    pub offset: u64,
    /// Number of its lines.
    pub lines: u64,
    /// Its kind.
    pub kind: &'static str,
}

/// What was written.
#[derive(Clone, Copy, Debug, Default)]
pub struct Written {
    pub bytes: u64,
    pub lines: u64,
    pub faults: u64,
}

/// Writes the log; `truth` receives each error.
pub fn write(recipe: Recipe, out: &mut impl Write, mut truth: impl FnMut(Fault) -> io::Result<()>) -> io::Result<Written> {
    let mut maker = Maker::new(recipe.seed, recipe.look_alikes);
    let chance = chance(recipe);
    let mut written = Written::default();
    let mut is_free = true;
    while written.bytes < recipe.bytes {
        maker.text.clear();
        if is_free && maker.random.share() < chance {
            let kind = maker.fault();
            let lines = count_lines(&maker.text);
            truth(Fault { line: written.lines + 1, offset: written.bytes, lines, kind })?;
            written.faults += 1;
            is_free = false;
        } else {
            maker.ordinary();
            is_free = true;
        }
        written.bytes += maker.text.len() as u64;
        written.lines += count_lines(&maker.text);
        out.write_all(maker.text.as_bytes())?;
    }
    out.flush()?;
    Ok(written)
}

/// Writes one line without a newline: `bytes` of the kind of text that is found in bundles and blobs.
pub fn write_endless_line(bytes: u64, seed: u64, out: &mut impl Write) -> io::Result<()> {
    let mut random = Random::new(seed);
    let mut text = String::new();
    let mut left = bytes as usize;
    while left > 0 {
        text.clear();
        alike::bundle(&mut text, &mut random);
        let part = &text.as_bytes()[..text.len().min(left)];
        out.write_all(part)?;
        left -= part.len();
    }
    out.flush()
}

/// Returns the chance of a fault in each free slot that makes a fraction `rate` of all lines begin one.
fn chance(recipe: Recipe) -> f64 {
    if recipe.rate <= 0.0 {
        return 0.0;
    }
    let mut maker = Maker::new(!recipe.seed, recipe.look_alikes);
    let mut mean = |write: fn(&mut Maker)| {
        maker.text.clear();
        (0..SAMPLE).for_each(|_| write(&mut maker));
        count_lines(&maker.text) as f64 / SAMPLE as f64
    };
    let fault = mean(|maker| {
        maker.fault();
    });
    let ordinary = mean(Maker::ordinary);
    // A share c of the free slots is a fault and brings one ordinary line: rate = c / (c·(fault + ordinary) + (1 − c)·ordinary).
    (recipe.rate * ordinary / (1.0 - recipe.rate * fault)).clamp(0.0, 1.0)
}

fn count_lines(text: &str) -> u64 {
    text.bytes().filter(|&byte| byte == b'\n').count() as u64
}

/// The generator's state between two lines.
struct Maker {
    random: Random,
    look_alikes: bool,
    /// Milliseconds since the log's midnight.
    clock_ms: u64,
    text: String,
}

impl Maker {
    fn new(seed: u64, look_alikes: bool) -> Self {
        Self { random: Random::new(seed), look_alikes, clock_ms: 0, text: String::new() }
    }

    fn ordinary(&mut self) {
        self.clock_ms += self.random.below(180);
        if self.look_alikes && self.random.percent(ALIKE_PERCENT) {
            alike::line(&mut self.text, &mut self.random, self.clock_ms);
        } else {
            ordinary::line(&mut self.text, &mut self.random, self.clock_ms);
        }
    }

    fn fault(&mut self) -> &'static str {
        self.clock_ms += self.random.below(180);
        if self.random.percent(TRACE_PERCENT) {
            fault::trace(&mut self.text, &mut self.random)
        } else {
            fault::line(&mut self.text, &mut self.random, self.clock_ms)
        }
    }
}
