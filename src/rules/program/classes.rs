//! The sets of each byte. Bytes of the same sets are one class: what a search touches of it is a few lines of the cache, where a
//! set for each byte would be a line for every eight, cold again for each program.

use serde::{Deserialize, Serialize};

use super::Sets;

/// As many bytes, the next ones, and their sets: as it is kept, because neighbours mostly belong to the same ones.
type Span = (u16, Sets);

/// By byte its sets.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(from = "Vec<Span>", into = "Vec<Span>")]
pub(super) struct Classes {
    class: Box<[u8; 256]>,
    sets: Box<[Sets]>,
}

impl Classes {
    pub(super) fn new(of: &[Sets; 256]) -> Self {
        let mut sets: Vec<Sets> = Vec::new();
        let mut class = Box::new([0; 256]);
        for (class, of) in class.iter_mut().zip(of) {
            let known = sets.iter().position(|known| known == of);
            *class = known.unwrap_or(sets.len()) as u8;
            if known.is_none() {
                sets.push(*of);
            }
        }
        Self { class, sets: sets.into() }
    }

    #[inline(always)]
    pub(super) fn of(&self, byte: u8) -> Sets {
        self.sets[usize::from(self.class[usize::from(byte)])]
    }
}

impl From<Vec<Span>> for Classes {
    fn from(spans: Vec<Span>) -> Self {
        let mut sets = [0; 256];
        let mut places = sets.iter_mut();
        for (length, value) in spans {
            places.by_ref().take(length.into()).for_each(|place| *place = value);
        }
        Self::new(&sets)
    }
}

impl From<Classes> for Vec<Span> {
    fn from(classes: Classes) -> Self {
        let sets: [Sets; 256] = std::array::from_fn(|byte| classes.of(byte as u8));
        sets.chunk_by(|a, b| a == b).map(|span| (span.len() as u16, span[0])).collect()
    }
}
