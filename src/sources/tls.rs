//! TLS of a source: certificate, key and the roots of client certificates, and handshakes
//! with a timeout. An invalid file is reported by name when the source starts.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};
use tokio_rustls::server::TlsStream;

use super::socket::said::Said;
use crate::config::TlsConfig;
use crate::pem;
use crate::words::counted;

/// Encrypts connections.
#[derive(Clone)]
pub struct Acceptor {
    inner: TlsAcceptor,
    timeout: Duration,
    said: Arc<Mutex<Said>>,
}

impl Acceptor {
    /// Reads the files of a configuration.
    ///
    /// # Errors
    /// Which file is invalid, and why.
    pub fn new(config: &TlsConfig) -> Result<Self, String> {
        let provider = Arc::new(ring::default_provider());
        let certificates = pem::certificates(&config.certificate).map_err(|why| format!("certificate {why}"))?;
        let key = pem::key(&config.key).map_err(|why| format!("key {why}"))?;
        let builder = ServerConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions().map_err(|error| error.to_string())?;
        let builder = match &config.client_ca {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let mut roots = RootCertStore::empty();
                for root in pem::certificates(path).map_err(|why| format!("client_ca {why}"))? {
                    roots.add(root).map_err(|error| format!("client_ca {}: {error}", path.display()))?;
                }
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
                builder.with_client_cert_verifier(verifier.map_err(|error| format!("client_ca {}: {error}", path.display()))?)
            }
        };
        let server = builder.with_single_cert(certificates, key);
        let server =
            server.map_err(|error| format!("certificate {} and key {} do not go together: {error}", config.certificate.display(), config.key.display()))?;
        Ok(Self { inner: TlsAcceptor::from(Arc::new(server)), timeout: config.handshake_timeout, said: Arc::default() })
    }

    /// Makes a handshake.
    ///
    /// # Errors
    /// It failed, or took too long.
    pub async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        match tokio::time::timeout(self.timeout, self.inner.accept(stream)).await {
            Ok(done) => done,
            Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "no handshake within handshake_timeout")),
        }
    }

    /// Logs a failed handshake, if a message is due.
    pub fn failed(&self, source: &str, peer: &str, error: &io::Error) {
        if let Some(count) = self.said.lock().unwrap_or_else(PoisonError::into_inner).happened(Instant::now()) {
            tracing::warn!("source {source}: {} failed, the last with {peer}: {error}", counted(count, "TLS handshake"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_files_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        std::fs::write(path("cert.pem"), made.cert.pem()).unwrap();
        std::fs::write(path("key.pem"), made.signing_key.serialize_pem()).unwrap();
        std::fs::write(path("other.pem"), rcgen::KeyPair::generate().unwrap().serialize_pem()).unwrap();
        std::fs::write(path("text"), "hello").unwrap();
        std::fs::write(path("cut.pem"), &made.cert.pem()[..200]).unwrap();
        let config = |certificate: &str, key: &str, client_ca: Option<&str>| TlsConfig {
            certificate: path(certificate),
            key: path(key),
            client_ca: client_ca.map(path),
            ..TlsConfig::default()
        };
        assert!(Acceptor::new(&config("cert.pem", "key.pem", Some("cert.pem"))).is_ok());
        for (certificate, key, client_ca, said) in [
            ("none.pem", "key.pem", None, "none.pem: No such file"),
            ("text", "key.pem", None, "text: holds no certificate"),
            ("key.pem", "key.pem", None, "key.pem: holds no certificate"),
            ("cut.pem", "key.pem", None, "cut.pem: is cut"),
            ("cert.pem", "cert.pem", None, "cert.pem: holds no private key"),
            ("cert.pem", "other.pem", None, "do not go together"),
            ("cert.pem", "key.pem", Some("text"), "client_ca"),
        ] {
            let why = Acceptor::new(&config(certificate, key, client_ca)).err().unwrap_or_default();
            assert!(why.contains(said), "{why:?} should say {said:?}");
        }
    }
}
