//! Colours for a terminal, or none. They are for siftd's own output only: log text is sanitised before it gets here.

use crate::core::event::Severity;

/// Whether to colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Paint {
    /// Whether to write escape sequences.
    pub on: bool,
}

impl Paint {
    /// Colours text by severity.
    #[must_use]
    pub fn severity(self, severity: Severity, text: &str) -> String {
        let code = match severity {
            Severity::Blocking => "1;35",
            Severity::High => "1;31",
            Severity::Medium => "1;33",
            Severity::Low => "1;36",
        };
        self.wrap(code, text)
    }

    /// Makes text bold.
    #[must_use]
    pub fn bold(self, text: &str) -> String {
        self.wrap("1", text)
    }

    /// Dims text that frames the rest.
    #[must_use]
    pub fn dim(self, text: &str) -> String {
        self.wrap("2", text)
    }

    fn wrap(self, code: &str, text: &str) -> String {
        if self.on { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}
