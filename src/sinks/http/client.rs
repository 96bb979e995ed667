//! One request and its response, by ureq and rustls, blocking, within the sink's `timeout`. Redirects are not followed and
//! proxies not used. The token is read again whenever its file changes; neither the token nor any header is ever shown.

use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ureq::http::{HeaderName, HeaderValue, Response};
use ureq::tls::{Certificate, ClientCert, PrivateKey, RootCerts, TlsConfig};
use ureq::{Agent, Body};

use super::answer::Answer;
use crate::sinks::tls::{Own, Trust, provider};

/// At most this much of a body is read …
const MAX_ANSWER_BYTES: u64 = 64 << 10;
/// … plus this much for each record with a result of its own, which may say why it was refused.
const MAX_ITEM_BYTES: u64 = 2 << 10;
/// A longer file is not a token.
const MAX_TOKEN_BYTES: u64 = 64 << 10;

/// Stands for a text that repeats what was sent.
const REPEATS: &str = "(repeats our headers)";

/// Sends a body; a trait, so that the sink can be tested without a server.
pub trait Post: Send {
    /// Sends one request.
    ///
    /// # Errors
    /// There is no response: the peer is unreachable, is not trusted, disconnects, or takes too long.
    fn post(&mut self, body: &[u8]) -> io::Result<Answer>;
}

/// The real client.
pub struct Client {
    agent: Agent,
    url: String,
    headers: Vec<(HeaderName, HeaderValue)>,
    token: Option<Token>,
    max_answer_bytes: u64,
}

/// How a server is reached.
pub struct Way<'a> {
    /// The server's URL.
    pub url: String,
    /// The headers of each request.
    pub headers: &'a [(String, String)],
    /// File with the bearer token.
    pub token: Option<PathBuf>,
    /// Needed for https.
    pub trust: Option<&'a Trust>,
    /// Maximum time for a request and its response.
    pub timeout: Duration,
    /// Maximum records per request that have a result of their own.
    pub items: u64,
}

impl Client {
    /// Creates a client; it does not connect yet.
    ///
    /// # Errors
    /// A header or a key is invalid.
    pub fn new(way: Way<'_>) -> io::Result<Self> {
        let mut config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(None)
            .timeout_global(Some(way.timeout))
            .max_idle_connections(1)
            .user_agent(concat!("siftd/", env!("CARGO_PKG_VERSION")));
        if let Some(trust) = way.trust {
            config = config.tls_config(tls(trust)?);
        }
        let header = |(name, value): &(String, String)| {
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(io::Error::other)?;
            let mut value = HeaderValue::from_str(value).map_err(io::Error::other)?;
            value.set_sensitive(true);
            Ok((name, value))
        };
        let headers = way.headers.iter().map(header).collect::<io::Result<_>>()?;
        let max_answer_bytes = MAX_ANSWER_BYTES + MAX_ITEM_BYTES * way.items;
        Ok(Self { agent: config.build().new_agent(), url: way.url, headers, token: way.token.map(Token::new), max_answer_bytes })
    }
}

impl Client {
    fn answer(&self, mut response: Response<Body>) -> Answer {
        let text = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let (retry_after, mut location) = (text("retry-after"), text("location"));
        let mut body = response.body_mut().with_config().limit(self.max_answer_bytes).read_to_vec().ok();
        let status = response.status().as_u16();
        // A server that echoes what it was sent must not bring a secret into messages.
        let secrets = || self.headers.iter().map(|(_, value)| value).chain(self.token.as_ref().map(|token| &token.header));
        for secret in secrets() {
            if location.as_ref().is_some_and(|location| repeats(location.as_bytes(), secret)) {
                location = Some(REPEATS.to_owned());
            }
            match &mut body {
                // It says which records were taken, so its form must stay.
                Some(body) if (200..300).contains(&status) => cover(body, secret),
                Some(body) if repeats(body, secret) => *body = REPEATS.into(),
                _ => {}
            }
        }
        Answer { status, retry_after, location, body }
    }
}

/// Whether a text contains a header's value, or its last word.
fn repeats(text: &[u8], value: &HeaderValue) -> bool {
    secret(value).is_some_and(|word| memchr::memmem::find(text, word).is_some())
}

/// Covers a header's value, or its last word, wherever a text contains it.
fn cover(text: &mut [u8], value: &HeaderValue) {
    let Some(word) = secret(value) else { return };
    let places: Vec<usize> = memchr::memmem::find_iter(text, word).collect();
    places.into_iter().for_each(|at| text[at..at + word.len()].fill(b'*'));
}

/// Returns the part of a header's value that may be a secret; none if that is short.
fn secret(value: &HeaderValue) -> Option<&[u8]> {
    value.as_bytes().rsplit(|byte| *byte == b' ').next().filter(|word| word.len() >= 8)
}

