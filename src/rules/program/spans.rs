//! How the sets of all bytes are serialized: neighbouring bytes mostly belong to the same sets.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Sets;

/// A number of consecutive bytes, and the sets that they belong to.
type Span = (u16, Sets);

pub(super) fn serialize<S: Serializer>(sets: &[Sets; 256], serializer: S) -> Result<S::Ok, S::Error> {
    let spans: Vec<Span> = sets.chunk_by(|a, b| a == b).map(|span| (span.len() as u16, span[0])).collect();
    spans.serialize(serializer)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Box<[Sets; 256]>, D::Error> {
    let mut sets = Box::new([0; 256]);
    let mut places = sets.iter_mut();
    for (length, value) in Vec::<Span>::deserialize(deserializer)? {
        places.by_ref().take(length.into()).for_each(|place| *place = value);
    }
    Ok(sets)
}
