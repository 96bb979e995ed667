//! `[[sink]]` blocks whose records go to a peer → how it is reached. Files that a sink names are read here, so
//! that a mistake shows before anything starts.

use std::path::PathBuf;
use std::sync::Arc;

use super::super::Failure;
use crate::config::{Config, SinkConfig, SinkKind};
use crate::sinks::choose::Choose;
use crate::sinks::stream::{self, MAX_UNREAD_BYTES, Target};
use crate::sinks::tls::{Files, Trust};

/// A sink of type tcp or unix.
pub fn stream(sink: &SinkConfig, choose: Choose, config: &Config) -> Result<stream::Options, Failure> {
    let peer = &sink.peer;
    let target = match sink.kind {
        SinkKind::Unix => Target::Unix(sink.path.clone().unwrap_or_default()),
        _ => {
            let tls = if peer.tls { Some(trust(sink)?.client().map_err(|why| fault(sink, &why))?) } else { None };
            Target::Tcp(peer.address.clone().unwrap_or_default(), tls.map(Arc::new))
        }
    };
    // What is not sure to be read waits in the outbox, which must have room for more.
    let unread_max = MAX_UNREAD_BYTES.min(config.delivery.outbox_max / 4);
    Ok(stream::Options { target, choose, timeout: peer.timeout, max_delay: peer.max_delay, unread_max })
}

/// What a sink's TLS rests on.
pub fn trust(sink: &SinkConfig) -> Result<Trust, Failure> {
    let absolute = |path: &PathBuf| std::path::absolute(path);
    let own = sink.peer.cert_file.as_ref().zip(sink.peer.key_file.as_ref());
    let own = own.map(|(cert, key)| Ok::<_, std::io::Error>((absolute(cert)?, absolute(key)?))).transpose()?;
    let ca = sink.peer.ca_file.as_ref().map(absolute).transpose()?;
    Trust::read(&Files { ca, own }).map_err(|why| fault(sink, &why))
}

pub fn fault(sink: &SinkConfig, why: &dyn std::fmt::Display) -> Failure {
    Failure::new(format!("sink {}: {why}", sink.name))
}
