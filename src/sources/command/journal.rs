//! The systemd journal, as `journalctl` prints it. Its entries become syslog messages of one stream, which continues after its last entry
//! by the journal's own cursor. An entry that a service merely printed has a priority that nobody stated, so it is judged by its text.

use std::fmt::Write;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_core::Stream;
use serde_json::Value;
use tokio::io::AsyncRead;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::codec::FramedRead;

use super::child::Ended;
use super::{Program, Runs, finish, not_started};
use crate::config::{SourceConfig, SourceKind, StartAt};
use crate::core::event::Timestamp;
use crate::delivery::{Label, Mark, Uid};
use crate::sources::clock::now;
use crate::sources::codec::Lines;
use crate::sources::cursor::Cursors;
use crate::sources::flow::{Flow, Reading};
use crate::sources::socket::Served;
use crate::telemetry::metrics::SourceMetrics;
use crate::words::Io;

/// Longer entries are left out and counted.
const MAX_ENTRY_BYTES: usize = 4 << 20;
/// Bytes to pass on at once.
const BATCH_BYTES: usize = 16 << 10;
/// The fields to read; the cursor and the times always come.
const FIELDS: &str = "MESSAGE,PRIORITY,SYSLOG_IDENTIFIER,SYSLOG_PID,_COMM,_HOSTNAME,_PID,_SYSTEMD_UNIT,_TRANSPORT";
/// The priority of a message that states none (RFC 3164, 4.3.3).
const UNSTATED: i64 = 13;

/// Prefix of a time in place of a cursor, while no cursor is known: seconds since 1970,
/// as `journalctl` takes them. The journal's own cursors begin with a name (`s=`).
const SINCE: &str = "@";

/// The journal of a source, ready to be read.
pub struct Journal {
    program: Program,
    known: Option<(Uid, Mark)>,
    nonce: fn() -> Uid,
}

impl Journal {
    /// Prepares the journal of a source; `known` is what earlier runs left.
    ///
    /// # Errors
    /// There is no `journalctl`.
    pub fn new(config: &SourceConfig, known: Option<(Uid, Mark)>, nonce: fn() -> Uid) -> Result<Self, String> {
        let mut words = vec!["journalctl", "--output=json", "--all", "--no-pager", "--quiet"].into_iter().map(str::to_owned).collect::<Vec<_>>();
        words.push(format!("--output-fields={FIELDS}"));
        words.extend(config.matches.iter().cloned());
        let command = SourceConfig { argv: words, ..SourceConfig::new(&config.name, SourceKind::Command) };
        Ok(Self { program: Program::new(&command)?, known, nonce })
    }

    /// Reads the journal until the source is to end.
    pub async fn run(self, mut served: Served) {
        let label = Label { kind: SourceKind::Command.as_str(), argv: self.program.shown.clone(), ..served.label() };
        let own = served.intake.open(label.clone(), Reading::default());
        let Some(cursors) = self.cursors(&served).await else { return own.end() };
        let mut cursor = cursors.cursor().to_owned();
        let flow = served.intake.resume(label, cursors);
        // Record right away where reading began.
        flow.cursor(cursor.clone());
        let mut runs = Runs::new(&served.config);
        loop {
            let ended = self.follow(&flow, &mut cursor, &mut served).await;
            let goes_on = runs.ended(&own, &ended, &served);
            let Some(pause) = goes_on else { break };
            tokio::select! {
                () = served.stopped() => break,
                () = tokio::time::sleep(pause) => served.counted.restarts.add(1),
            }
        }
        flow.end();
        own.end();
    }

    /// Returns where reading begins; `None` if the source is to end before that is known.
    async fn cursors(&self, served: &Served) -> Option<Cursors> {
        if let Some((uid, mark)) = &self.known {
            return Some(Cursors::resume(*uid, mark));
        }
        let stopped = &mut served.clone();
        let first = tokio::select! {
            first = self.first(served) => first,
            // Nothing was read and no position is known: the next start asks again.
            () = stopped.stopped() => return None,
        };
        Some(Cursors::new((self.nonce)(), first))
    }

