//! How fast siftd is, compared with `wc -l` and ripgrep on the same file: `cargo bench --bench speed`.
//!
//! For each log all programs take turns, each run is one process on one core, and the median of the rounds counts. The
//! file is in the page cache. Checks make the figures meaningful: every error that the generator wrote is found, and
//! memory stays small. `-- --smoke` does all this with small logs and fails only if a check does, never because of time.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use log::{Fault, Recipe};
use measure::Used;

mod log;
mod measure;

const SIFTD: &str = env!("CARGO_BIN_EXE_siftd");
const LITERALS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/literals.txt");
const STARTS: usize = 20;
/// Most differences shown for each log.
const SHOWN: usize = 20;
const USAGE: &str = "cargo bench --bench speed -- [--size 1GiB] [--rounds 5] [--markdown] [--peak 32MiB] [--smoke]

  --size SIZE   of each log [1GiB]
  --rounds N    runs of each program; the middle one counts [5]
  --markdown    print the table as Markdown
  --readme      the same, and put it into README.md
  --peak SIZE   the most memory that siftd may take [32MiB]
  --smoke       16 MiB, one round: fails if a check of correctness does, never for time
";

/// The logs, as the table names them.
const LOGS: [(&str, f64, bool); 4] =
    [("1 % error lines", 0.01, true), ("no errors", 0.0, true), ("no errors, nothing that looks like one", 0.0, false), ("10 % error lines", 0.1, true)];

/// The options of a run.
struct Plan {
    bytes: u64,
    /// Length of the one line without a newline; well above the memory limit.
    line_bytes: u64,
    rounds: usize,
    /// Maximum memory of siftd.
    peak_bytes: u64,
    markdown: bool,
    readme: bool,
    folder: PathBuf,
}

/// One row of the table.
struct Row {
    name: String,
    bytes: u64,
    wc: Duration,
    rg: Option<Duration>,
    siftd: Duration,
    peak_kib: u64,
    truth: Truth,
}

/// Comparison of the generator's errors with siftd's.
#[derive(Clone, Copy, Default)]
struct Truth {
    written: usize,
    /// Errors whose first and last line are right.
    exact: usize,
    missed: usize,
    /// Events where no error was written.
    extra: usize,
}

fn main() -> anyhow::Result<()> {
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    if args.first().is_some_and(|arg| arg == measure::WRAPPER) {
        return measure::wrapper(&args[1..]);
    }
    let Some(plan) = plan()? else {
        eprint!("{USAGE}");
        return Ok(());
    };
    fs::create_dir_all(&plan.folder)?;
    let rows = LOGS.iter().map(|log| row(&plan, log)).collect::<anyhow::Result<Vec<_>>>();
    let first = rows.as_ref().map_or(Ok(Duration::ZERO), |_| first_event(&plan));
    let line = rows.as_ref().map_or(Ok(None), |_| endless_line(&plan).map(Some));
    fs::remove_dir_all(&plan.folder)?;
    let (mut rows, first) = (rows?, first?);
    rows.extend(line?);
    let table = table(&plan, &rows, first);
    print!("{table}");
    check(&plan, &rows)?;
    if plan.readme { into_readme(&table) } else { Ok(()) }
}

fn plan() -> anyhow::Result<Option<Plan>> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("speed-{}", std::process::id()));
    let mut plan = Plan { bytes: 1 << 30, line_bytes: 1 << 30, rounds: 5, peak_bytes: 32 << 20, markdown: false, readme: false, folder };
    let mut args = std::env::args().skip(1);
    while let Some(flag) = args.next() {
        let mut value = || args.next().with_context(|| format!("{flag} needs a value"));
        match flag.as_str() {
            "--bench" => {}
            "--size" => (plan.bytes, plan.line_bytes) = (log::size::parse(&value()?)?, plan.line_bytes),
            "--rounds" => plan.rounds = value()?.parse::<usize>()?.max(1),
            "--peak" => plan.peak_bytes = log::size::parse(&value()?)?,
            "--markdown" => plan.markdown = true,
            "--readme" => (plan.markdown, plan.readme) = (true, true),
            "--smoke" => (plan.bytes, plan.line_bytes, plan.rounds) = (16 << 20, 64 << 20, 1),
            "--help" | "-h" => return Ok(None),
            _ => bail!("unknown flag {flag}\n\n{USAGE}"),
        }
    }
    Ok(Some(plan))
}

