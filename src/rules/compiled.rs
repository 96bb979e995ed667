//! What a pattern runs as: its program, and tests that settle most texts beforehand. All of it follows from the pattern's
//! source alone, so the build makes it for the built-in patterns; otherwise the start of each run would wait for it.

use memchr::memmem::Finder;
use regex_syntax::hir::Hir;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::ends::{Ends, Margin, first_bytes, is_indented, last_bytes, needed};
use super::padding::before_blanks;
use super::program::{Program, Wanted};
use super::signs::Signs;
use super::source::parsed;

/// If a match can begin with at most this many bytes, the first byte rules out most lines.
const MAX_SHARP: u32 = 100;

/// Tells whether a text matches.
#[derive(Debug, Default, Deserialize, Serialize)]
pub struct Compiled {
    /// Decides whether a text matches; `None`: only `regex` can.
    pub(super) program: Option<Program>,
    /// The possible first visible bytes, and last bytes, of a matching text.
    first: Option<Ends>,
    last: Option<Ends>,
    /// The last bytes of texts that match only with blanks behind them.
    padded: Option<Box<Ends>>,
    margin: Margin,
    /// Signs that a matching text holds.
    signs: Signs,
    /// Every match contains one of these; empty: nothing is known, or other tests are cheaper.
    needed: Vec<Needed>,
}

/// Bytes that are searched for.
#[derive(Debug)]
struct Needed(Finder<'static>);

impl Compiled {
    /// Compiles a pattern's source. For an invalid regex nothing is known.
    #[must_use]
    pub fn new(source: &str, ignore_case: bool) -> Self {
        parsed(source, ignore_case).map(|hir| Self::of(&hir)).unwrap_or_default()
    }

    fn of(hir: &Hir) -> Self {
        let first = first_bytes(hir);
        let is_sharp = first.as_ref().is_some_and(|first| first.count() <= MAX_SHARP);
        let needed = if is_sharp { Vec::new() } else { needed(hir).unwrap_or_default() };
        let needed = needed.into_iter().map(Needed::new).collect();
        Self {
            program: Program::new(hir, Wanted::Match),
            first,
            last: last_bytes(hir),
            padded: before_blanks(hir).map(Box::new),
            margin: Margin::of(hir),
            signs: Signs::needed(hir),
            needed,
        }
    }

    /// Whether the ends of a text, with `lead` as its first visible byte, allow a match: that settles most texts.
    #[inline]
    pub(super) fn may_match(&self, text: &[u8], lead: Option<u8>) -> bool {
        self.may_begin(lead) && self.may_end(text.last().copied()) && self.margin.fits(is_indented(text))
    }

    /// Whether a text that is indented, or not, allows a match.
    #[inline]
    pub(super) fn may_stand(&self, indented: bool) -> bool {
        self.margin.fits(indented)
    }

    /// Whether a text with these signs may match.
    #[inline]
    pub(super) fn may_be_in(&self, signs: Signs) -> bool {
        signs.hold(self.signs)
    }

    /// Whether the first visible byte of a text allows a match.
    #[inline]
    pub(super) fn may_begin(&self, lead: Option<u8>) -> bool {
        self.first.as_ref().is_none_or(|first| first.has(lead))
    }

    /// Whether the last byte of a text allows a match.
    #[inline]
    pub(super) fn may_end(&self, last: Option<u8>) -> bool {
        self.last.as_ref().is_none_or(|ends| ends.has(last))
    }

    /// Whether a text with this last byte may match only with blanks behind it.
    #[inline]
    pub(super) fn may_lack_blanks(&self, last: Option<u8>) -> bool {
        self.padded.as_ref().is_some_and(|ends| ends.has(last))
    }

    /// Whether the text contains one of the literals that every match needs.
    pub(super) fn has_needed(&self, text: &[u8]) -> bool {
        self.needed.is_empty() || self.needed.iter().any(|needed| needed.0.find(text).is_some())
    }
}

/// Returns the program that reads the named groups of a pattern.
#[must_use]
pub fn reader(source: &str, ignore_case: bool) -> Option<Program> {
    Program::new(&parsed(source, ignore_case)?, Wanted::Groups)
}

/// Whether a pattern has named groups to read.
#[must_use]
pub fn has_groups(source: &str) -> bool {
    source.contains("(?P<")
}

impl Needed {
    fn new(bytes: &[u8]) -> Self {
        Self(Finder::new(bytes).into_owned())
    }
}

impl Serialize for Needed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.needle().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Needed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(|bytes| Self::new(&bytes))
    }
}