    /// Reads what `journalctl` prints behind `cursor` until it ends, and moves `cursor` behind what was read.
    async fn follow(&self, flow: &Arc<Flow>, cursor: &mut String, served: &mut Served) -> Ended {
        let mut child = match self.program.with(&arguments(cursor)).start() {
            Ok(child) => child,
            Err(error) => return not_started(served, &error),
        };
        let (turned, stops) = watch::channel(false);
        let (moved, at) = watch::channel(cursor.clone());
        let mut outputs = JoinSet::new();
        for (io, output) in child.take_outputs() {
            match io {
                Io::Stdout => {
                    let entries = Entries { flow: flow.clone(), counted: served.counted.clone(), moved: moved.clone() };
                    outputs.spawn(entries.read(output, stops.clone()));
                }
                Io::Stderr => {
                    let flow = served.intake.open(Label { io: Some(io), ..(*flow.label).clone() }, Reading::default());
                    outputs.spawn(super::read(output, flow, stops.clone()));
                }
            }
        }
        let ended = child.wait(served).await;
        // Entries that were not read are read by the next run, behind the cursor.
        finish(&child, outputs, &turned, served).await;
        cursor.clone_from(&at.borrow());
        ended
    }

    /// Returns the cursor of the newest entry if reading begins at the end, and an empty one for the beginning.
    /// If the newest cursor is unavailable, the end is the current time: older entries were never wanted.
    async fn first(&self, served: &Served) -> String {
        if served.config.start_at == StartAt::Beginning {
            return String::new();
        }
        let asked_at = format!("{SINCE}{}", now().0 / 1_000_000);
        let unknown = |why: &str| tracing::warn!("source {}: the newest entry of the journal is not known ({why}); it is read from now on", served.config.name);
        let newest = self.program.with(&["--lines=1".to_owned()]);
        let output = tokio::time::timeout(Duration::from_secs(30), newest.output()).await;
        let text = match output {
            Ok(Ok(text)) => text,
            Ok(Err(error)) => {
                unknown(&format!("journalctl cannot be started: {error}"));
                return asked_at;
            }
            Err(_) => {
                unknown("journalctl took more than 30 s");
                return asked_at;
            }
        };
        // `None`: there is no entry.
        let Some(last) = text.split(|byte| *byte == b'\n').rfind(|line| !line.is_empty()) else { return asked_at };
        let cursor = serde_json::from_slice::<Value>(last).ok().and_then(|entry| entry["__CURSOR"].as_str().map(str::to_owned));
        cursor.unwrap_or_else(|| {
            unknown("it cannot be read");
            asked_at
        })
    }
}

/// Returns the arguments that depend on the cursor.
fn arguments(cursor: &str) -> Vec<String> {
    let mut more = vec!["--follow".to_owned(), "--no-tail".to_owned()];
    match cursor.strip_prefix(SINCE) {
        Some(_) => more.push(format!("--since={cursor}")),
        None if cursor.is_empty() => {}
        None => more.push(format!("--after-cursor={cursor}")),
    }
    more
}

/// Reads entries from one run of `journalctl`.
struct Entries {
    flow: Arc<Flow>,
    counted: Arc<SourceMetrics>,
    /// Publishes the cursor of the last entry handed in.
    moved: watch::Sender<String>,
}

impl Entries {
    async fn read(self, output: Box<dyn AsyncRead + Send + Unpin>, mut stop: watch::Receiver<bool>) {
        let mut lines = FramedRead::with_capacity(output, Lines::new(MAX_ENTRY_BYTES), BATCH_BYTES);
        loop {
            let next = poll_fn(|cx| Pin::new(&mut lines).poll_next(cx));
            let came = tokio::select! {
                biased;
                came = next => came,
                _ = stop.wait_for(|stop| *stop) => None,
            };
            let Some(Ok(lines)) = came else { break };
            if !self.hand_in(&lines).await {
                break;
            }
        }
    }

    /// Hands in whole entries as messages. Returns `false` if the stream has ended.
    async fn hand_in(&self, lines: &[(Vec<u8>, bool)]) -> bool {
        let (mut out, mut cursor) = (String::new(), None);
        for (line, is_cut) in lines {
            match entry(line).filter(|_| !is_cut) {
                Some((message, place)) => {
                    out += &message;
                    cursor = Some(place);
                }
                None => {
                    self.counted.refused.of("unreadable_entry").add(1);
                    tracing::warn!("source {}: an entry of {} bytes could not be read and is left out", self.flow.label.source, line.len());
                }
            }
        }
        if !out.is_empty() && !self.flow.push(Bytes::from(out)).await {
            return false;
        }
        if let Some(cursor) = cursor {
            self.flow.cursor(cursor.clone());
            self.moved.send_replace(cursor);
        }
        true
    }
}

