//! The state that `siftd breaker` works on, and which breaker in it.

use std::cell::OnceCell;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;

use super::super::args::{SetupArgs, StatePlace, Which};
use super::super::{Failure, identity, say, setup};
use super::{PATIENCE, check_name, flags, say_aside};
use crate::config::Config;
use crate::core::breaker::{Breaker, Limits, Transition};
use crate::core::engine::Engine;
use crate::core::event::{Hex, Io, Severity, Timestamp};
use crate::delivery::{Label, Notice, Weight};
use crate::rules::Kind;
use crate::sinks::human::breaker as words;
use crate::sinks::notice;
use crate::sources::clock::now;
use crate::state::breakers::name_of;
use crate::state::shared::{Changed, Shared, Trigger};
use crate::state::store::Store;
use crate::verdict::counts::Fault;

/// The state's folder and the configuration that applies to it.
pub(super) struct Desk {
    pub config: Config,
    pub folder: PathBuf,
    /// The flags that select this state.
    pub flags: String,
    /// The flags that select the configuration.
    setup: SetupArgs,
    /// The folder was given by a flag of its own.
    is_named: bool,
    /// Loaded when first needed.
    engine: OnceCell<Arc<Engine>>,
    /// What tells a status line from an error; `None`: the rules cannot be loaded, which was said.
    teller: OnceCell<Option<Arc<Engine>>>,
}

impl Desk {
    pub fn new(place: &StatePlace) -> Result<Self, Failure> {
        let setup = SetupArgs { config: place.config.clone(), ..SetupArgs::default() };
        let mut config = setup::config(&setup)?;
        if let Some(folder) = &place.state_dir {
            config.state_dir.clone_from(folder);
        }
        let flags = flags(place.config.as_deref(), place.state_dir.as_deref());
        Ok(Self {
            setup,
            folder: config.state_dir.clone(),
            config,
            flags,
            is_named: place.state_dir.is_some(),
            engine: OnceCell::new(),
            teller: OnceCell::new(),
        })
    }

    /// Returns the rules and limits by which `siftd judge` reads with this configuration.
    pub fn engine(&self) -> Result<Arc<Engine>, Failure> {
        if let Some(engine) = self.engine.get() {
            return Ok(engine.clone());
        }
        let engine = setup::load(&self.setup, setup::Reading::default())?.engine;
        Ok(self.engine.get_or_init(|| engine).clone())
    }

    /// Returns how an error in a verdict counts; `None` if it has no signature.
    pub fn fault(&self, record: &Value) -> Option<Fault> {
        let word = |pointer: &str| record.pointer(pointer).and_then(Value::as_str);
        let signature = Hex::parse(word("/signature")?)?;
        let is_small = word("/severity") == Some(Severity::Low.as_str()) || record.get("flavour").is_some();
        let weight = match word("/retry/class") {
            _ if is_small => Weight::None,
            Some("transient") => Weight::Transient,
            _ => Weight::Bug,
        };
        let io = Io::ALL.iter().copied().find(|io| Some(io.as_str()) == word("/source/io"));
        Some(Fault { signature, weight, io, is_status: word("/rule").is_some_and(|rule| self.is_status(rule)) })
    }

    /// Whether a rule finds status lines. Rules that are not known here do not.
    fn is_status(&self, rule: &str) -> bool {
        let complain = |why: &Failure| say(&format!("status lines cannot be told from errors, and count as such: {why}"));
        let Some(engine) = self.teller.get_or_init(|| self.engine().inspect_err(complain).ok()) else { return false };
        let entries = &engine.rules.entries;
        entries.position(rule).is_some_and(|at| matches!(entries[usize::from(at)].kind, Kind::Note(_)))
    }

    pub fn asked(&self) -> Result<Option<Shared>, Failure> {
        Shared::ask_of(&self.folder, setup::ledger_rules(&self.config), PATIENCE).map_err(|why| self.trouble(&why))
    }

    pub fn opened(&self) -> Result<Shared, Failure> {
        Shared::open(&self.folder, setup::ledger_rules(&self.config), PATIENCE).map_err(|why| self.trouble(&why)).inspect(say_aside)
    }

    fn trouble(&self, why: &str) -> Failure {
        setup::state_failure(&self.folder, why)
    }

    pub fn limits(&self) -> Limits {
        setup::ledger_rules(&self.config).breaker
    }

    pub fn existing(&self) -> Result<Option<Shared>, Failure> {
        let existing = Shared::existing(&self.folder, setup::ledger_rules(&self.config), PATIENCE).map_err(|why| self.trouble(&why));
        existing.inspect(|shared| shared.iter().for_each(say_aside))
    }

    pub fn step(&self, shared: &mut Shared, name: &str, step: &dyn Fn(&mut Breaker, Timestamp) -> Vec<Transition>) -> Result<Changed, Failure> {
        let (host, at) = (identity::host(), now());
        let write = |out: &mut Vec<u8>, label: &Label, said: &Notice, at| notice::write(out, &host, label, said, at);
        let trigger = Hex::new(identity::nonce());
        shared.step(name, Trigger { id: &trigger, write: &write, now: at }, &|breaker| step(breaker, at)).map_err(Failure)
    }

    pub fn sample(&self, shared: &Shared, breaker: &Breaker) -> Option<String> {
        let signature = words::telling(breaker)?;
        shared.begin_with(&signature).ok()?.into_iter().next().map(|entry| entry.sample)
    }

    /// Returns the name that the flags select.
    pub fn named(&self, which: &Which) -> Option<String> {
        let of = |kind: &str, value: &Option<String>| value.as_deref().map(|value| name_of(kind, value));
        let stream = which.stream.as_deref().map(|path| self.stream(path));
        which.name.clone().or_else(|| of("task", &which.task)).or_else(|| of("session", &which.session)).or_else(|| of("stream", &stream))
    }

    pub fn needed(&self, which: &Which) -> Result<String, Failure> {
        let name = self.named(which).ok_or_else(|| Failure::new("which breaker: give its NAME, or --task, --session or --stream (siftd breaker --help)"))?;
        check_name(&name)?;
        Ok(name)
    }

    /// Returns a file's name as its records write it, which is what its breaker is called, however the file is named here.
    fn stream(&self, path: &str) -> String {
        // Without a readable state there is no breaker either; the command that asks for one reports it.
        let rows = Store::ask(&self.folder).ok().flatten().and_then(|store| store.streams().ok()).unwrap_or_default();
        let absolute = std::path::absolute(path).unwrap_or_default();
        let known = rows.iter().find(|row| row.label.path == path).or_else(|| rows.iter().find(|row| row.is_file() && row.mark.path == absolute));
        known.map_or_else(|| path.to_owned(), |row| row.label.path.clone())
    }

    /// Warns that the folder holds no state: it may be the wrong one,
    /// and a guard that uses it would let every run pass.
    pub fn miss(&self) {
        let mend = if self.is_named { "it was with another --state-dir" } else { "name its folder with --state-dir" };
        say(&format!("{}: no state is there yet; if something was recorded, {mend}", self.folder.display()));
    }
}
