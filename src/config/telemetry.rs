//! `[telemetry]`: what siftd reports about itself, and to whom. Pure like the rest of the configuration: it opens nothing.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::reader::Table;
use super::value::Fault;
use super::words;

words! {
    /// The form of siftd's own messages.
    LogFormat { Auto = "auto", Text = "text", Json = "json", Journald = "journald" }
}

/// `[telemetry]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Telemetry {
    /// Where HTTP requests are answered; `None`: only on the socket in the state folder.
    pub listen: Option<Listen>,
    /// Whether other machines may connect.
    pub allow_remote: bool,
    /// The form of messages.
    pub log_format: LogFormat,
}

/// Where HTTP requests are answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// An address of this machine.
    Address(SocketAddr),
    /// A unix socket.
    Socket(PathBuf),
}

impl Default for Telemetry {
    fn default() -> Self {
        Self { listen: None, allow_remote: false, log_format: LogFormat::Auto }
    }
}

/// Reads the section.
pub(super) fn read(t: &mut Table<'_, '_>, telemetry: &mut Telemetry) {
    t.text("listen", &mut telemetry.listen, listen);
    t.flag("allow_remote", &mut telemetry.allow_remote);
    t.word("log_format", &mut telemetry.log_format);
    if let Some(Listen::Address(address)) = &telemetry.listen
        && !address.ip().is_loopback()
        && !telemetry.allow_remote
        && let Some(node) = t.node("listen")
    {
        let mend = "listen on 127.0.0.1, or say allow_remote = true: whoever reaches it may read names of files and sources";
        t.fault("listen", node.span(), Fault { quotes_value: true, ..Fault::new("can be reached from other machines:", mend) });
    }
}

fn listen(text: String) -> Result<Option<Listen>, Fault> {
    const MEND: &str = "write \"127.0.0.1:9464\", \"[::1]:9464\" or \"unix:/run/siftd/http.sock\"; \"\" is off";
    if text.is_empty() {
        return Ok(None);
    }
    if let Some(path) = text.strip_prefix("unix:") {
        let is_path = path.starts_with('/') && !path.contains('\0');
        return if is_path { Ok(Some(Listen::Socket(PathBuf::from(path)))) } else { Err(Fault::must_be("unix: and an absolute path", MEND)) };
    }
    // Any other name would have to be looked up in the network.
    let text = text.strip_prefix("localhost:").map_or_else(|| text.clone(), |port| format!("127.0.0.1:{port}"));
    match text.parse::<SocketAddr>() {
        Ok(address) => Ok(Some(Listen::Address(address))),
        Err(_) => Err(Fault::must_be("an address and a port", MEND)),
    }
}
