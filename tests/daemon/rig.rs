//! The daemon's parts on one thread, stepped by the test, with the test's own
//! clock. Files and state are real, and a `drop` ends the daemon at any moment.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, UNIX_EPOCH};

use serde_json::Value;
use siftd::config::Schema;
use siftd::core::engine::Engine;
use siftd::core::event::{Severity, Timestamp};
use siftd::daemon::Writer;
use siftd::delivery::{Batch, Chunk, Label, Node, SinkMark, Uid, derived_id};
use siftd::sinks::choose::Choose;
use siftd::sinks::file::{Options, Output};
use siftd::sinks::{OutboxReader, Sink, Step, notice, record};
use siftd::sources::discover::{Spec, Start};
use siftd::sources::follow::{Follower, Job, Known, OwnOutputs, lock};
use siftd::sources::reader::{Space, Turn};
use siftd::state::committer::Committer;
use siftd::state::ledger;
use siftd::state::outbox::{Next, Outbox};
use siftd::state::queue::ControlMessage;
use siftd::state::store::{Store, StoreError};
use siftd::state::withhold::Rules;

use super::support::{NOW, usual};

pub const SECOND: i64 = 1_000_000;
pub const ROTATE_WAIT: i64 = 5 * SECOND;

/// A folder with logs, state and output.
pub struct World {
    pub folder: tempfile::TempDir,
    pub engine: Arc<Engine>,
    pub now: Timestamp,
    /// Globs of the source, below the folder.
    pub include: Vec<&'static str>,
    /// Name of the source.
    pub source: &'static str,
    pub start: Start,
    /// Folders that links may lead into.
    pub links_into: Vec<PathBuf>,
    pub rules: Rules,
    /// The bounds of the history and the breakers, if a test uses them.
    pub ledger: Option<ledger::Rules>,
    pub options: Options,
    /// The output as last seen: none of its bytes may ever change.
    pub seen: Mutex<Vec<u8>>,
}

