//! Sources that are not files: a description of each, and whether they could start.

use std::path::Path;

use super::super::{Failure, identity};
use super::Found;
use crate::config::{SocketMode, SourceConfig, SourceKind};
use crate::sources::argv;
use crate::sources::service::Service;
use crate::state::lock::Lock;

/// Tries the sources as a start would. Addresses that are in use are hints, as they
/// may be free again at the start; none if the siftd that runs with this state uses them.
pub fn check(sources: &[SourceConfig], state: &Path) -> Found {
    let tried = sources.iter().filter_map(|source| Service::check(source, identity::nonce).err());
    let (taken, wrong): (Vec<_>, Vec<_>) = tried.partition(|(_, is_in_use)| *is_in_use);
    let is_running = !taken.is_empty() && Lock::holder(state).is_some();
    let hints = taken.into_iter().filter(|_| !is_running).map(|(why, _)| why).collect();
    Found { wrong: wrong.into_iter().map(|(why, _)| Failure::new(why)).collect(), hints }
}

/// Describes what the source reads.
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
        SourceKind::Command => {
            let words = argv::shown(&source.argv.iter().map(Into::into).collect::<Vec<_>>());
            shlex::try_join(words.iter().map(String::as_str)).unwrap_or_else(|_| words.join(" "))
        }
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
