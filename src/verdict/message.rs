//! The message of a verdict: the part of filtered stderr around
//! its most telling line; without such a line, what else is known.

use super::{Facts, Said};
use crate::core::event::{Event, Io};

/// Maximum length of a message, in characters.
pub const MAX_MESSAGE_CHARS: usize = 500;

/// Explains why a run did not succeed.
pub fn message(facts: &Facts, timed_out: bool, said: &Said, telling: Option<&Event>) -> String {
    let text = stretch(&said.text, telling.map(|event| event.text.as_str()));
    let whole = match (timed_out, text.is_empty()) {
        (true, false) => format!("{}; stderr: {text}", ended(facts, timed_out)),
        (false, false) if telling.is_some_and(|event| event.is_status) => with_stdout(text, said),
        (false, false) => text,
        (_, true) => format!("{}, {}", ended(facts, timed_out), said_nothing(said)),
    };
    whole.chars().take(MAX_MESSAGE_CHARS).collect()
}

/// Describes how the run ended.
fn ended(facts: &Facts, timed_out: bool) -> String {
    match (timed_out, facts.signal, facts.exit_code) {
        (true, ..) => "timed out".to_owned(),
        (_, Some(signal), _) => format!("ended by signal {signal}"),
        (_, _, Some(code)) => format!("exited with {code}"),
        _ => facts.run_status.map_or("failed", |status| status.as_str()).to_owned(),
    }
}

fn said_nothing(said: &Said) -> String {
    let stderr = if said.only_noise { "nothing but noise on stderr" } else { "nothing on stderr" };
    with_stdout(stderr.to_owned(), said)
}

/// Appends what stdout says.
fn with_stdout(message: String, said: &Said) -> String {
    match said.telling(Io::Stdout) {
        Some(event) => format!("{message}; stdout says: {}", event.text),
        None => message,
    }
}

/// Returns as many whole lines around the telling one as fit, the
/// following lines first. Without a telling line, returns the last lines.
fn stretch(text: &str, telling: Option<&str>) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let named = telling.and_then(|telling| lines.iter().position(|line| line.contains(telling)));
    let at = match (named, telling) {
        (Some(at), _) => at,
        // The telling line came before the part that was kept.
        (None, Some(telling)) => return telling.to_owned(),
        (None, None) => lines.len().saturating_sub(1),
    };
    let Some(line) = lines.get(at) else { return String::new() };
    let (mut from, mut to) = (at, at + 1);
    let mut left = MAX_MESSAGE_CHARS.saturating_sub(line.chars().count());
    let mut fits = |line: &str| {
        let needed = line.chars().count() + 1;
        let fits = needed <= left;
        left -= if fits { needed } else { 0 };
        fits
    };
    while to < lines.len() && fits(lines[to]) {
        to += 1;
    }
    while from > 0 && fits(lines[from - 1]) {
        from -= 1;
    }
    if to == from + 1 { around(line, telling).to_owned() } else { lines[from..to].join("\n").trim().to_owned() }
}

/// Cuts a line that is longer than a message, so that it starts with the telling text.
fn around<'a>(line: &'a str, telling: Option<&str>) -> &'a str {
    let line = line.trim();
    match telling.and_then(|telling| line.find(telling)) {
        Some(at) if line.chars().count() > MAX_MESSAGE_CHARS => &line[at..],
        _ => line,
    }
}