fn row(plan: &Plan, &(name, rate, look_alikes): &(&str, f64, bool)) -> anyhow::Result<Row> {
    let file = plan.folder.join("log");
    let mut faults = Vec::new();
    let mut out = BufWriter::with_capacity(1 << 20, File::create(&file)?);
    let recipe = Recipe { bytes: plan.bytes, rate, seed: 42, look_alikes };
    let written = log::write(recipe, &mut out, |fault| {
        faults.push(fault);
        Ok(())
    })?;
    drop(out);
    eprintln!("{name}: {} lines, {} errors", written.lines, written.faults);
    let events = plan.folder.join("events");
    let mut row = measured(plan, name, &file, &events)?;
    row.truth = compare(&faults, &events)?;
    Ok(row)
}

/// Measures one line of 1 GiB without a newline.
fn endless_line(plan: &Plan) -> anyhow::Result<Row> {
    let file = plan.folder.join("log");
    log::write_endless_line(plan.line_bytes, 42, &mut BufWriter::with_capacity(1 << 20, File::create(&file)?))?;
    eprintln!("one line");
    measured(plan, "one line without an end", &file, &plan.folder.join("events"))
}

fn measured(plan: &Plan, name: &str, file: &Path, events: &Path) -> anyhow::Result<Row> {
    let path = file.to_str().context("the folder's name is no UTF-8")?;
    let (mut wc, mut rg, mut siftd) = (Vec::new(), Vec::new(), Vec::new());
    let mut peak_kib = 0;
    let with_rg = has_ripgrep();
    // Reads the file into the page cache.
    measure::run("wc", &["-l", path], events)?;
    for _ in 0..plan.rounds {
        wc.push(measure::run("wc", &["-l", path], events)?.cpu);
        if with_rg {
            rg.push(measure::run("rg", &["-c", "-F", "-f", LITERALS, path], events)?.cpu);
        }
        let Used { cpu, peak_kib: peak } = measure::run(SIFTD, &["scan", "--jobs", "1", "--format", "ndjson", path], events)?;
        siftd.push(cpu);
        peak_kib = peak_kib.max(peak);
    }
    let bytes = fs::metadata(file)?.len();
    let middle = |values: &mut Vec<Duration>| measure::median(values).context("no round");
    let (wc, siftd, rg) = (middle(&mut wc)?, middle(&mut siftd)?, measure::median(&mut rg));
    Ok(Row { name: name.to_owned(), bytes, wc, rg, siftd, peak_kib, truth: Truth::default() })
}

fn has_ripgrep() -> bool {
    std::process::Command::new("rg").arg("--version").output().is_ok_and(|out| out.status.success())
}

/// Compares the two lists, both in the order of the log, and shows the first differences.
fn compare(faults: &[Fault], events: &Path) -> anyhow::Result<Truth> {
    let mut truth = Truth { written: faults.len(), ..Truth::default() };
    let mut wrong: Vec<String> = Vec::new();
    let mut faults = faults.iter().map(|fault| (fault, false)).peekable();
    let miss = |fault: &Fault| format!("missed: {} at line {}, {} lines", fault.kind, fault.line, fault.lines);
    for line in BufReader::new(File::open(events)?).lines() {
        let event = Event::read(&line?)?;
        while let Some((fault, found)) = faults.next_if(|(fault, _)| fault.line + fault.lines <= event.first) {
            if !found {
                wrong.push(miss(fault));
                truth.missed += 1;
            }
        }
        match faults.peek_mut().filter(|(fault, found)| !found && fault.line <= event.last) {
            Some((fault, found)) => {
                *found = true;
                if fault.line == event.first && fault.line + fault.lines == event.last + 1 && fault.offset == event.offset {
                    truth.exact += 1;
                } else {
                    wrong.push(format!("not exact: {} at line {}, {} lines: {}", fault.kind, fault.line, fault.lines, event.shown));
                }
            }
            None => {
                wrong.push(format!("too many: {}", event.shown));
                truth.extra += 1;
            }
        }
    }
    for (fault, _) in faults.filter(|(_, found)| !found) {
        wrong.push(miss(fault));
        truth.missed += 1;
    }
    wrong.iter().take(SHOWN).for_each(|line| eprintln!("  {line}"));
    Ok(truth)
}

/// The relevant fields of a record.
struct Event {
    first: u64,
    last: u64,
    offset: u64,
    shown: String,
}

impl Event {
    fn read(line: &str) -> anyhow::Result<Self> {
        let record: serde_json::Value = serde_json::from_str(line)?;
        let number = |name: &str| record[name].as_u64().with_context(|| format!("a record without {name}"));
        let (first, last) = (number("line_num")?, number("line_end")?);
        Ok(Self { first, last, offset: number("offset")?, shown: format!("lines {first}-{last} {} {}", record["rule"], record["text"]) })
    }
}

