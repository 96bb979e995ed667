//! `siftd scan`: reads finished inputs and prints their errors in the requested format. One job does everything
//! on one thread; with more, each file has a thread. Memory holds the streams plus what `order` buffers.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use super::args::{Color, ReadMode, ScanArgs};
use super::order::Order;
use super::progress::Progress;
use super::{Exit, Failure, identity, out, say, setup, stdin};
use crate::sinks::human::{Paint, Tally};
use crate::sources::archive::{self, Archive};
use crate::sources::exclude::Exclude;
use crate::sources::expand::{Input, Trouble, expand};
use crate::sources::foreign::Foreign;
use crate::sources::input::Identity;
use crate::sources::interrupt::Interrupt;
use crate::words::Severity;

mod known;
mod printer;
mod reader;
mod target;

use known::Known;
use printer::{Printer, Reach};
use reader::Totals;
use target::Target;

/// Maximum number of files left out of folders that are named.
const MAX_LEFT_OUT: usize = 20;

/// What the workers share.
struct Job {
    setup: setup::Setup,
    printer: Printer,
    known: Known,
    run_id: String,
    host: String,
    inputs: Vec<Input>,
    next: AtomicUsize,
    order: Order,
    progress: Progress,
    interrupt: Arc<Interrupt>,
    /// Number of inputs that could not be read at all.
    unopened: AtomicUsize,
    /// Number of those that were not read to their end.
    troubled: AtomicUsize,
    /// The least severity that makes the scan fail, if the exit code is asked for that.
    fails_on: Option<Severity>,
    /// Such an error was found.
    found: AtomicBool,
    /// Number of files in folders that are no logs.
    left_out: AtomicUsize,
    totals: Mutex<Totals>,
    /// Kinds of input that are read although they are no logs.
    reads: Vec<Foreign>,
    /// The output, if it is a regular file: reading it would never end.
    own_output: Option<Identity>,
    /// The file of `--output` was not there before.
    is_new: bool,
}

pub fn scan(args: &ScanArgs, color: Color) -> Result<Exit, Failure> {
    let started = Instant::now();
    // Before any thread starts.
    let interrupt = Arc::new(Interrupt::take()?);
    let job = prepare(args, color, interrupt)?;
    let worked = work(&job, workers(args, &job)).and_then(|()| {
        let totals = *job.totals.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let reach = Reach {
            inputs: job.inputs.len(),
            unopened: job.unopened.load(Ordering::Relaxed),
            unread: job.troubled.load(Ordering::Relaxed),
            is_interrupted: job.interrupt.caught().is_some(),
        };
        job.order.outside(&job.printer.last(&totals, &reach, started))?;
        // Nothing to read is no fault of the names if all were left out.
        if exit(&job) == Exit::Trouble || reach.is_interrupted { Ok(()) } else { job.order.begin() }
    });
    if job.order.is_kept() && job.is_new {
        Target::unmake(args);
    }
    job.progress.done();
    job.tell_left_out();
    Target::written(target::named(args), worked)?;
    out::heed(&job.interrupt);
    Ok(exit(&job))
}

fn prepare(args: &ScanArgs, color: Color, interrupt: Arc<Interrupt>) -> Result<Job, Failure> {
    let (mut inputs, mut troubles) = expand(&names(args)?);
    leave_out(&args.exclude, &mut inputs, &mut troubles)?;
    once(&mut inputs);
    let setup = setup::load(&args.setup, args.reading.into())?;
    setup.slips().for_each(|said| say(&said));
    let printer = Printer::new(args, target::paint(args, color), setup.config.limits.max_event_bytes as usize);
    let known = Known::new(args, &setup.config)?;
    let target = Target::open(args, &inputs)?;
    let order = if target.is_kept { Order::keeping(target.file, printer.is_document()) } else { Order::new(target.file, printer.is_document()) };
    let progress = Progress::new(|| total_bytes(&inputs));
    let job = Job {
        setup,
        printer,
        known,
        run_id: args.run_id.clone(),
        host: identity::host(),
        inputs,
        next: AtomicUsize::new(0),
        order,
        progress,
        interrupt,
        unopened: AtomicUsize::new(0),
        troubled: AtomicUsize::new(0),
        // A build that asks for new errors fails if there are any.
        fails_on: args.fail_on.or(args.baseline.as_ref().map(|_| Severity::Medium)),
        found: AtomicBool::new(false),
        left_out: AtomicUsize::new(0),
        totals: Mutex::default(),
        reads: reads(args),
        own_output: target.own,
        is_new: target.is_new,
    };
    troubles.iter().for_each(|trouble| job.refuse(trouble));
    Ok(job)
}

fn names(args: &ScanArgs) -> Result<Vec<PathBuf>, Failure> {
    if !args.files.is_empty() {
        return Ok(args.files.clone());
    }
    stdin::needed("scan", "name files or folders, or pipe a log in", "scan")?;
    Ok(vec![PathBuf::from("-")])
}

