//! Streams that should talk and do not. A stream that has talked and then is quiet for its source's `silence` is told
//! once, and its end is told; so is a source none of whose streams talks. Pure: it is told what is heard, and the time.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::core::event::Timestamp;
use crate::delivery::{Label, Notice, Uid, derived_id};

/// A silence that was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// Id of its record.
    pub id: String,
    /// Since when nothing was heard.
    pub since: Timestamp,
}

/// Something that is listened to.
#[derive(Clone, Debug)]
struct Heard {
    label: Arc<Label>,
    last: Timestamp,
    told: Option<Told>,
}

/// A record to write: of which stream, under which label.
pub type Said = (Uid, Arc<Label>, Notice);

/// All that is listened to.
#[derive(Default)]
pub struct Silence {
    /// Name of a source → microseconds; those without are not listened to.
    limits: HashMap<String, i64>,
    streams: HashMap<Uid, Heard>,
    /// Sources as such.
    sources: HashMap<String, (Uid, Heard)>,
}

impl Silence {
    /// Listens from now on. `told`: silences of the last run, which go on.
    #[must_use]
    pub fn new(limits: HashMap<String, i64>, told: Vec<(Uid, Label, Told)>, now: Timestamp) -> Self {
        let mut all = Self { limits, ..Self::default() };
        for name in all.limits.keys() {
            let label = Arc::new(Label { source: name.clone(), kind: "file", ..Label::default() });
            all.sources.insert(name.clone(), (source_uid(name), Heard { label, last: now, told: None }));
        }
        for (uid, label, told) in told {
            let heard = Heard { label: Arc::new(label), last: told.since, told: Some(told) };
            match all.sources.get_mut(&heard.label.source) {
                Some((source, known)) if *source == uid => *known = heard,
                Some(_) => drop(all.streams.insert(uid, heard)),
                // Nobody listens to it any more.
                None => {}
            }
        }
        all
    }

    /// Whether no source is listened to.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.limits.is_empty()
    }

    /// A stream has said something.
    pub fn heard(&mut self, uid: Uid, label: &Arc<Label>, now: Timestamp) -> Vec<Said> {
        let Some((source, known)) = self.sources.get_mut(&label.source) else { return Vec::new() };
        let mut said = Vec::new();
        known.last = now;
        said.extend(known.told.take().map(|told| (*source, known.label.clone(), ended(&told, now))));
        let stream = self.streams.entry(uid).or_insert_with(|| Heard { label: label.clone(), last: now, told: None });
        stream.last = now;
        said.extend(stream.told.take().map(|told| (uid, stream.label.clone(), ended(&told, now))));
        said
    }

    /// Streams that are gone, rotated away for one, are not waited for.
    pub fn keep(&mut self, is_there: impl Fn(&Uid) -> bool, now: Timestamp) -> Vec<Said> {
        let gone: Vec<Uid> = self.streams.keys().filter(|uid| !is_there(uid)).copied().collect();
        let end = |uid: Uid| {
            let stream = self.streams.remove(&uid)?;
            Some((uid, stream.label, ended(&stream.told?, now)))
        };
        gone.into_iter().filter_map(end).collect()
    }

    /// What has been quiet for too long.
    pub fn due(&mut self, now: Timestamp) -> Vec<Said> {
        let limits = &self.limits;
        let mut said = Vec::new();
        let mut ask = |uid: Uid, heard: &mut Heard| {
            let limit = limits.get(&heard.label.source).copied().unwrap_or(i64::MAX);
            if heard.told.is_none() && now.0.saturating_sub(heard.last.0) >= limit {
                let id = derived_id("silence", &[&uid, &heard.last.0.to_be_bytes()]);
                let told = Told { id: id.clone(), since: heard.last };
                said.push((uid, heard.label.clone(), Notice::Silence { id, since: heard.last, seconds: (limit / 1_000_000) as u64, ended: None }));
                heard.told = Some(told);
            }
        };
        self.streams.iter_mut().for_each(|(uid, heard)| ask(*uid, heard));
        // Where streams have talked, their silence is told one by one.
        let with_streams: HashSet<&str> = self.streams.values().map(|stream| stream.label.source.as_str()).collect();
        self.sources.values_mut().filter(|(_, heard)| !with_streams.contains(heard.label.source.as_str())).for_each(|(uid, heard)| ask(*uid, heard));
        said
    }

    fn has_streams(&self, source: &str) -> bool {
        self.streams.values().any(|stream| stream.label.source == source)
    }

    /// When something may be due.
    #[must_use]
    pub fn deadline(&self) -> Option<Timestamp> {
        let sources = self.sources.iter().filter(|(name, _)| !self.has_streams(name)).map(|(_, (_, heard))| heard);
        let waiting = self.streams.values().chain(sources).filter(|heard| heard.told.is_none());
        waiting.filter_map(|heard| Some(Timestamp(heard.last.0.saturating_add(*self.limits.get(&heard.label.source)?)))).min()
    }
}

fn ended(told: &Told, now: Timestamp) -> Notice {
    let id = derived_id("silence", &[told.id.as_bytes(), b"ended"]);
    let seconds = (now.0.saturating_sub(told.since.0) / 1_000_000).max(0) as u64;
    Notice::Silence { id, since: told.since, seconds, ended: Some(now) }
}

/// A source as such has an identity that no stream has.
fn source_uid(name: &str) -> Uid {
    let id = derived_id("silent source", &[name.as_bytes()]);
    crate::core::event::Hex::parse(&id).map(|id| id.digest()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000;

    fn silence(told: Vec<(Uid, Label, Told)>) -> Silence {
        Silence::new(HashMap::from([("agent".to_owned(), 60 * S)]), told, Timestamp(0))
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
        assert_eq!(shown(&silence.keep(|uid| *uid == [2; 16], Timestamp(61 * S))), ["a 0 61 ended"]);
        assert_eq!(shown(&silence.heard([2; 16], &label("agent", "b"), Timestamp(62 * S))), ["b 0 62 ended"]);
    }

    #[test]
    fn a_silence_goes_on_over_a_restart() {
        let told = Told { id: "aa".into(), since: Timestamp(-90 * S) };
        let mut silence = silence(vec![([1; 16], Label::clone(&label("agent", "a")), told)]);
        assert_eq!(shown(&silence.due(Timestamp(60 * S))), [""; 0]);
        assert_eq!(shown(&silence.heard([1; 16], &label("agent", "a"), Timestamp(S))), ["a -90 91 ended"]);
    }
}
