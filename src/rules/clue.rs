//! The alternatives of a noise or cancel pattern, each with its clues: what a matching text must
//! show, tested without running the pattern. These patterns are long lists of unrelated
//! alternatives; most lines show the clue of none, so few lines run any of them. The build
//! computes the clues of the built-in rules. A clue may admit too much, but never hides a match.

use std::collections::BTreeMap;

use regex_syntax::hir::{Capture, Class, Hir, HirKind, Repetition};
use serde::{Deserialize, Serialize};

use super::ends::{Ends, Margin, first_bytes, last_bytes};
use super::prove::telling_words;
use super::signs::Signs;
use super::source::{NOTHING, parsed};

/// The alternatives of a group are separated if at most this many parts stand before it, and at most this many in total.
const MAX_PARTS_BEFORE: usize = 5;
const MAX_PARTS: usize = 12;
/// Most alternatives of a group that is separated.
const MAX_ALTERNATIVES: usize = 80;
/// How deep nested groups are separated.
const MAX_SPREAD: usize = 2;
/// First bytes tell something only if there are at most this many of them.
const MAX_FIRST: u32 = 32;
/// Most bytes in a set of signs, one of which must occur in a text, for the set to be worth a test.
const MAX_SIGNS: usize = 4;
/// Signs that most lines have, which tell nothing; and signs that are useful, but more frequent than any not listed here.
const COMMON_SIGNS: &[u8] = b":./-_";
const FREQUENT_SIGNS: &[u8] = b"()[],='\"";

/// One alternative of a pattern, and what a matching text must show.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Clue {
    /// The alternative.
    pub source: String,
    /// A matching text contains one of these, in any case; empty: no such words are known.
    pub words: Vec<String>,
    /// What a matching text also shows.
    pub looks: Looks,
}

/// What a text shows without a search.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Looks {
    /// It holds all of these signs, and one of each of these sets.
    signs: Signs,
    sets: Vec<Signs>,
    /// Its possible first visible bytes, and last bytes.
    first: Option<Ends>,
    last: Option<Ends>,
    margin: Margin,
}

/// The alternatives of each noise entry and of each cancel.
#[derive(Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Clues {
    /// Those of the noise entries.
    pub noise: Vec<Vec<Clue>>,
    /// Those of the cancels.
    pub cancels: Vec<Vec<Clue>>,
}

impl Clue {
    fn of(hir: &Hir) -> Self {
        let mut sets = Vec::new();
        signs(hir, &mut sets);
        let sets = sets.iter().map(|set| Signs::of(set)).collect();
        let looks = Looks { signs: Signs::needed(hir), sets, first: first_bytes(hir), last: last_bytes(hir), margin: Margin::of(hir) };
        Self { source: source(hir), words: telling_words(hir).unwrap_or_default(), looks }
    }

    /// Ranks how much the clue tells: 0 nothing, 1 how a text begins, 2 a word that few texts contain.
    fn rank(&self) -> u8 {
        match &self.looks.first {
            _ if !self.words.is_empty() => 2,
            Some(first) if first.count() <= MAX_FIRST => 1,
            _ => 0,
        }
    }

    /// Returns `true` if nothing is known of a matching text, so that the pattern must be run on any text.
    #[must_use]
    pub fn tells_nothing(&self) -> bool {
        self.words.is_empty() && self.looks.sets.is_empty() && self.looks.first.is_none()
    }
}

impl Looks {
    /// Whether a text with these signs, or that is held by one with them, may match.
    #[inline]
    #[must_use]
    pub fn allow(&self, signs: Signs) -> bool {
        signs.hold(self.signs) && self.sets.iter().all(|any| signs.meet(*any))
    }

    /// Whether a text may match with `first` as its first visible byte and
    /// `last` as its last byte; `indented`: the text begins with white space.
    #[inline]
    #[must_use]
    pub fn fits(&self, first: Option<u8>, last: Option<u8>, indented: bool) -> bool {
        self.begins(first) && self.margin.fits(indented) && self.ends(last)
    }

    /// Whether a text may match with `first` as its first visible byte.
    #[inline]
    #[must_use]
    pub fn begins(&self, first: Option<u8>) -> bool {
        self.first.as_ref().is_none_or(|ends| ends.has(first))
    }

    /// Whether a text may match with `last` as its last byte.
    #[inline]
    #[must_use]
    pub fn ends(&self, last: Option<u8>) -> bool {
        self.last.as_ref().is_none_or(|ends| ends.has(last))
    }

    /// Returns whether a matching text begins with white space.
    #[inline]
    #[must_use]
    pub fn margin(&self) -> Margin {
        self.margin
    }
}

