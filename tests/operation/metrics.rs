//! Makes every metric count: the event that it counts happens, and the metrics page shows it. The
//! test fails for a metric that nothing here triggers, and for one that `systemd/README.md` does not name.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use nix::sys::signal::Signal;
use siftd::telemetry::families::FAMILIES;

use super::health::{free_port, page};
use super::rig::{ONE, World, error};
use super::wait::{DEADLINE, wait};

/// The metrics page, and the highest value of each metric that was ever read.
struct Page<'a> {
    world: &'a World,
    port: u16,
    highest: BTreeMap<String, f64>,
}

impl Page<'_> {
    /// Returns all samples by name and labels.
    fn look(&mut self) -> BTreeMap<String, f64> {
        // Nothing reads the messages to the manager here, and the socket's buffer is small.
        self.world.hear_no_more();
        let text = page(self.port, "/metrics");
        let samples = text.lines().filter(|line| line.starts_with("siftd_")).filter_map(|line| line.rsplit_once(' '));
        let samples: BTreeMap<String, f64> = samples.map(|(name, value)| (name.to_owned(), value.parse().unwrap())).collect();
        for (name, value) in &samples {
            let family = name.split('{').next().unwrap();
            let highest = self.highest.entry(family.to_owned()).or_insert(*value);
            *highest = highest.max(*value);
        }
        samples
    }

    /// Waits until a sample has an accepted value.
    #[track_caller]
    fn until(&mut self, sample: &str, will_do: impl Fn(f64) -> bool) {
        let mut last = BTreeMap::new();
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            wait(sample, || {
                last = self.look();
                last.get(sample).copied().filter(|value| will_do(*value))
            })
        }));
        assert!(done.is_ok(), "{sample}: {last:#?}\n{}", self.world.said());
    }

    #[track_caller]
    fn is(&mut self, sample: &str, value: u64) {
        self.until(sample, |is| is == value as f64);
    }

    #[track_caller]
    fn grows(&mut self, sample: &str) {
        self.until(sample, |is| is > 0.0);
    }
}

/// Starts a peer that closes its first connections as soon as they send something, and reads the next ones.
fn forgetful_peer(first: usize) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().flatten().enumerate() {
            if number < first {
                let _ = (&stream).read(&mut [0; 64]);
            } else {
                std::thread::spawn(move || std::io::copy(&mut &stream, &mut std::io::sink()));
            }
        }
    });
    address
}

/// Starts a server that answers each request with this status.
fn server(status: Arc<AtomicU16>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let status = status.clone();
            std::thread::spawn(move || answer(BufReader::new(stream), &status));
        }
    });
    address
}

