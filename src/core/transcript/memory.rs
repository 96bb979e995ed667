//! What a transcript must remember from record to record: the session, the calls that wait for their results,
//! and the failures that were already reported. Bounded; it survives a restart together with the stream's facts.

use std::collections::VecDeque;

use md5::{Digest, Md5};
use serde::{Deserialize, Serialize};

use super::asked::Asked;
use super::step::{Step, Who};
use super::{Format, Mode};

/// Most calls without a result; the oldest is forgotten.
const MAX_CALLS: usize = 256;
/// Most reported failures that are remembered.
const MAX_TOLD: usize = 256;
/// Most bytes kept of a command or name.
const MAX_KEPT_BYTES: usize = 500;
/// An id of at least this many bytes is unique; a shorter one counts from 0 in each run.
const UNIQUE_ID_BYTES: usize = 16;

/// The memory of one transcript.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    format: Format,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    /// The calls without a result, by the hash of their id.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    asked: VecDeque<(u64, String, Option<Asked>)>,
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    told: VecDeque<Told>,
    /// Hash of the API's last fault.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fault: Option<u64>,
    /// The line that reported it.
    #[serde(skip)]
    fault_line: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reset_at: Option<String>,
}

/// A reported failure: hashes of the call, of the kind of place in a record, and of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Told {
    id: u64,
    place: u64,
    text: u64,
    /// The line that reported it; 0 after a restart, when nobody asks for it.
    #[serde(skip)]
    line: u64,
}

impl Memory {
    /// Returns the memory of a transcript that begins.
    #[must_use]
    pub fn new(format: Format) -> Self {
        Self { format, session: None, asked: VecDeque::new(), told: VecDeque::new(), fault: None, fault_line: 0, reset_at: None }
    }

    /// Returns the memory of a stream that begins with `head`, if that shows
    /// a transcript; for a stream that is not read from its beginning.
    #[must_use]
    pub fn of_head(mode: Mode, head: &[u8]) -> Option<Self> {
        let mut transcript = super::Transcript::new(mode);
        transcript.begins(head)?;
        transcript.memory
    }

    /// Returns the format in which the transcript began.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// Enters the session of the following records.
    pub fn enter(&mut self, session: &str) {
        if self.session.as_deref() != Some(session) {
            self.session = Some(kept(session));
        }
    }

    /// Returns the current session.
    #[must_use]
    pub fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// Remembers a call; its result will name only the id.
    pub fn call(&mut self, id: &str, tool: &str, asked: Option<Asked>) {
        let id = hash(&[id]);
        self.asked.retain(|(known, ..)| *known != id);
        if self.asked.len() >= MAX_CALLS {
            self.asked.pop_front();
        }
        self.asked.push_back((id, kept(tool), asked));
    }

    /// Returns the tool and the request of a call that has its result now, and forgets the call.
    pub fn answered(&mut self, id: &str) -> Option<(String, Option<Asked>)> {
        let id = hash(&[id]);
        let at = self.asked.iter().position(|(known, ..)| *known == id)?;
        self.asked.remove(at).map(|(_, tool, asked)| (tool, asked))
    }

    /// Notes that the next fault of the API is about a limit that ends at `at`.
    pub fn reset(&mut self, at: &str) {
        self.reset_at = Some(kept(at));
    }

    /// Takes the time at which the limit behind a fault ends.
    pub fn take_reset(&mut self) -> Option<String> {
        self.reset_at.take()
    }

    /// Returns the line that reported the failure before; else remembers it as reported
    /// by `line`. A run that ends with the API's last fault is not a further failure.
    pub fn told_at(&mut self, step: &Step, line: u64) -> Option<u64> {
        let text = hash(&["", step.text.trim()]);
        if step.who == Who::Run && self.fault.take() == Some(text) {
            return Some(self.fault_line);
        }
        let told = self.told_of_call(step, text, line);
        if step.who == Who::Api {
            (self.fault, self.fault_line) = (Some(text), told.unwrap_or(line));
        }
        told
    }

    fn told_of_call(&mut self, step: &Step, text: u64, line: u64) -> Option<u64> {
        let id = step.id.as_ref()?;
        let session = self.session.as_deref().filter(|_| id.len() < UNIQUE_ID_BYTES).unwrap_or_default();
        let now = Told { id: hash(&[session, id]), place: hash(&[&shape(&step.pointer)]), text, line };
        // The same call at another place of a record is the same failure, even if its text is cut there.
        if let Some(told) = self.told.iter().find(|told| told.id == now.id && (told.text == now.text || told.place != now.place)) {
            return Some(told.line);
        }
        if self.told.len() >= MAX_TOLD {
            self.told.pop_front();
        }
        self.told.push_back(now);
        None
    }
}

/// Returns a pointer without the numbers in it.
fn shape(pointer: &str) -> String {
    pointer.split('/').filter(|key| !key.bytes().all(|b| b.is_ascii_digit())).collect::<Vec<_>>().join("/")
}

/// Returns as much of a text as is kept.
#[must_use]
pub fn kept(text: &str) -> String {
    text[..text.floor_char_boundary(MAX_KEPT_BYTES)].to_owned()
}

/// Hashes `parts` in a way that is the same in every process.
fn hash(parts: &[&str]) -> u64 {
    let mut md5 = Md5::new();
    for part in parts {
        md5.update(part.as_bytes());
        md5.update([0]);
    }
    let digest: [u8; 16] = md5.finalize().into();
    u64::from_be_bytes(std::array::from_fn(|at| digest[at]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_bounded() {
        let mut memory = Memory::new(Format::Claude);
        let long = "x".repeat(100_000);
        for at in 0..1000 {
            memory.call(&format!("{long}{at}"), &long, Some(Asked { text: kept(&long), ..Asked::default() }));
            memory.told_at(&Step { id: Some(format!("id-{at}-{at}-{at}-{at}")), text: long.clone(), ..Step::default() }, at);
        }
        memory.enter(&long);
        assert!(serde_json::to_string(&memory).unwrap().len() < 400_000);
        assert!(memory.answered(&format!("{long}999")).is_some() && memory.answered(&format!("{long}0")).is_none());
    }

    #[test]
    fn a_failure_is_told_once() {
        let mut memory = Memory::new(Format::Codex);
        let step =
            |who, id: Option<&str>, text: &str| Step { who, id: id.map(str::to_owned), text: text.to_owned(), pointer: "/a/0".to_owned(), ..Step::default() };
        let elsewhere = |step: Step| Step { pointer: "/b".to_owned(), ..step };
        let table = [
            (step(Who::Tool, Some("toolu_0123456789abcdef"), "a"), None),
            (step(Who::Tool, Some("toolu_0123456789abcdef"), "a"), Some(0)),
            (elsewhere(step(Who::Tool, Some("toolu_0123456789abcdef"), "a and more")), Some(0)),
            (step(Who::Tool, Some("toolu_0123456789abcdef"), "another"), None),
            (step(Who::Tool, Some("item_1"), "a"), None),
            (step(Who::Tool, Some("item_1"), "a"), Some(4)),
            (step(Who::Tool, Some("item_1"), "b"), None),
            (step(Who::Tool, None, "a"), None),
            (step(Who::Tool, None, "a"), None),
            (step(Who::Api, None, "limit"), None),
            (step(Who::Run, None, "limit"), Some(9)),
            (step(Who::Run, None, "limit"), None),
        ];
        for (at, (step, want)) in (0..).zip(table) {
            assert_eq!(memory.told_at(&step, at), want, "{at}");
        }
    }
}
