//! The keys of a `[[source]]`, their bounds, and which source types have them. Pure like the rest of
//! the schema: whether an address can be bound or a user exists is checked where the source is started.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use toml::de::DeValue;

use super::reader::Table;
use super::schema::{DAY, GIB, HOUR, KIB, MIB, days, glob, keys, name, path, refuse_empty_list, require};
use super::value::{self, Fault};
use super::{SocketMode, SourceConfig, SourceKind, TlsConfig};

/// Keys with the types that have them; a key not listed here belongs to all types.
const KEYS: [(&[&str], &[SourceKind]); 7] = {
    use SourceKind::{Command, File, Journald, Tcp, Udp, Unix};
    [
        (&["include", "exclude", "rotate_wait", "forget_after", "follow_links_into"], &[File]),
        (&["start_at"], &[File, Journald]),
        (&["address", "allow_remote"], &[Tcp, Udp]),
        (&["path", "mode", "permissions", "owner", "group"], &[Unix]),
        (&["framing", "max_connections"], &[Tcp, Unix]),
        (&["max_line_bytes", "idle_timeout", "max_peer_bytes_per_second", "receive_buffer"], &[Tcp, Udp, Unix]),
        (&["restart", "restart_delay", "max_restart_delay", "stop_timeout"], &[Command, Journald]),
    ]
};
const COMMAND: [&str; 4] = ["argv", "environment", "directory", "user"];

pub(super) fn read(t: &mut Table<'_, '_>, header: &Range<usize>) -> SourceConfig {
    let mut kind: Option<SourceKind> = None;
    t.value("type", &mut kind, |value| value::word(value).map(Some));
    let mut source = SourceConfig::new("", kind.unwrap_or(SourceKind::Stdin));
    keys!(t, &mut source, {
        name: text(name),
        include: list(glob),
        exclude: list(glob),
        start_at: word(),
        rotate_wait: duration(Duration::ZERO..=HOUR),
        forget_after: duration(Duration::from_secs(60)..=days(3650)),
        follow_links_into: list(path),
        max_events_per_second: count(0..=1_000_000),
        silence: duration(Duration::ZERO..=days(365)),
    });
    of_socket(t, &mut source);
    of_command(t, &mut source);
    strings(t, "labels", "{ team = \"shop\" }", &mut source.labels);
    strings(t, "environment", "{ LANG = \"C\" }", &mut source.environment);
    tls(t, &mut source);
    require(t, "name", "name it, such as name = \"agent\"", header);
    require(t, "type", "say which: type = \"file\"", header);
    // If the type was misspelt, the keys it needs or forbids are unknown.
    if kind.is_some() {
        fits_type(t, &source);
        complete(t, &source, header);
    }
    source
}

fn of_socket(t: &mut Table<'_, '_>, source: &mut SourceConfig) {
    keys!(t, source, {
        address: text(address),
        allow_remote: flag(),
        path: text(some_path),
        mode: word(),
        permissions: text(permissions),
        owner: text(name),
        group: text(name),
        framing: word(),
        max_connections: count(1..=100_000),
        max_line_bytes: size(KIB..=64 * MIB),
        idle_timeout: duration(Duration::from_millis(100)..=days(30)),
        max_peer_bytes_per_second: size(0..=GIB),
        receive_buffer: size(0..=GIB),
    });
}

/// Reads the keys of commands, and of the journal, which one prints.
fn of_command(t: &mut Table<'_, '_>, source: &mut SourceConfig) {
    keys!(t, source, {
        argv: list(word_of_argv),
        directory: text(some_path),
        user: text(name),
        restart: word(),
        restart_delay: duration(Duration::from_millis(10)..=HOUR),
        max_restart_delay: duration(Duration::from_millis(10)..=DAY),
        stop_timeout: duration(Duration::ZERO..=HOUR),
        matches: list(match_of_journal),
    });
}

/// Requires the keys that the type needs.
fn complete(t: &mut Table<'_, '_>, source: &SourceConfig, header: &Range<usize>) {
    match source.kind {
        SourceKind::File => {
            let mend = "name the files to follow: include = [\"/var/log/app/*.log\"]";
            require(t, "include", mend, header);
            refuse_empty_list(t, "include", mend);
        }
        SourceKind::Tcp | SourceKind::Udp => {
            // The name that [telemetry] and other programs use.
            t.call_alike("listen", "address");
            require(t, "address", "say where to listen: address = \"127.0.0.1:5514\"", header);
            refuse_remote(t, source);
        }
        SourceKind::Unix => {
            t.call_alike("listen", "path");
            require(t, "path", "say where the socket lies: path = \"/run/siftd/log.sock\"", header);
        }
        SourceKind::Command => {
            let mend = "say what to run, word by word: argv = [\"kubectl\", \"logs\", \"--follow\", \"web\"]";
            require(t, "argv", mend, header);
            refuse_empty_list(t, "argv", mend);
        }
        SourceKind::Journald | SourceKind::Stdin => {}
    }
    if source.max_restart_delay < source.restart_delay
        && let Some(node) = t.node("max_restart_delay").or_else(|| t.node("restart_delay"))
    {
        let problem = format!("leaves max_restart_delay with {:?} below restart_delay with {:?}", source.max_restart_delay, source.restart_delay);
        t.fault("restart_delay", node.span(), Fault::new(problem, "let restart_delay be at most max_restart_delay"));
    }
}