fn answer(mut stream: BufReader<TcpStream>, status: &AtomicU16) {
    loop {
        let (mut length, mut line) = (0, String::new());
        while stream.read_line(&mut line).is_ok_and(|count| count > 2) {
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            line.clear();
        }
        if length == 0 || stream.read_exact(&mut vec![0; length]).is_err() {
            return;
        }
        let answer = format!("HTTP/1.1 {} x\r\nContent-Length: 0\r\n\r\n", status.load(Ordering::Relaxed));
        if stream.get_mut().write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

/// Number of patterns that could match a line of 1 MiB: more than siftd tries on one line.
const PUMPS: usize = 65;

/// Sources and sinks of every kind that has metrics of its own.
fn configuration(ports: [u16; 3], lines: SocketAddr, posts: SocketAddr) -> String {
    let [listen, tcp, udp] = ports;
    let pumps: String = (0..PUMPS).map(|n| format!("{{ pattern = 'pump {n}: \\d', type = \"regex\" }},")).collect();
    format!(
        "[telemetry]\nlisten = \"127.0.0.1:{listen}\"\n[limits]\nmax_line_bytes = \"1MiB\"\n[error_detection]\nnoise_patterns = [\"punycode\"]\ncustom_patterns = [{pumps}]\n{ONE}\
         [[source]]\nname = \"b\"\ntype = \"file\"\ninclude = [\"@/b.log\", \"@/agent.jsonl\"]\nstart_at = \"beginning\"\n\
         [[source]]\nname = \"net\"\ntype = \"tcp\"\naddress = \"127.0.0.1:{tcp}\"\nmax_connections = 1\n\
         [[source]]\nname = \"dgrams\"\ntype = \"udp\"\naddress = \"127.0.0.1:{udp}\"\nmax_peer_bytes_per_second = \"1KiB\"\n\
         [[source]]\nname = \"job\"\ntype = \"command\"\nargv = [\"sh\", \"-c\", \"exit 3\"]\nrestart_delay = \"50ms\"\n\
         [[sink]]\nname = \"lines\"\ntype = \"tcp\"\naddress = \"{lines}\"\nmax_delay = \"100ms\"\n\
         [[sink]]\nname = \"posts\"\ntype = \"http\"\nurl = \"http://{posts}/\"\nbatch_wait = \"20ms\"\nmax_delay = \"100ms\"\n"
    )
}

#[test]
fn every_metric_counts_what_it_speaks_of() {
    let world = World::new();
    let status = Arc::new(AtomicU16::new(500));
    let ports = [free_port(), free_port(), free_port()];
    let good = configuration(ports, forgetful_peer(2), server(status.clone()));
    world.configure(&good);
    let daemon = world.start(&[("WATCHDOG_USEC", "4000000")]);
    let mut page = Page { world: &world, port: ports[0], highest: BTreeMap::new() };

    a_file_is_read(&world, &mut page);
    the_server_refuses(&mut page, &status);
    the_network_speaks(&mut page, ports);
    the_command_fails(&mut page);

    world.configure("x = 1");
    daemon.signal(Signal::SIGHUP);
    page.is("siftd_reloads_total{result=\"refused\"}", 1);
    page.is("siftd_config_last_reload_successful", 0);
    world.configure(&good);
    daemon.signal(Signal::SIGHUP);
    page.is("siftd_reloads_total{result=\"ok\"}", 1);
    page.is("siftd_config_last_reload_successful", 1);

    the_state_is_held(&world, &mut page);
    assert_eq!(daemon.stop(), Some(0), "{}", world.said());
    for family in FAMILIES {
        let is_driven = ["", "_count"].iter().any(|end| page.highest.get(&format!("{}{end}", family.name)).is_some_and(|value| *value > 0.0));
        assert!(is_driven, "{} was never above 0", family.name);
    }
}

fn a_file_is_read(world: &World, page: &mut Page<'_>) {
    let text = [error("first"), "curl: (7) Failed to connect to db port 5432 after 3 ms: Connection refused\n".to_owned(), error("punycode is deprecated")];
    let pumps: String = (0..PUMPS).map(|n| format!("pump {n}: ")).collect();
    let sections: String = (100..200).map(|n| format!("w{n}-1  | Failures:\n")).collect();
    let text = format!("{}{pumps}{}\nall is well\n{sections}", text.concat(), "x".repeat(2 << 20));
    world.append("a.log", &text);
    page.is("siftd_source_read_bytes_total{source=\"a\"}", text.len() as u64);
    page.is("siftd_source_lines_total{source=\"a\"}", 105);
    page.until("siftd_source_candidate_lines_total{source=\"a\"}", |is| (103.0..=105.0).contains(&is));
    page.is("siftd_source_truncated_lines_total{source=\"a\"}", 1);
    page.is("siftd_source_unasked_lines_total{source=\"a\"}", 1);
    page.is("siftd_source_cut_sections_total{source=\"a\"}", 36);
    page.is("siftd_source_lag_bytes{source=\"a\"}", 0);
    page.is("siftd_source_files{source=\"a\"}", 1);
    page.is("siftd_source_up{source=\"a\"}", 1);
    page.is("siftd_open_files", 1);
    page.is("siftd_events_total{source=\"a\",category=\"unknown_error\",severity=\"medium\"}", 1);
    page.is("siftd_events_total{source=\"a\",category=\"network_error\",severity=\"medium\"}", 1);
    let rule = wait("the noise", || page.look().into_keys().find(|name| name.starts_with("siftd_noise_lines_total{rule=\"custom")));
    page.is(&rule, 1);
    // A record of many short fields: where it is cut, it is none any more.
    let said = r#"{"type":"user","sessionId":"s","message":{"role":"user","content":"go on"}}"#;
    world.append("agent.jsonl", &format!("{said}\n{{\"type\":\"user\",\"more\":[{}]}}\n", "10,".repeat(400_000) + "1"));
    page.is("siftd_source_unread_records_total{source=\"b\"}", 1);
}

fn the_server_refuses(page: &mut Page<'_>, status: &AtomicU16) {
    page.grows("siftd_sink_retries_total{sink=\"posts\"}");
    page.is("siftd_sink_up{sink=\"posts\"}", 0);
    page.is("siftd_sink_up{sink=\"one\"}", 1);
    page.grows("siftd_outbox_bytes");
    page.grows("siftd_sink_waiting_records{sink=\"posts\"}");
    page.is("siftd_sink_dead_letters_total{sink=\"posts\"}", 0);
    status.store(401, Ordering::Relaxed);
    page.until("siftd_sink_dead_letters_total{sink=\"posts\"}", |is| is >= 2.0);
    status.store(200, Ordering::Relaxed);
    page.is("siftd_sink_up{sink=\"posts\"}", 1);
    // The other peer has closed two connections by then.
    page.is("siftd_sink_reconnects_total{sink=\"lines\"}", 2);
    page.grows("siftd_sink_written_bytes_total{sink=\"lines\"}");
    let out = fs::metadata(page.world.path("one.ndjson")).unwrap().len();
    page.until("siftd_sink_written_bytes_total{sink=\"one\"}", |is| is >= out as f64);
}

fn the_network_speaks(page: &mut Page<'_>, [_, tcp, udp]: [u16; 3]) {
    let mut one = TcpStream::connect(("127.0.0.1", tcp)).unwrap();
    one.write_all(b"<11>net is gone\n").unwrap();
    page.is("siftd_source_connections{source=\"net\"}", 1);
    let other = TcpStream::connect(("127.0.0.1", tcp)).unwrap();
    page.is("siftd_source_refused_connections_total{source=\"net\",reason=\"too_many\"}", 1);
    page.is("siftd_source_accepted_connections_total{source=\"net\"}", 1);
    drop((one, other));
    page.is("siftd_source_connections{source=\"net\"}", 0);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    for n in 0..40 {
        let text = format!("<11>app[1]: {n} {}", "x".repeat(100));
        socket.send_to(text.as_bytes(), ("127.0.0.1", udp)).unwrap();
    }
    page.is("siftd_source_datagrams_total{source=\"dgrams\"}", 40);
    page.grows("siftd_gaps_total{why=\"rate_limit\"}");
    page.until("siftd_gap_items_total{why=\"rate_limit\"}", |is| is > 0.0 && is < 40.0);
}

fn the_command_fails(page: &mut Page<'_>) {
    page.grows("siftd_source_restarts_total{source=\"job\"}");
    page.is("siftd_source_up{source=\"job\"}", 0);
}

/// Another process holds the state: nothing is committed, the readers wait, and a file is truncated before it is read.
fn the_state_is_held(world: &World, page: &mut Page<'_>) {
    let failures = page.look()["siftd_commit_failures_total"];
    let mut state = rusqlite::Connection::open(world.path("state/siftd.db")).unwrap();
    state.busy_timeout(DEADLINE).unwrap();
    let lock = state.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).unwrap();
    world.append("b.log", &(0..30_000).map(|n| error(&format!("job-{n}"))).collect::<String>());
    page.grows("siftd_source_lag_bytes{source=\"b\"}");
    page.is("siftd_pipeline_stalled", 1);
    page.until("siftd_commit_failures_total", |is| is > failures);
    OpenOptions::new().write(true).open(world.path("b.log")).unwrap().set_len(0).unwrap();
    lock.rollback().unwrap();
    page.is("siftd_pipeline_stalled", 0);
    page.is("siftd_gaps_total{why=\"truncated_file\"}", 1);
    page.grows("siftd_gap_bytes_total{why=\"truncated_file\"}");
    page.until("siftd_commit_duration_seconds_sum", |is| is > 1.0);
}

#[test]
fn the_page_names_every_metric_with_its_labels() {
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/systemd/README.md")).unwrap();
    for family in FAMILIES {
        let row = page
            .lines()
            .find(|line| line.starts_with(&format!("| `{}` |", family.name)))
            .unwrap_or_else(|| panic!("{} is not in systemd/README.md", family.name));
        assert!(row.contains(family.help) && family.labels.iter().all(|label| row.contains(&format!("`{label}`"))), "{row}");
        assert!(row.contains(&format!("| {} |", family.kind.as_str())), "{row}");
    }
}
