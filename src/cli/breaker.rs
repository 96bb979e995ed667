//! `siftd breaker`: works on the breakers of a state, for loops and for people. `core::breaker`
//! makes the steps; this module handles flags, verdicts from stdin, and wording.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use super::args::{BreakerArgs, BreakerCommand, RecordArgs, Which};
use super::objects::answer_each;
use super::table::Columns;
use super::{Exit, Failure, out, say, stdin};
use crate::core::breaker::{Breaker, Limits, State, Transition};
use crate::core::event::{Hex, Io, RetryClass, Timestamp};
use crate::delivery::Weight;
use crate::exec::target::{Mode, Target};
use crate::hook;
use crate::sinks::human::breaker::{self as words, Telling};
use crate::sinks::human::sanitise;
use crate::sinks::record::rfc3339;
use crate::sources::clock::now;
use crate::state::breakers::Kept;
use crate::state::shared::Shared;
use crate::verdict::counts::{self, Fault};
use crate::verdict::{self, Facts};

mod desk;
mod told;

use desk::Desk;
use told::{Named, Told};

/// How long to wait for other processes.
pub const PATIENCE: Duration = Duration::from_secs(5);
/// Maximum length of a line of stdin, in bytes.
const MAX_LINE: u64 = 64 << 20;
/// Maximum number of transitions that `status NAME` shows.
const SHOWN_TRANSITIONS: usize = 10;

pub fn breaker(args: &BreakerArgs) -> Result<Exit, Failure> {
    match &args.command {
        BreakerCommand::Status { form, which, place } => status(&Desk::new(place)?, which, form.is_json()),
        BreakerCommand::Check { quiet, which, place } => {
            let desk = Desk::new(place)?;
            check(&desk, &desk.needed(which)?, *quiet)
        }
        BreakerCommand::Record(args) => record(&Desk::new(&args.place)?, args),
        BreakerCommand::Reset { all: true, place, .. } => reset_all(&Desk::new(place)?),
        BreakerCommand::Reset { which, place, .. } => {
            let desk = Desk::new(place)?;
            reset(&desk, &desk.needed(which)?)
        }
    }
}

/// Returns the flags that select the same state for another command, quoted for a shell, each preceded by a space.
pub fn flags(config: Option<&Path>, state_dir: Option<&Path>) -> String {
    let flag = |name: &str, value: &Path| {
        let value = value.display().to_string();
        shlex::try_quote(&value).map_or_else(|_| String::new(), |value| format!(" {name} {value}"))
    };
    // A named folder overrides the one of the configuration, and a reset needs nothing else from the configuration.
    match (state_dir, config) {
        (Some(folder), _) => flag("--state-dir", folder),
        (None, Some(config)) => flag("--config", config),
        (None, None) => String::new(),
    }
}

/// Checks that a name can be shown and kept.
pub fn check_name(name: &str) -> Result<(), Failure> {
    let is_good = !name.trim().is_empty() && name.len() <= crate::state::breakers::MAX_NAME_BYTES && !name.chars().any(char::is_control);
    if is_good { Ok(()) } else { Err(Failure::new("a breaker's name is 1 to 500 bytes, without control characters")) }
}

/// What may be as long as it likes is the name; `breaker status NAME` shows the rest.
const LIST: Columns<5> = Columns { heads: ["NAME", "STATE", "SINCE", "WHY", "ERRORS"], widest: 0, least: 12, left_out: &[4, 2, 3], numbers: &[] };

fn status(desk: &Desk, which: &Which, as_json: bool) -> Result<Exit, Failure> {
    let Some(shared) = desk.asked()? else {
        say_none(desk);
        return Ok(Exit::Done);
    };
    let wanted = desk.named(which);
    let all: Vec<(String, Kept)> = shared.breakers().map_err(Failure)?;
    let all: Vec<(String, Kept)> =
        all.into_iter().filter(|(name, _)| wanted.as_ref().is_none_or(|wanted| wanted == name)).map(|one| passed(one, desk)).collect();
    if let (Some(name), true) = (&wanted, all.is_empty()) {
        return out::print(&if as_json { String::new() } else { format!("{}: closed, nothing was recorded yet\n", sanitise(name)) });
    }
    let mut text = String::new();
    if as_json {
        all.iter().for_each(|(name, kept)| text += &format!("{}\n", object(name, kept, desk, &shared)));
    } else if let (Some(name), Some((_, kept))) = (&wanted, all.first()) {
        text = detail(name, kept, desk, &shared)?;
    } else {
        if all.is_empty() {
            say_none(desk);
            return Ok(Exit::Done);
        }
        let rows: Vec<[String; 5]> = all.iter().map(|(name, kept)| row(name, &kept.breaker, desk)).collect();
        text = LIST.table(&rows);
    }
    out::print(&text)
}

