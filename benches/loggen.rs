//! Writes a log of any size to stdout, for trying siftd on it:
//! `cargo bench --bench loggen -- --size 1GiB --rate 0.01 --seed 7 --truth truth.tsv > agent.log`

use std::fs::File;
use std::io::{self, BufWriter, Write};

use anyhow::{Context, bail};

mod log;

const USAGE: &str = "Writes a log to stdout.

  --size SIZE        how much: 4096, 64KiB, 16MiB, 1GiB (needed)
  --rate SHARE       share of lines that begin an error [0.01]
  --seed N           another seed, another log [42]
  --lookalikes 0     no lines that only look like an error (they are 38 % of the ordinary ones)
  --endless          one line of that size, without a newline, instead of a log
  --truth FILE       write each error to FILE: line, byte offset, lines, kind
";

fn main() -> anyhow::Result<()> {
    let mut recipe = log::Recipe { bytes: 0, rate: 0.01, seed: 42, look_alikes: true };
    let mut truth: Box<dyn Write> = Box::new(io::sink());
    // `cargo bench` adds this flag.
    let mut args = std::env::args().skip(1).filter(|arg| arg != "--bench");
    let mut endless = false;
    while let Some(flag) = args.next() {
        if flag == "--endless" {
            endless = true;
            continue;
        }
        let value = args.next().with_context(|| format!("{flag} needs a value\n\n{USAGE}"))?;
        match flag.as_str() {
            "--size" => recipe.bytes = log::size::parse(&value)?,
            "--rate" => recipe.rate = value.parse()?,
            "--seed" => recipe.seed = value.parse()?,
            "--lookalikes" => recipe.look_alikes = value != "0",
            "--truth" => truth = Box::new(BufWriter::new(File::create(&value).context(value)?)),
            _ => bail!("unknown flag {flag}\n\n{USAGE}"),
        }
    }
    if recipe.bytes == 0 {
        eprint!("{USAGE}");
        return Ok(());
    }
    let mut out = BufWriter::with_capacity(1 << 20, io::stdout().lock());
    if endless {
        return Ok(log::write_endless_line(recipe.bytes, recipe.seed, &mut out)?);
    }
    let written = log::write(recipe, &mut out, |fault| writeln!(truth, "{}\t{}\t{}\t{}", fault.line, fault.offset, fault.lines, fault.kind))?;
    truth.flush()?;
    eprintln!("{} bytes, {} lines, {} errors", written.bytes, written.lines, written.faults);
    Ok(())
}
