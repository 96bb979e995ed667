//! The compiled forms that the build made of the built-in patterns.

use super::shelf::Shelf;

/// The bytes of the [`Shelf`].
const FORMS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/forms.bin"));

/// Returns the shelf of forms.
pub(super) fn forms() -> Shelf<'static> {
    Shelf::new(FORMS).expect("the build wrote it")
}