/// Applies the time that has passed. The change is saved by the next command that asks.
fn passed((name, mut kept): (String, Kept), desk: &Desk) -> (String, Kept) {
    if let Some(last) = kept.breaker.pass(&desk.limits(), now()).last() {
        last.reason.as_str().clone_into(&mut kept.why);
    }
    (name, kept)
}

fn row(name: &str, breaker: &Breaker, desk: &Desk) -> [String; 5] {
    let since = if breaker.state == State::Closed { String::new() } else { words::moment(breaker.since) };
    let errors = breaker.worst().map_or(String::new(), |worst| format!("{} × {}", worst.runs, &worst.signature[..12]));
    [sanitise(name).into_owned(), breaker.state.as_str().to_owned(), since, words::brief(breaker, &desk.limits()), errors]
}

/// Describes a breaker in one line.
fn sentence(name: &str, kept: &Kept, desk: &Desk, shared: &Shared) -> String {
    let sample = desk.sample(shared, &kept.breaker);
    let telling = Telling { name, flags: &desk.flags, breaker: &kept.breaker, why: &kept.why, sample: sample.as_deref() };
    words::sentence(&telling, &desk.limits()) + "\n"
}

fn detail(name: &str, kept: &Kept, desk: &Desk, shared: &Shared) -> Result<String, Failure> {
    let breaker = &kept.breaker;
    let mut text = sentence(name, kept, desk, shared);
    let mut counts = breaker.counts.clone();
    counts.sort_by_key(|count| (std::cmp::Reverse(count.runs), count.last));
    // The numbers stand one below the other.
    let runs = |count: u32| " ".repeat(3_usize.saturating_sub(count.to_string().len())) + &words::counted_in(count, breaker, &desk.limits());
    for count in counts.iter().take(SHOWN_TRANSITIONS) {
        let sample = shared.begin_with(&count.signature).map_err(Failure)?.into_iter().next().map(|entry| entry.sample).unwrap_or_default();
        text += &format!("  {}  {}  {}\n", runs(count.runs), count.signature, sanitise(&sample));
    }
    if breaker.transient > 0 {
        text += &format!("  {}  transient errors\n", runs(breaker.transient));
    }
    for body in shared.transitions(Some(name), SHOWN_TRANSITIONS).map_err(Failure)? {
        let record: Value = serde_json::from_slice(&body).unwrap_or_default();
        let word = |name: &str| sanitise(record[name].as_str().unwrap_or_default()).into_owned();
        text += &format!("  {}  {} → {}  {}\n", word("timestamp").split('.').next().unwrap_or_default(), word("from"), word("to"), word("reason"));
    }
    Ok(text)
}

fn object(name: &str, kept: &Kept, desk: &Desk, shared: &Shared) -> Value {
    let breaker = &kept.breaker;
    let counts: Vec<Value> =
        breaker.counts.iter().map(|count| json!({"signature": count.signature.as_str(), "count": count.runs, "last": rfc3339(count.last)})).collect();
    let mut object = json!({
        "breaker": name, "state": breaker.state.as_str(), "since": rfc3339(breaker.since), "reason": kept.why, "is_probe": breaker.is_probe,
        "transient": breaker.transient, "counts": counts,
    });
    if breaker.state == State::Open {
        object["until"] = breaker.deadline(&desk.limits()).map(rfc3339).into();
    }
    if let Some(signature) = words::telling(breaker) {
        object["signature"] = signature.as_str().into();
        object["text"] = desk.sample(shared, breaker).into();
    }
    object
}

fn check(desk: &Desk, name: &str, quiet: bool) -> Result<Exit, Failure> {
    let Some(shared) = desk.asked()? else {
        desk.miss();
        return if quiet { Ok(Exit::Done) } else { out::print(&format!("{}: closed\n", sanitise(name))) };
    };
    let kept = match shared.breaker(name).map_err(Failure)? {
        // Time has changed nothing, so nothing is written.
        Some(kept) if kept.breaker.clone().pass(&desk.limits(), now()).is_empty() => Some(kept),
        Some(_) => Some(desk.step(&mut desk.opened()?, name, &|breaker, at| breaker.pass(&desk.limits(), at))?.kept),
        None => None,
    };
    let Some(kept) = kept else {
        return if quiet { Ok(Exit::Done) } else { out::print(&format!("{}: closed\n", sanitise(name))) };
    };
    if !quiet {
        out::print(&sentence(name, &kept, desk, &shared))?;
    }
    Ok(match kept.breaker.state {
        State::Closed => Exit::Done,
        State::HalfOpen => Exit::HalfOpen,
        State::Open => Exit::Open,
    })
}

