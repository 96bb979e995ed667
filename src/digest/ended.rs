//! How a run ended, in one line for the heading: from a verdict, or from the record of it that `exec --events` wrote.

use serde_json::Value;

use crate::sinks::human::sanitise;
use crate::verdict::{Status, Verdict};

/// Maximum length of the command that a digest shows, in characters.
const MAX_COMMAND_CHARS: usize = 60;

/// What is said if errors of a run were recorded, but not its end: `exec` itself was killed, or the run goes on.
pub const UNKNOWN: &str = "no record says how the run ended";

/// Says how a supervised run ended.
pub fn of_run(verdict: &Verdict, argv: &[String]) -> String {
    let facts = &verdict.facts;
    let how = match (verdict.status, facts.timed_out, facts.signal, facts.exit_code) {
        (_, true, ..) => "timed out".to_owned(),
        (_, _, Some(signal), _) => by_signal(signal),
        (Status::Success, ..) => "succeeded".to_owned(),
        (.., Some(code)) => format!("exited with {code}"),
        (status, ..) => status.as_str().to_owned(),
    };
    line(argv, &how, u64::from(facts.attempts))
}

/// Says how the run of a record of kind `exit` ended; `None` for any other record.
pub fn of_record(record: &Value) -> Option<String> {
    let outcome = record.get("outcome").and_then(Value::as_str).filter(|_| record.get("kind").is_some_and(|kind| kind == "exit"))?;
    // Those of a `command` source, which runs for as long as the daemon does, have none.
    record.get("verdict")?;
    let number = |name: &str| record.get(name).and_then(Value::as_i64);
    let how = match (outcome == Status::Timeout.as_str(), number("signal"), number("code")) {
        (true, ..) => "timed out".to_owned(),
        (_, Some(signal), _) => by_signal(signal),
        _ if outcome == Status::Success.as_str() => "succeeded".to_owned(),
        (.., Some(code)) => format!("exited with {code}"),
        _ => sanitise(outcome).into_owned(),
    };
    let words = record.get("argv").and_then(Value::as_array).into_iter().flatten();
    let argv: Vec<String> = words.filter_map(Value::as_str).map(str::to_owned).collect();
    Some(line(&argv, &how, record.get("attempts").and_then(Value::as_u64).unwrap_or_default()))
}

/// Whether a record is of a run of `exec`.
pub fn is_of_exec(record: &Value) -> bool {
    let is = |at: &str, want: &str| record.pointer(at).is_some_and(|value| value == want);
    is("/source/name", "exec") && is("/source/type", "command")
}

fn by_signal(signal: impl std::fmt::Display) -> String {
    format!("was ended by signal {signal}")
}

fn line(argv: &[String], how: &str, attempts: u64) -> String {
    let runs = if attempts > 1 { format!(" (run {attempts})") } else { String::new() };
    format!("`{}` {how}{runs}", command(argv))
}

/// Returns the program and its first arguments, up to the first that
/// is long or has several lines, which is a prompt or a script.
fn command(argv: &[String]) -> String {
    let mut shown = String::new();
    for (index, word) in argv.iter().enumerate() {
        let is_short = !word.contains('\n') && shown.chars().count() + word.chars().count() < MAX_COMMAND_CHARS;
        if index > 0 && !is_short {
            return shown + " …";
        }
        let (space, word) = (if index > 0 { " " } else { "" }, sanitise(word).replace('`', "'"));
        shown = (shown + space + &word).chars().take(MAX_COMMAND_CHARS).collect();
    }
    shown
}