fn first_event(plan: &Plan) -> anyhow::Result<Duration> {
    let file = plan.folder.join("first.log");
    log::write(Recipe { bytes: 1 << 20, rate: 0.1, seed: 42, look_alikes: true }, &mut File::create(&file)?, |_| Ok(()))?;
    let path = file.to_str().context("the folder's name is no UTF-8")?;
    let mut times = (0..=STARTS).map(|_| measure::first_byte(SIFTD, &["scan", "--format", "ndjson", path])).collect::<anyhow::Result<Vec<_>>>()?;
    // The first start only warms the cache.
    times.remove(0);
    measure::median(&mut times).context("no start")
}

fn table(plan: &Plan, rows: &[Row], first: Duration) -> String {
    let edge = if plan.markdown { "| " } else { "" };
    let size = |bytes: u64| if bytes >= 1 << 30 { format!("{} GiB", bytes >> 30) } else { format!("{} MiB", bytes >> 20) };
    let times = |cpu: Duration, row: &Row| format!("{:.1}", cpu.as_secs_f64() / row.wc.as_secs_f64());
    let mut cells = vec![["log", "`wc -l`", "`rg`, 40 literals", "siftd", "siftd, MiB/s", "errors found", "peak memory"].map(str::to_owned)];
    for row in rows {
        let Truth { written, missed, .. } = row.truth;
        cells.push([
            format!("{}: {}", size(row.bytes), row.name),
            format!("1 ({:.0} ms)", row.wc.as_secs_f64() * 1000.0),
            row.rg.map_or("–".to_owned(), |rg| times(rg, row)),
            times(row.siftd, row),
            format!("{:.0}", row.bytes as f64 / row.siftd.as_secs_f64() / f64::from(1 << 20)),
            if written == 0 { "–".to_owned() } else { format!("{} of {written}", written - missed) },
            format!("{:.0} MiB", row.peak_kib as f64 / 1024.0),
        ]);
    }
    let widths: Vec<usize> = (0..7).map(|at| cells.iter().map(|row| row[at].chars().count()).max().unwrap_or(0)).collect();
    let mut out = String::new();
    for (number, row) in cells.iter().enumerate() {
        let padded: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        let line = if plan.markdown { padded.join(" | ") } else { padded.join("   ") };
        out.push_str(&format!("{edge}{}{}\n", line.trim_end(), if plan.markdown { " |" } else { "" }));
        if number == 0 && plan.markdown {
            out.push_str("| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n");
        }
    }
    out.push_str(&format!("\nFirst event {:.1} ms after the start (median of {STARTS}). Measured on {}.\n", first.as_secs_f64() * 1000.0, machine()));
    out
}

/// Returns the processor, as far as the system names it, and its vector extensions, on which the search depends.
fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")).map(|rest| rest.trim_start_matches([' ', '\t', ':']));
    let has = |flag: &str| info.split_ascii_whitespace().any(|known| known == flag);
    let vectors = if has("avx512vbmi") {
        ", with AVX-512"
    } else if has("avx2") {
        ", with AVX2"
    } else {
        ""
    };
    format!("{cores} cores of {}{vectors}", model.unwrap_or(std::env::consts::ARCH))
}

/// Replaces the text between the marks.
fn into_readme(table: &str) -> anyhow::Result<()> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/README.md");
    let text = fs::read_to_string(path)?;
    let (head, rest) =
        text.split_once("<!-- speed").and_then(|(head, rest)| Some((head, rest.split_once("-->\n")?))).context("README.md has no mark for the table")?;
    let (_, tail) = rest.1.split_once("<!-- /speed -->").context("README.md has no mark for the end of the table")?;
    fs::write(path, format!("{head}<!-- speed{}-->\n{table}<!-- /speed -->{tail}", rest.0))?;
    eprintln!("written to README.md");
    Ok(())
}

fn check(plan: &Plan, rows: &[Row]) -> anyhow::Result<()> {
    if rows.iter().any(|row| row.rg.is_none()) {
        println!("skipped: needs ripgrep (the column `rg`)");
    }
    for row in rows {
        let Truth { written, exact, missed, extra } = row.truth;
        eprintln!(
            "{}: {written} errors written, {missed} missed, {exact} with their exact lines, {extra} events too many, peak {} KiB",
            row.name, row.peak_kib
        );
    }
    for row in rows {
        ensure!(row.truth.missed == 0, "{}: {} errors missed", row.name, row.truth.missed);
        ensure!(row.truth.extra == 0, "{}: {} events where no error was written", row.name, row.truth.extra);
        ensure!(row.peak_kib << 10 <= plan.peak_bytes, "{}: {} KiB of memory, more than {}", row.name, row.peak_kib, plan.peak_bytes >> 10);
    }
    eprintln!("checks passed: every error found, none extra, memory below {} MiB", plan.peak_bytes >> 20);
    Ok(())
}