fn reset(desk: &Desk, name: &str) -> Result<Exit, Failure> {
    let known = match desk.existing()? {
        Some(shared) if shared.breaker(name).map_err(Failure)?.is_some() => Some(shared),
        _ => None,
    };
    let Some(mut shared) = known else {
        let status = format!("siftd breaker status{}", desk.flags);
        return Err(Failure::new(format!("{name}: no breaker of that name has recorded anything; `{status}` shows all")));
    };
    close(desk, &mut shared, name)
}

fn reset_all(desk: &Desk) -> Result<Exit, Failure> {
    let Some(mut shared) = desk.existing()? else {
        say_none(desk);
        return Ok(Exit::Done);
    };
    let all = shared.breakers().map_err(Failure)?;
    if all.is_empty() {
        say_none(desk);
    }
    all.iter().try_fold(Exit::Done, |_, (name, _)| close(desk, &mut shared, name))
}

fn close(desk: &Desk, shared: &mut Shared, name: &str) -> Result<Exit, Failure> {
    desk.step(shared, name, &|breaker, at| breaker.reset(at).into_iter().collect())?;
    out::print(&format!("{}: closed\n", sanitise(name)))
}

fn say_none(desk: &Desk) {
    say(&format!("no breaker in {}: nothing was recorded there yet", desk.folder.display()));
}

/// Reports that a damaged state was set aside.
fn say_aside(shared: &Shared) {
    shared.aside.iter().for_each(say);
}

/// What `record` writes down, and what became of it.
struct Book<'a> {
    desk: &'a Desk,
    name: &'a str,
    events: Option<File>,
    /// Opened for the first run, so that a call without one leaves nothing behind.
    shared: Option<Shared>,
    last: Option<Kept>,
    in_vain: bool,
}

impl Book<'_> {
    fn take(&mut self, run: &Run, errors: &[Told]) -> Result<(), Failure> {
        let shared = match &mut self.shared {
            Some(shared) => shared,
            none => none.insert(self.desk.opened()?),
        };
        if matches!(run, Run::Failure(_)) {
            told::remember(shared, self.name, errors).map_err(Failure)?;
        }
        let desk = self.desk;
        let changed = desk.step(shared, self.name, &|breaker, at| run.step(breaker, &desk.limits(), at))?;
        for record in &changed.records {
            self.events.iter_mut().try_for_each(|file| std::io::Write::write_all(file, record))?;
        }
        tell_opened(&desk.config.breaker.on_open, changed.opened.as_deref());
        self.in_vain |= matches!(run, Run::Success) && changed.kept.breaker.state == State::Open;
        self.last = Some(changed.kept);
        Ok(())
    }

    /// Takes the verdicts on stdin; returns how many lines are none.
    fn take_stdin(&mut self) -> Result<u64, Failure> {
        let (mut failed, mut refused) = (None, 0_u64);
        answer_each(MAX_LINE, |_, line, _| match line.and_then(|value| Ok((Run::of_json(self.desk, &value)?, Told::of_verdict(&value)))) {
            Ok((run, errors)) if failed.is_none() => failed = self.take(&run, &errors).err(),
            Ok(_) => {}
            Err(why) => {
                refused += 1;
                say(&format!("stdin: {why}"));
            }
        })?;
        failed.map_or(Ok(refused), Err)
    }
}

fn record(desk: &Desk, args: &RecordArgs) -> Result<Exit, Failure> {
    let name = desk.needed(&args.which)?;
    let signatures = signatures(args)?;
    let open = |path: &PathBuf| {
        let opened = Target::find(path).and_then(|target| target.open(Mode::Append));
        opened.map_err(|error| Failure::new(format!("--events {}: {error}", path.display())))
    };
    // Before the state is opened: its descriptors must not be taken for `fd:N`.
    let events = args.events.as_ref().map(open).transpose()?;
    let mut book = Book { desk, name: &name, events, shared: None, last: None, in_vain: false };
    let mut refused = 0;
    if args.success || args.failure || args.exit_code.is_some() {
        let named = Named::given(desk, &args.error)?;
        book.take(&of_flags(args, signatures, &named), &named.told)?;
    } else if stdin::is_given() {
        refused = book.take_stdin()?;
    }
    if let (Some(kept), Some(shared)) = (&book.last, &book.shared) {
        out::print(&sentence(&name, kept, desk, shared))?;
    }
    if book.in_vain {
        let reset = words::reset_command(&name, &desk.flags);
        say(&format!("{name} stays open: a success closes it only as a probe, after the cooldown; `{reset}` closes it now"));
    }
    if book.last.is_none() && refused == 0 {
        return Err(Failure::new("how did the run go: --success, --failure or --exit-code N, or a verdict on stdin (siftd breaker record --help)"));
    }
    Ok(if refused > 0 { Exit::Trouble } else { Exit::Done })
}

