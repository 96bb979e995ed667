//! Sources that are not files, prepared and run: what can be wrong with them is found before any of them begins.

use std::sync::Arc;

use tokio::sync::watch;

use super::command::journal::Journal;
use super::command::{self, Program};
use super::flow::{Intake, Nonce, Reading};
use super::socket::Served;
use super::socket::accept::{self, Listener};
use super::socket::bind::{self, Bound, Socket};
use super::socket::datagram::{self, Datagrams};
use super::socket::passed::Passed;
use super::stdin;
use super::tls::Acceptor;
use crate::config::{SourceConfig, SourceKind};
use crate::delivery::{Label, Mark, Uid};

/// A source that is ready to begin.
pub struct Service {
    config: Arc<SourceConfig>,
    kind: Kind,
}

enum Kind {
    Stdin,
    Socket(Bound, Option<Acceptor>),
    Command(Program),
    Journal(Box<Journal>),
}

/// What a source may need besides its configuration.
pub struct Around<'a> {
    /// Sockets passed by a service manager.
    pub passed: &'a mut Passed,
    /// Returns what earlier runs left of the source of that name.
    pub known: &'a dyn Fn(&str) -> Option<(Uid, Mark)>,
    /// Gives streams their identity.
    pub nonce: Nonce,
}

impl Service {
    /// Prepares a source: binds, reads certificates, looks up programs and users.
    ///
    /// # Errors
    /// Why it cannot begin, and what to do.
    pub fn prepare(config: SourceConfig, around: &mut Around) -> Result<Self, String> {
        let kind = match config.kind {
            SourceKind::Tcp | SourceKind::Udp | SourceKind::Unix => {
                let tls = config.tls.as_ref().map(Acceptor::new).transpose();
                let tls = tls.map_err(|why| format!("source {:?}: {why}", config.name))?;
                Kind::Socket(bind::bind(&config, around.passed)?, tls)
            }
            SourceKind::Command => Kind::Command(Program::new(&config)?),
            SourceKind::Journald => Kind::Journal(Box::new(Journal::new(&config, (around.known)(&config.name), around.nonce)?)),
            // Files have readers of their own.
            SourceKind::Stdin | SourceKind::File => Kind::Stdin,
        };
        Ok(Self { config: Arc::new(config), kind })
    }

    /// Checks whether a source could begin, without beginning anything: for `siftd check`.
    ///
    /// # Errors
    /// Why it could not, and whether that is only because another process already listens there.
    pub fn check(config: &SourceConfig, nonce: Nonce) -> Result<(), (String, bool)> {
        let plain = |why| (why, false);
        match config.kind {
            SourceKind::Tcp | SourceKind::Udp | SourceKind::Unix => {
                let tls = config.tls.as_ref().map(Acceptor::new).transpose();
                tls.map_err(|why| plain(format!("source {:?}: {why}", config.name)))?;
                bind::check(config)
            }
            SourceKind::Command => Program::new(config).map(drop).map_err(plain),
            SourceKind::Journald => Journal::new(config, None, nonce).map(drop).map_err(plain),
            SourceKind::Stdin | SourceKind::File => Ok(()),
        }
    }

    /// Returns its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.config.name
    }

    /// Runs the source until it ends by itself, or `stop` says so; what it has read may still have to be processed then. Must be called within a runtime.
    pub async fn run(self, intake: Arc<Intake>, stop: watch::Receiver<bool>) {
        let name = self.config.name.clone();
        let mut served = Served::new(self.config, intake, stop);
        let done = match self.kind {
            Kind::Stdin => {
                let label = Label { source: name.clone(), kind: SourceKind::Stdin.as_str(), ..Label::default() };
                let flow = served.intake.open(label, Reading::default());
                stdin::read(flow.clone(), served.intake.mode());
                tokio::select! {
                    () = flow.finished() => {}
                    () = served.stopped() => flow.end(),
                }
                Ok(())
            }
            Kind::Command(program) => {
                command::run(program, served).await;
                Ok(())
            }
            Kind::Journal(journal) => {
                journal.run(served).await;
                Ok(())
            }
            Kind::Socket(bound, tls) => {
                if let Some(address) = bound.socket.address() {
                    tracing::info!("source {name}: listens on {address}");
                }
                // Its file is removed when it is dropped.
                let _file = bound.file;
                serve(bound.socket, tls, served).await
            }
        };
        if let Err(error) = done {
            tracing::error!("source {name}: {error}");
        }
    }
}

async fn serve(socket: Socket, tls: Option<Acceptor>, served: Served) -> std::io::Result<()> {
    use tokio::net::{TcpListener, UdpSocket, UnixDatagram, UnixListener};
    match socket {
        Socket::Tcp(listener) => accept::serve(Listener::Tcp(TcpListener::from_std(listener)?, tls), served).await,
        Socket::Unix(listener) => accept::serve(Listener::Unix(UnixListener::from_std(listener)?), served).await,
        Socket::Udp(socket) => datagram::serve(Datagrams::Udp(UdpSocket::from_std(socket)?), served).await,
        Socket::UnixDatagram(socket) => datagram::serve(Datagrams::Unix(UnixDatagram::from_std(socket)?), served).await,
    }
    Ok(())
}
