//! `siftd exec`: turns flags into an order for `exec`. The configuration is read while
//! the command is already running, since the command must not wait for it. A mistake in
//! it causes a warning and the defaults are used, unless `--strict-config` is given.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

use rustix::fs::{Access, access};

use super::args::{DigestFormat, ExecArgs, SetupArgs};
use super::{Failure, breaker, identity, say, setup};
use crate::config::{Config, User};
use crate::core::engine::Engine;
use crate::core::event::Io;
use crate::core::redact::clean;
use crate::core::retry;
use crate::core::text::Hex;
use crate::digest::{Form, Quoted};
use crate::exec::guard::{BreakerName, Guard};
use crate::exec::journal::{Journal, Ready};
use crate::exec::on_blocking::OnBlocking;
use crate::exec::policy::Retries;
use crate::exec::signals::Signals;
use crate::exec::target::{Mode, Named, Target};
use crate::exec::terminal::{Around, Wiring};
use crate::exec::{self, Order, Pauses};
use crate::memory::Memory;
use crate::sinks::record::Envelope;
use crate::sources::argv;
use crate::sources::expand::{Trouble, is_glob};
use crate::sources::input::Identity;

/// Maximum number of bytes read from the digest of the last run.
const MAX_DIGEST_BYTES: u64 = 64 << 10;

pub fn exec(args: ExecArgs) -> Result<ExitCode, Failure> {
    check_reasons(&args.retry_on)?;
    // Before siftd opens anything: its own descriptors take numbers, too.
    let targets = Targets::find(&args)?;
    let around = Around::look();
    // Before any thread starts: later threads inherit the blocked signals.
    let signals = Signals::take(around.wiring != Wiring::Shared)?;
    let ready = Arc::new(OnceLock::new());
    if args.strict_config {
        drop(ready.set(setup::load(&args.setup, setup::Reading::default())?.into()));
    }
    let hook = args.on_blocking.as_deref().map(hook_words).transpose()?;
    // Before any of these files is opened: if nothing is run, the results of an earlier run stay.
    let memory = memory(&args)?;
    let guard = memory.as_ref().and_then(|(memory, config)| guard(&args, memory, config));
    if let Some(guard) = &guard
        && !guard.ask(Hex::new(identity::nonce())).map_err(Failure)?
    {
        return Ok(super::Exit::Open.into());
    }
    let quoted = quoted(&args);
    let files = targets.open(&args)?;
    let order = Order { guard, verdict: files.verdict, ..order(&args, around, files.digest) };
    let loading = load(&args, ready.clone());
    let envelope = Envelope { host: identity::host(), name: "exec".into(), kind: "command", argv: argv::shown(&args.command), ..Envelope::default() };
    let journal = Journal::new(ready, envelope, uid(0, Io::Stdout), files.events, hook.map(OnBlocking::new));
    let journal = journal.with_memory(memory.filter(|(_, config)| config.history.enabled).map(|(memory, _)| memory)).with_quoted(quoted);
    let code = exec::run(order, journal, &signals)?;
    if let Some(Err(panic)) = loading.map(JoinHandle::join) {
        std::panic::resume_unwind(panic);
    }
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX)))
}

fn order(args: &ExecArgs, around: Around, digest: Option<Named>) -> Order {
    let form = Form { format: args.digest_format.unwrap_or(DigestFormat::Text).into(), max_chars: args.max_chars };
    Order {
        argv: args.command.clone(),
        around,
        // Zero: no limit.
        timeout: args.timeout.filter(|limit| !limit.is_zero()),
        kill_after: args.kill_after,
        retries: match args.retries {
            None => Retries::None,
            Some(None) => Retries::Configured,
            Some(Some(count)) => Retries::Count(count),
        },
        pauses: Pauses { base: args.base_delay, max: args.max_delay, reset: args.max_reset_wait },
        also: args.retry_on.clone(),
        task: args.task.as_deref().map(|task| clean(task).into_owned()),
        verdict: None,
        digest: digest.map(|file| (file, form)),
        keep_output: args.keep_output.clone(),
        strict: args.strict,
        fail_on: args.fail_on,
        is_blind: is_blind(args),
        uid,
        guard: None,
    }
}

