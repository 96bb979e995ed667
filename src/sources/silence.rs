//! Streams that should talk and do not. If a stream that has talked is quiet for its source's `silence`, that is reported once,
//! and so is its end; the same holds for a source none of whose streams talks. A stream is a file, together with those that had
//! its name before, or a connection; other sources are monitored as a whole. Pure: it is told what is heard, and the time.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::core::event::Timestamp;
use crate::delivery::{Label, Notice, Uid, derived_id};

/// A silence that was reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// Id of its record.
    pub id: String,
    /// Since when nothing has been heard.
    pub since: Timestamp,
}

/// A stream or source that is monitored.
#[derive(Clone, Debug)]
struct Heard {
    label: Arc<Label>,
    last: Timestamp,
    told: Option<Told>,
}

/// For how long a source may be silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Microseconds of silence after which it is reported.
    pub after_us: i64,
    /// The source's type, as in records.
    pub kind: &'static str,
    /// Whether each stream should talk; otherwise it is enough if one does.
    pub by_stream: bool,
}

/// A record to write: its stream, its label, the notice.
pub type Said = (Uid, Arc<Label>, Notice);

/// The file that has taken a rotated file's name.
pub type Heir = (Uid, Arc<Label>);

/// Everything that is monitored.
#[derive(Default)]
pub struct Silence {
    /// By source name; other sources are not monitored.
    limits: HashMap<String, Limit>,
    streams: HashMap<Uid, Heard>,
    /// The streams that are connections.
    connections: HashSet<Uid>,
    /// Sources as a whole.
    sources: HashMap<String, (Uid, Heard)>,
    /// The ends of silences whose source is no longer monitored since this start.
    unwatched: Vec<Said>,
}

impl Silence {
    /// Starts monitoring. `told`: silences reported by the last run, which continue.
    #[must_use]
    pub fn new(limits: HashMap<String, Limit>, told: Vec<(Uid, Label, Told)>, now: Timestamp) -> Self {
        let mut all = Self::default();
        all.set_limits(limits, now);
        for (uid, label, told) in told {
            let kind = all.limits.get(&label.source).map_or(label.kind, |limit| limit.kind);
            let heard = Heard { label: Arc::new(Label { kind, ..label }), last: told.since, told: Some(told) };
            match all.sources.get_mut(&heard.label.source) {
                Some((source, known)) if *source == uid => *known = heard,
                Some(_) => drop(all.streams.insert(uid, heard)),
                // The source is no longer monitored.
                None => all.unwatched.extend(heard.told.map(|told| (uid, heard.label, ended(&told, now)))),
            }
        }
        all
    }

    /// Takes the ends of the last run's silences whose source is no longer monitored: nobody waits for it.
    pub fn take_unwatched(&mut self) -> Vec<Said> {
        std::mem::take(&mut self.unwatched)
    }

    /// Sets what is monitored from now on. A reported silence ends if its source's limit changes.
    pub fn set_limits(&mut self, limits: HashMap<String, Limit>, now: Timestamp) -> Vec<Said> {
        let is_other = |name: &str| limits.get(name) != self.limits.get(name);
        let streams = self.streams.extract_if(|_, stream| is_other(&stream.label.source));
        let sources = self.sources.extract_if(|name, _| is_other(name)).map(|(_, source)| source);
        let said = streams.chain(sources).filter_map(|(uid, heard)| Some((uid, heard.label, ended(&heard.told?, now)))).collect();
        for (name, limit) in &limits {
            let label = || Arc::new(Label { source: name.clone(), kind: limit.kind, ..Label::default() });
            self.sources.entry(name.clone()).or_insert_with(|| (source_uid(name), Heard { label: label(), last: now, told: None }));
        }
        self.limits = limits;
        said
    }

