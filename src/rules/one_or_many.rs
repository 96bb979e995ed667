//! A key of a rules file that takes one word or a list of words.

use serde::{Deserialize, Deserializer, Serialize};

/// `"a"` or `["a", "b"]`
#[derive(Clone, Debug, Serialize)]
pub struct OneOrMany(Vec<String>);

impl OneOrMany {
    /// The words.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

impl<'de> Deserialize<'de> for OneOrMany {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            One(String),
            Many(Vec<String>),
        }
        // Only a format for people leaves the brackets out.
        if !deserializer.is_human_readable() {
            return Ok(Self(Vec::deserialize(deserializer)?));
        }
        Ok(Self(match Written::deserialize(deserializer)? {
            Written::One(one) => vec![one],
            Written::Many(many) => many,
        }))
    }
}
