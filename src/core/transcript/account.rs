//! What was made of each record, and why: for `siftd explain`. Nothing is decided here.

use serde_json::Value;

use super::json::{at, first, is_true, text};
use super::step::Step;

/// What was made of one record, or of one step in Markdown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Its first line.
    pub first: u64,
    /// Its last line.
    pub last: u64,
    /// What was made of it.
    pub made: Made,
}

impl Account {
    /// Whether the line belongs to the record.
    #[must_use]
    pub fn holds(&self, num: u64) -> bool {
        (self.first..=self.last).contains(&num)
    }

    /// Whether it is about steps.
    #[must_use]
    pub fn has_steps(&self) -> bool {
        matches!(self.made, Made::Steps(_))
    }
}

/// What was made of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Made {
    /// Nothing: it is damaged, so there is no telling who speaks in it.
    Broken,
    /// Nothing: it is longer than is kept of a record, and what is kept of it cannot be read.
    TooLong,
    /// Nothing: no format has records of its type.
    Unknown,
    /// Nothing: it only says something, which is no evidence.
    Words(Speaker),
    /// It makes calls, or has results or faults.
    Steps(Vec<Ruling>),
}

/// Whose words a record without a step has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaker {
    /// The agent.
    Agent,
    /// The user.
    User,
    /// The instructions for the agent.
    System,
    /// A tool that still works: its result will decide.
    Progress,
    /// The agent's own program.
    Client,
    /// Any of them: Markdown does not always tell.
    Someone,
}

/// A step or a call, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ruling {
    /// The step; of a call, only what it names.
    pub step: Step,
    /// What became of it.
    pub fate: Fate,
    /// The field of the record that states a failure.
    pub flag: Option<&'static str>,
}

/// What became of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is a call, whose result will decide.
    Called,
    /// It states no failure.
    Fine,
    /// It has no flag, and its tool only shows what is written somewhere.
    Shown,
    /// Its text decides, and no line of it is an error.
    Harmless,
    /// It repeats what this line reported.
    Told(u64),
    /// It became an event.
    Reported,
}

/// The rulings on what one record says, if anybody wants an account of it.
pub struct Rulings(Option<Vec<Ruling>>);

impl Rulings {
    /// Adds a ruling; it is made only if it is wanted.
    pub fn add(&mut self, ruling: impl FnOnce() -> Ruling) {
        if let Some(rulings) = &mut self.0 {
            rulings.push(ruling());
        }
    }
}

/// The accounts that nobody has taken yet, if they are wanted at all.
#[derive(Default)]
pub struct Accounts(Option<Vec<Account>>);

impl Accounts {
    /// Keeps them from now on.
    pub fn keep(&mut self) {
        self.0.get_or_insert_default();
    }

    /// Returns the place for the rulings of the next record.
    pub fn rulings(&self) -> Rulings {
        Rulings(self.0.as_ref().map(|_| Vec::new()))
    }

    /// Returns those since the last call.
    pub fn take(&mut self) -> Vec<Account> {
        self.0.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Adds the account of these lines.
    pub fn add(&mut self, (first, last): (u64, u64), made: impl FnOnce() -> Made) {
        if let Some(accounts) = &mut self.0 {
            accounts.push(Account { first, last, made: made() });
        }
    }

    /// Adds the accounts of steps in Markdown.
    pub fn add_steps(&mut self, rulings: Rulings) {
        for ruling in rulings.0.into_iter().flatten() {
            if let (Some(first), Some(last)) = (ruling.step.lines.first(), ruling.step.lines.last()) {
                self.add((first.0, last.0), || Made::Steps(vec![ruling]));
            }
        }
    }
}

impl Made {
    /// Returns what was made of a record; no `rulings`: no format knows it.
    pub fn of(record: &Value, rulings: Option<Rulings>) -> Self {
        match rulings {
            None => Self::Unknown,
            Some(Rulings(rulings)) => {
                let mut rulings = rulings.unwrap_or_default();
                let speaker = Speaker::of(record);
                // Some formats call what the user says an action.
                if rulings.is_empty() || speaker == Speaker::User && rulings.iter().all(|ruling| ruling.fate == Fate::Called) {
                    return Self::Words(speaker);
                }
                rulings.iter_mut().for_each(|ruling| ruling.flag = flag(record, &ruling.step.pointer));
                Self::Steps(rulings)
            }
        }
    }
}

impl Speaker {
    /// Returns who speaks in a record, by the words that the formats use for it.
    fn of(record: &Value) -> Self {
        const ROLES: [&str; 5] = ["/message/role", "/role", "/payload/role", "/data/role", "/source"];
        const TYPES: [&str; 5] = ["/payload/type", "/item/type", "/msg/type", "/say", "/type"];
        let named = |places: &[&str]| places.iter().filter_map(|place| text(record, place)).find_map(Self::named);
        let is_instruction = || matches!(first(record, &ROLES), Some("system" | "developer"));
        named(&ROLES).or_else(|| is_instruction().then_some(Self::System)).or_else(|| named(&TYPES)).unwrap_or(Self::Client)
    }

