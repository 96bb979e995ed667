//! Sockets passed by a service manager: the kernel keeps what is sent before siftd reads.

use std::io::Write;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::process::Command;

use rustix::io::{FdFlags, fcntl_setfd};

use super::rig::Daemon;

#[test]
fn sockets_are_taken_by_name_or_by_address() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
    let stranger = TcpListener::bind("127.0.0.1:0").unwrap();
    let (at, by_address) = (listener.local_addr().unwrap(), datagrams.local_addr().unwrap());
    let sources = format!(
        "[[source]]\nname = \"web\"\ntype = \"tcp\"\naddress = \"127.0.0.1:9\"\n[[source]]\nname = \"net\"\ntype = \"udp\"\naddress = \"{by_address}\"\n"
    );
    let mut daemon = Daemon::new(&sources);
    for socket in [listener.as_fd(), datagrams.as_fd(), stranger.as_fd()] {
        fcntl_setfd(socket, FdFlags::empty()).unwrap();
    }
    let numbers = [listener.as_raw_fd(), datagrams.as_raw_fd(), stranger.as_raw_fd()];
    // Sent before anything reads.
    TcpStream::connect(at).unwrap().write_all(b"<11>early\n").unwrap();
    let script = format!(
        "exec 200<&{} 201<&{} 202<&{}; exec 3<&200 4<&201 5<&202; LISTEN_PID=$$ LISTEN_FDS=3 LISTEN_FDNAMES=web:unnamed:other exec {} run --config siftd.toml",
        numbers[0],
        numbers[1],
        numbers[2],
        env!("CARGO_BIN_EXE_siftd")
    );
    let mut shell = Command::new("bash");
    shell.args(["-c", &script]);
    daemon.child = Some(daemon.dressed(shell).spawn().unwrap());
    UdpSocket::bind("127.0.0.1:0").unwrap().send_to(b"<11>by address", by_address).unwrap();
    daemon.wait_for(&["by address", "early"]);
    assert!(daemon.stderr().contains("socket \"other\" was passed, and no source takes it"), "{}", daemon.stderr());
    assert_eq!(daemon.stop(), Some(0));
}
