//! What is said about a record of a transcript: who speaks in it, and what became of each step.

use super::field;
use crate::core::transcript::{Account, Fate, Flag, Format, Made, Ruling, Speaker, Step, Who};

/// Writes what was made of the record that the line belongs to.
pub(super) fn record(format: Format, account: &Account, page: &mut String) {
    let lines = match account {
        Account { first, last, made: Made::Steps(_), .. } if first < last => format!(", lines {first}-{last}"),
        _ => String::new(),
    };
    field(page, "record", &format!("of a transcript ({}){lines}", format.name()));
    match &account.made {
        Made::Broken => field(page, "said", "nothing: the record is damaged, so there is no telling who speaks"),
        Made::TooLong => field(page, "said", "nothing: the record is too long to be read"),
        Made::Unknown => field(page, "said", "nothing: no format of transcripts has records of its type"),
        Made::Words(speaker) => field(page, "said", words(*speaker)),
        Made::Steps(rulings) => rulings.iter().for_each(|ruling| field(page, "said", &ruled(ruling))),
    }
}

/// Writes what a line between the records of a document is.
pub(super) fn between(format: Format, page: &mut String) {
    field(page, "record", &format!("none: between the records of a transcript ({})", format.name()));
}

fn words(speaker: Speaker) -> &'static str {
    match speaker {
        Speaker::Agent => "by the agent: its words are no evidence",
        Speaker::User => "by the user: their words are no evidence",
        Speaker::System => "by the instructions for the agent: their words are no evidence",
        Speaker::Progress => "by a tool that still works: its result decides",
        Speaker::Client => "by the agent's program: states no result and no fault",
        Speaker::Someone => "by the agent or the user, or about a call: not what a tool printed",
    }
}

fn ruled(Ruling { step, fate, flag }: &Ruling) -> String {
    let subject = match (step.who, fate) {
        (_, Fate::Called) => return format!("the agent calls {}: the result decides", call(step)),
        (Who::Api, _) => "fault of the model's API".to_owned(),
        (Who::Run, _) => "end of the run".to_owned(),
        (Who::Tool, _) => format!("result of {}", call(step)),
    };
    let fate = match fate {
        Fate::Told(line) => format!("copy of what line {line} reported"),
        Fate::Shown => "only shows what is written somewhere, and nothing flags it".to_owned(),
        Fate::Harmless if step.flag == Flag::Stderr => "succeeded, and no line that it wrote to stderr is an error".to_owned(),
        Fate::Harmless if step.flag == Flag::Fine => "its command line hides the exit code, and no line of its text is an error".to_owned(),
        Fate::Harmless => "nothing flags it, and no line of its text is an error".to_owned(),
        Fate::Reported => reported(step, *flag),
        Fate::Fine | Fate::Called => "states no failure".to_owned(),
    };
    format!("{subject}: {fate}")
}

/// Returns what made a step an event.
fn reported(step: &Step, flag: Option<&str>) -> String {
    match (step.flag, flag, step.exit) {
        (Flag::Stderr, ..) => "succeeded, but what it wrote to stderr is an error".to_owned(),
        (Flag::Fine, ..) => "its command line hides the exit code, but its text is an error".to_owned(),
        (Flag::Unknown, ..) => "nothing flags it, but its text is an error".to_owned(),
        (_, Some(flag), Some(code)) => format!("a failure, flagged by {flag} and exit code {code}"),
        (_, Some(flag), None) => format!("a failure, flagged by {flag}"),
        (_, None, Some(code)) => format!("a failure, by its exit code {code}"),
        (_, None, None) => "a failure, as the record states".to_owned(),
    }
}

/// Returns the tool of a step and its command, as far as they are known.
fn call(step: &Step) -> String {
    let tool = step.tool.as_deref().unwrap_or("a tool");
    step.command.as_deref().map_or_else(|| tool.to_owned(), |command| format!("{tool} ({command})"))
}
