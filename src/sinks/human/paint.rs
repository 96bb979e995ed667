//! Colours for a terminal, or none. siftd's own signs only: log text is sanitised before it comes here.

use crate::core::event::Severity;

/// Whether to colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Paint {
    /// Writes escape sequences.
    pub on: bool,
}

impl Paint {
    /// In the colour of a severity.
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

    /// Bold.
    #[must_use]
    pub fn bold(self, text: &str) -> String {
        self.wrap("1", text)
    }

    /// What frames the text.
    #[must_use]
    pub fn dim(self, text: &str) -> String {
        self.wrap("2", text)
    }

    fn wrap(self, code: &str, text: &str) -> String {
        if self.on { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}
