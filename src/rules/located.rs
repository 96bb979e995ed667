//! A string of a rules file with its place. Compiled-in rules are known to be correct, so their strings have no places.

use std::ops::Range;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use toml::Spanned;

/// A string and its byte range in its file; 0..0 if it is compiled in.
#[derive(Clone, Debug)]
pub struct Located {
    text: String,
    span: Range<usize>,
}

impl Located {
    /// The string.
    #[must_use]
    pub fn get(&self) -> &str {
        &self.text
    }

    /// Returns the string alone.
    #[must_use]
    pub fn into_text(self) -> String {
        self.text
    }

    /// Returns its byte range.
    #[must_use]
    pub fn span(&self) -> Range<usize> {
        self.span.clone()
    }
}

impl<'de> Deserialize<'de> for Located {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if !deserializer.is_human_readable() {
            return Ok(Self { text: String::deserialize(deserializer)?, span: 0..0 });
        }
        let spanned = Spanned::<String>::deserialize(deserializer)?;
        Ok(Self { span: spanned.span(), text: joined(spanned.into_inner()) })
    }
}

/// Joins a text that is written over several lines: a line break and the indentation after it are none of it.
fn joined(text: String) -> String {
    if !text.contains('\n') {
        return text;
    }
    text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line).trim_start_matches([' ', '\t'])).collect()
}

impl Serialize for Located {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::joined;

    #[test]
    fn a_text_over_several_lines_is_one() {
        assert_eq!(joined("  a b ".to_owned()), "  a b ", "one line stays as it is");
        assert_eq!(joined("\n    ^(?:\n\t| a \r\n    |b)$\n".to_owned()), "^(?:| a |b)$");
    }
}