/// Finds the digests that the command is given: in its arguments, and in
/// the digest file, which it may read and which is about to be replaced.
fn quoted(args: &ExecArgs) -> Quoted {
    let former = args.digest.as_deref().filter(|path| path.is_file()).and_then(|path| File::open(path).ok());
    let mut text = Vec::new();
    // A digest that cannot be read is not quoted.
    former.map(|file| file.take(MAX_DIGEST_BYTES).read_to_end(&mut text));
    let words: Vec<_> = args.command.iter().map(|word| word.to_string_lossy()).chain([String::from_utf8_lossy(&text)]).collect();
    Quoted::of(words.iter().map(AsRef::as_ref))
}

/// Opens the state if flags ask for it. A mistake in the configuration is reported when its rules are read.
fn memory(args: &ExecArgs) -> Result<Option<(Memory, Config)>, Failure> {
    if args.breaker.is_none() && args.state_dir.is_none() {
        return Ok(None);
    }
    args.breaker.as_deref().map_or(Ok(()), breaker::check_name)?;
    let config = setup::config(&args.setup).unwrap_or_else(|_| Config { state_dir: User::current().state_dir(), ..Config::default() });
    let folder = args.state_dir.as_ref().unwrap_or(&config.state_dir);
    let stream = args.breaker.as_deref().unwrap_or("exec");
    let memory = Memory::open(folder, setup::ledger_rules(&config), stream).map_err(|why| setup::state_failure(folder, &why))?;
    Ok(Some((memory, config)))
}

fn guard(args: &ExecArgs, memory: &Memory, config: &Config) -> Option<Guard> {
    let name = args.breaker.clone()?;
    let flags = breaker::flags(args.setup.config.as_deref(), args.state_dir.as_deref());
    Some(Guard::new(memory.clone(), BreakerName { name, flags }, identity::host(), config.breaker.on_open.clone()))
}

/// Whether no flag asks for errors to be looked for.
fn is_blind(args: &ExecArgs) -> bool {
    let files: [&Option<PathBuf>; 4] = [&args.verdict, &args.events, &args.digest, &args.keep_output];
    files.iter().all(|file| file.is_none())
        && !args.strict
        && args.fail_on.is_none()
        && args.on_blocking.is_none()
        && args.retries.is_none()
        && args.breaker.is_none()
        && args.state_dir.is_none()
}

/// Reads the configuration while the command runs. The returned thread reports its mistakes and can be joined.
fn load(args: &ExecArgs, ready: Arc<OnceLock<Ready>>) -> Option<JoinHandle<()>> {
    let setup = args.setup.clone();
    if ready.get().is_some() {
        return None;
    }
    if is_blind(args) {
        let is_named = setup.config.is_some() || !setup.rules.is_empty();
        return (is_named && !miss(&setup)).then(|| std::thread::spawn(move || check(&setup)));
    }
    Some(std::thread::spawn(move || {
        let loaded = setup::load(&setup, setup::Reading::default()).unwrap_or_else(|failure| {
            go_on_without(&failure);
            setup::builtin_setup()
        });
        drop(ready.set(loaded.into()));
    }))
}

/// Reports files that were named but do not exist. Returns whether there is one.
fn miss(args: &SetupArgs) -> bool {
    let named = args.config.iter().chain(args.rules.iter().filter(|path| !is_glob(path)));
    let missing = named.filter_map(|path| Some(Trouble::new(path, path.metadata().err()?)));
    missing.inspect(|Trouble { path, why }| say(&format!("{path}: {why}; --strict-config would have stopped here"))).count() > 0
}

/// Reports mistakes in named files for a run without error detection, which uses nothing else of them.
fn check(args: &SetupArgs) {
    let read = setup::config(args).map_err(Failure::from).and_then(|config| setup::check_rules(&config, &args.rules));
    read.unwrap_or_else(|failure| go_on_without(&failure));
}

fn go_on_without(failure: &Failure) {
    say(failure);
    say(&"exec goes on with the built-in configuration; --strict-config would have stopped here");
}

impl From<setup::Setup> for Ready {
    fn from(setup: setup::Setup) -> Self {
        let (config, engine): (Config, Arc<Engine>) = (setup.config, setup.engine);
        Self { engine, max_event_bytes: config.limits.max_event_bytes as usize, retry: config.retry }
    }
}

/// The destinations of the results.
struct Targets {
    events: Option<Target>,
    digest: Option<Target>,
    verdict: Option<Target>,
}

