//! `siftd signature`: prints `<md5>TAB<normalised>` for each line of text. The hash is the signature
//! of the line as plain text, without its secrets; the signature of an event also includes the type
//! and language that its rule has found. Bad UTF-8 is replaced; only stdin is read.

use std::io::{self, BufRead, BufReader, Write};

use super::args::SignatureArgs;
use super::stdin::{self, NamedStdin};
use super::{Exit, Failure, out};
use crate::core::event::Frames;
use crate::core::redact::{KeyBlock, Redactor};
use crate::core::signature::{Fault, Replacement, normalise_explained, signature as sign};
use crate::sinks::human::sanitise;

/// Maximum number of bytes of a line that are used: the default of `max_line_bytes`.
const MAX_LINE_BYTES: u64 = 1 << 20;

pub fn signature(args: &SignatureArgs) -> Result<Exit, Failure> {
    stdin::needed("sign", "pipe lines in", "signature")?;
    out::quiet_on_closed_pipe(lines(args.why))
}

fn lines(why: bool) -> io::Result<()> {
    let mut input = BufReader::with_capacity(64 << 10, NamedStdin::new());
    let mut out = io::BufWriter::new(io::stdout().lock());
    let (mut line, mut key) = (Vec::new(), KeyBlock::default());
    while next_line(&mut input, &mut line)? {
        let whole = String::from_utf8_lossy(&line);
        // The signature of an event contains no secret either.
        let text = Redactor::builtin().redact_next(&mut key, &whole, &mut 0);
        let (normalised, replacements) = normalise_explained(&text);
        let (strict, _) = sign(&Fault { message: &text, ..Fault::default() }, &[], &Frames::default());
        writeln!(out, "{strict}\t{normalised}")?;
        if why {
            explain(&mut out, &text, &replacements)?;
        }
        if input.buffer().is_empty() {
            out.flush()?;
        }
    }
    out.flush()
}

/// Writes one line per replacement: columns in the text, old text, new text, and the step of the recipe.
fn explain(out: &mut impl Write, text: &str, replacements: &[Replacement]) -> io::Result<()> {
    for Replacement { at, from, to, why } in replacements {
        let first = text[..*at].chars().count() + 1;
        let last = first + from.chars().count().max(1) - 1;
        let columns = if last > first { format!("{first}-{last}") } else { first.to_string() };
        let became = match to {
            to if to == from => "stays".to_owned(),
            to if to.is_empty() => "goes".to_owned(),
            to => format!("→ {}", sanitise(to)),
        };
        writeln!(out, "  {columns}: {} {became} ({why})", sanitise(from))?;
    }
    Ok(())
}

/// Reads the next line without its end and cuts one that is too long. Returns `false` at the end of input.
fn next_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    let count = io::Read::take(&mut *input, MAX_LINE_BYTES).read_until(b'\n', line)?;
    if count as u64 == MAX_LINE_BYTES && !line.ends_with(b"\n") {
        input.skip_until(b'\n')?;
    }
    if line.ends_with(b"\n") {
        line.pop();
        if line.ends_with(b"\r") {
            line.pop();
        }
    }
    Ok(count > 0)
}