/// Returns the alternatives of a pattern: it matches a text if one of them does. An invalid regex yields one that never matches.
#[must_use]
pub fn clues(source: &str, ignore_case: bool) -> Vec<Clue> {
    let nothing = || Clue { source: NOTHING.to_owned(), ..Clue::default() };
    let Some(hir) = parsed(source, ignore_case) else { return vec![nothing()] };
    let (vague, sharp): (Vec<Hir>, Vec<Hir>) = alternatives(&hir, MAX_SPREAD).into_iter().partition(|one| Clue::of(one).rank() == 0);
    // Vague alternatives are run together if they share a sign that tells something.
    let mut groups: BTreeMap<Option<Vec<u8>>, Vec<Hir>> = BTreeMap::new();
    vague.into_iter().for_each(|one| groups.entry(mark(&one)).or_default().push(one));
    let together = groups.into_iter().map(|(mark, group)| {
        let mut clue = Clue::of(&Hir::alternation(group));
        clue.looks.sets.extend(mark.map(|mark| Signs::of(&mark)).filter(|mark| !clue.looks.sets.contains(mark)));
        clue
    });
    sharp.iter().map(Clue::of).chain(together).collect()
}

/// Returns the rarest set of bytes of which every match of `hir` contains one; `None` when most texts contain one.
fn mark(hir: &Hir) -> Option<Vec<u8>> {
    let mut found = Vec::new();
    signs(hir, &mut found);
    let is = |known: &[u8], mark: &[u8]| mark.iter().any(|byte| known.contains(byte));
    found.into_iter().filter(|mark| !is(COMMON_SIGNS, mark)).min_by_key(|mark| is(FREQUENT_SIGNS, mark))
}

/// Returns patterns one of which matches wherever `hir` does. Nested groups are separated down to `depth`.
fn alternatives(hir: &Hir, depth: usize) -> Vec<Hir> {
    let whole = || vec![hir.clone()];
    match hir.kind() {
        HirKind::Alternation(branches) => branches.iter().flat_map(|branch| alternatives(branch, depth)).collect(),
        HirKind::Capture(group) => alternatives(&group.sub, depth),
        HirKind::Concat(parts) if parts.len() <= MAX_PARTS && depth > 0 => match spread(parts) {
            Some(apart) if tells_more(&apart, hir) => apart.iter().flat_map(|one| alternatives(one, depth - 1)).collect(),
            _ => whole(),
        },
        _ => whole(),
    }
}

/// Whether some clues of `apart` tell more than the clue of `whole`, and none tells less.
fn tells_more(apart: &[Hir], whole: &Hir) -> bool {
    let whole = Clue::of(whole).rank();
    let ranks = || apart.iter().map(|one| Clue::of(one).rank());
    ranks().all(|rank| rank >= whole) && ranks().any(|rank| rank > whole)
}

/// Returns the source of a part of a pattern. `Display` alone would write a repeated repetition as a lazy one.
fn source(hir: &Hir) -> String {
    grouped(hir).to_string()
}

fn grouped(hir: &Hir) -> Hir {
    let all = |parts: &[Hir]| parts.iter().map(grouped).collect();
    match hir.kind() {
        HirKind::Repetition(repeat) => {
            let sub = grouped(&repeat.sub);
            let is_repeated = matches!(sub.kind(), HirKind::Repetition(_));
            let sub = if is_repeated { Hir::capture(Capture { index: 1, name: None, sub: Box::new(sub) }) } else { sub };
            Hir::repetition(Repetition { sub: Box::new(sub), ..repeat.clone() })
        }
        HirKind::Capture(group) => grouped(&group.sub),
        HirKind::Concat(parts) => Hir::concat(all(parts)),
        HirKind::Alternation(parts) => Hir::alternation(all(parts)),
        _ => hir.clone(),
    }
}

/// Returns the concatenation once per alternative of a group near its beginning; `None` when there is no such group.
fn spread(parts: &[Hir]) -> Option<Vec<Hir>> {
    let near = parts.iter().take(MAX_PARTS_BEFORE + 1).enumerate();
    let (at, branches) = near.into_iter().find_map(|(at, part)| match part.kind() {
        HirKind::Alternation(branches) if branches.len() <= MAX_ALTERNATIVES => Some((at, branches)),
        _ => None,
    })?;
    let with = |branch: &Hir| Hir::concat(parts.iter().enumerate().map(|(other, part)| if other == at { branch.clone() } else { part.clone() }).collect());
    Some(branches.iter().map(with).collect())
}