    fn named(role: &str) -> Option<Self> {
        let begins = |names: &[&str]| names.iter().any(|name| role.starts_with(name));
        match role {
            "progress" | "tool_update" | "tool_execution_update" => Some(Self::Progress),
            "text" => Some(Self::Agent),
            _ if begins(&["user", "human"]) => Some(Self::User),
            _ if begins(&["assistant", "agent", "model", "gemini", "reasoning", "thinking"]) => Some(Self::Agent),
            _ => None,
        }
    }
}

/// Returns the field that states the failure of a step: the one nearest to its text at `pointer`.
fn flag(record: &Value, pointer: &str) -> Option<&'static str> {
    let parents = pointer.match_indices('/').rev().map(|(end, _)| &pointer[..end]);
    parents.filter_map(|place| at(record, place)).find_map(stated)
}

/// Returns the field of an object that states a failure.
fn stated(object: &Value) -> Option<&'static str> {
    const TRUE: [(&str, &str); 3] = [("/is_error", "is_error"), ("/isError", "isError"), ("/isApiErrorMessage", "isApiErrorMessage")];
    const WORDS: [(&str, &str); 3] = [("/status", "status"), ("/outcome", "outcome"), ("/subtype", "subtype")];
    let is_failure = |word: &str| word.starts_with("error") || word.starts_with("fail") || word == "declined";
    let by_flag = || TRUE.iter().find(|(pointer, _)| is_true(object, pointer));
    let by_word = || WORDS.iter().find(|(pointer, _)| text(object, pointer).is_some_and(is_failure));
    let by_success = || (object.get("success") == Some(&Value::Bool(false))).then_some(&("", "success"));
    let by_error = || (object.get("error").is_some_and(Value::is_object) || first(object, &["/error"]).is_some()).then_some(&("", "error"));
    by_flag().or_else(by_success).or_else(by_word).or_else(by_error).map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Each holds a whole step, with all that a command printed.
    #[test]
    fn a_ruling_that_nobody_wants_is_not_made() {
        Accounts::default().rulings().add(|| panic!("nobody asks"));
        let mut accounts = Accounts::default();
        accounts.keep();
        let mut rulings = accounts.rulings();
        rulings.add(|| Ruling { step: Step { lines: vec![(7, 0)], ..Step::fine(None) }, fate: Fate::Fine, flag: None });
        accounts.add_steps(rulings);
        assert_eq!(accounts.take().iter().map(|account| (account.first, account.has_steps())).collect::<Vec<_>>(), [(7, true)]);
    }

    #[test]
    fn the_field_that_states_a_failure_is_the_nearest() {
        let table = [
            (json!({"message": {"content": [{"is_error": true, "content": "x"}]}, "error": "y"}), "/message/content/0/content", Some("is_error")),
            (json!({"isApiErrorMessage": true, "error": "rate_limit", "message": {"content": []}}), "/message/content", Some("isApiErrorMessage")),
            (json!({"success": false, "output": "x"}), "/output", Some("success")),
            (json!({"item": {"status": "failed", "text": "x"}}), "/item/text", Some("status")),
            (json!({"error": {"message": "x"}}), "/error/message", Some("error")),
            (json!({"error": null, "is_error": false, "text": "x"}), "/text", None),
        ];
        for (record, pointer, want) in table {
            assert_eq!(flag(&record, pointer), want, "{record}");
        }
    }

    #[test]
    fn who_speaks_is_told_by_the_role() {
        let table = [
            (json!({"type": "user", "message": {"role": "user", "content": "x"}}), Speaker::User),
            (json!({"type": "response_item", "payload": {"type": "message", "role": "assistant"}}), Speaker::Agent),
            (json!({"type": "event_msg", "payload": {"type": "agent_message"}}), Speaker::Agent),
            (json!({"type": "item.completed", "item": {"type": "reasoning"}}), Speaker::Agent),
            (json!({"type": "progress", "data": {}}), Speaker::Progress),
            (json!({"role": "developer", "content": "x"}), Speaker::System),
            (json!({"type": "system", "subtype": "init"}), Speaker::Client),
            (json!({"source": "user", "action": "message"}), Speaker::User),
            (json!({"type": "summary", "summary": "x"}), Speaker::Client),
        ];
        for (record, want) in table {
            assert_eq!(Speaker::of(&record), want, "{record}");
        }
    }
}
