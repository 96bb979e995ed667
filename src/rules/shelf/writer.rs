//! Fills a shelf; the build does.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde::Serialize;

use crate::rules::shelf::{Form, key};

/// A shelf in the making.
#[derive(Debug, Default)]
pub struct Writer {
    places: BTreeMap<u64, u32>,
    /// In the order in which they came: what is asked together lies together, on few pages.
    forms: Vec<u8>,
}

impl Writer {
    /// Adds a form, unless it is there. Of two with the same key the second is left out: whoever asks for it makes it.
    ///
    /// # Errors
    /// `postcard` cannot write it.
    pub fn add<T: Serialize>(&mut self, source: &str, ignore_case: bool, form: Form, what: impl FnOnce() -> T) -> postcard::Result<()> {
        if let Entry::Vacant(place) = self.places.entry(key(source, ignore_case, form)) {
            place.insert(self.forms.len() as u32);
            self.forms.extend(postcard::to_allocvec(&(source, what()))?);
        }
        Ok(())
    }

    /// The bytes of the shelf.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = (self.places.len() as u32).to_le_bytes().to_vec();
        for (key, at) in &self.places {
            bytes.extend(key.to_be_bytes());
            bytes.extend(at.to_le_bytes());
        }
        bytes.extend(&self.forms);
        bytes
    }
}
