//! The sink against a simulated server, on the test's clock; and against a real one on the loopback.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::Mutex;

use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use serde_json::Value;

use super::*;
use crate::core::event::Severity;
use crate::sinks::book::{Book, everything};
use crate::sinks::tls::{Own, Trust, provider};

const S: i64 = 1_000_000;

/// Responses to give in order, then 200; and what was sent.
#[derive(Clone, Default)]
struct Played {
    answers: Arc<Mutex<VecDeque<io::Result<Answer>>>>,
    bodies: Arc<Mutex<Vec<String>>>,
}

impl Played {
    fn say(&self, status: u16, body: &str) {
        self.answers.lock().unwrap().push_back(Ok(Answer { status, body: Some(body.into()), ..Answer::default() }));
    }

    /// Returns the `n` of each record of each request.
    fn sent(&self) -> Vec<Vec<u64>> {
        let numbers = |body: &String| body.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()?["n"].as_u64()).collect();
        self.bodies.lock().unwrap().iter().map(numbers).collect()
    }
}

impl Post for Played {
    fn post(&mut self, body: &[u8]) -> io::Result<Answer> {
        self.bodies.lock().unwrap().push(String::from_utf8(body.to_vec()).unwrap());
        self.answers.lock().unwrap().pop_front().unwrap_or_else(|| Ok(Answer { status: 200, body: Some(b"{\"errors\":false}".to_vec()), ..Answer::default() }))
    }
}

struct Play {
    folder: tempfile::TempDir,
    server: Played,
    sink: Http,
    book: Book,
    now: Timestamp,
}

fn options(folder: &std::path::Path, format: HttpFormat) -> Options {
    let (max_delay, max_reset_wait, batch_wait) = (Duration::from_secs(2), Duration::from_secs(60), Duration::from_secs(1));
    let dead_letter = DeadLetter { path: folder.join("dead.ndjson"), max_bytes: 1000 };
    let (choose, place) = (everything(), "http://server".to_owned());
    Options { place, choose, format, gzip: false, batch_rows: 8, batch_bytes: 1000, batch_wait, max_delay, max_reset_wait, dead_letter }
}

impl Play {
    fn new(format: HttpFormat, records: u64) -> Self {
        let (folder, server, mut book) = (tempfile::tempdir().unwrap(), Played::default(), Book::default());
        book.add_lines(records, |n| format!("{{\"id\":\"{n:032x}\",\"n\":{n}}}\n"));
        let mark = SinkMark { name: "out".into(), ..SinkMark::default() };
        let sink = Http::new(options(folder.path(), format), Box::new(server.clone()), mark, Box::new(|| 0));
        let mut play = Self { folder, server, sink, book, now: Timestamp(0) };
        assert_eq!(play.step().unwrap(), Step::Done, "the first step asks nobody");
        play
    }

    fn step(&mut self) -> io::Result<Step> {
        self.sink.step(&mut self.book, self.now, false)
    }

    /// Lets time pass until nothing is left to do; returns the errors on the way.
    fn settle(&mut self) -> Vec<String> {
        let mut wrong = Vec::new();
        for _ in 0..1000 {
            match self.step() {
                Ok(Step::Settled) => return wrong,
                Ok(_) => {}
                Err(why) => wrong.push(why.to_string()),
            }
            self.now.0 += S / 10;
        }
        panic!("{wrong:?}");
    }

    fn done(&self) -> u64 {
        self.book.told.last().map_or(0, |mark| mark.seq)
    }

