//! The running sinks, with a thread each. They are started with the daemon or by a reload, and removed by a reload.
//! The committer says where a sink begins; a sink that returns under the same name continues where it was.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::sync::{Arc, PoisonError};
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
use crate::state::queue::ControlMessage;
use crate::telemetry::metrics;

/// All sinks.
pub(super) struct Sinks {
    shared: Shared,
    sender: Sender<Wake>,
    running: Vec<Running>,
    /// Sinks that begin once the committer has said where.
    planned: Vec<Planned>,
    begun: Arc<Begun>,
    first: usize,
}

/// A sink that is to begin.
struct Planned {
    plan: SinkPlan,
    /// Its predecessor wrote another file.
    is_elsewhere: bool,
    /// If it was removed before it began: the number of the last record that it still gets, and the deadline.
    leaves: Option<(u64, Instant)>,
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

    /// Starts the sinks that must begin for the daemon to start.
    pub fn start_first(&mut self, plans: Vec<(SinkPlan, SinkMark)>) {
        self.first = plans.len();
        plans.into_iter().for_each(|(plan, mark)| self.start(plan, mark, None));
    }

    /// Whether all of those have made their first step.
    pub fn is_ready(&self) -> bool {
        self.begun.count.load(Ordering::Acquire) >= self.first
    }

    /// Why some of them cannot be written, which makes the start fail.
    pub fn failed(&self) -> Vec<String> {
        let mut failed = self.begun.failed.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // They began side by side.
        failed.sort();
        failed
    }

