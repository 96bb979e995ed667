//! TLS of a source: certificate, key and the roots of client certificates from PEM files, and
//! handshakes with a timeout. An invalid file is reported by name when the source starts.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{Error as PemError, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};
use tokio_rustls::server::TlsStream;

use super::socket::said::Said;
use crate::config::TlsConfig;
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
        let certificates = certificates("certificate", &config.certificate)?;
        let key = key(&config.key)?;
        let builder = ServerConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions().map_err(|error| error.to_string())?;
        let builder = match &config.client_ca {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let mut roots = RootCertStore::empty();
                for root in self::certificates("client_ca", path)? {
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

fn certificates(what: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let fault = |why: String| format!("{what} {}: {why}", path.display());
    let all = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let all = all.map_err(|error| fault(explained(error)))?;
    if all.is_empty() {
        return Err(fault("holds no certificate: it must be PEM, with -----BEGIN CERTIFICATE-----".to_owned()));
    }
    Ok(all)
}

fn key(path: &Path) -> Result<PrivateKeyDer<'static>, String> {
    PrivateKeyDer::from_pem_file(path).map_err(|error| {
        let why = match error {
            PemError::NoItemsFound => "holds no private key: it must be PEM, with -----BEGIN PRIVATE KEY-----, and not encrypted".to_owned(),
            error => explained(error),
        };
        format!("key {}: {why}", path.display())
    })
}

fn explained(error: PemError) -> String {
    match error {
        PemError::Io(error) => {
            let why = error.to_string();
            format!("cannot be read: {}", why.split(" (os error").next().unwrap_or_default())
        }
        PemError::MissingSectionEnd { .. } => "is cut: a -----BEGIN line has no -----END line".to_owned(),
        PemError::IllegalSectionStart { .. } => "is damaged: a -----BEGIN line is not well formed".to_owned(),
        PemError::Base64Decode(_) => "is damaged: what stands between BEGIN and END is no base64".to_owned(),
        error => format!("is no PEM file: {error}"),
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
            ("none.pem", "key.pem", None, "none.pem: cannot be read: No such file"),
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