/// Refuses a remote address without `allow_remote`: anyone who reaches it can write records and fill the disk.
fn refuse_remote(t: &mut Table<'_, '_>, source: &SourceConfig) {
    let Some(address) = source.address.filter(|address| !address.ip().to_canonical().is_loopback() && !source.allow_remote) else { return };
    if let Some(node) = t.node("address") {
        let problem = format!("is {address}, where other machines can send, and `allow_remote` is false");
        let mend = match source.kind {
            SourceKind::Tcp => "listen on 127.0.0.1 or [::1], or add allow_remote = true, best with [source.tls] and a client_ca",
            _ => "listen on 127.0.0.1 or [::1], or add allow_remote = true and let a firewall say who may send",
        };
        t.fault("address", node.span(), Fault::new(problem, mend));
    }
}

/// Refuses keys of other types, which would have no effect.
fn fits_type(t: &mut Table<'_, '_>, source: &SourceConfig) {
    let of_command = COMMAND.iter().map(|key| (*key, &[SourceKind::Command][..]));
    let others = [("matches", &[SourceKind::Journald][..]), ("tls", &[SourceKind::Tcp][..])];
    let all = KEYS.iter().flat_map(|(keys, kinds)| keys.iter().map(move |key| (*key, *kinds))).chain(of_command).chain(others);
    for (key, kinds) in all.filter(|(_, kinds)| !kinds.contains(&source.kind)) {
        t.hide(key);
        if let Some(node) = t.node(key) {
            let names: Vec<&str> = kinds.iter().map(|kind| kind.as_str()).collect();
            let problem = format!("does nothing for type = \"{}\"", source.kind.as_str());
            t.fault(key, node.span(), Fault::new(problem, format!("take it away; it belongs to {}", names.join(", "))));
        }
    }
    if source.kind == SourceKind::Unix && source.mode == SocketMode::Datagram {
        for key in ["framing", "max_connections"] {
            if let Some(node) = t.node(key) {
                t.fault(key, node.span(), Fault::new("does nothing for mode = \"datagram\"", "take it away; each datagram is a message"));
            }
        }
    }
}

fn tls(t: &mut Table<'_, '_>, source: &mut SourceConfig) {
    let is_given = t.node("tls").map(|node| node.span());
    let mut tls = TlsConfig::default();
    t.section("tls", |t| {
        let TlsConfig { certificate, key, client_ca, handshake_timeout } = &mut tls;
        t.text("certificate", certificate, path);
        t.text("key", key, path);
        t.text("client_ca", client_ca, some_path);
        t.duration("handshake_timeout", handshake_timeout, Duration::from_millis(100)..=HOUR);
        if let Some(header) = &is_given {
            require(t, "certificate", "name the PEM file: certificate = \"/etc/siftd/tls/cert.pem\"", header);
            require(t, "key", "name the PEM file: key = \"/etc/siftd/tls/key.pem\"", header);
        }
    });
    source.tls = is_given.map(|_| tls);
}

/// Reads a table of strings.
fn strings(t: &mut Table<'_, '_>, key: &'static str, example: &str, out: &mut BTreeMap<String, String>) {
    let Some(node) = t.node(key) else { return };
    let Some(table) = node.get_ref().as_table() else {
        return t.fault(key, node.span(), Fault::must_be("a table", format!("write {example}")));
    };
    for (name, node) in table {
        let text = |value: &DeValue<'_>| value::text(value).and_then(without_nul);
        match text(node.get_ref()) {
            Ok(text) => drop(out.insert(name.get_ref().to_string(), text)),
            Err(fault) => t.fault(&format!("{key}.{}", name.get_ref()), node.span(), fault),
        }
    }
}

fn address(text: String) -> Result<Option<SocketAddr>, Fault> {
    let parsed = match text.strip_prefix("localhost:") {
        Some(port) => port.parse().ok().map(|port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)),
        None => text.parse().ok(),
    };
    parsed.map(Some).ok_or_else(|| Fault::must_be("an address and a port", "write it such as \"127.0.0.1:5514\" or \"[::1]:5514\""))
}

fn some_path(text: String) -> Result<Option<PathBuf>, Fault> {
    path(text).map(Some)
}

fn permissions(text: String) -> Result<u32, Fault> {
    let mode = u32::from_str_radix(&text, 8).ok().filter(|mode| *mode <= 0o777 && text.len() >= 3);
    mode.ok_or_else(|| Fault::must_be("mode bits", "write them in octal and quotes, such as \"0660\""))
}

fn without_nul(text: String) -> Result<String, Fault> {
    if text.contains('\0') { Err(Fault::new("holds a NUL, which no program can be given", "take it out")) } else { Ok(text) }
}

fn word_of_argv(text: String) -> Result<String, Fault> {
    without_nul(text)
}

fn match_of_journal(text: String) -> Result<String, Fault> {
    let is_match = text == "+" || text.split_once('=').is_some_and(|(field, _)| !field.is_empty() && !field.starts_with('-'));
    if is_match {
        return without_nul(text);
    }
    Err(Fault::must_be("a match", "write FIELD=VALUE, such as \"_SYSTEMD_UNIT=nginx.service\", or \"+\" between two sets of them"))
}
