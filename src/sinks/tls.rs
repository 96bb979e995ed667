//! The trust settings of a sink that uses TLS, read from PEM files: whom it trusts, and how
//! it identifies itself. rustls does the rest. This module opens files but no connections.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

/// The files with the settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    /// Trusted authorities; `None`: those of the system.
    pub ca: Option<PathBuf>,
    /// Our certificate and its key.
    pub own: Option<(PathBuf, PathBuf)>,
}

/// The contents of the files.
pub struct Trust {
    /// Trusted authorities.
    pub roots: Vec<CertificateDer<'static>>,
    /// Our identity.
    pub own: Option<Own>,
}

/// Our identity.
pub struct Own {
    /// Our certificate, with its issuers.
    pub chain: Vec<CertificateDer<'static>>,
    /// Its private key, as PEM.
    pub key: Vec<u8>,
}

/// Returns the cryptography provider, named explicitly because a process may have several.
#[must_use]
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

impl Trust {
    /// Reads the files.
    ///
    /// # Errors
    /// A file cannot be read, or holds nothing of the expected kind.
    pub fn read(files: &Files) -> io::Result<Self> {
        let roots = match &files.ca {
            Some(path) => certificates(path)?,
            None => of_the_system()?,
        };
        let own = match &files.own {
            Some((certificate, key)) => Some(Own { chain: certificates(certificate)?, key: private_key(key)? }),
            None => None,
        };
        Ok(Self { roots, own })
    }

    /// Builds the configuration of a connection.
    ///
    /// # Errors
    /// Invalid certificates, or a key that does not belong to its certificate.
    pub fn client(&self) -> io::Result<ClientConfig> {
        let mut store = RootCertStore::empty();
        let (added, _) = store.add_parsable_certificates(self.roots.iter().cloned());
        if added == 0 {
            return Err(io::Error::other("none of the trusted certificates can be used"));
        }
        let builder = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions().map_err(io::Error::other)?;
        let builder = builder.with_root_certificates(store);
        match &self.own {
            None => Ok(builder.with_no_client_auth()),
            Some(Own { chain, key }) => {
                let key = PrivateKeyDer::from_pem_slice(key).map_err(io::Error::other)?;
                let config = builder.with_client_auth_cert(chain.clone(), key);
                config.map_err(|why| io::Error::other(format!("cert_file and key_file: {why}")))
            }
        }
    }
}

fn of_the_system() -> io::Result<Vec<CertificateDer<'static>>> {
    let found = rustls_native_certs::load_native_certs();
    if found.certs.is_empty() {
        let why = found.errors.first().map_or_else(String::new, |why| format!(": {why}"));
        return Err(io::Error::other(format!("the system has no trusted certificates{why}; install ca-certificates, or name a ca_file")));
    }
    Ok(found.certs)
}

fn certificates(path: &Path) -> io::Result<Vec<CertificateDer<'static>>> {
    let all = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let all = all.map_err(|why| fault(path, &why))?;
    if all.is_empty() { Err(io::Error::other(format!("{}: there is no certificate in it; it is to be in PEM form", path.display()))) } else { Ok(all) }
}

fn private_key(path: &Path) -> io::Result<Vec<u8>> {
    let text = std::fs::read(path).map_err(|why| fault(path, &pem::Error::Io(why)))?;
    PrivateKeyDer::from_pem_slice(&text).map_err(|why| fault(path, &why))?;
    Ok(text)
}

fn fault(path: &Path, why: &pem::Error) -> io::Error {
    let why = match why {
        pem::Error::Io(error) => format!("{error}: correct the path, and see that siftd may read it"),
        pem::Error::NoItemsFound => "there is nothing of the kind in it; it is to be in PEM form".to_owned(),
        other => format!("is no PEM file: {other}"),
    };
    io::Error::other(format!("{}: {why}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_file_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ca.pem");
        let read = || Trust::read(&Files { ca: Some(path.clone()), own: None }).err().unwrap().to_string();
        assert!(read().contains("ca.pem: No such file"), "{}", read());
        std::fs::write(&path, "hello").unwrap();
        assert!(read().contains("there is no certificate in it"), "{}", read());
        std::fs::write(&path, "-----BEGIN CERTIFICATE-----\n!!\n-----END CERTIFICATE-----\n").unwrap();
        assert!(read().contains("is no PEM file"), "{}", read());
    }

    #[test]
    fn a_key_of_another_is_refused() {
        let [one, other] = ["a", "b"].map(|name| rcgen::generate_simple_self_signed([name.to_owned()]).unwrap());
        let key = |of: &rcgen::CertifiedKey<rcgen::KeyPair>| of.signing_key.serialize_pem().into_bytes();
        let chain = vec![one.cert.der().clone()];
        let trust = |key| Trust { roots: chain.clone(), own: Some(Own { chain: chain.clone(), key }) };
        assert!(trust(key(&one)).client().is_ok());
        let why = trust(key(&other)).client().unwrap_err().to_string();
        assert!(why.starts_with("cert_file and key_file: "), "{why}");
    }
}