    /// Whether no source is monitored.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.limits.is_empty()
    }

    /// Notes that a stream has talked.
    pub fn heard(&mut self, uid: Uid, label: &Arc<Label>, now: Timestamp) -> Vec<Said> {
        let Some((source, known)) = self.sources.get_mut(&label.source) else { return Vec::new() };
        let mut said = Vec::new();
        known.last = now;
        said.extend(known.told.take().map(|told| (*source, known.label.clone(), ended(&told, now))));
        if !self.limits.get(&label.source).is_some_and(|limit| limit.by_stream) {
            return said;
        }
        let stream = self.streams.entry(uid).or_insert_with(|| Heard { label: label.clone(), last: now, told: None });
        stream.last = now;
        said.extend(stream.told.take().map(|told| (uid, stream.label.clone(), ended(&told, now))));
        said
    }

    /// Notes that a connection has talked; it is known until it [ends](Self::ended).
    pub fn heard_over(&mut self, uid: Uid, label: &Arc<Label>, now: Timestamp) -> Vec<Said> {
        let said = self.heard(uid, label, now);
        if self.streams.contains_key(&uid) {
            self.connections.insert(uid);
        }
        said
    }

    /// Ends a connection, which is not waited for any more.
    pub fn ended(&mut self, uid: &Uid, now: Timestamp) -> Vec<Said> {
        self.connections.remove(uid);
        let told = self.streams.remove(uid).and_then(|stream| Some((*uid, stream.label, ended(&stream.told?, now))));
        told.into_iter().collect()
    }

    /// Drops files that are gone, and connections of the last run. `there`: the existing files, each with the file
    /// that took its name, if any. That file is the same voice: it is taken to have talked when the older one did.
    pub fn keep(&mut self, there: &HashMap<Uid, Option<Heir>>, now: Timestamp) -> Vec<Said> {
        let is_over = |uid: &&Uid| !self.connections.contains(*uid) && !matches!(there.get(*uid), Some(None));
        let over: Vec<Uid> = self.streams.keys().filter(is_over).copied().collect();
        let mut said = Vec::new();
        for uid in over {
            if let (Some((heir, label)), Some(former)) = (there.get(&uid).cloned().flatten(), self.streams.get(&uid)) {
                // A reported silence ends here; the next one begins when it is over.
                let last = if former.told.is_some() { now } else { former.last };
                let heard = self.streams.entry(heir).or_insert(Heard { label, last, told: None });
                heard.last = heard.last.max(last);
            }
            said.extend(self.ended(&uid, now));
        }
        said
    }

    /// Returns what has been quiet for too long.
    pub fn due(&mut self, now: Timestamp) -> Vec<Said> {
        let limits = &self.limits;
        let mut said = Vec::new();
        let mut ask = |uid: Uid, heard: &mut Heard| {
            let limit = limits.get(&heard.label.source).map_or(i64::MAX, |limit| limit.after_us);
            if heard.told.is_none() && now.0.saturating_sub(heard.last.0) >= limit {
                let id = derived_id("silence", &[&uid, &heard.last.0.to_be_bytes()]);
                let told = Told { id: id.clone(), since: heard.last };
                said.push((uid, heard.label.clone(), Notice::Silence { id, since: heard.last, seconds: (limit / 1_000_000) as u64, ended: None }));
                heard.told = Some(told);
            }
        };
        self.streams.iter_mut().for_each(|(uid, heard)| ask(*uid, heard));
        // If streams have talked, their silences are reported one by one.
        let with_streams: HashSet<&str> = self.streams.values().map(|stream| stream.label.source.as_str()).collect();
        self.sources.values_mut().filter(|(_, heard)| !with_streams.contains(heard.label.source.as_str())).for_each(|(uid, heard)| ask(*uid, heard));
        said
    }

    fn has_streams(&self, source: &str) -> bool {
        self.streams.values().any(|stream| stream.label.source == source)
    }

    /// Returns when something may be due.
    #[must_use]
    pub fn deadline(&self) -> Option<Timestamp> {
        let sources = self.sources.iter().filter(|(name, _)| !self.has_streams(name)).map(|(_, (_, heard))| heard);
        let waiting = self.streams.values().chain(sources).filter(|heard| heard.told.is_none());
        waiting.filter_map(|heard| Some(Timestamp(heard.last.0.saturating_add(self.limits.get(&heard.label.source)?.after_us)))).min()
    }
}

fn ended(told: &Told, now: Timestamp) -> Notice {
    let id = derived_id("silence", &[told.id.as_bytes(), b"ended"]);
    let seconds = (now.0.saturating_sub(told.since.0) / 1_000_000).max(0) as u64;
    Notice::Silence { id, since: told.since, seconds, ended: Some(now) }
}

