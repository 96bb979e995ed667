//! Certificates and private keys from PEM files, for the TLS of sources and of sinks. What is wrong with a file is said
//! with its path and with what to do. Whether certificate and key go together, rustls finds out later.

use std::path::Path;

use rustls::pki_types::pem::{Error, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Returns the certificates in a file, at least one.
///
/// # Errors
/// The file cannot be read, is damaged, or holds no certificate.
pub fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let all = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match all.and_then(|all| if all.is_empty() { Err(Error::NoItemsFound) } else { Ok(all) }) {
        Ok(all) => Ok(all),
        Err(error) => Err(fault(path, &error, "holds no certificate: it must be PEM, with -----BEGIN CERTIFICATE-----")),
    }
}

/// Returns the first private key in a file.
///
/// # Errors
/// The file cannot be read, is damaged, or holds no key.
pub fn key(path: &Path) -> Result<PrivateKeyDer<'static>, String> {
    text_and_key(path).map(|(_, key)| key)
}

/// Returns the text of a file that holds a private key, for those who parse it themselves.
///
/// # Errors
/// As [`key`].
pub fn key_text(path: &Path) -> Result<Vec<u8>, String> {
    text_and_key(path).map(|(text, _)| text)
}

fn text_and_key(path: &Path) -> Result<(Vec<u8>, PrivateKeyDer<'static>), String> {
    let none = "holds no private key: it must be PEM, with -----BEGIN PRIVATE KEY-----, and not encrypted";
    let read = std::fs::read(path).map_err(Error::Io).and_then(|text| PrivateKeyDer::from_pem_slice(&text).map(|key| (text, key)));
    read.map_err(|error| fault(path, &error, none))
}

fn fault(path: &Path, error: &Error, none: &str) -> String {
    let why = match error {
        Error::Io(error) => format!("{}: correct the path, and see that siftd may read it", error.to_string().split(" (os error").next().unwrap_or_default()),
        Error::NoItemsFound => none.to_owned(),
        Error::MissingSectionEnd { .. } => "is cut: a -----BEGIN line has no -----END line".to_owned(),
        Error::IllegalSectionStart { .. } => "is damaged: a -----BEGIN line is not well formed".to_owned(),
        Error::Base64Decode(_) => "is damaged: what stands between BEGIN and END is no base64".to_owned(),
        error => format!("is no PEM file: {error}"),
    };
    format!("{}: {why}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_file_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ca.pem");
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let said = || certificates(&path).unwrap_err();
        assert!(said().contains("ca.pem: No such file") && said().contains("correct the path"), "{}", said());
        for (text, why) in [
            ("hello".to_owned(), "ca.pem: holds no certificate"),
            (made.signing_key.serialize_pem(), "ca.pem: holds no certificate"),
            (made.cert.pem()[..200].to_owned(), "ca.pem: is cut"),
            ("-----BEGIN CERTIFICATE-----\n!!\n-----END CERTIFICATE-----\n".to_owned(), "ca.pem: is damaged"),
        ] {
            std::fs::write(&path, text).unwrap();
            assert!(said().contains(why), "{:?} should say {why:?}", said());
        }
        std::fs::write(&path, made.cert.pem() + &made.cert.pem()).unwrap();
        assert_eq!(certificates(&path).map(|all| all.len()), Ok(2));
        assert!(key(&path).unwrap_err().contains("ca.pem: holds no private key"));
        std::fs::write(&path, made.cert.pem() + &made.signing_key.serialize_pem()).unwrap();
        assert!(key(&path).is_ok());
    }
}
