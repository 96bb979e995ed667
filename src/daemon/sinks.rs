//! The sinks that run: a thread each, started at the start or by a reload, and taken out by one. The committer
//! says where a sink begins; one that comes back under its name goes on where it was.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;
use std::time::Instant;

use super::deliver::{Begun, Delivery, Leaving, Shared};
use super::plan::SinkPlan;
use super::wake::Wake;
use crate::delivery::{Node, SinkMark};
use crate::sinks::file::Output;
use crate::sinks::http::Http;
use crate::sinks::stdout::Stdout;
use crate::sinks::stream::Stream;
use crate::sinks::{Sink, backoff};
use crate::state::queue::Word;
use crate::telemetry::metrics;

/// All sinks.
pub(super) struct Sinks {
    shared: Shared,
    sender: Sender<Wake>,
    running: Vec<Running>,
    /// They begin when the committer has said where.
    planned: Vec<Planned>,
    begun: Arc<Begun>,
    first: usize,
}

/// A sink that is to begin.
struct Planned {
    plan: SinkPlan,
    /// Its predecessor wrote another file.
    is_elsewhere: bool,
}

struct Running {
    name: String,
    place: Option<PathBuf>,
    thread: JoinHandle<()>,
    leaving: Arc<Leaving>,
}

impl Sinks {
    pub fn new(shared: Shared, sender: Sender<Wake>) -> Self {
        Self { shared, sender, running: Vec::new(), planned: Vec::new(), begun: Arc::default(), first: 0 }
    }

    /// Starts those without which there is no start.
    pub fn start_first(&mut self, plans: Vec<(SinkPlan, SinkMark)>) {
        self.first = plans.len();
        plans.into_iter().for_each(|(plan, mark)| self.start(plan, mark, true));
    }

    /// Whether those have their files.
    pub fn is_ready(&self) -> bool {
        self.begun.count.load(Ordering::Acquire) >= self.first
    }

    /// Why one of them cannot be written, which ends the start.
    pub fn failed(&self) -> Option<&str> {
        self.begun.failed.get().map(String::as_str)
    }

    fn start(&mut self, plan: SinkPlan, mark: SinkMark, is_first: bool) {
        let (name, place) = (plan.name().to_owned(), plan.file().map(PathBuf::from));
        metrics().sinks.of(&name).kind.set(plan.kind());
        let leaving = Arc::new(Leaving::default());
        let seq = mark.seq;
        let delivery = Delivery { name: name.clone(), seq, sink: sink(plan, mark), shared: self.shared.clone(), leaving: leaving.clone(), is_first };
        let (sender, begun) = (self.sender.clone(), self.begun.clone());
        self.shared.stop.running.fetch_add(1, Ordering::AcqRel);
        let thread = std::thread::spawn(move || {
            let (name, shared) = (delivery.name.clone(), delivery.shared.clone());
            let left = delivery.run(&sender, &begun);
            shared.stop.running.fetch_sub(1, Ordering::AcqRel);
            shared.queue.nudge();
            drop(sender.send(Wake::SinkEnded(name, left)));
        });
        self.running.push(Running { name, place, thread, leaving });
    }

    /// From now on there are these; of those that run, `stays` says which are to go on as they are. The others get
    /// what is committed now, until `until`.
    pub fn change(&mut self, plans: Vec<SinkPlan>, stays: impl Fn(&str) -> bool, until: Instant) {
        let last = self.shared.outbox.last();
        for running in &self.running {
            if !(stays(&running.name) && plans.iter().any(|plan| plan.name() == running.name)) {
                running.leaving.set(last, until);
            }
        }
        let runs = |plan: &SinkPlan| self.running.iter().find(|running| running.name == plan.name());
        let others = plans.into_iter().filter(|plan| runs(plan).is_none_or(|running| running.leaving.is_set()));
        self.planned = others.map(|plan| Planned { plan, is_elsewhere: false }).collect();
        for Planned { plan, .. } in &self.planned {
            // One that comes after another of its name waits for its end.
            if runs(plan).is_none() {
                self.shared.queue.tell(Word::SinkBegins(plan.name().to_owned()));
            }
        }
        self.shared.outbox.nudge();
    }

    /// The committer knows where a sink begins.
    pub fn begins(&mut self, mut mark: SinkMark) {
        // It may have been taken out again meanwhile, or be there already.
        let Some(at) = self.planned.iter().position(|planned| planned.plan.name() == mark.name) else { return };
        if self.running.iter().any(|running| running.name == mark.name) {
            return;
        }
        let Planned { plan, is_elsewhere } = self.planned.swap_remove(at);
        if is_elsewhere {
            (mark.node, mark.len) = (Node::default(), 0);
        }
        self.start(plan, mark, false);
    }

    /// A sink's thread has ended, and `left` records were not written: its successor under the same name may
    /// begin, or it is gone for good.
    pub fn ended(&mut self, name: &str, left: u64) {
        let Some(at) = self.running.iter().position(|running| running.name == name) else { return };
        let old = self.running.swap_remove(at);
        if let Some(planned) = self.planned.iter_mut().find(|planned| planned.plan.name() == name) {
            planned.is_elsewhere = planned.plan.file() != old.place.as_deref();
            return self.shared.queue.tell(Word::SinkBegins(name.to_owned()));
        }
        if left > 0 {
            tracing::warn!("sink {name}: it was taken out, and could not write {left} records within shutdown_grace");
        }
        self.shared.queue.tell(Word::SinkEnds(name.to_owned()));
        metrics().sinks.remove(name);
    }

    /// Whether any other sink is there to stay, or to come.
    pub fn has_others(&self, name: &str) -> bool {
        !self.planned.is_empty() || self.running.iter().any(|running| running.name != name && !running.leaving.is_set())
    }

    /// The threads, to wait for.
    pub fn into_threads(self) -> Vec<JoinHandle<()>> {
        self.running.into_iter().map(|running| running.thread).collect()
    }
}

/// A sink that goes on where it was.
fn sink(plan: SinkPlan, mark: SinkMark) -> Box<dyn Sink + Send> {
    match plan {
        SinkPlan::Stdout { file, choose, .. } => Box::new(Stdout::new(file, choose, mark)),
        SinkPlan::File { options, .. } => Box::new(Output::new(options, mark)),
        SinkPlan::Stream { options, .. } => Box::new(Stream::new(options, mark, backoff::random())),
        SinkPlan::Http { options, client, .. } => Box::new(Http::new(options, Box::new(client), mark, backoff::random())),
    }
}
