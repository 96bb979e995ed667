//! `siftd filter`: stdin to stdout without the lines and blocks that the rules call noise. All other
//! bytes pass as they are: line ends, bad UTF-8, a missing last newline. Memory is one line's.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};

use super::args::FilterArgs;
use super::{Exit, Failure, out, setup};
use crate::core::confirm::Confirm;
use crate::core::engine::{Candidate, Engine};
use crate::core::line::{Line, Place};
use crate::core::prefilter::{Hit, Scratch};
use crate::core::visible::visible;
use crate::rules::Kind;
use crate::sources::clock::now;

const BUFFER_BYTES: usize = 64 << 10;

pub(super) fn filter(args: &FilterArgs) -> Result<Exit, Failure> {
    let setup = setup::load(&args.setup, None)?;
    let mut noise = Noise::new(&setup.engine);
    let out = BufWriter::with_capacity(BUFFER_BYTES, out::stdout()?);
    out::quiet_on_closed_pipe(copy(&mut noise, out))
}

fn copy(noise: &mut Noise, mut out: BufWriter<File>) -> io::Result<()> {
    let mut input = BufReader::with_capacity(BUFFER_BYTES, io::stdin());
    let limit = noise.engine.limits.max_line_bytes;
    let mut line = Vec::new();
    while input.by_ref().take(limit as u64).read_until(b'\n', &mut line)? > 0 {
        let whole = line.len() < limit || line.ends_with(b"\n");
        if !whole {
            out.write_all(&line)?;
            pass_line(&mut input, &mut out)?;
        } else if !noise.is(line.strip_suffix(b"\n").unwrap_or(&line)) {
            out.write_all(&line)?;
        }
        if input.buffer().is_empty() {
            out.flush()?;
        }
        line.clear();
    }
    out.flush()
}

/// The rest of a line that is too long to judge.
fn pass_line(input: &mut impl BufRead, out: &mut impl Write) -> io::Result<()> {
    loop {
        let bytes = input.fill_buf()?;
        let end = memchr::memchr(b'\n', bytes).map(|at| at + 1);
        let count = end.unwrap_or(bytes.len());
        out.write_all(&bytes[..count])?;
        input.consume(count);
        if end.is_some() || count == 0 {
            return Ok(());
        }
    }
}

/// Which lines are noise.
pub struct Noise<'a> {
    engine: &'a Engine,
    /// The block under way, and how many more lines it may take.
    block: Option<(u16, u32)>,
    scratch: Scratch,
    hits: Vec<Hit>,
    candidates: Vec<Candidate>,
}

impl<'a> Noise<'a> {
    /// Before the first line.
    #[must_use]
    pub fn new(engine: &'a Engine) -> Self {
        Self { engine, block: None, scratch: Scratch::default(), hits: Vec::new(), candidates: Vec::new() }
    }

    /// Whether a line, without its newline, is noise.
    pub fn is(&mut self, raw: &[u8]) -> bool {
        let text = visible(raw, None);
        if self.goes_on(&text) {
            return true;
        }
        let line = Line::new(Place::default(), &text, now());
        if !self.engine.is_noise(&line) {
            return false;
        }
        self.engine.candidates(&text, &mut self.scratch, &mut self.hits, &mut self.candidates);
        self.block = Confirm::new(self.engine, &line, &self.candidates).noise_block();
        true
    }

    fn goes_on(&mut self, text: &[u8]) -> bool {
        let Some((entry, left)) = self.block.take() else { return false };
        let Kind::Noise { block: Some((regex, _)), .. } = &self.engine.rules.entries[usize::from(entry)].kind else { return false };
        let goes_on = left > 0 && regex.is_match(text);
        self.block = goes_on.then(|| (entry, left - 1));
        goes_on
    }
}
