//! `[[sink]]`: its types and defaults, and how a block is read. Also checks what two
//! sinks must not share; never checks whether a peer answers or a file can be opened.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use ureq::http::{HeaderName, HeaderValue, Uri};

use super::reader::Table;
use super::schema::{GIB, HOUR, KIB, MIB, category, days, keys, name, path, require};
use super::value::{self, Fault};
use super::{HttpFormat, Schema, SinkKind, WhenFull};
use crate::core::event::{Category, Severity};

/// One `[[sink]]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SinkConfig {
    /// Name, used in logs and metrics.
    pub name: String,
    /// Type of the sink.
    pub kind: SinkKind,
    /// Path; always present for a file sink and a unix sink.
    pub path: Option<PathBuf>,
    /// The naming scheme of the fields.
    pub schema: Schema,
    /// Less severe events are left out.
    pub min_severity: Severity,
    /// Only these categories; empty: all.
    pub categories: Vec<Category>,
    /// Only events from these sources; empty: all.
    pub sources: Vec<String>,
    /// A new file is started beyond this many bytes; zero: never.
    pub rotate_size: u64,
    /// A new file is started after this time; zero: never.
    pub rotate_age: Duration,
    /// How many older files are kept.
    pub keep: u32,
    /// Whether older files, or request bodies, are compressed.
    pub compress: bool,
    /// The longest time until written data is synced to disk.
    pub fsync: Duration,
    /// When behind by `outbox_max`: whether reading waits or records are dropped.
    pub when_full: WhenFull,
    /// Settings of a sink that has a peer.
    pub peer: PeerConfig,
    /// Settings of an http sink.
    pub http: HttpConfig,
}

/// How a peer is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerConfig {
    /// `host:port`; always present for a tcp sink.
    pub address: Option<String>,
    /// URL; always present for an http sink, and without a user or password.
    pub url: Option<String>,
    /// Whether a tcp sink uses TLS.
    pub tls: bool,
    /// PEM file of the trusted authorities; `None`: those of the system.
    pub ca_file: Option<PathBuf>,
    /// PEM file of siftd's own certificate; if present, so is `key_file`.
    pub cert_file: Option<PathBuf>,
    /// PEM file of the certificate's key.
    pub key_file: Option<PathBuf>,
    /// The longest time to connect, for one request, and for the peer to accept no byte.
    pub timeout: Duration,
    /// The longest pause between two attempts.
    pub max_delay: Duration,
}

/// What an http sink sends, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpConfig {
    /// The format of a body.
    pub format: HttpFormat,
    /// Additional headers of each request; they may hold secrets.
    pub headers: BTreeMap<String, String>,
    /// File with the bearer token.
    pub token_file: Option<PathBuf>,
    /// Most records in one request.
    pub batch_rows: u32,
    /// Most bytes in one request, before compression; a single record always fits.
    pub batch_bytes: u64,
    /// How long a record waits for others to share its request.
    pub batch_wait: Duration,
    /// The longest pause that the server may ask for.
    pub max_reset_wait: Duration,
    /// File for records that the server refuses; `None`: a file below `state_dir`.
    pub dead_letter: Option<PathBuf>,
    /// Most bytes of the dead-letter file.
    pub dead_letter_max: u64,
}

impl SinkConfig {
    /// Returns a sink with every default filled in; a file sink still needs `path`.
    #[must_use]
    pub fn new(name: impl Into<String>, kind: SinkKind) -> Self {
        Self {
            name: name.into(),
            kind,
            path: None,
            schema: Schema::Native,
            min_severity: Severity::Low,
            categories: Vec::new(),
            sources: Vec::new(),
            rotate_size: 0,
            rotate_age: Duration::ZERO,
            keep: 5,
            compress: false,
            fsync: Duration::from_secs(1),
            when_full: WhenFull::Block,
            peer: PeerConfig::default(),
            http: HttpConfig::default(),
        }
    }
}

impl Default for PeerConfig {
    fn default() -> Self {
        Self {
            address: None,
            url: None,
            tls: false,
            ca_file: None,
            cert_file: None,
            key_file: None,
            timeout: Duration::from_secs(30),
            max_delay: Duration::from_secs(30),
        }
    }
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self {
            format: HttpFormat::Ndjson,
            headers: BTreeMap::new(),
            token_file: None,
            batch_rows: 500,
            batch_bytes: MIB,
            batch_wait: Duration::from_secs(1),
            max_reset_wait: Duration::from_secs(600),
            dead_letter: None,
            dead_letter_max: 64 * MIB,
        }
    }
}