/// Runs the configured command for a breaker that has opened.
pub fn tell_opened(argv: &[String], record: Option<&[u8]>) {
    if let Some(record) = record.filter(|_| !argv.is_empty())
        && let Err(error) = hook::run(argv, record, Command::spawn)
    {
        say(&format!("on_open {}: {error}", argv.first().map_or("", String::as_str)));
    }
}

fn signatures(args: &RecordArgs) -> Result<Vec<Hex>, Failure> {
    let parse = |text: &String| Hex::parse(text).ok_or_else(|| Failure::new(format!("--signature {text}: write 32 hex digits, as records have them")));
    args.signature.iter().map(parse).collect()
}

fn of_flags(args: &RecordArgs, signatures: Vec<Hex>, named: &Named) -> Run {
    if args.success || args.exit_code == Some(0) && !args.fatal {
        return Run::Success;
    }
    let judged = || verdict::judge(Facts { exit_code: Some(args.exit_code.unwrap_or(1).into()), ..Facts::default() }, &named.said).retry.class;
    let class = match args.transient {
        true => RetryClass::Transient,
        // A signature says which error it was, whatever else was printed.
        false if named.faults.is_empty() || !signatures.is_empty() => RetryClass::Unknown,
        false => judged(),
    };
    let given = signatures.into_iter().map(|signature| Fault { signature, weight: Weight::Bug, io: Some(Io::Stderr), is_status: false });
    let faults: Vec<Fault> = given.chain(named.faults.iter().copied()).collect();
    let words = args.exit_code.map_or("a failure".to_owned(), |code| format!("exit code {code}"));
    let mut failure = counts::failure(&faults, class, &words);
    failure.fatal = args.fatal.then(|| failure.signatures.first().copied());
    Run::Failure(failure)
}

/// How a run went.
enum Run {
    Success,
    Failure(crate::core::breaker::Failure),
    /// A refusal, or a run without a valid result: it is not counted.
    Nothing,
}

impl Run {
    fn step(&self, breaker: &mut Breaker, limits: &Limits, at: Timestamp) -> Vec<Transition> {
        match self {
            Self::Success => breaker.success(limits, at),
            Self::Failure(failure) => breaker.failure(failure, limits, at),
            Self::Nothing => breaker.pass(limits, at),
        }
    }

    /// Reads a verdict, or an answer of `classify`.
    fn of_json(desk: &Desk, value: &Value) -> Result<Self, String> {
        let class = value.pointer("/retry/class").and_then(Value::as_str).and_then(RetryClass::parse);
        let is_success = value.get("success").and_then(Value::as_bool);
        let (Some(class), true) = (class, is_success.is_some() || value.get("fatal").is_some()) else {
            return Err("neither a verdict (`success`, `retry`, `errors`) nor an answer of `siftd classify` (`fatal`, `retry`)".to_owned());
        };
        if is_success == Some(true) {
            return Ok(Self::Success);
        }
        let faults: Vec<Fault> = value.get("errors").and_then(Value::as_array).into_iter().flatten().filter_map(|record| desk.fault(record)).collect();
        if faults.iter().any(|fault| fault.weight == Weight::None) && faults.iter().all(|fault| fault.weight == Weight::None) {
            return Ok(Self::Nothing);
        }
        let word = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
        let reason = value.pointer("/retry/reason").and_then(Value::as_str).unwrap_or_default();
        let words = match word("error_message") {
            "" => format!("{} {} {reason}", word("category"), word("cause")),
            message => message.lines().last().unwrap_or_default().to_owned(),
        };
        let mut failure = counts::failure(&faults, class, &words);
        if value.get("fatal") == Some(&Value::Bool(true)) || class == RetryClass::Fatal {
            failure.fatal = Some(failure.signatures.first().copied());
        }
        Ok(Self::Failure(failure))
    }
}