impl World {
    pub fn new(include: &[&'static str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("logs")).unwrap();
        let choose = Choose { name: "out".into(), min_severity: Severity::Low, categories: Vec::new(), sources: Vec::new(), schema: Schema::Native };
        let path = folder.path().join("out.ndjson");
        let options = Options { path, choose, rotate_size: 0, rotate_age_us: 0, keep: 1000, compress: false, fsync_us: SECOND };
        let (start, rules, seen, links_into) = (Start::Beginning, Rules::default(), Mutex::default(), Vec::new());
        let (source, include, ledger) = ("agent", include.to_vec(), None);
        Self { folder, engine: usual(), now: NOW, include, source, start, links_into, rules, ledger, options, seen }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("logs").join(name)
    }

    pub fn append(&self, name: &str, text: &str) {
        let mut file = OpenOptions::new().append(true).create(true).open(self.path(name)).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    /// Sets the modification time to this many seconds after the start of the world.
    pub fn date(&self, name: &str, seconds: i64) {
        let at = UNIX_EPOCH + Duration::from_micros((NOW.0 + seconds * SECOND) as u64);
        OpenOptions::new().append(true).open(self.path(name)).unwrap().set_modified(at).unwrap();
    }

    pub fn rename(&self, from: &str, to: &str) {
        fs::rename(self.path(from), self.path(to)).unwrap();
    }

    pub fn copytruncate(&self, name: &str, to: &str) {
        fs::copy(self.path(name), self.path(to)).unwrap();
        OpenOptions::new().write(true).open(self.path(name)).unwrap().set_len(0).unwrap();
    }

    /// Returns all records of all output files, oldest first. Fails if a record is incomplete, or a byte was removed.
    #[track_caller]
    pub fn records(&self) -> Vec<Value> {
        let mut names: Vec<(u32, PathBuf)> = siftd::sinks::generations::all(&self.options.path)
            .into_iter()
            .map(|path| (path.to_string_lossy().rsplit('.').next().and_then(|end| end.parse().ok()).unwrap_or(0), path))
            .collect();
        names.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
        let text: Vec<u8> = names.iter().flat_map(|(_, path)| fs::read(path).unwrap_or_default()).collect();
        let mut seen = self.seen.lock().unwrap();
        assert!(text.starts_with(&seen), "the output was changed behind its reader's back");
        seen.clone_from(&text);
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let lines = text[..whole].split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.map(|line| serde_json::from_slice(line).unwrap_or_else(|why| panic!("{why}: {}", String::from_utf8_lossy(line)))).collect()
    }

    /// Returns the `text` of each error, and `gap why` for each gap.
    #[track_caller]
    pub fn texts(&self) -> Vec<String> {
        self.records()
            .iter()
            .map(|record| record["text"].as_str().map_or_else(|| format!("{} {}", record["kind"].as_str().unwrap(), record["why"]), str::to_owned))
            .collect()
    }

    pub fn pass(&mut self, micros: i64) {
        self.now.0 += micros;
    }
}

/// Returns a line that is an error by its level alone.
pub fn error(text: &str) -> String {
    format!("2026-09-21T10:00:00Z ERROR {text}\n")
}

fn id_of(source: &str, node: Node) -> Uid {
    let id = derived_id("test", &[source.as_bytes(), &node.dev.to_be_bytes(), &node.ino.to_be_bytes(), &node.born.to_be_bytes()]);
    let mut uid = [0; 16];
    uid.copy_from_slice(&id.as_bytes()[..16]);
    uid
}

/// The daemon's parts.
pub struct Rig {
    pub follower: Follower,
    committer: Committer,
    writer: Writer,
    pub sink: Output,
    outbox: TestOutbox,
    space: Space,
    /// Batches that are read but not committed.
    pub pending: VecDeque<Batch>,
    /// The files that had something to read, once per turn.
    pub talked: Vec<(Uid, Arc<Label>)>,
}

struct TestOutbox {
    outbox: Arc<Outbox>,
    state: PathBuf,
    messages: Vec<ControlMessage>,
    own: OwnOutputs,
    cache: HashMap<u64, Arc<Chunk>>,
}

impl OutboxReader for TestOutbox {
    fn after(&mut self, seq: u64) -> io::Result<Option<Arc<Chunk>>> {
        match self.outbox.next(seq) {
            Next::Chunk(chunk) => Ok(Some(chunk)),
            Next::InFile => {
                let store = Store::look(&self.state).unwrap().unwrap();
                let chunk = store.chunk_after(seq).unwrap().map(Arc::new);
                if let Some(chunk) = &chunk {
                    self.cache.insert(seq, chunk.clone());
                }
                Ok(chunk)
            }
            Next::Nothing | Next::End => Ok(None),
        }
    }

    fn tell(&mut self, mark: &SinkMark) {
        self.messages.push(ControlMessage::Sink(mark.clone()));
    }

    fn is_committed(&self, mark: &SinkMark) -> bool {
        self.outbox.is_committed(mark)
    }

    fn owns(&mut self, node: Node) {
        self.own.add(node);
    }
}

impl Rig {
    pub fn start(world: &World) -> Self {
        Self::start_with(world, 256)
    }

    /// Starts with this many descriptors for files.
    pub fn start_with(world: &World, descriptors: usize) -> Self {
        let state = world.folder.path().join("state");
        fs::create_dir_all(&state).unwrap();
        let (store, said) = Store::open(&state).unwrap();
        assert_eq!(said, None);
        let (rows, sources) = (store.streams().unwrap(), store.sources().unwrap());
        let write_notice = Arc::new(|out: &mut Vec<u8>, label: &Label, said: &_, at| notice::write(out, "host", label, said, at));
        let mut committer = Committer::new(Some(store), world.rules.clone(), write_notice, &["out".to_owned()]).unwrap();
        if let Some(rules) = world.ledger {
            committer = committer.with_ledger(rules, record::seen);
        }
        let mut spec = Spec::new(world.source, world.start, Duration::from_micros(ROTATE_WAIT as u64)).unwrap();
        for name in &world.include {
            spec.include(&world.folder.path().join(name)).unwrap();
        }
        world.links_into.iter().for_each(|folder| spec.follow_links_into(folder));
        let known = rows.into_iter().map(|row| Known { uid: row.uid, label: row.label, mark: row.mark, seen: row.seen }).collect();
        let own = OwnOutputs::default();
        let mut follower = Follower::new(world.engine.clone(), id_of, vec![spec], known, |name| !sources.iter().any(|known| known == name))
            .without(own.clone())
            .with_descriptors(descriptors);
        follower.discover(world.now);
        let marks: Vec<Batch> = follower.marks().map(|(uid, label, mark)| batch_of(uid, label, mark, world.now)).collect();
        committer.begin(&[world.source.to_owned()], &marks, world.now).unwrap();
        let sink = Output::new(world.options.clone(), committer.sink("out").cloned().unwrap());
        let outbox = TestOutbox { outbox: committer.outbox(), state, messages: Vec::new(), own, cache: HashMap::new() };
        let writer = Writer { host: "host".into(), max_event_bytes: 30 << 10, says_all: true, labels: BTreeMap::new(), listened_to: HashSet::new() };
        Self { follower, committer, writer, sink, outbox, space: Space::default(), pending: VecDeque::new(), talked: Vec::new() }
    }

    /// Checks names and sizes of files.
    pub fn look(&mut self, world: &World) {
        self.follower.discover(world.now);
        self.follower.sweep(Some(&|_| true), world.now);
        self.follower.due(world.now);
        for lost in self.follower.take_lost() {
            self.pending.push_back(Batch { notices: vec![lost.notice], ..batch_of(lost.uid, lost.label, lost.mark, world.now) });
        }
    }

    /// Takes one turn; returns `false` if there is none to take.
    pub fn turn(&mut self, world: &World) -> bool {
        let Some(job) = self.follower.next_job() else { return false };
        self.take(&job, world);
        true
    }

    /// Takes the turn of a job that was handed out.
    pub fn take(&mut self, job: &Job, world: &World) {
        let turn = self.read_for(job, world);
        self.end(job, turn, world);
    }

    /// Reads for a job; the follower does not know of it until the turn ends.
    pub fn read_for(&mut self, job: &Job, world: &World) -> Turn {
        let mut reader = lock(&job.reader);
        if job.last { reader.finish(&mut self.space, world.now) } else { reader.turn(&mut self.space, world.now) }
    }

    /// Ends the turn of a job.
    pub fn end(&mut self, job: &Job, mut turn: Turn, world: &World) {
        if turn.bytes > 0 {
            self.talked.push((job.uid, job.label.clone()));
        }
        let events = std::mem::take(&mut turn.events);
        let sent = Turn { events, notices: std::mem::take(&mut turn.notices), mark: turn.mark.clone(), ..Default::default() };
        self.pending.extend(self.writer.batch(job.uid, &job.label, sent).map(|batch| Batch { at: world.now, ..batch }));
        self.follower.done(job.id, &turn, None, world.now);
    }

    /// Runs `meanwhile` and a check of the files while a reader thread holds the next turn and
    /// waits for room. The check must not wait for that thread. Then the turn is completed.
    pub fn while_a_thread_waits(&mut self, world: &World, meanwhile: impl FnOnce()) {
        let job = self.follower.next_job().unwrap();
        let (has, is_had) = channel();
        let (go_on, goes_on) = channel();
        let reader = job.reader.clone();
        let thread = std::thread::spawn(move || {
            let _guard = lock(&reader);
            has.send(()).unwrap();
            // If the message does not arrive, the check is waiting for this thread.
            goes_on.recv_timeout(Duration::from_secs(10)).is_ok()
        });
        is_had.recv().unwrap();
        meanwhile();
        self.look(world);
        go_on.send(()).ok();
        assert!(thread.join().unwrap(), "who looks waited for a thread that reads");
        self.take(&job, world);
    }

    /// Commits the first `count` batches and what the sink has reported.
    pub fn commit(&mut self, count: usize, world: &World) {
        let batches: Vec<Batch> = self.pending.drain(..count.min(self.pending.len())).collect();
        self.committer.commit(&batches, &std::mem::take(&mut self.outbox.messages), world.now).unwrap();
    }

    /// Reads and commits into a damaged state; returns the message about it.
    pub fn settle_with_renewal(&mut self, world: &World) -> String {
        self.look(world);
        while self.turn(world) {}
        let batches: Vec<Batch> = self.pending.drain(..).collect();
        let Err(StoreError::Unreadable(why)) = self.committer.commit(&batches, &[], world.now) else { panic!("it is not damaged") };
        let said = self.committer.renew(&world.folder.path().join("state"), &why, world.now).unwrap();
        self.committer.commit(&batches, &[], world.now).unwrap();
        self.pending.extend(self.follower.all_marks().map(|(uid, label, mark)| batch_of(uid, label, mark, world.now)));
        self.outbox.messages.push(ControlMessage::IsSaidAgain(vec![world.source.to_owned()]));
        self.settle(world);
        said
    }

    /// Returns the records of breakers that have opened.
    pub fn opened(&mut self) -> Vec<Vec<u8>> {
        self.committer.take_opened()
    }

    pub fn deadline(&self) -> Option<Timestamp> {
        self.committer.deadline()
    }

    /// Does what the daemon does once an hour.
    pub fn prune(&mut self, world: &World) {
        self.outbox.messages.push(ControlMessage::Seen(self.follower.present()));
        self.outbox.messages.extend(self.follower.forget(world.now).into_iter().map(ControlMessage::Forget));
        self.commit(0, world);
    }

    pub fn write(&mut self, world: &World) -> Step {
        self.sink.step(&mut self.outbox, world.now, false).unwrap()
    }

    /// Runs until everything that exists now is read, committed and written.
    pub fn settle(&mut self, world: &World) {
        // What was held back in one round is settled in the next.
        for _ in 0..2 {
            self.settle_once(world);
        }
    }

    fn settle_once(&mut self, world: &World) {
        loop {
            self.look(world);
            while self.turn(world) {}
            self.commit(usize::MAX, world);
            let mut steps = 0;
            loop {
                let step = self.sink.step(&mut self.outbox, world.now, true).unwrap();
                if !self.outbox.messages.is_empty() {
                    self.commit(0, world);
                }
                steps += 1;
                assert!(steps < 10_000, "the sink does not come to an end");
                if step == Step::Settled {
                    break;
                }
            }
            if !self.follower.is_busy() && self.pending.is_empty() {
                return;
            }
        }
    }

    /// Does what SIGTERM does.
    pub fn stop(mut self, world: &World) {
        self.settle(world);
        for job in self.follower.all() {
            let turn = lock(&job.reader).pause(&mut self.space, world.now);
            self.pending.extend(self.writer.batch(job.uid, &job.label, turn));
        }
        self.commit(usize::MAX, world);
        self.settle(world);
    }

    /// Advances the clock until every pause and every wait is over.
    pub fn wait(&mut self, world: &mut World) {
        for _ in 0..4 {
            self.settle(world);
            world.pass(ROTATE_WAIT);
        }
        self.settle(world);
    }

    /// Returns how far each file was read, by file name.
    pub fn read(&self) -> BTreeMap<String, u64> {
        let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
        self.follower.list().map(|(_, path, mark, _)| (name(path), mark.read)).collect()
    }
}

fn batch_of(uid: Uid, label: Arc<Label>, mark: siftd::delivery::Mark, at: Timestamp) -> Batch {
    Batch { uid, label, records: Vec::new(), body: Vec::new(), notices: Vec::new(), mark: Some(mark), at }
}

/// Returns a world with a log longer than one turn reads, which vanished unnoticed after its first turn.
pub fn half_read_and_gone() -> World {
    let world = World::new(&["logs/*.log"]);
    world.append("a.log", &(error("one") + &"all is well\n".repeat(200_000)));
    let mut rig = Rig::start(&world);
    rig.look(&world);
    rig.turn(&world);
    rig.commit(9, &world);
    drop(rig);
    fs::remove_file(world.path("a.log")).unwrap();
    world
}
