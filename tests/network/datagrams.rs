//! Datagram sockets, and datagrams that the kernel drops.

use std::cell::Cell;
use std::net::UdpSocket;
use std::os::unix::net::UnixDatagram;

use super::rig::Daemon;

#[test]
fn each_datagram_is_a_message_and_each_sender_a_stream() {
    let sources = "[[source]]\nname = \"net\"\ntype = \"udp\"\naddress = \"127.0.0.1:0\"\n[[source]]\nname = \"local\"\ntype = \"unix\"\npath = \"FOLDER/log.sock\"\nmode = \"datagram\"\n";
    let mut daemon = Daemon::started(sources);
    let address = daemon.address("net");
    let [one, other] = [0, 0].map(|_| UdpSocket::bind("127.0.0.1:0").unwrap());
    // A trace that is not cut by a datagram from another sender.
    for (socket, text) in [
        (&one, "<11>1 - h app 1 - - Traceback (most recent call last):"),
        (&one, "<11>1 - h app 1 - -   File \"a.py\", line 3, in f"),
        (&other, "<11>1 - h app 1 - - the store is gone"),
        (&one, "<11>1 - h app 1 - -     g()"),
        (&one, "<11>1 - h app 1 - - ValueError: boom"),
        (&other, ""),
        (&other, "<14>1 - h app 1 - - error count is 0\n"),
        (&other, "<12>\u{fffd}\0\0"),
    ] {
        socket.send_to(text.as_bytes(), address).unwrap();
    }
    let local = UnixDatagram::unbound().unwrap();
    daemon.until("it does not listen", || local.send_to(b"<10>Nov 20 10:00:00 cron[7]: the job is gone", daemon.path("log.sock")).is_ok());
    daemon.until("not all came", || daemon.texts().len() >= 3);
    assert_eq!(daemon.texts(), ["ValueError: boom", "the job is gone", "the store is gone"]);
    let records = daemon.records();
    let boom = records.iter().find(|record| record["text"] == "ValueError: boom").unwrap();
    assert_eq!(boom["source"]["peer"], one.local_addr().unwrap().to_string());
    assert_eq!(boom["multiline"].as_array().unwrap().len(), 4);
    assert_eq!(daemon.stop(), Some(0));
    assert!(!daemon.path("log.sock").exists());
}

#[test]
fn what_the_kernel_drops_is_counted_to_the_last_datagram() {
    let mut daemon = Daemon::started("[[source]]\nname = \"net\"\ntype = \"udp\"\naddress = \"127.0.0.1:0\"\nreceive_buffer = \"32KiB\"\n");
    let address = daemon.address("net");
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let sent = Cell::new(0);
    let send = || {
        sent.set(sent.get() + 1);
        socket.send_to(format!("<11>app[1]: job {} is gone", sent.get()).as_bytes(), address).unwrap();
    };
    let received = || daemon.of_kind("error").len() as u64;
    let lost = || daemon.of_kind("gap").iter().map(|gap| gap["datagrams"].as_u64().unwrap()).sum::<u64>();
    send();
    daemon.until("it does not read", || received() == 1);
    // While the daemon is stopped, nothing reads.
    daemon.signal("-STOP");
    (0..2000).for_each(|_| send());
    daemon.signal("-CONT");
    // The kernel reports dropped datagrams together with one that it has kept.
    daemon.until("the loss is not said", || {
        send();
        lost() > 0
    });
    send();
    daemon.until("not all are accounted for", || received() + lost() >= sent.get());
    assert_eq!(received() + lost(), sent.get(), "lost {}", lost());
    let gap = &daemon.of_kind("gap")[0];
    assert_eq!((&gap["why"], &gap["source"]["name"], &gap["source"]["type"]), (&"udp_loss".into(), &"net".into(), &"udp".into()));
    assert!(daemon.stderr().contains("raise receive_buffer"), "{}", daemon.stderr());
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn what_is_cut_off_a_datagram_is_counted() {
    let mut daemon = Daemon::started("[[source]]\nname = \"local\"\ntype = \"unix\"\npath = \"FOLDER/log.sock\"\nmode = \"datagram\"\n");
    let local = UnixDatagram::unbound().unwrap();
    let message = format!("<11>app[1]: the job is gone\n{}", "x".repeat(76_000));
    daemon.until("it does not listen", || local.send_to(message.as_bytes(), daemon.path("log.sock")).is_ok());
    daemon.until("the loss is not said", || !daemon.of_kind("gap").is_empty());
    let gap = &daemon.of_kind("gap")[0];
    assert_eq!((&gap["why"], &gap["bytes"], &gap["source"]["name"]), (&"datagram_cut".into(), &(message.len() - (64 << 10)).into(), &"local".into()));
    daemon.until("the rest is not read", || daemon.texts() == ["the job is gone"]);
    assert!(daemon.stderr().contains("bytes were cut off"), "{}", daemon.stderr());
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn a_sender_beyond_its_rate_is_counted() {
    let mut daemon = Daemon::started("[[source]]\nname = \"net\"\ntype = \"udp\"\naddress = \"127.0.0.1:0\"\nmax_peer_bytes_per_second = \"1KiB\"\n");
    let address = daemon.address("net");
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    for number in 0..40 {
        socket.send_to(format!("<11>app[1]: {number} {}", "x".repeat(100)).as_bytes(), address).unwrap();
    }
    let all = || daemon.of_kind("error").len() as u64 + daemon.of_kind("gap").iter().map(|gap| gap["datagrams"].as_u64().unwrap()).sum::<u64>();
    daemon.until("not all are accounted for", || all() == 40);
    assert_eq!(daemon.of_kind("gap")[0]["why"], "rate_limit");
    assert!((5..40).contains(&daemon.of_kind("error").len()));
    assert_eq!(daemon.stop(), Some(0));
}