/// Converts an entry to a syslog message of RFC 5424, and returns it with the cursor. The
/// message is empty if the entry must not be read: siftd's own messages would report themselves.
fn entry(line: &[u8]) -> Option<(String, String)> {
    let entry: Value = serde_json::from_slice(line).ok()?;
    let cursor = entry["__CURSOR"].as_str()?.to_owned();
    let number = |name: &str| entry[name].as_str().and_then(|text| text.parse::<i64>().ok());
    let Some(text) = bytes(&entry["MESSAGE"]) else { return Some((String::new(), cursor)) };
    // Identified by name, not by process id: entries read again after a restart must give the same bytes.
    if entry["_COMM"] == "siftd" {
        return Some((String::new(), cursor));
    }
    let name = |names: &[&str]| names.iter().find_map(|name| entry[*name].as_str()).map_or_else(|| "-".to_owned(), word);
    let is_printed = entry["_TRANSPORT"] == "stdout" && number("PRIORITY") == Some(6);
    // Facility 3 (daemon): otherwise a notice would become 13, a message without a priority.
    let priority = number("PRIORITY").filter(|priority| (0..=7).contains(priority) && !is_printed).map_or(UNSTATED, |priority| 24 + priority);
    let time = number("__REALTIME_TIMESTAMP").map(Timestamp).and_then(|time| jiff::Timestamp::from_microsecond(time.0).ok());
    let time = time.map_or_else(|| "-".to_owned(), |time| format!("{time:.6}"));
    let mut out = String::new();
    let app = name(&["SYSLOG_IDENTIFIER", "_COMM", "_SYSTEMD_UNIT"]);
    let head = write!(out, "<{priority}>1 {time} {} {app} {} - - ", name(&["_HOSTNAME"]), name(&["_PID", "SYSLOG_PID"]));
    head.ok()?;
    out += text.trim_end_matches('\n');
    out.push('\n');
    Some((out, cursor))
}

/// Returns a field as text: the journal writes what is not UTF-8 as an array of bytes; of several values the first counts.
fn bytes(field: &Value) -> Option<String> {
    match field {
        Value::String(text) => Some(text.clone()),
        Value::Array(all) if all.iter().all(Value::is_u64) => {
            let bytes: Vec<u8> = all.iter().filter_map(|byte| u8::try_from(byte.as_u64()?).ok()).collect();
            Some(String::from_utf8_lossy(&bytes).into_owned())
        }
        Value::Array(all) => all.first().and_then(bytes),
        _ => None,
    }
}

/// Makes a name fit for a message header.
fn word(text: &str) -> String {
    let word: String = text.chars().take(128).map(|c| if c.is_ascii_graphic() { c } else { '_' }).collect();
    if word.is_empty() { "-".to_owned() } else { word }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_goes_on_behind_a_cursor_or_from_a_time() {
        let last = |cursor: &str| arguments(cursor).pop().unwrap();
        assert_eq!(last(""), "--no-tail");
        assert_eq!(last("s=1;i=7"), "--after-cursor=s=1;i=7");
        assert_eq!(last("@1795000000"), "--since=@1795000000");
    }

    #[test]
    fn entries_become_messages() {
        let entry = |more: &str| {
            let line =
                format!(r#"{{"__CURSOR":"s=1","__REALTIME_TIMESTAMP":"1795000000123456","_HOSTNAME":"web 01","SYSLOG_IDENTIFIER":"shop","_PID":"7",{more}}}"#);
            entry(line.as_bytes()).unwrap().0
        };
        let head = "2026-11-18T10:26:40.123456Z web_01 shop 7 - - ";
        let time = jiff::Timestamp::from_microsecond(1_795_000_000_123_456).unwrap();
        let head = head.replace("2026-11-18T10:26:40.123456Z", &format!("{time:.6}"));
        assert_eq!(entry(r#""PRIORITY":"3","_TRANSPORT":"syslog","MESSAGE":"gone""#), format!("<27>1 {head}gone\n"));
        assert_eq!(entry(r#""PRIORITY":"5","MESSAGE":"gone\nat x\n""#), format!("<29>1 {head}gone\nat x\n"));
        // An entry that a service printed without a priority of its own; then one with a priority.
        assert_eq!(entry(r#""PRIORITY":"6","_TRANSPORT":"stdout","MESSAGE":"a""#), format!("<13>1 {head}a\n"));
        assert_eq!(entry(r#""PRIORITY":"3","_TRANSPORT":"stdout","MESSAGE":"a""#), format!("<27>1 {head}a\n"));
        assert_eq!(entry(r#""MESSAGE":[195,169,255]"#), format!("<13>1 {head}é\u{fffd}\n"));
        assert_eq!(entry(r#""MESSAGE":["one","two"]"#), format!("<13>1 {head}one\n"));
        assert_eq!(entry(r#""MESSAGE":null"#), "");
        assert_eq!(entry(r#""_COMM":"siftd","MESSAGE":"source x: ERROR""#), "");
        for broken in ["", "{", "[]", r#"{"MESSAGE":"a"}"#] {
            assert_eq!(super::entry(broken.as_bytes()), None, "{broken}");
        }
    }
}