/// Returns the identity of a source as a whole, which no stream has.
fn source_uid(name: &str) -> Uid {
    let id = derived_id("silent source", &[name.as_bytes()]);
    crate::core::event::Hex::parse(&id).map(|id| id.digest()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000;

    fn silence(told: Vec<(Uid, Label, Told)>) -> Silence {
        Silence::new(HashMap::from([("agent".to_owned(), limit("file", true))]), told, Timestamp(0))
    }

    fn limit(kind: &'static str, by_stream: bool) -> Limit {
        Limit { after_us: 60 * S, kind, by_stream }
    }

    fn label(source: &str, path: &str) -> Arc<Label> {
        Arc::new(Label { source: source.into(), kind: "file", path: path.into(), ..Label::default() })
    }

    /// `path since seconds` of a beginning, with an `ended` of an end.
    fn shown(said: &[Said]) -> Vec<String> {
        let one = |(_, label, notice): &Said| match notice {
            Notice::Silence { since, seconds, ended, .. } => {
                format!("{} {} {seconds}{}", label.path, since.0 / S, if ended.is_some() { " ended" } else { "" })
            }
            other => format!("{other:?}"),
        };
        let mut all: Vec<String> = said.iter().map(one).collect();
        all.sort();
        all
    }

    #[test]
    fn a_stream_that_stops_talking_is_told_once_and_so_is_its_end() {
        let mut silence = silence(Vec::new());
        let a = label("agent", "a");
        assert_eq!(shown(&silence.heard([1; 16], &a, Timestamp(10 * S))), [""; 0]);
        assert_eq!(silence.deadline(), Some(Timestamp(70 * S)));
        assert_eq!(shown(&silence.due(Timestamp(70 * S - 1))), [""; 0]);
        assert_eq!(shown(&silence.due(Timestamp(70 * S))), ["a 10 60"]);
        assert_eq!(shown(&silence.due(Timestamp(500 * S))), [""; 0]);
        assert_eq!(shown(&silence.heard([1; 16], &a, Timestamp(100 * S))), ["a 10 90 ended"]);
        assert_eq!(shown(&silence.due(Timestamp(160 * S))), ["a 100 60"], "and again");
    }

    #[test]
    fn a_source_that_never_talks_is_told_and_others_are_not_listened_to() {
        let mut silence = silence(Vec::new());
        assert!(silence.heard([2; 16], &label("other", "x"), Timestamp(0)).is_empty() && !silence.is_idle());
        assert_eq!(shown(&silence.due(Timestamp(60 * S))), [" 0 60"]);
        assert_eq!(shown(&silence.heard([1; 16], &label("agent", "a"), Timestamp(70 * S))), [" 0 70 ended"]);
        assert_eq!(shown(&silence.due(Timestamp(130 * S))), ["a 70 60"], "now it is the stream that is silent");
    }

    #[test]
    fn a_stream_that_is_gone_is_not_waited_for() {
        let mut silence = silence(Vec::new());
        silence.heard([1; 16], &label("agent", "a"), Timestamp(0));
        silence.heard([2; 16], &label("agent", "b"), Timestamp(0));
        silence.due(Timestamp(60 * S));
        assert_eq!(shown(&silence.keep(&HashMap::from([([2; 16], None)]), Timestamp(61 * S))), ["a 0 61 ended"]);
        assert_eq!(shown(&silence.heard([2; 16], &label("agent", "b"), Timestamp(62 * S))), ["b 0 62 ended"]);
    }

    #[test]
    fn a_rotated_file_is_no_voice_of_its_own_and_its_heir_has_said_what_it_said() {
        let mut silence = silence(Vec::new());
        silence.heard([1; 16], &label("agent", "a"), Timestamp(10 * S));
        let rotated = HashMap::from([([1; 16], Some(([2; 16], label("agent", "a")))), ([2; 16], None)]);
        assert_eq!(shown(&silence.keep(&rotated, Timestamp(20 * S))), [""; 0]);
        assert_eq!(shown(&silence.due(Timestamp(69 * S))), [""; 0]);
        let said = silence.due(Timestamp(70 * S));
        assert_eq!((shown(&said), said[0].0), (vec!["a 10 60".to_owned()], [2; 16]), "the younger one, which never spoke");
        // Rotated again while it is silent: that silence ends, and is not reported again at once.
        let rotated = HashMap::from([([2; 16], Some(([3; 16], label("agent", "a")))), ([3; 16], None)]);
        assert_eq!(shown(&silence.keep(&rotated, Timestamp(80 * S))), ["a 10 70 ended"]);
        assert_eq!(shown(&silence.due(Timestamp(139 * S))), [""; 0]);
        assert_eq!(shown(&silence.due(Timestamp(140 * S))), ["a 80 60"]);
    }

    #[test]
    fn a_silence_goes_on_over_a_restart() {
        let told = Told { id: "aa".into(), since: Timestamp(-90 * S) };
        let mut silence = silence(vec![([1; 16], Label::clone(&label("agent", "a")), told)]);
        assert_eq!(shown(&silence.due(Timestamp(60 * S))), [""; 0]);
        assert_eq!(shown(&silence.heard([1; 16], &label("agent", "a"), Timestamp(S))), ["a -90 91 ended"]);
    }

    #[test]
    fn a_silence_whose_source_is_gone_ends_with_the_restart() {
        let told = Told { id: "aa".into(), since: Timestamp(-90 * S) };
        let mut silence = silence(vec![([1; 16], Label::clone(&label("removed", "a")), told)]);
        assert_eq!(shown(&silence.take_unwatched()), ["a -90 90 ended"]);
        assert_eq!(shown(&silence.take_unwatched()), [""; 0]);
    }

    #[test]
    fn a_connection_is_listened_to_until_it_ends_and_its_source_after_that() {
        let told = Told { id: "aa".into(), since: Timestamp(-90 * S) };
        let before = Label { source: "agents".into(), path: "old".into(), ..Label::default() };
        let limits = HashMap::from([("agents".to_owned(), limit("tcp", true))]);
        let mut silence = Silence::new(limits, vec![([9; 16], before, told)], Timestamp(0));
        let (a, b) = (label("agents", "a"), label("agents", "b"));
        silence.heard_over([1; 16], &a, Timestamp(0));
        silence.heard_over([2; 16], &b, Timestamp(30 * S));
        // No file exists; a connection of the last run cannot continue.
        assert_eq!(shown(&silence.keep(&HashMap::new(), Timestamp(31 * S))), ["old -90 121 ended"]);
        assert_eq!(shown(&silence.due(Timestamp(60 * S))), ["a 0 60"]);
        assert_eq!(shown(&silence.heard_over([1; 16], &a, Timestamp(61 * S))), ["a 0 61 ended"]);
        assert_eq!(shown(&silence.ended(&[1; 16], Timestamp(62 * S))), [""; 0]);
        assert_eq!(shown(&silence.due(Timestamp(90 * S))), ["b 30 60"]);
        assert_eq!(shown(&silence.ended(&[2; 16], Timestamp(91 * S))), ["b 30 61 ended"]);
        let said = silence.due(Timestamp(121 * S));
        assert_eq!((shown(&said), said[0].1.kind), (vec![" 61 60".to_owned()], "tcp"), "nobody is connected, and nobody talks");
    }

    #[test]
    fn outputs_of_a_command_are_one_voice() {
        let mut silence = Silence::new(HashMap::from([("cluster".to_owned(), limit("command", false))]), Vec::new(), Timestamp(0));
        silence.heard_over([1; 16], &label("cluster", "stderr"), Timestamp(0));
        silence.heard_over([2; 16], &label("cluster", "stdout"), Timestamp(50 * S));
        assert_eq!(silence.deadline(), Some(Timestamp(110 * S)));
        assert_eq!(shown(&silence.due(Timestamp(110 * S))), [" 50 60"], "the command, not each of them");
        assert_eq!(shown(&silence.ended(&[2; 16], Timestamp(111 * S))), [""; 0], "that one has ended says nothing");
        assert_eq!(shown(&silence.heard_over([3; 16], &label("cluster", "stdout"), Timestamp(120 * S))), [" 50 70 ended"]);
    }

    #[test]
    fn other_limits_hold_from_the_time_on_when_they_are_set() {
        let mut silence = silence(Vec::new());
        silence.heard([1; 16], &label("agent", "a"), Timestamp(0));
        silence.due(Timestamp(60 * S));
        let same = HashMap::from([("agent".to_owned(), limit("file", true)), ("new".to_owned(), limit("udp", false))]);
        assert_eq!(shown(&silence.set_limits(same, Timestamp(70 * S))), [""; 0]);
        assert_eq!(silence.deadline(), Some(Timestamp(130 * S)), "of the new one");
        assert_eq!(shown(&silence.set_limits(HashMap::new(), Timestamp(80 * S))), ["a 0 80 ended"]);
        assert!(silence.is_idle() && silence.due(Timestamp(900 * S)).is_empty());
    }
}
