//! Real sockets on the loopback; the sink runs on the test's clock.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::time::Instant;

use rustls::pki_types::{PrivateKeyDer, pem::PemObject};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::*;
use crate::core::event::Severity;
use crate::sinks::book::{Book, everything};
use crate::sinks::tls::{Own, Trust, provider};

const S: i64 = 1_000_000;

fn sink(target: Target) -> Stream {
    let choose = everything();
    let timeout = Duration::from_secs(5);
    let options = Options { target, choose, timeout, max_delay: Duration::from_secs(1), unread_max: 1 << 20 };
    Stream::new(options, SinkMark { name: "out".into(), ..SinkMark::default() }, Box::new(|| 0))
}

/// Steps until `is_so`, on a clock that advances by `pace` with each step.
#[track_caller]
fn drive(sink: &mut Stream, book: &mut Book, now: &mut i64, pace: i64, is_so: impl Fn(&Book, &io::Result<Step>) -> bool) -> io::Result<Step> {
    let start = Instant::now();
    loop {
        let hurry = book.is_over;
        let step = sink.step(book, Timestamp(*now), hurry);
        if is_so(book, &step) {
            return step;
        }
        assert!(start.elapsed() < Duration::from_secs(30), "{step:?}");
        *now += pace;
    }
}

/// Returns everything that a peer received until the end of the connection.
fn all(mut stream: impl Read) -> Vec<u64> {
    let mut text = Vec::new();
    let _ = stream.read_to_end(&mut text);
    numbers(&text)
}

fn numbers(text: &[u8]) -> Vec<u64> {
    let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let lines = text[..whole].split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| String::from_utf8_lossy(line).split(' ').next().unwrap().parse().unwrap()).collect()
}

fn tcp() -> (TcpListener, Target) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = Target::Tcp(listener.local_addr().unwrap().to_string(), None);
    (listener, target)
}

#[test]
fn an_orderly_end_leaves_nothing_to_send_again() {
    let (listener, target) = tcp();
    let peer = std::thread::spawn(move || all(listener.accept().unwrap().0));
    let (mut sink, mut book, mut now) = (sink(target), Book::default(), 0);
    book.add(3, 10);
    book.is_over = true;
    drive(&mut sink, &mut book, &mut now, 1000, |_, step| matches!(step, Ok(Step::Settled))).unwrap();
    assert_eq!(peer.join().unwrap(), [1, 2, 3]);
    assert_eq!(book.told.last().map(|mark| mark.seq), Some(3));
}

#[test]
fn what_may_be_unread_is_sent_again_after_a_reset() {
    let (listener, target) = tcp();
    let (mut sink, mut book, mut now) = (sink(target), Book::default(), 0);
    let peer = std::thread::spawn(move || {
        // Read some, and leave the rest unread: closing then causes a reset.
        let (mut stream, _) = listener.accept().unwrap();
        let mut seen = vec![0; 40_000];
        stream.read_exact(&mut seen).unwrap();
        drop(stream);
        (numbers(&seen), all(listener.accept().unwrap().0))
    });
    for _ in 0..8 {
        book.add(100, 1000);
    }
    let lost = drive(&mut sink, &mut book, &mut now, 1000, |_, step| step.is_err()).unwrap_err();
    assert!(lost.to_string().starts_with("tcp 127.0.0.1:") && lost.kind() == io::ErrorKind::Other, "{lost}");
    assert_eq!(sink.step(&mut book, Timestamp(now), false).unwrap(), Step::Paused);
    assert_eq!(sink.deadline(), Some(Timestamp(now + S / 10)));
    book.is_over = true;
    drive(&mut sink, &mut book, &mut now, 1000, |_, step| matches!(step, Ok(Step::Settled))).unwrap();
    let (first, second) = peer.join().unwrap();
    assert!(first.len() > 30 && second == (1..=800).collect::<Vec<_>>(), "{} {}", first.len(), second.len());
}

#[test]
fn a_record_is_done_with_enough_behind_it_and_not_before() {
    let (listener, target) = tcp();
    let (mut sink, mut book, mut now) = (sink(target), Book::default(), 0);
    let peer = std::thread::spawn(move || all(listener.accept().unwrap().0));
    for _ in 0..20 {
        book.add(100, 1000);
    }
    drive(&mut sink, &mut book, &mut now, 1000, |_, step| matches!(step, Ok(Step::Idle | Step::Paused | Step::Settled))).unwrap();
    let (link, seq) = (sink.link.as_ref().unwrap(), sink.mark.seq);
    let behind = link.written - 1004 * seq;
    assert!(seq > 0 && link.ends.len() as u64 == 2000 - seq && behind >= 1 << 20, "{seq} {behind}");
    // With time, those are done too, except what may be in flight.
    drive(&mut sink, &mut book, &mut now, S, |book, _| book.told.last().is_some_and(|mark| mark.seq > seq)).unwrap();
    let link = sink.link.as_ref().unwrap();
    let unsure: u64 = link.ends.len() as u64 * 1003;
    assert!(unsure + 2 * 1006 >= link.connection.in_flight_max && unsure <= link.connection.in_flight_max + 2 * 1006, "{unsure}");
    drop(sink);
    assert_eq!(peer.join().unwrap().len(), 2000);
}

#[test]
fn a_peer_that_takes_nothing_is_left_after_the_timeout() {
    let (listener, target) = tcp();
    let (mut sink, mut book, mut now) = (sink(target), Book::default(), 0);
    for _ in 0..100 {
        book.add(100, 1000);
    }
    let lost = drive(&mut sink, &mut book, &mut now, S, |_, step| step.is_err()).unwrap_err();
    assert!(lost.to_string().ends_with("the peer took nothing for 5s"), "{lost}");
    drop(listener);
    now += S;
    let refused = drive(&mut sink, &mut book, &mut now, S, |_, step| step.is_err()).unwrap_err();
    assert!(refused.to_string().contains("refused"), "{refused}");
}

