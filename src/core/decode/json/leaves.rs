//! The scalars of one JSON object with their places, in a flat list, and how they are found by the names that loggers use.

use std::borrow::Cow;
use std::ops::Deref;

/// A value that holds no others.
#[derive(Clone, Debug)]
pub enum Scalar<'a> {
    Text(Cow<'a, str>),
    Int(i64),
    Float(f64),
    Bool(bool),
    Null,
}

/// A scalar and its place (RFC 6901).
#[derive(Clone, Debug)]
pub struct Leaf<'a> {
    pub pointer: String,
    pub value: Scalar<'a>,
}

/// The leaves of an object in document order.
#[derive(Debug, Default)]
pub struct Leaves<'a> {
    all: Vec<Leaf<'a>>,
    /// A bit for each length that one of their pointers has: most paths that are asked for have no leaf.
    lengths: u64,
}

impl<'a> Leaves<'a> {
    /// Appends a leaf.
    pub(super) fn push(&mut self, leaf: Leaf<'a>) {
        self.lengths |= Self::bit(leaf.pointer.len());
        self.all.push(leaf);
    }

    /// Returns the bit of a length; the last one stands for all that are longer.
    fn bit(length: usize) -> u64 {
        1 << length.min(u64::BITS as usize - 1)
    }

    /// Returns the leaves at this path, as [`Leaf::is`] wants it.
    pub fn at<'l, 'p>(&'l self, path: &'p str) -> impl Iterator<Item = &'l Leaf<'a>> + use<'l, 'p, 'a> {
        let is_known = self.lengths & Self::bit(path.len() + 1) != 0;
        let all: &[Leaf<'a>] = if is_known { &self.all } else { &[] };
        all.iter().filter(move |leaf| leaf.is(path))
    }
}

impl<'a> Deref for Leaves<'a> {
    type Target = [Leaf<'a>];
    fn deref(&self) -> &[Leaf<'a>] {
        &self.all
    }
}

impl Leaf<'_> {
    /// Returns the text, if it is not empty.
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Scalar::Text(text) if !text.is_empty() => Some(text),
            _ => None,
        }
    }

    /// Returns the whole number, written as such or as text.
    pub fn int(&self) -> Option<i64> {
        match &self.value {
            Scalar::Int(number) => Some(*number),
            Scalar::Text(text) => text.parse().ok(),
            _ => None,
        }
    }

    /// Whether the leaf lies at this dotted lower-case path: `error.message` names `/error/message`, `/Error.Message`.
    pub fn is(&self, path: &str) -> bool {
        self.pointer.len() == path.len() + 1
            && self.pointer.bytes().skip(1).zip(path.bytes()).all(|(a, b)| {
                let a = if a == b'/' { b'.' } else { a.to_ascii_lowercase() };
                a == b
            })
    }

    /// Returns the last key of the path.
    pub fn name(&self) -> &str {
        self.pointer.rsplit(['/', '.']).next().unwrap_or_default()
    }
}

/// Returns what `take` makes of the first leaf that it accepts, at the first of these paths that has one.
pub fn first<'l, 'de, T>(leaves: &'l Leaves<'de>, paths: &[&str], take: impl Fn(&'l Leaf<'de>) -> Option<T>) -> Option<T> {
    paths.iter().find_map(|path| leaves.at(path).find_map(&take))
}

/// Returns the text at the first of these paths that has one.
pub fn text_at(leaves: &Leaves<'_>, paths: &[&str]) -> Option<String> {
    first(leaves, paths, |leaf| leaf.text().map(str::to_owned))
}
