//! `/metrics`, `/healthz`, `/readyz`, `/status` and `siftd status`: what they report, and that no client can harm them.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::rig::{ONE, World, error, siftd};
use super::wait::{DEADLINE, wait};

/// Returns a configuration that answers on a port.
fn configuration(port: u16) -> String {
    format!("[telemetry]\nlisten = \"127.0.0.1:{port}\"\n[error_detection]\nnoise_patterns = [\"punycode\"]\n{ONE}")
}

/// Returns a port that is currently free.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn get(port: u16, request: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    // The daemon may have closed the connection because the request is too long.
    let _ = stream.write_all(request.as_bytes());
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

pub fn page(port: u16, path: &str) -> String {
    get(port, &format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n"))
}

fn start(world: &World) -> (super::rig::Daemon, u16) {
    let port = free_port();
    world.configure(&configuration(port));
    (world.start(&[]), port)
}

#[test]
fn counters_follow_what_happens_and_health_is_said() {
    let world = World::new();
    world.append("a.log", &format!("{}{}", error("first"), error("[DEP0040] punycode is deprecated")));
    let (daemon, port) = start(&world);
    world.written("one.ndjson", 1);
    let wanted = [
        "siftd_source_lines_total{source=\"a\"} 2",
        "siftd_events_total{source=\"a\",category=\"unknown_error\",severity=\"medium\"} 1",
        "siftd_source_lag_bytes{source=\"a\"} 0",
        "siftd_source_files{source=\"a\"} 1",
        "siftd_sink_waiting_records{sink=\"one\"} 0",
        "siftd_outbox_bytes 0",
        "siftd_ready 1",
        "siftd_pipeline_stalled 0",
        "siftd_config_last_reload_successful 1",
    ];
    let metrics = wait("every counter", || Some(page(port, "/metrics")).filter(|text| wanted.iter().all(|line| text.lines().any(|shown| shown == *line))));
    assert!(metrics.starts_with("HTTP/1.1 200 OK\r\n") && metrics.contains("content-type: text/plain; version=0.0.4"), "{metrics}");
    assert!(metrics.contains("siftd_noise_lines_total{rule=\"custom"), "{metrics}");
    assert!(metrics.contains("siftd_commit_duration_seconds_bucket{le=\"+Inf\"}"), "{metrics}");
    assert!(page(port, "/healthz").ends_with("\r\n\r\nok\n"));
    assert!(page(port, "/readyz").ends_with("\r\n\r\nok\n"));
    assert!(page(port, "/status").contains("\"sources\":[{"));
    assert_eq!(daemon.stop(), Some(0));
}

/// How soon that is shown, a unit test of the timers says: here other programs may take any time.
#[test]
fn nothing_is_left_when_all_is_read() {
    let world = World::new();
    let text = "all is well\n".repeat(200_000);
    world.append("a.log", &text);
    let (daemon, port) = start(&world);
    let shows = |line: &str| wait(line, || page(port, "/metrics").lines().any(|shown| shown == line).then_some(()));
    shows(&format!("siftd_source_read_bytes_total{{source=\"a\"}} {}", text.len()));
    shows("siftd_source_lag_bytes{source=\"a\"} 0");
    assert_eq!(daemon.stop(), Some(0));
}

/// Records wait for the peer: its absence is reported, but is no reason to take siftd out of service.
#[test]
fn a_peer_that_is_away_is_said_and_it_is_ready() {
    let world = World::new();
    world.append("a.log", &error("first"));
    let port = free_port();
    let away = format!("[[sink]]\nname = \"away\"\ntype = \"tcp\"\naddress = \"127.0.0.1:{}\"\n[delivery]\nshutdown_grace = \"100ms\"\n", free_port());
    world.configure(&format!("{}{away}", configuration(port)));
    let daemon = world.start(&[]);
    world.written("one.ndjson", 1);
    wait("the trouble", || page(port, "/metrics").contains("siftd_sink_up{sink=\"away\"} 0").then_some(()));
    assert!(page(port, "/readyz").ends_with("\r\n\r\nok\n"));
    let (code, text, _) = siftd(&["status", "--config", "siftd.toml"], world.folder.path());
    assert!(code == Some(0) && text.contains("trouble: sink away: "), "{text}");
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn check_tries_folders_files_and_addresses() {
    let world = World::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    world.configure(&configuration(taken.local_addr().unwrap().port()).replace("@/a*.log", "@/none/*.log"));
    let (code, out, hints) = siftd(&["check", "--config", "siftd.toml"], world.folder.path());
    assert_eq!((code, out.contains(": ok (1 source,")), (Some(0), true), "{out}{hints}");
    assert!(hints.contains("hint: source a: ") && hints.contains("/none: is not there yet"), "{hints}");
    assert!(hints.contains("hint: `listen` in [telemetry]: 127.0.0.1:"), "{hints}");
}

/// The address is in use by the first daemon, but that is not the second one's mistake.
#[test]
fn a_second_one_with_the_same_state_is_told_who_has_it() {
    let world = World::new();
    world.append("a.log", "");
    let (daemon, _) = start(&world);
    let (code, _, said) = siftd(&["run", "--config", "siftd.toml"], world.folder.path());
    assert!(code == Some(2) && said.contains("is in use by process ") && !said.contains("listen"), "{said}");
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn hostile_clients_keep_nobody_from_an_answer() {
    let world = World::new();
    world.append("a.log", "");
    let (daemon, port) = start(&world);
    let memory = |key: &str| {
        let text = std::fs::read_to_string(format!("/proc/{}/status", daemon.child.id())).unwrap();
        let line = text.lines().find(|line| line.starts_with(key)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
    };
    let before = memory("VmRSS:");
    // Half a request each, and then nothing.
    let idle: Vec<TcpStream> = (0..70)
        .map(|_| {
            let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
            stream.write_all(b"GET /metrics HTTP/1.1\r\nX: ").unwrap();
            stream
        })
        .collect();
    let asked = Instant::now();
    assert!(page(port, "/healthz").ends_with("ok\n"), "behind all of them");
    assert!(asked.elapsed() < Duration::from_secs(60), "{:?}", asked.elapsed());
    drop(idle);
    for (request, code) in [
        (format!("GET /metrics HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(1 << 20)), "431"),
        ("\u{16}\u{3}\u{1}\0\u{2}".repeat(100), "400"),
        ("POST /status HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n{".to_owned(), "405"),
        ("GET /../../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(), "404"),
    ] {
        let answer = get(port, &request);
        // A client that sends more than is read may see a reset before the answer.
        assert!(answer.is_empty() || answer.starts_with(&format!("HTTP/1.1 {code}")), "{code}: {answer}");
    }
    assert!(page(port, "/readyz").ends_with("ok\n"));
    assert!(memory("VmRSS:") < before + (16 << 10), "{} KiB before, {} KiB now", before, memory("VmRSS:"));
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn status_finds_the_daemon_by_its_state_folder() {
    let world = World::new();
    world.append("a.log", &error("first"));
    let (daemon, _) = start(&world);
    world.written("one.ndjson", 1);
    let ask = |more: &[&str]| siftd(&[&["status", "--config", "siftd.toml"], more].concat(), world.folder.path());
    let shown = wait("the file", || Some(ask(&[])).filter(|(_, shown, _)| shown.contains("outbox: 0 B of 1.0 GiB") && shown.contains("  0 B   1\n")));
    let (code, text, said) = shown;
    assert_eq!((code, said.as_str()), (Some(0), ""));
    assert!(text.contains(": ready for ") && text.contains("SINK  TYPE  STATE   WAITING"), "{text}");
    let (_, json, _) = ask(&["--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["state"], &json["sources"][0]["events"]["medium"]), (&"ready".into(), &1.into()));
    assert_eq!(json["pid"], daemon.child.id());

    world.configure("x = 1");
    daemon.signal(Signal::SIGHUP);
    let other = |more: &[&str]| siftd(&[&["status", "--state-dir", "state"], more].concat(), world.folder.path());
    let (_, text, _) = wait("the mistake", || Some(other(&[])).filter(|(_, text, _)| text.contains("the old one goes on")));
    assert!(text.contains("unknown key `x`"), "{text}");
    assert_eq!(daemon.stop(), Some(0));
    let (code, _, said) = other(&[]);
    assert_eq!(code, Some(2));
    assert!(said.contains("no siftd runs with the state folder state: name another one with --state-dir"), "{said}");
}

#[test]
fn status_names_a_daemon_that_says_nothing() {
    let world = World::new();
    world.append("a.log", "");
    let (daemon, _) = start(&world);
    daemon.signal(Signal::SIGSTOP);
    let (code, _, said) = siftd(&["status", "--config", "siftd.toml"], world.folder.path());
    daemon.signal(Signal::SIGCONT);
    assert!(code == Some(2) && said.contains(&format!("/state: process {} uses it and does not answer within ", daemon.child.id())), "{said}");
    assert_eq!(daemon.stop(), Some(0));
}
