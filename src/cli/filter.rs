//! `siftd filter`: copies stdin to stdout without the lines and blocks that the rules call noise. All
//! other bytes pass unchanged: line ends, bad UTF-8, a missing last newline. It holds one line in memory.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};

use super::args::FilterArgs;
use super::stdin::{self, NamedStdin};
use super::{Exit, Failure, out, setup};
use crate::core::noise::Noise;
use crate::sources::clock::now;

const BUFFER_BYTES: usize = 64 << 10;

pub(super) fn filter(args: &FilterArgs) -> Result<Exit, Failure> {
    stdin::needed("filter", "pipe a log in", "filter")?;
    let setup = setup::load(&args.setup, setup::Reading::default())?;
    let mut noise = Noise::new(&setup.engine);
    let out = BufWriter::with_capacity(BUFFER_BYTES, out::stdout()?);
    out::quiet_on_closed_pipe(copy(&mut noise, out))
}

fn copy(noise: &mut Noise, mut out: BufWriter<File>) -> io::Result<()> {
    let mut input = BufReader::with_capacity(BUFFER_BYTES, NamedStdin::new());
    let limit = noise.engine().limits.max_line_bytes;
    let mut line = Vec::new();
    while input.by_ref().take(limit as u64).read_until(b'\n', &mut line)? > 0 {
        let whole = line.len() < limit || line.ends_with(b"\n");
        if !whole {
            out.write_all(&line)?;
            pass_line(&mut input, &mut out)?;
        } else if !noise.is(line.strip_suffix(b"\n").unwrap_or(&line), now()) {
            out.write_all(&line)?;
        }
        if input.buffer().is_empty() {
            out.flush()?;
        }
        line.clear();
    }
    out.flush()
}

/// Copies the rest of a line that is too long to judge.
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
