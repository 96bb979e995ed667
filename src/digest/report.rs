//! Reads the report of `scan --format report` one error at a time.

use std::fmt;
use std::io::Read;

use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::{Digest, Item};

/// Adds the errors of a report one at a time, so that only one record is held in memory.
///
/// # Errors
/// The input is no valid JSON, or ends early.
pub fn report(bytes: impl Read, digest: &mut Digest) -> Result<(), serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_reader(std::io::BufReader::new(bytes));
    reader.deserialize_map(Report(digest))
}

struct Report<'d>(&'d mut Digest);

impl<'de> Visitor<'de> for Report<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the report of `siftd scan --format report`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "errors" => map.next_value_seed(Errors(self.0))?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

struct Errors<'d>(&'d mut Digest);

impl<'de> serde::de::DeserializeSeed<'de> for Errors<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, list: D) -> Result<(), D::Error> {
        list.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Errors<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of records")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(record) = list.next_element::<Value>()? {
            let item = Item::of_record(&record).ok_or_else(|| A::Error::custom("an entry of `errors` is no record of an error"))?;
            self.0.add(item);
        }
        Ok(())
    }
}
