//! Peers that refuse, hang, reset, answer with errors or garbage, and recover, while the daemon
//! is killed. Uses real loopback sockets and the real binary. Used by tests and a bench.

use std::collections::HashSet;
use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::killing::{DEADLINE, Daemon, until};

/// How a peer currently behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Mood {
    /// Nothing listens.
    Refuse,
    /// It accepts connections and reads nothing.
    Hang,
    /// It reads a part, loses it, and leaves the rest unread.
    Reset,
    /// It sends garbage, and loses what it reads.
    Garbage,
    /// http: it answers 500, or 429 with `Retry-After`.
    Errors,
    /// http: it accepts everything and closes the connection before the answer.
    Late,
    /// http: it refuses every batch for good.
    Refused,
    Good,
}

const MOODS: [Mood; 8] = [Mood::Refuse, Mood::Hang, Mood::Reset, Mood::Garbage, Mood::Errors, Mood::Late, Mood::Refused, Mood::Good];

/// A peer, and the lines that it has received.
pub struct Peer {
    pub address: SocketAddr,
    mood: Arc<AtomicU8>,
    stop: Arc<AtomicBool>,
    lines: Arc<Mutex<Vec<String>>>,
    thread: Option<JoinHandle<()>>,
}

type Serve = fn(TcpStream, &dyn Fn() -> Mood, &Mutex<Vec<String>>);

impl Peer {
    /// Starts a peer that receives lines.
    pub fn tcp() -> Self {
        Self::start(take_lines)
    }

    /// Starts a peer that receives batches by POST.
    pub fn http() -> Self {
        Self::start(take_posts)
    }

    /// The same, for batches that are not compressed; what it receives is whole batches, not lines.
    pub fn batches() -> Self {
        Self::start(take_bodies)
    }

    fn start(serve: Serve) -> Self {
        let first = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = first.local_addr().unwrap();
        let (mood, stop, lines) = (Arc::new(AtomicU8::new(0)), Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
        let (its_mood, its_stop, its_lines) = (mood.clone(), stop.clone(), lines.clone());
        let thread = std::thread::spawn(move || {
            let mut listener = Some(first);
            while !its_stop.load(Ordering::Relaxed) {
                let now = MOODS[usize::from(its_mood.load(Ordering::Relaxed))];
                if now == Mood::Refuse {
                    listener = None;
                    std::thread::sleep(Duration::from_millis(5));
                    continue;
                }
                // A closing connection may still occupy the port for a moment.
                let Some(open) = listener.take().or_else(|| TcpListener::bind(address).ok()) else { continue };
                open.set_nonblocking(true).unwrap();
                if let Ok((stream, _)) = open.accept() {
                    stream.set_nonblocking(false).unwrap();
                    let (mood, stop, lines) = (its_mood.clone(), its_stop.clone(), its_lines.clone());
                    std::thread::spawn(move || {
                        // A connection ends when its peer's mood changes.
                        let current = || if stop.load(Ordering::Relaxed) { Mood::Refuse } else { MOODS[usize::from(mood.load(Ordering::Relaxed))] };
                        serve(stream, &current, &lines);
                    });
                } else {
                    std::thread::sleep(Duration::from_millis(2));
                }
                listener = Some(open);
            }
        });
        Self { address, mood, stop, lines, thread: Some(thread) }
    }

    pub fn set(&self, mood: Mood) {
        self.mood.store(MOODS.iter().position(|known| *known == mood).unwrap() as u8, Ordering::Relaxed);
    }

    pub fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }

    fn count(&self) -> usize {
        self.lines.lock().unwrap().len()
    }

    fn distinct(&self) -> usize {
        self.lines.lock().unwrap().iter().collect::<HashSet<_>>().len()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        drop(self.thread.take().unwrap().join());
    }
}

/// Holds a connection without reading while the mood is the same. Unread bytes then make the close a reset.
fn hold(stream: TcpStream, mood: &dyn Fn() -> Mood) {
    let begun = mood();
    while mood() == begun {
        std::thread::sleep(Duration::from_millis(5));
    }
    drop(stream);
}

fn take_lines(stream: TcpStream, mood: &dyn Fn() -> Mood, lines: &Mutex<Vec<String>>) {
    match mood() {
        Mood::Good => {}
        Mood::Reset => drop((&stream).read(&mut [0; 5000])),
        Mood::Garbage => {
            let _ = (&stream).write_all(&[0xff; 100_000]);
            return drop((&stream).read(&mut [0; 5000]));
        }
        _ => return hold(stream, mood),
    }
    if mood() == Mood::Reset {
        return;
    }
    stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let mut reader = BufReader::new(stream);
    let mut line = Vec::new();
    while mood() == Mood::Good {
        match reader.read_until(b'\n', &mut line) {
            Ok(0) => return,
            Ok(_) if line.ends_with(b"\n") => {
                lines.lock().unwrap().push(String::from_utf8(line[..line.len() - 1].to_vec()).unwrap());
                line.clear();
            }
            // Either the rest of the line is still to come, or the connection ended and the torn line is none.
            _ => {}
        }
    }
}

fn take_posts(stream: TcpStream, mood: &dyn Fn() -> Mood, lines: &Mutex<Vec<String>>) {
    take_batches(stream, mood, &|body| {
        let mut text = String::new();
        flate2::read::GzDecoder::new(body).read_to_string(&mut text).unwrap();
        lines.lock().unwrap().extend(text.lines().map(str::to_owned));
    });
}

