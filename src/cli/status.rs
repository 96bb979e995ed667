//! `siftd status`: asks the daemon that uses a state folder, through the socket in it, and shows the answer.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::args::StatusArgs;
use super::state::{amount, folder};
use super::table::Columns;
use super::{Exit, Failure, out};
use crate::daemon::SOCKET;
use crate::sinks::human::sanitise;
use crate::socket_file::short;
use crate::state::lock::Lock;

/// How long to wait for an answer: the daemon answers at once or not at all.
const PATIENCE: Duration = Duration::from_secs(5);
/// Enough for the status of a thousand sources.
const MAX_ANSWER_BYTES: u64 = 4 << 20;
const SOURCES: Columns<6> = Columns { heads: ["SOURCE", "TYPE", "OPEN", "READ", "LEFT", "ERRORS"], widest: 0, least: 12, left_out: &[1, 2, 3], numbers: &[] };
const SINKS: Columns<6> =
    Columns { heads: ["SINK", "TYPE", "STATE", "WAITING", "RETRIES", "REFUSED"], widest: 0, least: 12, left_out: &[1, 4, 5], numbers: &[] };

pub fn status(args: &StatusArgs) -> Result<Exit, Failure> {
    let folder = folder(&args.place)?;
    let body = ask(&folder)?;
    let answer: Value = serde_json::from_str(&body).map_err(|error| Failure::new(format!("{}: the answer cannot be read: {error}", folder.display())))?;
    out::print(&if args.form.is_json() { body } else { shown(&answer) })?;
    let is_well = answer["state"] == "ready" && answer["healthy"] == true;
    Ok(if is_well { Exit::Done } else { Exit::Found })
}

fn ask(folder: &Path) -> Result<String, Failure> {
    let path = folder.join(SOCKET);
    let fault = |error: std::io::Error| match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => mute_failure(folder),
        _ => Failure::new(format!("{}: {error}", path.display())),
    };
    let (_open, short) = short(&path).map_err(|error| unreachable_failure(folder, &error))?;
    let mut stream = UnixStream::connect(short).map_err(|error| unreachable_failure(folder, &error))?;
    stream.set_read_timeout(Some(PATIENCE)).and_then(|()| stream.set_write_timeout(Some(PATIENCE))).map_err(fault)?;
    stream.write_all(b"GET /status HTTP/1.0\r\n\r\n").map_err(fault)?;
    let mut answer = String::new();
    stream.take(MAX_ANSWER_BYTES).read_to_string(&mut answer).map_err(fault)?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
    match head.lines().next().is_some_and(|line| line.contains(" 200 ")) {
        true => Ok(body.to_owned()),
        false => Err(Failure::new(format!("{}: it does not answer as siftd does", path.display()))),
    }
}

/// Explains that the daemon exists but has not answered in time.
fn mute_failure(folder: &Path) -> Failure {
    let who = Lock::holder(folder).map_or_else(|| "the siftd that uses it".to_owned(), |pid| format!("process {pid} uses it and"));
    Failure::new(format!(
        "{}: {who} does not answer within {} s: it may be stopped (SIGSTOP, a debugger), or the machine have too much to do: ask again, or restart it",
        folder.display(),
        PATIENCE.as_secs()
    ))
}

/// Explains why nothing answers, and what to do.
fn unreachable_failure(folder: &Path, error: &std::io::Error) -> Failure {
    let shown = folder.display();
    if error.kind() == ErrorKind::PermissionDenied {
        return Failure::new(format!("{shown}: {error}: ask as the user that siftd runs as, or with sudo"));
    }
    Failure::new(match Lock::holder(folder) {
        Some(pid) => format!("{shown}: process {pid} uses it and does not answer ({error}): it may be starting or ending"),
        None => format!("no siftd runs with the state folder {shown}: name another one with --state-dir, or the configuration with --config"),
    })
}

fn shown(answer: &Value) -> String {
    let text = |value: &Value| sanitise(value.as_str().unwrap_or("-")).into_owned();
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    let list = |name: &str| answer[name].as_array().cloned().unwrap_or_default();
    let up = since(number(&answer["uptime_seconds"]));
    // A daemon that waits for room may have been ready for most of that time.
    let state = match answer["healthy"] == false && ["ready", "not_ready"].iter().any(|word| answer["state"] == *word) {
        true => format!("not ready, up for {up}"),
        false => format!("{} for {up}", text(&answer["state"])),
    };
    let mut out = format!("siftd {}, process {}: {state}\n", text(&answer["version"]), answer["pid"]);
    if let Some(trouble) = answer["trouble"].as_str() {
        out += &format!("trouble: {}\n", sanitise(trouble));
    }
    if let Some(error) = answer["reload"]["error"].as_str() {
        out += &format!("trouble: the configuration has mistakes, the old one goes on:\n{}\n", indented(error));
    }
    let sources = list("sources").into_iter().map(|source| {
        let errors: u64 = source["events"].as_object().map_or(0, |events| events.values().map(number).sum());
        let what = match (number(&source["files"]), number(&source["connections"])) {
            (0, 0) => "-".to_owned(),
            (0, connections) => connections.to_string(),
            (files, _) => files.to_string(),
        };
        [text(&source["name"]), text(&source["type"]), what, amount(number(&source["bytes"])), amount(number(&source["lag_bytes"])), errors.to_string()]
    });
    out += &table(&SOURCES, &sources.collect::<Vec<_>>());
    let sinks = list("sinks").into_iter().map(|sink| {
        let [waiting, retries, dead] = ["waiting_records", "retries", "dead_letters"].map(|name| number(&sink[name]).to_string());
        let state = if sink["up"] == false { "fails" } else { "writes" };
        [text(&sink["name"]), text(&sink["type"]), state.to_owned(), waiting, retries, dead]
    });
    out += &table(&SINKS, &sinks.collect::<Vec<_>>());
    out += &format!("outbox: {} of {}\n", amount(number(&answer["outbox"]["bytes"])), amount(number(&answer["outbox"]["max_bytes"])));
    for (why, count) in answer["gaps"].as_object().into_iter().flatten() {
        out += &format!("gap: {} {count}\n", sanitise(why));
    }
    for (kind, one) in list("sources").iter().map(|one| ("source", one)).chain(list("sinks").iter().map(|one| ("sink", one))) {
        if let Some(trouble) = one["trouble"].as_str() {
            out += &format!("trouble: {kind} {}: {}\n", text(&one["name"]), sanitise(trouble));
        }
    }
    out
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {}", sanitise(line))).collect::<Vec<_>>().join("\n")
}

/// Returns a table, unless it has no row.
fn table<const N: usize>(columns: &Columns<N>, rows: &[[String; N]]) -> String {
    if rows.is_empty() { String::new() } else { columns.table(rows) }
}

/// Formats a duration for people, in its two largest units.
fn since(seconds: u64) -> String {
    let parts = [(seconds / 86_400, "d"), (seconds / 3600 % 24, "h"), (seconds / 60 % 60, "min"), (seconds % 60, "s")];
    let first = parts.iter().position(|(count, _)| *count > 0).unwrap_or(parts.len() - 1);
    parts[first..].iter().take(2).map(|(count, unit)| format!("{count} {unit}")).collect::<Vec<_>>().join(" ")
}
