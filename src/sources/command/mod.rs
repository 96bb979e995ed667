//! A program whose output is read. It is started, restarted after it has ended (as `restart` says), and ended with its whole
//! process group; if it ends by itself, what it has left of that group is ended before the next start. stdout and stderr are
//! separate streams, new ones for each start. How the program ended becomes an `exit` record.

mod child;
pub mod journal;
mod restart;

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::flow::{Flow, Reading};
use super::socket::Served;
use crate::config::{Restart, SourceConfig, SourceKind};
use crate::core::event::Timestamp;
use crate::delivery::{Exit, Label, Missed, Notice, Why, derived_id};
use crate::sources::clock::now;
use crate::words::Io;

pub use child::Program;
use child::{Child, Ended};
use restart::Backoff;

/// Bytes per read.
const READ_BYTES: usize = 16 << 10;
/// After the program has ended, what other processes still print is read for this long.
const LEFTOVERS: Duration = Duration::from_secs(2);
/// After its group was ended as well, what is in the outputs is read at least this long, should others hold them open.
const LAST: Duration = Duration::from_millis(100);
/// Maximum number of bytes that are read once an output is to be read no further: more than a pipe holds, and an end to a
/// process that prints without one.
const MAX_LAST_BYTES: usize = 1 << 20;

/// Runs a program until it is not to be restarted, or the source is to end.
pub async fn run(program: Program, mut served: Served) {
    let label = Label { argv: program.shown.clone(), ..served.label() };
    let own = served.intake.open(label.clone(), Reading::default());
    let mut runs = Runs::new(&served.config);
    loop {
        let (turned, stops) = watch::channel(false);
        let mut outputs = JoinSet::new();
        let ended = match program.start() {
            Ok(mut child) => {
                for (io, output) in child.take_outputs() {
                    let flow = served.intake.open(Label { io: Some(io), ..label.clone() }, Reading::default());
                    outputs.spawn(read(output, flow, stops.clone()));
                }
                let ended = child.wait(&mut served).await;
                let since = now();
                if finish(&child, outputs, &turned, &mut served).await {
                    runs.cut(&own, since, &served);
                }
                ended
            }
            Err(error) => not_started(&served, &error),
        };
        let goes_on = runs.ended(&own, &ended, &served);
        let Some(pause) = goes_on else { break };
        tokio::select! {
            () = served.stopped() => break,
            () = tokio::time::sleep(pause) => served.counted.restarts.add(1),
        }
    }
    own.end();
}

/// Reports that a program cannot be started, with the exit code a shell would use.
fn not_started(served: &Served, error: &std::io::Error) -> Ended {
    served.counted.trouble.set(format!("cannot be started: {error}"));
    tracing::warn!("source {}: cannot be started: {error}", served.config.name);
    let code = if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 };
    Ended { code: Some(code), signal: None, was_stopped: false, ran: Duration::ZERO }
}

/// Reads what the outputs of a program that has ended still hold, for a limited time, and ends what it has left of its group. Returns whether
/// more could have been printed: a process that is ended here, or that has left the group, had an output open.
async fn finish(child: &Child, mut outputs: JoinSet<()>, turned: &watch::Sender<bool>, served: &mut Served) -> bool {
    let until = Instant::now() + LEFTOVERS;
    tokio::select! {
        () = join(&mut outputs) => {}
        () = tokio::time::sleep(LEFTOVERS) => {}
        () = served.stopped() => {}
    }
    // That the end of siftd ends what runs is no loss.
    let is_cut = child.is_held() && !*served.stop.borrow();
    if child.end_group(served.config.stop_timeout).await {
        tracing::info!("source {}: processes that its command has left behind were ended", served.config.name);
    }
    let left = until.saturating_duration_since(Instant::now()).max(LAST);
    if tokio::time::timeout(left, join(&mut outputs)).await.is_err() {
        turned.send_replace(true);
    }
    let is_held = child.is_held();
    join(&mut outputs).await;
    is_cut || is_held
}

