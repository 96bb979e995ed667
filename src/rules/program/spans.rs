//! How the classes of all bytes are serialized: neighbouring bytes mostly belong to the same class.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A number of consecutive bytes, and the class that they belong to.
type Span = (u16, u8);

pub(super) fn serialize<S: Serializer>(classes: &[u8; 256], serializer: S) -> Result<S::Ok, S::Error> {
    let spans: Vec<Span> = classes.chunk_by(|a, b| a == b).map(|span| (span.len() as u16, span[0])).collect();
    spans.serialize(serializer)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Box<[u8; 256]>, D::Error> {
    let mut classes = Box::new([0; 256]);
    let mut places = classes.iter_mut();
    for (length, value) in Vec::<Span>::deserialize(deserializer)? {
        places.by_ref().take(length.into()).for_each(|place| *place = value);
    }
    Ok(classes)
}