    fn dead(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.folder.path().join("dead.ndjson")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

#[test]
fn batches_are_full_or_old() {
    let mut play = Play::new(HttpFormat::Ndjson, 20);
    assert_eq!((play.step().unwrap(), play.step().unwrap()), (Step::Done, Step::Done));
    assert_eq!(play.step().unwrap(), Step::Idle, "the rest waits for more");
    assert_eq!(play.sink.deadline(), Some(Timestamp(S)));
    play.book.add_lines(1, |n| format!("{{\"n\":{n}}}\n"));
    play.now.0 += S;
    assert_eq!(play.step().unwrap(), Step::Done);
    let numbers: Vec<Vec<u64>> = vec![(1..=8).collect(), (9..=16).collect(), (17..=21).collect()];
    assert_eq!(play.server.sent(), numbers);
    assert_eq!((play.settle(), play.done()), (vec![], 21));
}

#[test]
fn bytes_bound_a_batch_and_one_record_always_fits() {
    let mut play = Play::new(HttpFormat::Ndjson, 0);
    play.book.add_lines(7, |n| format!("{{\"n\":{n},\"x\":\"{}\"}}\n", "x".repeat(if n == 4 { 5000 } else { 400 })));
    play.settle();
    assert_eq!(play.server.sent(), [vec![1, 2], vec![3], vec![4], vec![5, 6], vec![7]]);
}

#[test]
fn what_is_not_wanted_by_this_sink_is_done_without_a_request() {
    let mut play = Play::new(HttpFormat::Ndjson, 20);
    play.sink.options.choose.min_severity = Severity::Blocking;
    assert_eq!((play.settle(), play.done(), play.server.sent().len()), (vec![], 20, 0));
}

#[test]
fn an_outage_of_every_kind_loses_nothing_and_keeps_the_order() {
    let mut play = Play::new(HttpFormat::Ndjson, 100);
    for status in [500, 429, 503, 408, 302] {
        play.server.say(status, "");
    }
    play.server.answers.lock().unwrap().push_back(Err(io::ErrorKind::BrokenPipe.into()));
    let wrong = play.settle();
    assert_eq!(wrong.len(), 6, "{wrong:?}");
    assert!(wrong[0] == "http://server: 500 Internal Server Error" && wrong[5] == "http://server: broken pipe", "{wrong:?}");
    let sent = play.server.sent();
    assert_eq!(sent[..7].iter().map(Vec::len).collect::<Vec<_>>(), [8, 4, 2, 1, 1, 1, 1], "smaller with each failure");
    let accepted: Vec<u64> = sent[6..].iter().flatten().copied().collect();
    assert_eq!(accepted, (1..=100).collect::<Vec<_>>());
    assert_eq!((play.done(), play.dead().len()), (100, 0));
}

#[test]
fn the_server_says_how_long_to_wait_up_to_a_limit() {
    let mut play = Play::new(HttpFormat::Ndjson, 8);
    for (asked, wanted) in [("7", 7 * S), ("3600", 60 * S), ("0", S / 2), ("nonsense", S)] {
        let answer = Answer { status: 429, retry_after: Some(asked.into()), ..Answer::default() };
        play.server.answers.lock().unwrap().push_back(Ok(answer));
        let why = loop {
            if let Err(why) = play.step() {
                break why;
            }
        };
        assert_eq!(why.kind(), io::ErrorKind::Other);
        assert_eq!(play.step().unwrap(), Step::Paused);
        let until = play.sink.deadline().unwrap();
        assert!((until.0 - play.now.0 - wanted).abs() <= S / 2, "{asked}: {}", until.0 - play.now.0);
        play.now = until;
    }
}

#[test]
fn one_bad_record_is_found_and_put_aside() {
    let mut play = Play::new(HttpFormat::Ndjson, 8);
    // 8, then 4, then 2, then 1: the first one is bad.
    for _ in 0..4 {
        play.server.say(400, "it is bad");
    }
    assert_eq!(play.settle(), [] as [&str; 0]);
    assert_eq!(play.server.sent().iter().map(Vec::len).collect::<Vec<_>>(), [8, 4, 2, 1, 2, 4, 1]);
    let dead = play.dead();
    assert_eq!(dead.len(), 1);
    assert_eq!((&dead[0]["record"]["n"], &dead[0]["status"], &dead[0]["reason"]), (&1.into(), &400.into(), &"it is bad".into()));
    assert_eq!((play.done(), metrics().sinks.of("out").dead_letters.get() > 0), (8, true));
}

/// Records refused after the first mention are mentioned once their minute is over, even if no others follow.
#[test]
fn refused_records_are_mentioned_again_with_their_number() {
    let mut play = Play::new(HttpFormat::Ndjson, 4);
    for _ in 0..40 {
        play.server.say(400, "they are bad");
    }
    play.settle();
    assert_eq!(play.dead().len(), 4);
    let due = play.sink.deadline().expect("more were refused than were mentioned");
    assert!(play.now < due && due.0 <= play.now.0 + 60 * S, "{due:?}");
    play.now = due;
    play.settle();
    assert_eq!(play.sink.deadline(), None, "all is said");
}

#[test]
fn a_full_dead_letter_file_makes_the_sink_wait_and_try_again() {
    let mut play = Play::new(HttpFormat::Ndjson, 40);
    for _ in 0..40 {
        play.server.say(403, "no");
    }
    let wrong: Vec<String> = (0..400)
        .filter_map(|_| {
            play.now.0 += S / 10;
            play.step().err().map(|why| why.to_string())
        })
        .collect();
    assert!(wrong[0].contains("403 no: ") && wrong[0].contains("dead_letter_max"), "{wrong:?}");
    let put_aside = play.dead().len() as u64;
    assert!((5..15).contains(&put_aside), "{put_aside}");
    play.server.answers.lock().unwrap().clear();
    play.settle();
    let sent: Vec<u64> = play.server.sent().concat();
    assert_eq!((play.done(), play.dead().len() as u64), (40, put_aside));
    assert_eq!(sent[sent.len() - (40 - put_aside as usize)..], (put_aside + 1..=40).collect::<Vec<_>>());
}

#[test]
fn elasticsearch_says_for_each_record_what_became_of_it() {
    let mut play = Play::new(HttpFormat::Elasticsearch, 4);
    let items = [r#"{"status":201}"#, r#"{"status":429}"#, r#"{"status":409}"#, r#"{"status":400,"error":{"type":"t","reason":"r"}}"#];
    play.server.say(200, &format!(r#"{{"errors":true,"items":[{}]}}"#, items.map(|item| format!(r#"{{"create":{item}}}"#)).join(",")));
    let wrong = play.settle();
    assert_eq!(wrong, ["http://server: 429 for some records"]);
    assert_eq!(play.server.sent(), [vec![1, 2, 3, 4], vec![2]]);
    let first = play.server.bodies.lock().unwrap()[0].lines().next().unwrap().to_owned();
    assert_eq!(first, format!("{{\"create\":{{\"_id\":\"{:032x}\"}}}}", 1));
    assert_eq!((play.dead().len(), play.dead()[0]["record"]["n"].clone(), play.done()), (1, 4.into(), 4));
}

fn way<'a>(url: String, millis: u64) -> Way<'a> {
    Way { url, headers: &[], token: None, trust: None, timeout: Duration::from_millis(millis), items: 0 }
}

/// Serves one connection: the head and body of each request, answered in turn.
fn serve(stream: impl Read + Write, answers: &[&str]) -> Vec<(String, Vec<u8>)> {
    let mut stream = BufReader::new(stream);
    let mut requests = Vec::new();
    for answer in answers {
        let (mut head, mut line) = (String::new(), String::new());
        while stream.read_line(&mut line).unwrap_or(0) > 2 {
            head += &line.to_lowercase();
            line.clear();
        }
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).map_or(0, |length| length.trim().parse().unwrap());
        let mut body = vec![0; length];
        stream.read_exact(&mut body).unwrap();
        requests.push((head, body));
        stream.get_mut().write_all(answer.as_bytes()).unwrap();
    }
    let _ = stream.get_mut().flush();
    requests
}

#[test]
fn a_real_request_has_its_headers_and_its_gzip() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/events?key=x", listener.local_addr().unwrap());
    let busy = "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 3\r\nContent-Length: 24\r\n\r\nBearer a-very-secret-one";
    let server = std::thread::spawn(move || serve(listener.accept().unwrap().0, &[busy, "HTTP/1.1 204 No Content\r\n\r\n"]));
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, "a-very-secret-one\n").unwrap();
    let options = Options { gzip: true, ..options(folder.path(), HttpFormat::Ndjson) };
    let mut headers = own_headers(&options);
    headers.push(("X-Tenant".into(), "shop".into()));
    let mut client = Client::new(Way { headers: &headers, token: Some(token), ..way(url, 10_000) }).unwrap();
    let answer = client.post(&squeezed(b"{}\n").unwrap()).unwrap();
    assert_eq!((answer.status, answer.retry_after.as_deref()), (429, Some("3")));
    assert_eq!(answer.body.as_deref(), Some(&b"(repeats our headers)"[..]));
    assert_eq!(client.post(b"x").unwrap().status, 204);
    let (head, body) = &server.join().unwrap()[0];
    for line in ["post /events?key=x http/1.1", "content-type: application/x-ndjson", "content-encoding: gzip", "x-tenant: shop"] {
        assert!(head.lines().any(|header| header == line), "{line}\n{head}");
    }
    assert!(head.contains("authorization: bearer a-very-secret-one") && head.contains("user-agent: siftd/"), "{head}");
    let mut text = String::new();
    flate2::read::GzDecoder::new(&body[..]).read_to_string(&mut text).unwrap();
    assert_eq!(text, "{}\n");
}

#[test]
fn servers_that_hang_break_off_or_talk_nonsense_give_an_error_and_no_more() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let long = format!("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n{}", "x".repeat(1_000_000)).leak();
    let answers: [&[u8]; 8] = [
        long.as_bytes(),
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/1.1 200",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 7\r\n\r\nhello",
        &[0xff; 4096],
    ];
    std::thread::spawn(move || {
        for answer in answers {
            let mut stream = listener.accept().unwrap().0;
            let _ = stream.write_all(answer);
            let _ = stream.shutdown(std::net::Shutdown::Write);
            // Not a reset: what was sent is read.
            let _ = stream.read(&mut [0; 4096]);
        }
        // This connection stays silent until the client has gone.
        let mut stream = listener.accept().unwrap().0;
        while stream.read(&mut [0; 4096]).is_ok_and(|count| count > 0) {}
    });
    let mut client = Client::new(way(url, 300)).unwrap();
    for answer in answers {
        let said = client.post(b"{}\n");
        assert!(said.is_err() || said.as_ref().is_ok_and(|said| said.status == 200 && said.body.is_none()), "{answer:?} {said:?}");
    }
    assert_eq!(client.post(b"{}\n").unwrap_err().to_string(), "no answer within the timeout");
}

#[test]
fn https_with_a_certificate_of_our_own_and_refused_without_trust() {
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let pem = || own.signing_key.serialize_pem().into_bytes();
    let key = || PrivateKeyDer::from_pem_slice(&pem()).unwrap();
    let chain = || vec![own.cert.der().clone()];
    let mut roots = rustls::RootCertStore::empty();
    roots.add(own.cert.der().clone()).unwrap();
    let verifier = rustls::server::WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider()).build().unwrap();
    let builder = rustls::ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions().unwrap();
    let config = Arc::new(builder.with_client_cert_verifier(verifier).with_single_cert(chain(), key()).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://localhost:{}/", listener.local_addr().unwrap().port());
    let server = std::thread::spawn(move || {
        let accept = || rustls::StreamOwned::new(rustls::ServerConnection::new(config.clone()).unwrap(), listener.accept().unwrap().0);
        let good = serve(accept(), &["HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"]).len();
        let mut stranger = accept();
        while stranger.conn.complete_io(&mut stranger.sock).is_ok_and(|(read, _)| read > 0) {}
        good
    });
    let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let client = |trust: &Trust| Client::new(Way { trust: Some(trust), ..way(url.clone(), 10_000) }).unwrap();
    let trust = Trust { roots: chain(), own: Some(Own { chain: chain(), key: pem() }) };
    assert_eq!(client(&trust).post(b"{}\n").unwrap().status, 200);
    let trust = Trust { roots: vec![other.cert.der().clone()], own: None };
    let why = client(&trust).post(b"{}\n").unwrap_err().to_string();
    assert!(why.contains("certificate"), "{why}");
    assert_eq!(server.join().unwrap(), 1);
}