/// Keys that only some types have; for other types they would silently do nothing.
const ONLY: &[(&str, &[SinkKind])] = &[
    ("path", &[SinkKind::File, SinkKind::Unix]),
    ("address", &[SinkKind::Tcp]),
    ("tls", &[SinkKind::Tcp]),
    ("url", &[SinkKind::Http]),
    ("ca_file", &[SinkKind::Tcp, SinkKind::Http]),
    ("cert_file", &[SinkKind::Tcp, SinkKind::Http]),
    ("key_file", &[SinkKind::Tcp, SinkKind::Http]),
    ("timeout", &[SinkKind::Tcp, SinkKind::Unix, SinkKind::Http]),
    ("max_delay", &[SinkKind::Tcp, SinkKind::Unix, SinkKind::Http]),
    ("format", &[SinkKind::Http]),
    ("headers", &[SinkKind::Http]),
    ("token_file", &[SinkKind::Http]),
    ("batch_rows", &[SinkKind::Http]),
    ("batch_bytes", &[SinkKind::Http]),
    ("batch_wait", &[SinkKind::Http]),
    ("max_reset_wait", &[SinkKind::Http]),
    ("dead_letter", &[SinkKind::Http]),
    ("dead_letter_max", &[SinkKind::Http]),
];

/// Headers that siftd sets itself.
const OWN_HEADERS: &[&str] = &["host", "connection", "content-length", "content-type", "content-encoding", "transfer-encoding", "expect"];

pub(super) fn read(t: &mut Table<'_, '_>, header: &Range<usize>) -> SinkConfig {
    let mut kind: Option<SinkKind> = None;
    t.value("type", &mut kind, |value| value::word(value).map(Some));
    let mut sink = SinkConfig::new("", kind.unwrap_or(SinkKind::Stdout));
    t.text("path", &mut sink.path, |text| path(text).map(Some));
    keys!(t, &mut sink, {
        name: text(name),
        schema: word(),
        min_severity: word(),
        categories: list(category),
        sources: list(name),
        rotate_size: size(0..=1024 * GIB),
        rotate_age: duration(Duration::ZERO..=days(3650)),
        keep: count(0..=10_000),
        compress: flag(),
        fsync: duration(Duration::ZERO..=HOUR),
        when_full: word(),
    });
    of_peer(t, &mut sink);
    require(t, "name", "name it, such as name = \"events\"", header);
    require(t, "type", "say which: type = \"file\"", header);
    require_target(t, sink.kind, header);
    if kind.is_some() {
        fitting(t, &sink);
    }
    sink
}

/// Reads the keys of sinks that send to a peer.
fn of_peer(t: &mut Table<'_, '_>, sink: &mut SinkConfig) {
    keys!(t, &mut sink.peer, {
        address: text(address),
        url: text(url),
        tls: flag(),
        ca_file: text(some_path),
        cert_file: text(some_path),
        key_file: text(some_path),
        timeout: duration(Duration::from_millis(10)..=HOUR),
        max_delay: duration(Duration::from_millis(10)..=days(1)),
    });
    keys!(t, &mut sink.http, {
        format: word(),
        token_file: text(some_path),
        batch_rows: count(1..=10_000),
        batch_bytes: size(KIB..=64 * MIB),
        batch_wait: duration(Duration::ZERO..=HOUR),
        max_reset_wait: duration(Duration::ZERO..=days(7)),
        dead_letter: text(some_path),
        dead_letter_max: size(KIB..=1024 * GIB),
    });
    headers(t, &mut sink.http);
}

/// Requires the key that says where a sink writes.
fn require_target(t: &mut Table<'_, '_>, kind: SinkKind, header: &Range<usize>) {
    match kind {
        SinkKind::Stdout => {}
        SinkKind::File => require(t, "path", "say where: path = \"/var/log/siftd/events.ndjson\"", header),
        SinkKind::Unix => require(t, "path", "name the socket: path = \"/run/collector.sock\"", header),
        SinkKind::Tcp => require(t, "address", "say where: address = \"collector.example:6514\"", header),
        SinkKind::Http => require(t, "url", "say where: url = \"https://collector.example/events\"", header),
    }
}

