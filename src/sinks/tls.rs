//! The trust settings of a sink that uses TLS: whom it trusts, and how it identifies itself.
//! rustls does the rest. This module has files read but opens no connections.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

use crate::pem;

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
            Some(path) => pem::certificates(path).map_err(io::Error::other)?,
            None => of_the_system()?,
        };
        let own = match &files.own {
            Some((certificate, key)) => {
                let chain = pem::certificates(certificate).map_err(io::Error::other)?;
                Some(Own { chain, key: pem::key_text(key).map_err(io::Error::other)? })
            }
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

#[cfg(test)]
mod tests {
    use super::*;

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