/// Removes what `--exclude` names.
fn leave_out(excluded: &[Exclude], inputs: &mut Vec<Input>, troubles: &mut Vec<Trouble>) -> Result<(), Failure> {
    let is_meant = |path: &Path| excluded.iter().any(|exclude| exclude.covers(path));
    let known = inputs.len();
    let paths: Vec<&Path> = inputs.iter().filter_map(Input::path).collect();
    let is_idle =
        |exclude: &&Exclude| !paths.iter().any(|path| exclude.covers(path)) && !troubles.iter().any(|trouble| exclude.covers(Path::new(&trouble.path)));
    for pattern in excluded.iter().filter(is_idle).filter_map(Exclude::path).filter(|_| !paths.is_empty()) {
        let first = paths[0].display();
        say(&format!(
            "hint: --exclude {pattern} leaves out nothing; with a slash it is matched against whole paths, such as {first}; **/ stands for any folders"
        ));
    }
    inputs.retain(|input| !input.path().is_some_and(is_meant));
    troubles.retain(|trouble| !is_meant(Path::new(&trouble.path)));
    // As for a folder without a file: it must not look like logs without an error.
    match inputs.is_empty() && troubles.is_empty() && known > 0 {
        true => Err(Failure::new("--exclude leaves no file to read")),
        false => Ok(()),
    }
}

/// Removes duplicates, whose errors would be counted twice: a file named
/// twice, named and found, or known under several names is read once.
pub(super) fn once(inputs: &mut Vec<Input>) {
    let (mut files, mut has_stdin) = (HashSet::new(), false);
    inputs.retain(|input| match input {
        Input::Stdin => !std::mem::replace(&mut has_stdin, true),
        // A missing file is reported each time it is named.
        Input::Named(path) | Input::Found(path) => Identity::at(path).map_or(true, |file| files.insert(file)),
    });
}

fn reads(args: &ScanArgs) -> Vec<Foreign> {
    let plain = archive::ALL.into_iter().filter(Archive::is_plain).map(Foreign::Packed);
    let binary = plain.chain([Foreign::Binary]).filter(|_| args.binary);
    let own = [Foreign::Own, Foreign::Written].into_iter().filter(|_| args.reading.mode == ReadMode::Text);
    binary.chain(own).collect()
}

fn total_bytes(inputs: &[Input]) -> Option<u64> {
    let sizes = inputs.iter().map(|input| match input {
        Input::Stdin => None,
        Input::Named(path) | Input::Found(path) => Some(std::fs::metadata(path).map_or(0, |meta| meta.len())),
    });
    sizes.sum()
}

fn workers(args: &ScanArgs, job: &Job) -> usize {
    let wanted = args.jobs.map_or_else(|| std::thread::available_parallelism().map_or(1, Into::into), usize::from);
    wanted.min(job.inputs.len())
}

fn work(job: &Job, workers: usize) -> io::Result<()> {
    job.written(job.order.outside(job.printer.first()))?;
    if workers <= 1 {
        return reader::worker(job);
    }
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(|| reader::worker(job))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().unwrap_or(Err(io::ErrorKind::Other.into())))
    })
}

fn exit(job: &Job) -> Exit {
    let is_troubled = job.unopened.load(Ordering::Relaxed) + job.troubled.load(Ordering::Relaxed) > 0;
    match (is_troubled, job.found.load(Ordering::Relaxed)) {
        (true, _) => Exit::Trouble,
        (false, true) => Exit::Found,
        (false, false) => Exit::Done,
    }
}

impl Job {
    /// Notes an error that is shown.
    fn count(&self, severity: Severity) {
        if self.fails_on.is_some_and(|least| severity >= least) {
            self.found.store(true, Ordering::Relaxed);
        }
    }

    /// Decides what a failed write means. Whoever has closed the pipe has seen enough, but the exit code still
    /// has to say whether there is an error to fail on: without one so far, reading goes on, and nothing is written.
    fn written(&self, result: io::Result<()>) -> io::Result<()> {
        let is_open = self.fails_on.is_some() && !self.found.load(Ordering::Relaxed);
        result.or_else(|error| if is_open && error.kind() == io::ErrorKind::BrokenPipe { Ok(()) } else { Err(error) })
    }

    /// Reports an input that is not read at all; the others continue.
    fn refuse(&self, trouble: &Trouble) {
        self.unopened.fetch_add(1, Ordering::Relaxed);
        self.tell(trouble);
    }

    /// Reports an input that is not read to its end.
    fn trouble(&self, trouble: &Trouble) {
        self.troubled.fetch_add(1, Ordering::Relaxed);
        self.tell(trouble);
    }

    /// Reports what is left out of a folder, which is no fault; only the first ones are named.
    fn leave_out(&self, trouble: &Trouble) {
        if self.left_out.fetch_add(1, Ordering::Relaxed) < MAX_LEFT_OUT {
            self.tell(trouble);
        }
    }

    /// Reports how many more were left out.
    fn tell_left_out(&self) {
        match self.left_out.load(Ordering::Relaxed).saturating_sub(MAX_LEFT_OUT) {
            0 => {}
            1 => say(&"1 file more of the folders is no log and was not read"),
            more => say(&format!("{more} files more of the folders are no logs and were not read")),
        }
    }

    /// Reports a remark on an input that is no fault.
    fn tell(&self, trouble: &Trouble) {
        self.progress.aside(|| say(&format!("{}: {}", trouble.path, trouble.why)));
    }
}
