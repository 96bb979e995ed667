//! Which bytes a line holds. Most tests need a sign that most lines do not
//! have: one pass over the line tells, so that no test reads it in vain.

/// For each byte, whether the text holds it.
#[derive(Clone, Debug)]
pub struct Signs([bool; 256]);

impl Signs {
    /// Returns the signs of `text`.
    pub fn of(text: &[u8]) -> Self {
        let mut signs = [false; 256];
        text.iter().for_each(|byte| signs[usize::from(*byte)] = true);
        Self(signs)
    }

    /// Whether `sign` occurs in the text.
    #[inline]
    pub fn has(&self, sign: u8) -> bool {
        self.0[usize::from(sign)]
    }

    /// Whether a quotation mark occurs in the text.
    pub fn has_quote(&self) -> bool {
        self.has(b'"') || self.has(b'\'') || self.has(b'`')
    }
}