    /// Starts a sink. `planned` is `None` for those that must begin for the daemon to start; for later ones it says whether the
    /// sink is already to be removed, and after which record.
    fn start(&mut self, plan: SinkPlan, mark: SinkMark, planned: Option<Leaving>) {
        let (name, place) = (plan.name().to_owned(), plan.file().map(PathBuf::from));
        metrics().sinks.of(&name).kind.set(plan.kind());
        let (is_first, leaving) = (planned.is_none(), Arc::new(planned.unwrap_or_default()));
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

    /// Replaces the set of sinks. `stays` says which running sinks continue unchanged. The others still get everything
    /// committed so far, with `until` as the deadline; new sinks begin after that.
    pub fn change(&mut self, plans: Vec<SinkPlan>, stays: impl Fn(&str) -> bool, until: Instant) {
        let is_planned = |name: &str| plans.iter().any(|plan| plan.name() == name);
        let runs = |name: &str| self.running.iter().find(|running| running.name == name);
        // A sink that succeeds another of the same name waits for that one to end.
        let new: Vec<String> = plans.iter().map(|plan| plan.name().to_owned()).filter(|name| runs(name).is_none()).collect();
        let old = self.running.iter().filter(|running| !(stays(&running.name) && is_planned(&running.name)));
        let last = self.shared.outbox.hand_over(&new, |last| old.for_each(|running| running.leaving.set(last, until)));

        let mut taken_out: Vec<Planned> = self.planned.drain(..).filter(|planned| !is_planned(planned.plan.name())).collect();
        taken_out.iter_mut().for_each(|planned| planned.leaves = planned.leaves.or(Some((last, until))));
        let others = plans.into_iter().filter(|plan| runs(plan.name()).is_none_or(|running| running.leaving.is_set()));
        self.planned = others.map(|plan| Planned { plan, is_elsewhere: false, leaves: None }).chain(taken_out).collect();
        new.into_iter().for_each(|name| self.shared.queue.tell(ControlMessage::SinkBegins { name, after: last }));
        self.shared.outbox.nudge();
    }

    /// Whether a sink is to begin that has not.
    pub fn is_planning(&self) -> bool {
        !self.planned.is_empty()
    }

    /// Starts a planned sink, now that the committer has said where it begins.
    pub fn begins(&mut self, mut mark: SinkMark) {
        // It may have been started already.
        let Some(at) = self.planned.iter().position(|planned| planned.plan.name() == mark.name) else { return };
        if self.running.iter().any(|running| running.name == mark.name) {
            return;
        }
        let Planned { plan, is_elsewhere, leaves } = self.planned.swap_remove(at);
        if is_elsewhere {
            (mark.node, mark.len) = (Node::default(), 0);
        }
        let leaving = Leaving::default();
        leaves.into_iter().for_each(|(last, until)| leaving.set(last, until));
        self.start(plan, mark, Some(leaving));
    }

    /// Handles the end of a sink's thread, which left `left` records unwritten: a successor of the same name may now
    /// begin; otherwise the sink is gone for good.
    pub fn ended(&mut self, name: &str, left: u64) {
        let Some(at) = self.running.iter().position(|running| running.name == name) else { return };
        let old = self.running.swap_remove(at);
        if let Some(planned) = self.planned.iter_mut().find(|planned| planned.plan.name() == name) {
            planned.is_elsewhere = planned.plan.file() != old.place.as_deref();
            return self.shared.queue.tell(ControlMessage::SinkBegins { name: name.to_owned(), after: self.shared.outbox.last() });
        }
        if left > 0 {
            tracing::warn!("sink {name}: it was taken out, and could not write {left} records within shutdown_grace");
        }
        self.shared.queue.tell(ControlMessage::SinkEnds(name.to_owned()));
        metrics().sinks.remove(name);
    }

    /// Returns `true` if another sink runs and is to stay, or if any is about to begin.
    pub fn has_others(&self, name: &str) -> bool {
        !self.planned.is_empty() || self.running.iter().any(|running| running.name != name && !running.leaving.is_set())
    }

    /// The threads, to wait for.
    pub fn into_threads(self) -> Vec<JoinHandle<()>> {
        self.running.into_iter().map(|running| running.thread).collect()
    }
}

/// Makes a sink that continues at its mark.
fn sink(plan: SinkPlan, mark: SinkMark) -> Box<dyn Sink + Send> {
    match plan {
        SinkPlan::Stdout { file, choose, .. } => Box::new(Stdout::new(file, choose, mark)),
        SinkPlan::File { options, .. } => Box::new(Output::new(options, mark)),
        SinkPlan::Stream { options, .. } => Box::new(Stream::new(options, mark, backoff::random())),
        SinkPlan::Http { options, client, .. } => Box::new(Http::new(options, Box::new(client), mark, backoff::random())),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};
    use std::time::Duration;

    use super::*;
    use crate::config::Schema;
    use crate::core::event::{Category, Severity, Timestamp};
    use crate::delivery::{Batch, Label, Record};
    use crate::sinks::choose::Choose;
    use crate::state::committer::Committer;
    use crate::state::queue::Queue;
    use crate::state::withhold::Rules;

    const GRACE: Duration = Duration::from_secs(60);

    /// Sinks and all that they need, except the threads that read and commit.
    struct World {
        folder: tempfile::TempDir,
        committer: Committer,
        queue: Arc<Queue>,
        wakes: Receiver<Wake>,
        sinks: Sinks,
    }

    impl World {
        fn new() -> Self {
            let (sender, wakes) = channel();
            let committer = Committer::new(None, Rules::default(), Arc::new(|_: &mut Vec<u8>, _: &Label, _: &_, _| {}), &[]).unwrap();
            let queue = Arc::new(Queue::new(1 << 20));
            let (own, stop) = Default::default();
            let shared = Shared { outbox: committer.outbox(), queue: queue.clone(), folder: None, own, stop };
            Self { folder: tempfile::tempdir().unwrap(), committer, queue, wakes, sinks: Sinks::new(shared, sender) }
        }

        fn change(&mut self, name: &str) {
            let file = std::fs::File::create(self.folder.path().join(name)).unwrap();
            let choose = Choose { name: name.into(), min_severity: Severity::Low, categories: Vec::new(), sources: Vec::new(), schema: Schema::Native };
            self.sinks.change(vec![SinkPlan::Stdout { name: name.to_owned(), file, choose }], |_| true, Instant::now() + GRACE);
        }

        /// Commits one record.
        fn record(&mut self, text: &str) {
            let (severity, category) = (Severity::High, Category::ALL[0]);
            let (signature, at, seen_at, weight, session) = Default::default();
            let (len, body) = (text.len() as u32 + 1, format!("{text}\n").into_bytes());
            let id = text.to_owned();
            let record = Record { len, generation: 0, offset: 0, inner: 0, id, signature, severity, category, at, seen_at, weight, session };
            let label = Arc::new(Label::default());
            let batch = Batch { uid: [body[0]; 16], label, records: vec![record], body, notices: Vec::new(), mark: None, at: Timestamp(0) };
            self.committer.commit(&[batch], &[], Timestamp(0)).unwrap();
        }

        /// Commits what sinks report, and lets them begin and end.
        fn go_on(&mut self) {
            let messages = self.queue.take(true, Duration::from_millis(10), None, 1 << 20).messages;
            self.committer.commit(&[], &messages, Timestamp(0)).unwrap();
            let begin = messages
                .iter()
                .filter_map(|message| if let ControlMessage::SinkBegins { name, .. } = message { self.committer.sink(name).cloned() } else { None });
            begin.for_each(|mark| self.sinks.begins(mark));
            while let Ok(wake) = self.wakes.try_recv() {
                if let Wake::SinkEnded(name, left) = wake {
                    self.sinks.ended(&name, left);
                }
            }
        }

        fn written(&self, name: &str) -> String {
            std::fs::read_to_string(self.folder.path().join(name)).unwrap()
        }
    }

    #[test]
    fn one_that_is_taken_out_before_it_has_begun_gets_what_is_its_own() {
        let mut world = World::new();
        world.change("first");
        world.record("1");
        world.change("second");
        world.record("2");
        let until = Instant::now() + GRACE;
        while (world.written("first"), world.written("second")) != ("1\n".to_owned(), "2\n".to_owned()) || world.committer.sink("first").is_some() {
            assert!(Instant::now() < until, "{:?} {:?}", world.written("first"), world.written("second"));
            world.go_on();
        }
        assert!(world.committer.sink("second").is_some());
    }
}
