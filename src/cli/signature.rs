//! `siftd signature`: a text line in, `<md5>TAB<normalised>` out, one for one. The number is the signature of the line as a
//! plain text, without its secrets; that of an event also knows the type and language that its rule has read. Bad UTF-8 is
//! replaced; it reads stdin only.

use std::io::{self, BufRead, BufReader, Write};

use super::args::SignatureArgs;
use super::stdin::NamedStdin;
use super::{Exit, Failure, out};
use crate::core::event::Frames;
use crate::core::redact::{KeyBlock, clean};
use crate::core::signature::{Replacement, normalise_explained, signature as sign};
use crate::sinks::human::sanitise;

/// Longest part of a line that counts, in bytes: the default of `max_line_bytes`.
const MAX_LINE_BYTES: u64 = 1 << 20;

pub fn signature(args: &SignatureArgs) -> Result<Exit, Failure> {
    out::quiet_on_closed_pipe(lines(args.why))
}

fn lines(why: bool) -> io::Result<()> {
    let mut input = BufReader::with_capacity(64 << 10, NamedStdin::new());
    let mut out = io::BufWriter::new(io::stdout().lock());
    let (mut line, mut key) = (Vec::new(), KeyBlock::default());
    while next_line(&mut input, &mut line)? {
        let whole = String::from_utf8_lossy(&line);
        // No secret is in an event's signature either.
        let text = if key.takes(&whole) { KeyBlock::token().into() } else { clean(&whole) };
        let (normalised, replacements) = normalise_explained(&text);
        let (strict, _) = sign(None, "", &[], &text, &Frames::default());
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

/// One line for each: its columns in the text, what it was, what it became, by which step of the recipe.
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

/// The next line without its end; one that is too long loses its tail. False at the end.
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