/// The same destinations, opened.
struct Files {
    events: Option<Named>,
    digest: Option<Named>,
    verdict: Option<Named>,
}

impl Targets {
    fn find(args: &ExecArgs) -> Result<Self, Failure> {
        let named = [("--events", args.events.as_deref()), ("--digest", args.digest.as_deref()), ("--verdict", args.verdict.as_deref())];
        apart(&named)?;
        if let Some(folder) = &args.keep_output {
            check_folder(folder).map_err(|error| unusable("--keep-output", folder, &error))?;
        }
        let [events, digest, verdict] = Target::find_all(named).map_err(|(flag, name, error)| unusable(flag, &name, &error))?;
        Ok(Self { events, digest, verdict })
    }

    fn open(self, args: &ExecArgs) -> Result<Files, Failure> {
        let open = |flag, target: Option<Target>, name: &Option<PathBuf>, mode| {
            let name = name.clone().unwrap_or_default();
            let opened = target.map(|target| target.open(mode)).transpose().map_err(|error| unusable(flag, &name, &error))?;
            Ok::<_, Failure>(opened.map(|file| Named { file, name }))
        };
        Ok(Files {
            events: open("--events", self.events, &args.events, Mode::Append)?,
            digest: open("--digest", self.digest, &args.digest, Mode::Replace)?,
            verdict: open("--verdict", self.verdict, &args.verdict, Mode::Replace)?,
        })
    }
}

/// Checks that each result has a file of its own: overwriting each other, they would be useless. Anything
/// but a regular file (a terminal, a pipe, `/dev/null`, a descriptor) has no content to overwrite.
fn apart(named: &[(&'static str, Option<&Path>)]) -> Result<(), Failure> {
    let mut places: Vec<(&str, PathBuf, Option<Identity>)> = Vec::new();
    for (flag, name) in named.iter().filter_map(|(flag, name)| Some((*flag, (*name)?))) {
        let is_named = name != Path::new("-") && !name.to_str().is_some_and(|name| name.starts_with("fd:"));
        if !is_named || name.metadata().is_ok_and(|meta| !meta.is_file()) {
            continue;
        }
        let (path, file) = (std::path::absolute(name)?, Identity::at(name).ok());
        if let Some((other, ..)) = places.iter().find(|(_, there, known)| *there == path || file.is_some() && *known == file) {
            return Err(Failure::new(format!("{flag} {}: {other} writes this file already: give each its own", name.display())));
        }
        places.push((flag, path, file));
    }
    Ok(())
}

/// Checks that a folder can be written, or made where it is to be: it is needed only once the command has failed.
fn check_folder(folder: &Path) -> std::io::Result<()> {
    let parts = folder.ancestors().map(|part| if part.as_os_str().is_empty() { Path::new(".") } else { part });
    let there = parts.into_iter().find(|part| part.symlink_metadata().is_ok()).unwrap_or(Path::new("."));
    if !there.metadata()?.is_dir() {
        return Err(std::io::ErrorKind::NotADirectory.into());
    }
    Ok(access(there, Access::WRITE_OK | Access::EXEC_OK)?)
}

fn unusable(flag: &str, name: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("{flag} {}: {error}", name.display()))
}

/// Splits a command line into words. Quotes and backslashes are read as a shell reads them, and nothing else is interpreted.
fn hook_words(line: &str) -> Result<Vec<String>, Failure> {
    let words = shlex::split(line).filter(|words| !words.is_empty());
    words.ok_or_else(|| Failure::new("--on-blocking: name a command, with its quotes closed, such as --on-blocking './notify --team \"night shift\"'"))
}

fn check_reasons(wanted: &[String]) -> Result<(), Failure> {
    if wanted.is_empty() {
        return Ok(());
    }
    let known: std::collections::BTreeSet<&str> = retry::reasons().collect();
    match wanted.iter().find(|reason| !known.contains(reason.as_str())) {
        Some(reason) => Err(Failure::new(format!("--retry-on {reason}: no such reason; there are {}", known.into_iter().collect::<Vec<_>>().join(", ")))),
        None => Ok(()),
    }
}

/// Identifies a new stream on each call, since a command's output never comes again.
fn uid(run: u32, io: Io) -> [u8; 16] {
    identity::hash(&[&identity::nonce(), &run.to_be_bytes(), io.as_str().as_bytes()])
}
