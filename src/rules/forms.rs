//! What the build has made of the built-in patterns.

use super::shelf::Shelf;

/// The [`Shelf`].
const FORMS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/forms.bin"));

/// The forms, to be asked for.
pub(super) fn forms() -> Shelf<'static> {
    Shelf::new(FORMS).expect("the build wrote it")
}
