//! A thousand hostile peers at once: memory stays bounded, and honest peers are still read.

use std::io::{ErrorKind, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::rig::{DEADLINE, Daemon};

const TCP: &str = "[[source]]\nname = \"in\"\ntype = \"tcp\"\naddress = \"127.0.0.1:0\"\nmax_connections = 2000\n";
/// Number of peers of each kind.
const EACH: usize = 200;
/// Maximum memory of the daemon, in KiB: 1,000 times line and look-back, in an unoptimised build.
const MAX_RESIDENT: u64 = 128 << 10;

/// Sends as much as is accepted at once.
fn pour(peer: &mut TcpStream, bytes: &[u8]) -> usize {
    match peer.write(bytes) {
        Ok(count) => count,
        Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_thousand_hostile_peers_cost_bounded_memory_and_the_honest_one_is_heard() {
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    if most < 2500 || setrlimit(Resource::RLIMIT_NOFILE, most.min(4096), most).is_err() {
        return crate::skip::skipped(format_args!("2500 descriptors, and may have {most}"));
    }
    let mut daemon = Daemon::started(TCP);
    let before = daemon.resident();
    let mut peers: Vec<TcpStream> = (0..5 * EACH).map(|_| daemon.connect("in")).collect();
    peers.iter().for_each(|peer| peer.set_nonblocking(true).unwrap());
    let endless = vec![b'x'; 64 << 10];
    let invalid: Vec<u8> = (0..4096u32).map(|n| (n % 251) as u8 | 0x80).collect();
    let (mut poured, mut resident) = (0, 0);
    let start = Instant::now();
    let mut honest = daemon.connect("in");
    let mut sent = 0;
    // Until each of the endless lines is many times the maximum length of a line.
    while poured < EACH * (1 << 20) && start.elapsed() < Duration::from_secs(60) {
        for (number, peer) in peers.iter_mut().enumerate() {
            match number % 5 {
                0 => poured += pour(peer, &endless),
                // One byte at a time; an invalid count; half of a multi-byte character for ever.
                1 => drop(pour(peer, b"<")),
                2 => drop(pour(peer, b"999999 <11>x")),
                3 => drop(pour(peer, &invalid)),
                // Half-open: the peer sends nothing, and its reading side is already closed.
                _ => drop(peer.shutdown(Shutdown::Read)),
            }
        }
        honest.write_all(format!("<11>honest {sent}\n").as_bytes()).unwrap();
        sent += 1;
        resident = resident.max(daemon.resident());
    }
    daemon.until("the honest one is not heard", || daemon.texts().iter().filter(|text| text.starts_with("honest")).count() == sent);
    resident = resident.max(daemon.resident());
    println!("{} peers, {} MiB of endless lines, {sent} honest messages: {before} KiB before, {resident} KiB at most", peers.len(), poured >> 20);
    assert!(resident < MAX_RESIDENT, "{before} KiB before, {resident} KiB at most");
    drop(peers);
    daemon.send("in", "<11>afterwards\n");
    daemon.until("it does not go on", || daemon.texts().iter().any(|text| text == "afterwards"));
    assert_eq!(daemon.stop(), Some(0));
}

/// Nothing can be committed, so nothing more is examined: peers that connect, send a line and leave must not pile up.
#[test]
fn peers_that_come_and_go_while_nothing_moves_are_bounded() {
    let mut daemon = Daemon::started(&TCP.replace("2000", "50"));
    daemon.send("in", "<11>first\n");
    daemon.wait_for(&["first"]);
    let mut state = rusqlite::Connection::open(daemon.path("state/siftd.db")).unwrap();
    state.busy_timeout(DEADLINE).unwrap();
    let lock = state.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).unwrap();
    let mut flood = daemon.connect("in");
    flood.set_nonblocking(true).unwrap();
    let lines = "<11>job-1 is gone\n".repeat(2000);
    let (mut taken_at, start) = (Instant::now(), Instant::now());
    while taken_at.elapsed() < Duration::from_millis(500) {
        assert!(start.elapsed() < DEADLINE, "it takes more and more");
        if pour(&mut flood, lines.as_bytes()) > 0 {
            taken_at = Instant::now();
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let before = daemon.resident();
    let (address, mut waiting) = (daemon.address("in"), 0);
    for _ in 0..600 {
        // Connections beyond the kernel's backlog get no answer.
        let peer = TcpStream::connect_timeout(&address, Duration::from_millis(10));
        waiting += usize::from(peer.is_ok_and(|mut peer| peer.write_all(b"<11>hello\n").is_ok()));
    }
    // The fifty connections that are kept have 256 KiB each; six hundred would have 150 MiB.
    assert!(daemon.resident() < before + (32 << 10), "{before} KiB before, {} KiB now", daemon.resident());
    lock.rollback().unwrap();
    drop(flood);
    daemon.send("in", b"<11>afterwards\n");
    daemon.until("it does not go on", || daemon.texts().iter().any(|text| text == "afterwards"));
    // Peers that got a connection lost nothing; the kernel may need a while for the last ones.
    let heard = || daemon.texts().iter().filter(|text| *text == "hello").count();
    daemon.until("who waited is not heard", || heard() >= waiting.min(100));
    assert_eq!(daemon.of_kind("gap").len(), 0);
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn an_endless_line_is_cut_and_said_so() {
    let mut daemon = Daemon::started(&format!("{TCP}max_line_bytes = \"4KiB\"\n"));
    let mut peer = daemon.connect("in");
    peer.write_all(b"<11>the store is gone ").unwrap();
    peer.write_all(&vec![b'x'; 3 << 20]).unwrap();
    peer.write_all(b" because of y\nTypeError: next\n").unwrap();
    drop(peer);
    daemon.until("not all came", || daemon.texts().len() == 2);
    let records = daemon.of_kind("error");
    let cut = records.iter().find(|record| record["truncated"] == true).unwrap();
    let text = cut["text"].as_str().unwrap();
    assert!(text.starts_with("the store is gone xxx") && text.ends_with(" because of y") && text.len() < 5000, "{text}");
    assert!(records.iter().any(|record| record["text"] == "TypeError: next" && record["line_num"] == 2));
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn invalid_bytes_resets_and_wrong_counts_leave_the_rest_readable() {
    let mut daemon = Daemon::started(TCP);
    daemon.send("in", b"<11>caf\xe9 is gone\n\xff\xfe\x00\xd8\n<11>\x1b]0;owned\x07 title\n".as_slice());
    daemon.send("in", "6 <11>two9 <11>three99999 <11>four\n");
    // A connection that is reset in the middle of a message.
    let peer = daemon.connect("in");
    (&peer).write_all(b"<11>reset\n<11>half a mess").unwrap();
    daemon.until("it was not read", || daemon.texts().iter().any(|text| text == "reset"));
    nix::sys::socket::setsockopt(&peer, nix::sys::socket::sockopt::Linger, &nix::libc::linger { l_onoff: 1, l_linger: 0 }).unwrap();
    drop(peer);
    let wanted = ["caf\u{fffd} is gone", "reset", "three", "half a mess", "four", "tw"];
    daemon.until("not all came", || wanted.iter().all(|wanted| daemon.texts().iter().any(|text| text == wanted)));
    assert!(!daemon.texts().iter().any(|text| text.contains('\u{1b}')), "{:?}", daemon.texts());
    assert_eq!(daemon.stop(), Some(0));
}
