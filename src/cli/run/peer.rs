//! Turns `[[sink]]` blocks that send records to a peer into connection settings. Files
//! that a sink names are read here, so that mistakes show before anything starts.

use std::net::ToSocketAddrs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::super::Failure;
use crate::config::{Config, HttpFormat, SinkConfig, SinkKind};
use crate::sinks::choose::Choose;
use crate::sinks::http::{self, Client, DeadLetter, Token, Way, own_headers};
use crate::sinks::stream::{self, MAX_UNREAD_BYTES, Target};
use crate::sinks::tls::{Files, Trust};

/// Configures a sink of type tcp or unix.
pub fn stream(sink: &SinkConfig, choose: Choose, config: &Config) -> Result<stream::Options, Failure> {
    let peer = &sink.peer;
    let target = match sink.kind {
        SinkKind::Unix => Target::Unix(sink.path.clone().unwrap_or_default()),
        _ => {
            let tls = if peer.tls { Some(trust(sink)?.client().map_err(|why| fault(sink, &why))?) } else { None };
            Target::Tcp(peer.address.clone().unwrap_or_default(), tls.map(Arc::new))
        }
    };
    // Records that the peer may not have read stay in the outbox, which must have room for more.
    let unread_max = MAX_UNREAD_BYTES.min(config.delivery.outbox_max / 4);
    Ok(stream::Options { target, choose, timeout: peer.timeout, max_delay: peer.max_delay, unread_max })
}

/// Configures a sink of type http. Unless the sink names a file for them, dead letters go below `state`.
pub fn http(sink: &SinkConfig, choose: Choose, state: &Path) -> Result<(http::Options, Client), Failure> {
    let (peer, http) = (&sink.peer, &sink.http);
    let url = peer.url.clone().unwrap_or_default();
    let is_plain = |c: char| c.is_alphanumeric() || "-_".contains(c);
    let file: String = sink.name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    let path = http.dead_letter.clone().unwrap_or_else(|| state.join(format!("{file}.dead.ndjson")));
    let options = http::Options {
        place: place(&url),
        choose,
        format: http.format,
        gzip: sink.compress,
        batch_rows: http.batch_rows as usize,
        batch_bytes: http.batch_bytes,
        batch_wait: http.batch_wait,
        max_delay: peer.max_delay,
        max_reset_wait: http.max_reset_wait,
        dead_letter: DeadLetter { path: std::path::absolute(path)?, max_bytes: http.dead_letter_max },
    };
    let token = http.token_file.as_ref().map(std::path::absolute).transpose()?;
    if let Some(path) = &token {
        Token::new(path.clone()).header().map_err(|why| fault(sink, &why))?;
    }
    let mut headers = own_headers(&options);
    headers.extend(http.headers.iter().map(|(name, value)| (name.clone(), value.clone())));
    let trust = if url.starts_with("https:") { Some(trust(sink)?) } else { None };
    // Detects a key that does not match its certificate here, not at the first request.
    trust.as_ref().map(|trust| trust.client().map_err(|why| fault(sink, &why))).transpose()?;
    let items = if http.format == HttpFormat::Elasticsearch { u64::from(http.batch_rows) } else { 0 };
    let way = Way { url, headers: &headers, token, trust: trust.as_ref(), timeout: peer.timeout, items };
    let client = Client::new(way).map_err(|why| fault(sink, &why))?;
    Ok((options, client))
}

/// Returns a URL for messages: without the query, which may hold a key.
fn place(url: &str) -> String {
    url.split(['?', '#']).next().unwrap_or_default().to_owned()
}

/// Tries a sink for `siftd check`: whether its files can be read, and whether the
/// peer's name resolves. Makes no connection. Returns problems that do not stop `run`.
pub fn check(sink: &SinkConfig) -> Result<Option<String>, Failure> {
    let choose = super::output::choose(sink, sink.min_severity);
    let address = match sink.kind {
        SinkKind::Stdout | SinkKind::File => return Ok(None),
        SinkKind::Tcp | SinkKind::Unix => {
            stream(sink, choose, &Config::default())?;
            sink.peer.address.clone()
        }
        SinkKind::Http => {
            http(sink, choose, Path::new("/"))?;
            sink.peer.url.as_deref().and_then(host_and_port)
        }
    };
    let open = open_secret(sink).map(|open| format!("sink {}: {open}", sink.name));
    let Some(address) = address else { return Ok(open) };
    let found = address.to_socket_addrs().map_err(|why| fault(sink, &format!("{address}: {why}: correct the name, or ask whoever runs the DNS")))?;
    if found.count() == 0 { Err(fault(sink, &format!("{address}: the name has no address"))) } else { Ok(open) }
}

/// Returns what is wrong with the permissions of secret files; `run` uses them all the same.
pub fn open_secret(sink: &SinkConfig) -> Option<String> {
    let is_open = |path: &&PathBuf| path.metadata().is_ok_and(|meta| meta.permissions().mode() & 0o004 != 0);
    let files = [("token_file", &sink.http.token_file), ("key_file", &sink.peer.key_file)];
    let (key, path) = files.into_iter().find_map(|(key, path)| Some((key, path.as_ref().filter(is_open)?)))?;
    Some(format!("{key} {}: everyone can read it: chmod 640 it, and give it to siftd's group", path.display()))
}

fn host_and_port(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
    Some(if has_port { authority.to_owned() } else { format!("{authority}:{}", if scheme == "https" { 443 } else { 80 }) })
}

/// Returns the certificates that a sink's TLS uses.
fn trust(sink: &SinkConfig) -> Result<Trust, Failure> {
    let absolute = |path: &PathBuf| std::path::absolute(path);
    let own = sink.peer.cert_file.as_ref().zip(sink.peer.key_file.as_ref());
    let own = own.map(|(cert, key)| Ok::<_, std::io::Error>((absolute(cert)?, absolute(key)?))).transpose()?;
    let ca = sink.peer.ca_file.as_ref().map(absolute).transpose()?;
    Trust::read(&Files { ca, own }).map_err(|why| fault(sink, &why))
}

fn fault(sink: &SinkConfig, why: &dyn std::fmt::Display) -> Failure {
    Failure::new(format!("sink {}: {why}", sink.name))
}