fn take_bodies(stream: TcpStream, mood: &dyn Fn() -> Mood, bodies: &Mutex<Vec<String>>) {
    take_batches(stream, mood, &|body| bodies.lock().unwrap().push(String::from_utf8(body.to_vec()).unwrap()));
}

fn take_batches(stream: TcpStream, mood: &dyn Fn() -> Mood, take: &dyn Fn(&[u8])) {
    match mood() {
        Mood::Hang => return hold(stream, mood),
        Mood::Reset => return drop((&stream).read(&mut [0; 500])),
        _ => {}
    }
    let mut reader = BufReader::new(stream);
    let mut errors = 0;
    loop {
        // A connection that is not used is closed; one in use is read to the end of the batch, however slow the machine.
        reader.get_ref().set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        if reader.fill_buf().map_or(true, <[u8]>::is_empty) {
            return;
        }
        reader.get_ref().set_read_timeout(Some(DEADLINE)).unwrap();
        let (mut length, mut line) = (0, String::new());
        while reader.read_line(&mut line).is_ok_and(|count| count > 2) {
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            line.clear();
        }
        let mut body = vec![0; length];
        if length == 0 || reader.read_exact(&mut body).is_err() {
            return;
        }
        let now = mood();
        if matches!(now, Mood::Good | Mood::Late) {
            take(&body);
        }
        errors += 1;
        let answer: &[u8] = match now {
            Mood::Good => b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
            Mood::Errors if errors % 2 == 0 => b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n",
            Mood::Errors => b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 4\r\n\r\noops",
            Mood::Refused => b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 12\r\n\r\nwho are you?",
            Mood::Garbage => b"\x00\xff SSH-2.0 garbage\r\n\r\n",
            _ => return,
        };
        if reader.get_mut().write_all(answer).is_err() || now == Mood::Garbage {
            return;
        }
    }
}

/// What the peers received.
pub struct Seen {
    pub tcp_twice: usize,
    pub http_twice: usize,
    pub rss_kib: u64,
    pub took: Duration,
}

/// Sends `count` errors while both peers go through every mood twice and the daemon is
/// killed in between. Fails if a line is missing, changed or out of order at either peer.
#[track_caller]
pub fn play(folder: &Path, count: usize, pause: Duration, longest: Duration) -> Seen {
    let (tcp, http) = (Peer::tcp(), Peer::http());
    let sinks = format!(
        "[[sink]]\nname = \"lines\"\ntype = \"tcp\"\naddress = \"{}\"\ntimeout = \"2s\"\nmax_delay = \"300ms\"\n\
         [[sink]]\nname = \"posts\"\ntype = \"http\"\nurl = \"http://{}/in\"\ncompress = true\nbatch_wait = \"50ms\"\ntimeout = \"2s\"\nmax_delay = \"300ms\"\n",
        tcp.address, http.address
    );
    let mut daemon = Daemon::new(folder, &sinks);
    daemon.start();
    let moods = [Mood::Refuse, Mood::Good, Mood::Late, Mood::Hang, Mood::Reset, Mood::Garbage, Mood::Errors];
    let turns = 2 * moods.len();
    let mut log = std::io::BufWriter::new(OpenOptions::new().append(true).create(true).open(daemon.log("a.log")).unwrap());
    let mut written = 0;
    for turn in 0..turns {
        tcp.set(moods[turn % moods.len()]);
        // Each peer has a different mood.
        http.set(moods[(turn + 3) % moods.len()]);
        while written < count * (turn + 1) / turns {
            writeln!(log, "2026-09-21T10:00:00Z ERROR job-{written} {}\nall is well", "x".repeat(200)).unwrap();
            written += 1;
        }
        let before = http.count();
        log.flush().unwrap();
        std::thread::sleep(pause);
        if moods[(turn + 3) % moods.len()] == Mood::Late {
            until("nothing comes to a peer that breaks off before the answer", || http.count() > before);
        }
        if turn == 4 || turn == 9 {
            daemon.kill();
            daemon.start();
        }
    }
    let back = Instant::now();
    let mut rss_kib = 0;
    tcp.set(Mood::Good);
    http.set(Mood::Good);
    while tcp.distinct() < count || http.distinct() < count {
        let seen = (tcp.distinct(), http.distinct());
        assert!(back.elapsed() < longest, "{seen:?} of {count} came\n{}", daemon.stderr());
        rss_kib = rss_kib.max(memory_kib(daemon.pid()));
        std::thread::sleep(Duration::from_millis(100));
    }
    let took = back.elapsed();
    daemon.stop();
    let file = fs::read_to_string(folder.join("out.ndjson")).unwrap();
    let wanted: Vec<&str> = file.lines().collect();
    assert_eq!(wanted.len(), count, "{}", daemon.stderr());
    let [tcp_twice, http_twice] = [("tcp", tcp), ("http", http)].map(|(name, peer)| repeats(name, &peer.lines(), &wanted));
    Seen { tcp_twice, http_twice, rss_kib, took }
}

/// Counts repeated lines. The first occurrences must be in the order of the file, and no line may be changed.
fn repeats(name: &str, lines: &[String], wanted: &[&str]) -> usize {
    let mut seen = HashSet::new();
    let first: Vec<&str> = lines.iter().map(String::as_str).filter(|line| seen.insert(*line)).collect();
    let wrong = first.iter().zip(wanted).position(|(is, wanted)| is != wanted);
    assert_eq!(wrong, None, "{name}: {:?} instead of {:?}", wrong.map(|at| first[at]), wrong.map(|at| wanted[at]));
    assert_eq!(first.len(), wanted.len(), "{name}");
    lines.len() - first.len()
}

fn memory_kib(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
