//! TLS: a peer whose certificate leads to the right root is read, a peer without one is not, and garbage costs nothing.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::rig::{DEADLINE, Daemon};

/// A root, and certificates issued by it.
struct Authority {
    root: CertificateDer<'static>,
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

type Identity = (CertificateDer<'static>, PrivateKeyDer<'static>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let root = params.self_signed(&key).unwrap();
        Self { root: root.der().clone(), pem: root.pem(), issuer: Issuer::new(params, key) }
    }

    /// Returns certificate and key in PEM, and the same for a client of this test.
    fn issue(&self, name: &str) -> (String, String, Identity) {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new([name.to_owned()]).unwrap().signed_by(&key, &self.issuer).unwrap();
        let identity = (certificate.der().clone(), PrivateKeyDer::try_from(key.serialize_der()).unwrap());
        (certificate.pem(), key.serialize_pem(), identity)
    }
}

/// Starts a daemon that requires client certificates, and returns the authority of both sides.
fn daemon(more: &str) -> (Daemon, Authority) {
    let authority = Authority::new();
    let (certificate, key, _) = authority.issue("localhost");
    let sources = format!(
        "[[source]]\nname = \"in\"\ntype = \"tcp\"\naddress = \"127.0.0.1:0\"\n[source.tls]\ncertificate = \"FOLDER/cert.pem\"\nkey = \"FOLDER/key.pem\"\nclient_ca = \"FOLDER/ca.pem\"\n{more}\n"
    );
    let mut daemon = Daemon::new(&sources);
    for (name, text) in [("cert.pem", &certificate), ("key.pem", &key), ("ca.pem", &authority.pem)] {
        std::fs::write(daemon.path(name), text).unwrap();
    }
    daemon.start();
    (daemon, authority)
}

/// Sends over TLS; returns whether the other side accepted it.
fn send(daemon: &Daemon, root: &Authority, identity: Option<Identity>, text: &str) -> bool {
    let mut roots = RootCertStore::empty();
    roots.add(root.root.clone()).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider())).with_safe_default_protocol_versions().unwrap();
    let builder = builder.with_root_certificates(roots);
    let config = match identity {
        Some((certificate, key)) => builder.with_client_auth_cert(vec![certificate], key).unwrap(),
        None => builder.with_no_client_auth(),
    };
    let tls = ClientConnection::new(Arc::new(config), ServerName::try_from("localhost").unwrap()).unwrap();
    let mut stream = StreamOwned::new(tls, daemon.connect("in"));
    let sent = stream.write_all(text.as_bytes()).and_then(|()| stream.flush());
    stream.conn.send_close_notify();
    let closed = sent.and_then(|()| stream.conn.complete_io(&mut stream.sock).map(drop));
    // The other side rejects a certificate only after the handshake.
    closed.is_ok() && stream.read(&mut [0; 1]).is_ok()
}

#[test]
fn only_who_has_a_certificate_of_the_right_root_is_heard() {
    let (mut daemon, authority) = daemon("");
    assert!(!send(&daemon, &authority, None, "<11>nobody\n"));
    let (.., foreign) = Authority::new().issue("client");
    assert!(!send(&daemon, &authority, Some(foreign), "<11>a stranger\n"));
    let (.., client) = authority.issue("client");
    send(&daemon, &authority, Some(client), "<11>a client\n");
    daemon.wait_for(&["a client"]);
    assert!(daemon.stderr().contains("TLS handshake") && daemon.stderr().contains(" failed, the last with "), "{}", daemon.stderr());
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn garbage_and_silence_instead_of_a_handshake_cost_nobody_anything() {
    let (mut daemon, authority) = daemon("handshake_timeout = \"300ms\"");
    let silent: Vec<TcpStream> = (0..50).map(|_| daemon.connect("in")).collect();
    for garbage in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0x16, 3, 1, 0xff, 0xff, 1, 0, 0, 9], &[0; 70_000], b"<11>without TLS\n"] {
        let mut peer = daemon.connect("in");
        // The connection may be closed in the middle.
        drop(peer.write_all(garbage));
    }
    let (.., client) = authority.issue("client");
    send(&daemon, &authority, Some(client), "<11>a client\n");
    daemon.wait_for(&["a client"]);
    for mut peer in silent {
        peer.set_read_timeout(Some(DEADLINE)).unwrap();
        assert!(!matches!(peer.read(&mut [0; 10]), Ok(1..)), "it is closed");
    }
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn a_certificate_that_cannot_be_read_is_said_at_the_start_and_by_check() {
    let sources =
        "[[source]]\nname = \"in\"\ntype = \"tcp\"\naddress = \"127.0.0.1:0\"\n[source.tls]\ncertificate = \"FOLDER/none.pem\"\nkey = \"FOLDER/none.pem\"\n";
    let mut daemon = Daemon::started(sources);
    assert_eq!(daemon.child.take().unwrap().wait().unwrap().code(), Some(2));
    assert!(daemon.stderr().contains("none.pem: No such file or directory: correct the path"), "{}", daemon.stderr());
    let check = std::process::Command::new(env!("CARGO_BIN_EXE_siftd")).args(["check", "--config", "siftd.toml"]).current_dir(&daemon.folder).output().unwrap();
    let said = String::from_utf8_lossy(&check.stderr);
    assert!(check.status.code() == Some(2) && said.contains("none.pem: No such file or directory: correct the path"), "{said}");
}
