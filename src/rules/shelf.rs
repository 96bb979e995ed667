//! The compiled forms of the built-in patterns, as the build leaves them: found by a pattern's source, and read when a
//! run first uses that pattern. A run uses few patterns, so nothing is read at the start, not even the list of places.

use serde::Deserialize;

#[cfg(test)]
mod writer;

/// The forms that are kept of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The pattern's [`Compiled`](super::compiled::Compiled).
    Match,
    /// The program that [`reader`](super::compiled::reader) makes.
    Groups,
}

/// Bytes of a key, and of a place: a key, and where its form begins.
const KEY_BYTES: usize = 16;
const PLACE_BYTES: usize = KEY_BYTES + 4;

/// Forms in one byte sequence: their number, their places sorted by key, then the forms, as `postcard` writes them.
/// Keys are big-endian, other numbers little-endian. A key stands for its source: it is too long for two to share one.
#[derive(Clone, Copy, Debug)]
pub struct Shelf<'a> {
    places: &'a [u8],
    forms: &'a [u8],
}

impl<'a> Shelf<'a> {
    /// Opens the bytes that `writer` has written; `None` if they are truncated.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        let (count, rest) = bytes.split_first_chunk()?;
        let (places, forms) = rest.split_at_checked(u32::from_le_bytes(*count) as usize * PLACE_BYTES)?;
        Some(Self { places, forms })
    }

    /// Returns a form of the pattern with this source, if it is there.
    #[must_use]
    pub fn find<T: Deserialize<'a>>(self, source: &str, ignore_case: bool, form: Form) -> Option<T> {
        let (places, _) = self.places.as_chunks::<PLACE_BYTES>();
        let key = key(source, ignore_case, form).to_be_bytes();
        let found = places.binary_search_by(|place| place[..KEY_BYTES].cmp(&key)).ok()?;
        let at = u32::from_le_bytes(*places[found].last_chunk()?);
        postcard::from_bytes(self.forms.get(at as usize..)?).ok()
    }
}

/// Returns the key of a source and a form: FNV-1a of 128 bits over both.
pub(super) fn key(source: &str, ignore_case: bool, form: Form) -> u128 {
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let bytes = [u8::from(ignore_case), form as u8].into_iter().chain(source.bytes());
    bytes.fold(BASIS, |hash, byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use super::writer::Writer;
    use super::*;

    #[test]
    fn what_is_put_on_it_is_found_again() {
        let mut writer = Writer::default();
        let sources = ["", "a", "a+b", "é"];
        for (number, source) in (0_u16..).zip(sources) {
            writer.add(source, false, Form::Match, || number).unwrap();
            writer.add(source, true, Form::Groups, || format!("{number}")).unwrap();
            writer.add(source, false, Form::Match, || 999_u16).unwrap();
        }
        let bytes = writer.bytes();
        let shelf = Shelf::new(&bytes).unwrap();
        for (number, source) in (0_u16..).zip(sources) {
            assert_eq!(shelf.find(source, false, Form::Match), Some(number));
            assert_eq!(shelf.find(source, true, Form::Groups), Some(format!("{number}")));
            assert_eq!(shelf.find::<u16>(source, true, Form::Match), None);
        }
        assert_eq!(shelf.find::<u16>("b", false, Form::Match), None);
    }

    #[test]
    fn a_damaged_one_has_nothing() {
        let mut writer = Writer::default();
        writer.add("a", false, Form::Match, || 7_u16).unwrap();
        let bytes = writer.bytes();
        for length in 0..bytes.len() {
            assert_eq!(Shelf::new(&bytes[..length]).and_then(|shelf| shelf.find::<u16>("a", false, Form::Match)), None, "{length}");
        }
    }
}