#[test]
fn a_peer_that_closes_when_it_owes_nothing_is_no_failure() {
    let (listener, target) = tcp();
    let (mut sink, mut book, mut now) = (sink(target), Book::default(), 0);
    sink.options.choose.min_severity = Severity::Blocking;
    book.add(50_000, 10);
    // Nothing is chosen: no connection is made, and no memory is taken.
    drive(&mut sink, &mut book, &mut now, S, |_, step| matches!(step, Ok(Step::Settled))).unwrap();
    assert!(sink.link.is_none());
    sink.options.choose.min_severity = Severity::Low;
    book.add(1, 10);
    let mut first: Option<TcpStream> = None;
    drive(&mut sink, &mut book, &mut now, 1000, |_, step| matches!(step, Ok(Step::Paused))).unwrap();
    first.replace(listener.accept().unwrap().0);
    sink.options.choose.min_severity = Severity::Blocking;
    book.add(50_000, 10);
    drive(&mut sink, &mut book, &mut now, S, |_, step| matches!(step, Ok(Step::Idle))).unwrap();
    assert_eq!(sink.link.as_ref().unwrap().ends.len(), 1);
    drop(first);
    // One record may be unread.
    drive(&mut sink, &mut book, &mut now, S, |_, step| step.is_err()).unwrap_err();
}

#[test]
fn a_socket_in_the_file_system() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let (mut sink, mut book, mut now) = (sink(Target::Unix(path.clone())), Book::default(), 0);
    book.add(3, 10);
    let why = drive(&mut sink, &mut book, &mut now, S, |_, step| step.is_err()).unwrap_err();
    assert!(why.to_string().contains("No such file"), "{why}");
    let listener = UnixListener::bind(&path).unwrap();
    let peer = std::thread::spawn(move || all(listener.accept().unwrap().0));
    book.is_over = true;
    drive(&mut sink, &mut book, &mut now, S, |_, step| matches!(step, Ok(Step::Settled))).unwrap();
    assert_eq!(peer.join().unwrap(), [1, 2, 3]);
}

/// A server with a self-signed certificate for this name; it may require one from the client.
fn server(name: &str, wants_client: bool) -> (rcgen::CertifiedKey<rcgen::KeyPair>, ServerConfig) {
    let own = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
    let key = || PrivateKeyDer::from_pem_slice(own.signing_key.serialize_pem().as_bytes()).unwrap();
    let builder = ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions().unwrap();
    let builder = if wants_client {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(own.cert.der().clone()).unwrap();
        builder.with_client_cert_verifier(rustls::server::WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider()).build().unwrap())
    } else {
        builder.with_no_client_auth()
    };
    let config = builder.with_single_cert(vec![own.cert.der().clone()], key()).unwrap();
    (own, config)
}

fn secure(listener: &TcpListener, config: ServerConfig) -> Vec<u64> {
    let stream = listener.accept().unwrap().0;
    let mut stream = StreamOwned::new(ServerConnection::new(Arc::new(config)).unwrap(), stream);
    let numbers = all(&mut stream);
    let _ = stream.flush();
    numbers
}

#[test]
fn tls_with_and_without_a_certificate_of_our_own() {
    for has_own in [false, true] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (own, config) = server("localhost", has_own);
        let key = own.signing_key.serialize_pem().into_bytes();
        let trust = Trust { roots: vec![own.cert.der().clone()], own: has_own.then(|| Own { chain: vec![own.cert.der().clone()], key }) };
        let address = format!("localhost:{}", listener.local_addr().unwrap().port());
        let target = Target::Tcp(address, Some(Arc::new(trust.client().unwrap())));
        let peer = std::thread::spawn(move || secure(&listener, config));
        let (mut sink, mut book, mut now) = (sink(target), Book::default(), 0);
        for _ in 0..8 {
            book.add(100, 1000);
        }
        book.is_over = true;
        drive(&mut sink, &mut book, &mut now, 1000, |_, step| matches!(step, Ok(Step::Settled))).unwrap();
        assert_eq!(peer.join().unwrap(), (1..=800).collect::<Vec<_>>());
    }
}

#[test]
fn a_certificate_of_someone_else_and_garbage_are_refused() {
    let refused = |name: &str, wants_client: bool, answer: Option<&'static [u8]>| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (own, config) = server(name, wants_client);
        let trust = Trust { roots: vec![own.cert.der().clone()], own: None };
        let target = Target::Tcp(format!("localhost:{}", listener.local_addr().unwrap().port()), Some(Arc::new(trust.client().unwrap())));
        std::thread::spawn(move || match answer {
            None => drop(secure(&listener, config)),
            Some(garbage) => drop(listener.accept().unwrap().0.write_all(garbage)),
        });
        let (mut sink, mut book, mut now) = (sink(target), Book::default(), 0);
        book.add(3, 10);
        drive(&mut sink, &mut book, &mut now, 1000, |_, step| step.is_err()).unwrap_err().to_string()
    };
    let why = refused("else.example", false, None);
    assert!(why.contains("TLS: invalid peer certificate"), "{why}");
    let why = refused("localhost", true, None);
    assert!(why.contains("TLS: received fatal alert"), "{why}");
    let why = refused("localhost", false, Some(b"220 smtp.example ESMTP\r\n"));
    assert!(why.contains("(TLS): "), "{why}");
}