async fn join(outputs: &mut JoinSet<()>) {
    while outputs.join_next().await.is_some() {}
}

/// Reads one output to its end, or until told to stop, and waits until its stream was processed.
async fn read(mut output: Box<dyn AsyncRead + Send + Unpin>, flow: Arc<Flow>, mut stop: watch::Receiver<bool>) {
    let mut space = BytesMut::with_capacity(READ_BYTES);
    let mut left = MAX_LAST_BYTES;
    while left > 0 {
        space.reserve(READ_BYTES);
        let count = tokio::select! {
            biased;
            count = output.read_buf(&mut space) => count.unwrap_or(0),
            _ = stop.wait_for(|stop| *stop) => 0,
        };
        if count == 0 || !flow.push(space.split().freeze()).await {
            break;
        }
        if *stop.borrow() {
            left = left.saturating_sub(count);
        }
    }
    flow.end();
    flow.finished().await;
}

/// The runs of one program.
struct Runs {
    restart: Restart,
    backoff: Backoff,
    count: u64,
}

impl Runs {
    fn new(config: &SourceConfig) -> Self {
        Self { restart: config.restart, backoff: Backoff::new(config.restart_delay, config.max_restart_delay), count: 0 }
    }

    /// Reports that the run that has just ended, at `since`, could have been followed by more output.
    fn cut(&self, own: &Arc<Flow>, since: Timestamp, served: &Served) {
        tracing::warn!("source {}: its command has ended, and other processes had its output open; what they print after that is not read", served.config.name);
        let why = Why::LeftBehind;
        let id = derived_id("gap", &[&own.uid, why.as_str().as_bytes(), &self.count.to_be_bytes()]);
        own.notice(Notice::Gap { id, why, missed: Missed::Unknown, from: since, to: now() });
    }

    /// Returns the record of how the run that has just ended went.
    fn exit(&self, own: &Arc<Flow>, ended: &Ended) -> Notice {
        let outcome = match (ended.was_stopped, ended.code) {
            (true, _) => "stopped",
            (false, Some(0)) => "success",
            (false, _) => "failure",
        };
        let exit = Exit {
            code: ended.code.map(i64::from),
            signal: ended.signal,
            duration_ms: Some(u64::try_from(ended.ran.as_millis()).unwrap_or(u64::MAX)),
            outcome,
            attempts: self.count,
            judged: None,
        };
        Notice::Exit { id: derived_id("exit", &[&own.uid, &self.count.to_be_bytes()]), exit }
    }

    /// Reports how a run ended; returns the pause before the next run, or `None` if there is none.
    fn ended(&mut self, own: &Arc<Flow>, ended: &Ended, served: &Served) -> Option<Duration> {
        self.count += 1;
        let is_success = ended.code == Some(0);
        // That `journalctl` ends together with siftd is not worth a record.
        if !(ended.was_stopped && served.config.kind == SourceKind::Journald) {
            own.notice(self.exit(own, ended));
        }
        let goes_on = !ended.was_stopped
            && match self.restart {
                Restart::Never => false,
                Restart::OnFailure => !is_success,
                Restart::Always => true,
            };
        let pause = goes_on.then(|| self.backoff.pause(ended.ran));
        let how = match (ended.code, ended.signal) {
            (Some(code), _) => format!("exited with {code}"),
            (_, Some(signal)) => format!("was ended by signal {signal}"),
            _ => "ended".to_owned(),
        };
        if !ended.was_stopped {
            let next = pause.map_or_else(|| "is not started anew".to_owned(), |pause| format!("starts anew in {pause:?}"));
            match is_success && !goes_on {
                true => tracing::info!("source {}: {how}, {next}", served.config.name),
                false => tracing::warn!("source {}: {how}, {next}", served.config.name),
            }
        }
        match goes_on && !is_success {
            true => served.counted.trouble.set(format!("its command {how}")),
            false => served.counted.trouble.clear(),
        }
        pause
    }
}

/// The two outputs of a program.
type Outputs = Vec<(Io, Box<dyn AsyncRead + Send + Unpin>)>;
