//! The bytes that a program tells apart. While a program is built, each of its sets has a bit, and the bytes have a table
//! of 2 KiB. A finished program has one bit for each class of bytes that are in the same sets, and its table takes 256
//! bytes: of a few hundred programs that are run in turn, more stays in the nearest cache.

use super::Set;
use super::build::{END, NOTHING, Sets};

/// The classes of a program.
pub(super) struct Classes {
    /// The class of each byte.
    pub(super) of_byte: Box<[u8; 256]>,
    /// For each class, the sets that its bytes belong to; the end of the text comes first.
    members: Vec<Sets>,
}

impl Classes {
    /// Finds the classes; `None` when there are too many for the bits of a [`Set`].
    pub(super) fn of(sets: &[Sets; 256]) -> Option<Self> {
        let mut members = vec![NOTHING | END];
        let mut of_byte = Box::new([0; 256]);
        for (class, sets) in of_byte.iter_mut().zip(sets) {
            let known = members[1..].iter().position(|known| known == sets).map(|at| at + 1);
            *class = known.unwrap_or(members.len()) as u8;
            if known.is_none() {
                members.push(*sets);
            }
        }
        (members.len() <= Set::BITS as usize).then_some(Self { of_byte, members })
    }

    /// Returns the classes whose bytes belong to any of `sets`.
    pub(super) fn set(&self, sets: Sets) -> Set {
        (0..).zip(&self.members).filter(|(_, members)| **members & sets != 0).fold(0, |all, (class, _)| all | 1 << class)
    }
}