/// Refuses keys that would have no effect.
fn fitting(t: &mut Table<'_, '_>, sink: &SinkConfig) {
    for (key, kinds) in ONLY {
        if let Some(node) = t.node(key).filter(|_| !kinds.contains(&sink.kind)) {
            let names: Vec<_> = kinds.iter().map(|kind| kind.as_str()).collect();
            let problem = format!("is for sinks of type {}; this one is of type {}", names.join(", "), sink.kind.as_str());
            t.fault(key, node.span(), Fault::new(problem, "take the key away, or correct `type`"));
        }
    }
    let is_secure = match sink.kind {
        SinkKind::Tcp => sink.peer.tls,
        _ => sink.peer.url.as_ref().is_none_or(|url| url.starts_with("https:")),
    };
    for (key, other, is_alone) in
        [("ca_file", "", false), ("cert_file", "key_file", sink.peer.key_file.is_none()), ("key_file", "cert_file", sink.peer.cert_file.is_none())]
    {
        let Some(node) = t.node(key) else { continue };
        if !is_secure {
            let mend = if sink.kind == SinkKind::Tcp { "add tls = true" } else { "write the url with https:" };
            t.fault(key, node.span(), Fault::new("does nothing without TLS", mend));
        } else if is_alone {
            t.fault(key, node.span(), Fault::new(format!("needs `{other}` beside it"), "a certificate and its key go together"));
        }
    }
}

fn headers(t: &mut Table<'_, '_>, http: &mut HttpConfig) {
    const KEY: &str = "headers";
    let Some(node) = t.node(KEY) else { return };
    let Some(table) = node.get_ref().as_table() else {
        return t.fault(KEY, node.span(), Fault::of_secret("is no table", "write { \"X-Tenant\" = \"shop\" }"));
    };
    for (key, node) in table {
        let checked = header_name(key.get_ref(), http.token_file.is_some()).and_then(|()| header_value(value::text(node.get_ref()).map_err(|_| no_text())?));
        match checked {
            Ok(text) => drop(http.headers.insert(key.get_ref().to_string(), text)),
            Err(fault) => t.fault(&format!("{KEY}.{}", key.get_ref()), key.span(), fault),
        }
    }
}

fn header_name(text: &str, has_token: bool) -> Result<(), Fault> {
    let name =
        HeaderName::from_bytes(text.as_bytes()).map_err(|_| Fault::of_secret("is no name of a header", "letters, digits and `-`, such as \"X-Tenant\""))?;
    if OWN_HEADERS.contains(&name.as_str()) {
        return Err(Fault::of_secret("is a header that siftd sets itself", "take it away"));
    }
    if has_token && name.as_str() == "authorization" {
        return Err(Fault::of_secret("says what `token_file` says, too", "keep one of the two"));
    }
    Ok(())
}

/// Checks the value of a header. The message does not show it: it may be a secret.
fn header_value(text: String) -> Result<String, Fault> {
    match HeaderValue::from_str(&text) {
        Ok(_) => Ok(text),
        Err(_) => Err(Fault::of_secret("has a value that no header can have", "keep to visible ASCII characters and blanks")),
    }
}

fn no_text() -> Fault {
    Fault::of_secret("is no text", "write it in quotes")
}

fn some_path(text: String) -> Result<Option<PathBuf>, Fault> {
    path(text).map(Some)
}

fn address(text: String) -> Result<Option<String>, Fault> {
    let fault = || Fault::must_be("a host and a port", "write it as \"127.0.0.1:6514\", \"collector.example:6514\" or \"[::1]:6514\"");
    let (host, port) = text.rsplit_once(':').ok_or_else(fault)?;
    let is_plain = !host.is_empty() && !host.contains(|c: char| c.is_whitespace() || c.is_control() || "/@".contains(c));
    let is_whole = !host.contains(':') || host.starts_with('[') && host.ends_with(']');
    if !is_plain || !is_whole || port.parse::<u16>().is_ok_and(|port| port == 0) || port.parse::<u16>().is_err() {
        return Err(fault());
    }
    Ok(Some(text))
}

fn url(text: String) -> Result<Option<String>, Fault> {
    let mend = "write it as \"https://host:port/path\"";
    let Ok(uri) = text.parse::<Uri>() else { return Err(Fault::new("is no URL", mend)) };
    let is_web = matches!(uri.scheme_str(), Some("http" | "https"));
    let Some(authority) = uri.authority().filter(|authority| is_web && !authority.host().is_empty()) else {
        return Err(Fault::new("is no URL of http or https with a host", mend));
    };
    if authority.as_str().contains('@') {
        return Err(Fault::of_secret("has a user or a password in it, which messages would show", "use `token_file`, or `headers` with Authorization"));
    }
    Ok(Some(text))
}
