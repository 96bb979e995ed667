//! Fills a shelf, during the build.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde::Serialize;

use crate::rules::shelf::{Form, key};

/// A shelf under construction.
#[derive(Debug, Default)]
pub struct Writer {
    places: BTreeMap<u128, u32>,
    /// Forms in the order in which they were added: forms that are used together lie together, on few pages.
    forms: Vec<u8>,
}

impl Writer {
    /// Adds a form, unless it is there already.
    ///
    /// # Errors
    /// `postcard` cannot write it.
    pub fn add<T: Serialize>(&mut self, source: &str, ignore_case: bool, form: Form, what: impl FnOnce() -> T) -> postcard::Result<()> {
        if let Entry::Vacant(place) = self.places.entry(key(source, ignore_case, form)) {
            place.insert(self.forms.len() as u32);
            self.forms.extend(postcard::to_allocvec(&what())?);
        }
        Ok(())
    }

    /// Returns the bytes of the shelf.
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
