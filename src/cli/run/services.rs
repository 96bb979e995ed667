//! A line for people about each source that is no file.

use crate::config::{SocketMode, SourceConfig, SourceKind};

/// What it reads.
pub fn described(source: &SourceConfig) -> String {
    let mut out = match source.kind {
        SourceKind::Tcp | SourceKind::Udp => {
            let address = source.address.map(|address| address.to_string()).unwrap_or_default();
            format!("{} {address}", source.kind.as_str())
        }
        SourceKind::Unix => {
            let path = source.path.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
            format!("unix {path}, mode {:04o}", source.permissions)
        }
        SourceKind::Command => shlex::try_join(source.argv.iter().map(String::as_str)).unwrap_or_else(|_| source.argv.join(" ")),
        kind => kind.as_str().to_owned(),
    };
    if source.kind == SourceKind::Unix && source.mode == SocketMode::Datagram {
        out += ", datagrams";
    }
    if let Some(tls) = &source.tls {
        out += if tls.client_ca.is_some() { ", TLS with client certificates" } else { ", TLS" };
    }
    if source.kind == SourceKind::Command {
        out += &format!(", restart {}", source.restart.as_str());
    }
    out
}
