//! Which frames belong to a library or runtime rather than to the program. Every frame is tested, so the test looks up
//! two small tables for each byte of a file; entering an automaton would cost more than such short texts have bytes.

use std::sync::Arc;

/// Parts of a frame's file, or beginnings of its function, that mark the frame as a library's.
#[derive(Clone, Debug, Default)]
pub struct Library {
    /// Shared by all rule sets; `None`: nothing marks a library.
    tables: Option<Arc<Tables>>,
}

#[derive(Debug)]
struct Tables {
    parts: Vec<String>,
    /// For each byte, the parts that begin with it: one bit for each part, shared by every 64th.
    first: Box<[u64; 256]>,
    /// For each byte, the parts that may have it as their second byte.
    second: Box<[u64; 256]>,
}

impl Library {
    /// Builds the tables.
    #[must_use]
    pub fn new(parts: Vec<String>) -> Self {
        let tables = (!parts.is_empty()).then(|| Arc::new(Tables::new(parts)));
        Self { tables }
    }

    /// Whether a frame with this function and file belongs to a library.
    #[must_use]
    pub fn owns(&self, function: &str, file: &str) -> bool {
        self.tables.as_ref().is_some_and(|tables| tables.owns(function, file))
    }
}

impl Tables {
    fn new(parts: Vec<String>) -> Self {
        let (mut first, mut second) = (Box::new([0; 256]), Box::new([0; 256]));
        for (index, part) in parts.iter().enumerate() {
            let bit = 1_u64 << (index % 64);
            for (table, byte) in [(&mut first, part.bytes().next()), (&mut second, part.as_bytes().get(1).copied())] {
                match byte {
                    Some(byte) => table[usize::from(byte)] |= bit,
                    None => table.iter_mut().for_each(|bits| *bits |= bit),
                }
            }
        }
        Self { parts, first, second }
    }

    fn owns(&self, function: &str, file: &str) -> bool {
        let file = file.as_bytes();
        // The JVM names the class loader first: `app//org.junit.Assert.fail`.
        let function = function.as_bytes();
        let loader = memchr::memchr_iter(b'/', function).find(|&at| function.get(at + 1) == Some(&b'/'));
        let function = loader.map_or(function, |at| &function[at + 2..]);
        self.begins(function) || self.stands_in(file) || file.last_chunk::<1>().is_some_and(|last| self.begins(last))
    }

    /// Whether one of the parts occurs in `file`, except at its last byte.
    fn stands_in(&self, file: &[u8]) -> bool {
        let mut before = 0;
        for (at, &byte) in file.iter().enumerate() {
            if before & self.second[usize::from(byte)] != 0 && self.begins(&file[at - 1..]) {
                return true;
            }
            before = self.first[usize::from(byte)];
        }
        false
    }

    /// Returns the parts that may begin with these two bytes.
    #[inline]
    fn may_begin(&self, first: u8, second: u8) -> u64 {
        self.first[usize::from(first)] & self.second[usize::from(second)]
    }

    /// Whether `text` begins with one of the parts.
    fn begins(&self, text: &[u8]) -> bool {
        let Some(&first) = text.first() else { return false };
        let mut bits = self.may_begin(first, text.get(1).copied().unwrap_or_default());
        while bits != 0 {
            let mut shared = self.parts.iter().skip(bits.trailing_zeros() as usize).step_by(64);
            if shared.any(|part| text.starts_with(part.as_bytes())) {
                return true;
            }
            bits &= bits - 1;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_anywhere_in_the_file_or_at_the_front_of_the_function() {
        let library = Library::new(["node_modules", "java.", "/", "std::"].map(str::to_owned).to_vec());
        assert!(library.owns("", "/srv/x.js") && library.owns("", "x/") && library.owns("f", "a node_modules"));
        assert!(library.owns("java.lang.X", "") && library.owns("std::panic", "x.rs"));
        assert!(library.owns("app//java.lang.X", "X.java") && !library.owns("app//shop.java.X", "X.java") && !library.owns("a/java.X", "X.java"));
        assert!(!library.owns("my.java.X", "x.rs") && !library.owns("f", "node_module") && !library.owns("jav", "j") && !library.owns("", ""));
        assert!(!Library::default().owns("main", "/srv/x.js"));
    }

    #[test]
    fn more_parts_than_bits() {
        let parts: Vec<String> = (0..200).map(|number| format!("part{number}/")).collect();
        let library = Library::new(parts.clone());
        for part in &parts {
            assert!(library.owns("", &format!("/srv/{part}x")) && !library.owns("", &part[1..]), "{part}");
        }
    }
}