impl Post for Client {
    fn post(&mut self, body: &[u8]) -> io::Result<Answer> {
        let mut request = self.agent.post(&self.url);
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        if let Some(token) = &mut self.token {
            request = request.header("authorization", token.header()?);
        }
        match request.send(body) {
            Ok(response) => Ok(self.answer(response)),
            Err(ureq::Error::Io(why)) => Err(why),
            Err(ureq::Error::Timeout(_)) => Err(io::Error::new(io::ErrorKind::TimedOut, "no answer within the timeout")),
            Err(why) => Err(io::Error::other(why.to_string())),
        }
    }
}

fn tls(trust: &Trust) -> io::Result<TlsConfig> {
    let own = |der: &[u8]| Certificate::from_der(der).to_owned();
    let roots: Vec<_> = trust.roots.iter().map(|certificate| own(certificate)).collect();
    let client = trust.own.as_ref().map(|Own { chain, key }| {
        let chain: Vec<_> = chain.iter().map(|certificate| own(certificate)).collect();
        Ok::<_, io::Error>(ClientCert::new_with_certs(&chain, PrivateKey::from_pem(key).map_err(io::Error::other)?))
    });
    Ok(TlsConfig::builder().root_certs(RootCerts::from(roots)).client_cert(client.transpose()?).unversioned_rustls_crypto_provider(provider()).build())
}

/// A bearer token and the file that holds it.
pub struct Token {
    path: PathBuf,
    /// The file's metadata when it was read: inode, size, modification and change times.
    seen: Option<[i64; 6]>,
    header: HeaderValue,
}

impl Token {
    /// Creates a token; the file is not read yet.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        Self { path, seen: None, header: HeaderValue::from_static("") }
    }

    /// Returns the current value of the `Authorization` header.
    ///
    /// # Errors
    /// The file cannot be read, or does not hold a token.
    pub fn header(&mut self) -> io::Result<HeaderValue> {
        let fault = |why: &dyn std::fmt::Display| io::Error::other(format!("token_file {}: {why}", self.path.display()));
        let unread = |why| fault(&format!("{why}: write the token there, and see that siftd may read it"));
        let meta = std::fs::metadata(&self.path).map_err(unread)?;
        let now = [meta.ino() as i64, meta.size() as i64, meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec()];
        if self.seen != Some(now) {
            self.header = read(&self.path).map_err(|why| fault(&why))?;
            self.seen = Some(now);
        }
        Ok(self.header.clone())
    }
}

fn read(path: &Path) -> io::Result<HeaderValue> {
    let mut text = String::new();
    std::fs::File::open(path)?.take(MAX_TOKEN_BYTES).read_to_string(&mut text)?;
    let token = text.trim();
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(io::Error::other("it is to hold a token of visible characters, and nothing else"));
    }
    let mut value = HeaderValue::from_str(&format!("Bearer {token}")).map_err(io::Error::other)?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_covered_at_every_status() {
        let headers = [("X-Key".to_owned(), "a-very-secret-one".to_owned())];
        let way = Way { url: String::new(), headers: &headers, token: None, trust: None, timeout: Duration::ZERO, items: 1 };
        let client = Client::new(way).unwrap();
        let text = "{\"reason\":\"key a-very-secret-one\"}";
        for (status, wanted) in [(200, "{\"reason\":\"key *****************\"}"), (302, REPEATS), (400, REPEATS)] {
            let response = Response::builder().status(status).header("location", "https://else/?key=a-very-secret-one");
            let answer = client.answer(response.body(Body::builder().data(text)).unwrap());
            assert_eq!((answer.body.as_deref(), answer.location.as_deref()), (Some(wanted.as_bytes()), Some(REPEATS)), "{status}");
        }
    }

    #[test]
    fn a_token_is_read_again_when_it_changes_and_never_shown() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let mut token = Token::new(path.clone());
        let why = token.header().unwrap_err().to_string();
        assert!(why.contains("token_file") && why.contains("No such file"), "{why}");
        for (text, is_one) in [("s3cret\n", true), ("", false), ("two words", false), ("  other-s3cret ", true), ("caf\u{e9}", false)] {
            let next = folder.path().join("next");
            std::fs::write(&next, text).unwrap();
            std::fs::rename(&next, &path).unwrap();
            match token.header() {
                Ok(header) => {
                    assert!(is_one && header == format!("Bearer {}", text.trim()), "{text}");
                    assert_eq!(format!("{header:?}"), "Sensitive");
                }
                Err(why) => assert!(!is_one && !why.to_string().contains("words") && why.to_string().contains("nothing else"), "{why}"),
            }
        }
    }
}