/// Adds sets of bytes of which every match of `hir` contains one; never letters, digits or blanks, which any text has.
fn signs(hir: &Hir, found: &mut Vec<Vec<u8>>) {
    let mut add = |mut bytes: Vec<u8>| {
        bytes.sort_unstable();
        bytes.dedup();
        let is_sign = |byte: &u8| !byte.is_ascii_alphanumeric() && *byte != b' ';
        if (1..=MAX_SIGNS).contains(&bytes.len()) && bytes.iter().all(is_sign) && !found.contains(&bytes) {
            found.push(bytes);
        }
    };
    match hir.kind() {
        HirKind::Literal(literal) => literal.0.iter().for_each(|byte| add(vec![*byte])),
        HirKind::Class(Class::Bytes(class)) => add(class.iter().flat_map(|range| range.start()..=range.end()).take(MAX_SIGNS + 1).collect()),
        HirKind::Capture(group) => signs(&group.sub, found),
        HirKind::Repetition(repeat) if repeat.min > 0 => signs(&repeat.sub, found),
        HirKind::Concat(parts) => parts.iter().for_each(|part| signs(part, found)),
        HirKind::Alternation(branches) => add(branches.iter().map(any_sign).collect::<Option<Vec<_>>>().unwrap_or_default().concat()),
        _ => {}
    }
}

/// Returns the smallest set of bytes of which every match of `hir` contains one.
fn any_sign(hir: &Hir) -> Option<Vec<u8>> {
    let mut found = Vec::new();
    signs(hir, &mut found);
    found.into_iter().min_by_key(Vec::len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_alternative_has_its_own() {
        let all = clues(r"^npm warn\b|^\+ \w+$|^(?:.*[ :])?Deprecated$|^\s*(?:ok|passed) \d+;", false);
        let words: Vec<Vec<String>> = all.iter().map(|clue| clue.words.clone()).collect();
        let group = |of: &[&str]| of.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        assert_eq!(words, [group(&["npm warn"]), vec![], group(&["deprecated"]), group(&["ok ", "passed "])]);
        assert!(all[1].looks.fits(Some(b'+'), Some(b'x'), false) && !all[1].looks.begins(Some(b'-')) && !all[1].looks.fits(Some(b'+'), Some(b';'), false));
        assert!(all[2].looks.fits(Some(b'x'), Some(b'd'), false) && !all[2].looks.fits(Some(b'x'), Some(b'x'), false));
        let last = &all.last().expect("there are some").looks;
        assert!(last.allow(Signs::of(b"ok 1;")) && !last.allow(Signs::of(b"ok 1")) && !last.allow(Signs::of(b"ok ;")));
    }

    #[test]
    fn a_word_that_most_errors_have_is_no_clue() {
        let all = clues(r"\b(?:fixed|resolved)\b.{0,40}\berrors?\b.", false);
        assert_eq!(all[0].words, ["fixed", "resolved"]);
        assert!(clues(r"(?:a|b)c", false).iter().all(|clue| clue.words.is_empty() && clue.looks.sets.is_empty()));
    }

    #[test]
    fn an_alternative_is_written_down_as_it_is() {
        for pattern in [r"^[a-f]{2}(?:[0-9]{2,3})?x", r"(?:(?:a?)+?|(?:b+)*)c", r"^(?:(?:x{2}){3}|y)$", "[✔✘] é+"] {
            for clue in clues(pattern, false) {
                let again = parsed(&clue.source, false).expect("parses");
                assert_eq!(again.properties().minimum_len(), parsed(&source(&again), false).expect("parses").properties().minimum_len());
                let twice = clues(&clue.source, false);
                assert_eq!(twice.iter().map(|clue| &clue.source).collect::<Vec<_>>(), [&clue.source], "{pattern}");
            }
        }
    }

    #[test]
    fn what_tells_nothing_hides_nothing() {
        for source in [r"\w+", r"x*"] {
            assert!(clues(source, false).iter().any(|clue| clue.tells_nothing() && clue.looks.fits(Some(b'?'), None, false)), "{source}");
        }
        assert_eq!(clues("(", false)[0].source, NOTHING);
    }

    #[test]
    fn what_must_be_indented_is_asked_of_nothing_else() {
        for (source, indented) in
            [(r"^\s+x", true), ("^ {2,}x", true), ("^(?:\t| +)x", true), (r"^\s*x", false), ("^ *x", false), (r"\s+x", false), ("^(?: |-)x", false)]
        {
            let clues = clues(source, false);
            assert!(clues.iter().all(|clue| clue.looks.fits(Some(b'x'), Some(b'x'), true)), "{source}");
            assert_eq!(clues.iter().all(|clue| !clue.looks.fits(Some(b'x'), Some(b'x'), false)), indented, "{source}");
        }
    }
}
