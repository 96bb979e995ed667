//! The status servers: the socket in the state folder, for `siftd status`, and the `listen` address of the configuration.

use std::path::Path;

use crate::telemetry::http::{self, Place, Server};
use crate::telemetry::metrics;

/// Name of the socket in the state folder.
pub const SOCKET: &str = "status.sock";

/// The servers.
#[derive(Default)]
pub(super) struct Answers {
    place: Option<Place>,
    listening: Option<Server>,
    own: Option<Server>,
}

impl Answers {
    /// Listens where the configuration says.
    pub fn listen(place: Option<Place>) -> Result<Self, String> {
        Ok(Self { listening: Self::prepare(place.as_ref())?, place, own: None })
    }

    /// Listens in the state folder, too; if that fails, only `siftd status` does not work.
    pub fn answer_in(&mut self, folder: &Path) {
        let own = std::path::absolute(folder).and_then(|folder| http::start(&Place::Socket(folder.join(SOCKET)), metrics()));
        self.own = own.inspect_err(|error| tracing::warn!("{}: {error}; `siftd status` cannot ask", folder.join(SOCKET).display())).ok();
    }

    /// Listens in the state folder again if the folder has been recreated.
    pub fn answer_again(&mut self, folder: &Path) {
        if !folder.join(SOCKET).exists() {
            self.own = None;
            self.answer_in(folder);
        }
    }

    /// Prepares a server for `place`, to be passed to [`Self::change`]; `None` if the place stays the same.
    pub fn other(&self, place: Option<&Place>) -> Result<Option<Server>, String> {
        if place == self.place.as_ref() { Ok(None) } else { Self::prepare(place) }
    }

    /// Switches to `place` and its prepared server, unless the place stays the same.
    pub fn change(&mut self, place: Option<Place>, server: Option<Server>) {
        if place != self.place {
            (self.place, self.listening) = (place, server);
        }
    }

    fn prepare(place: Option<&Place>) -> Result<Option<Server>, String> {
        let Some(place) = place else { return Ok(None) };
        let name = match place {
            Place::Address(address) => address.to_string(),
            Place::Socket(path) => path.display().to_string(),
        };
        http::start(place, metrics()).map(Some).map_err(|error| format!("`listen` in [telemetry]: {name}: {error}: choose another one, or \"\" for none"))
    }
}
