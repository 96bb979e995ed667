//! The compiled-in rules. The build (`src/build.rs`) has already read them, computed what
//! the start would otherwise wait for, and left it in formats that are cheap to read.

use std::sync::OnceLock;

use serde::Deserialize;

use super::clue::Clues;
use super::entry::{Cancel, Entry, Family};
use super::files::FILES;
use super::left::{Index, Left, Place, Uses};
use super::literal::{Leads, LiteralForm};
use super::load::{self, RulesFile, parse};
use super::spec::{EntrySpec, Table};

/// The [`Index`] of the files of `config/rules/`, without their examples.
const INDEX: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/index.bin"));
/// The entries of these files: [`Left`]s.
const ENTRIES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/entries.bin"));
/// The literals of these files: [`LiteralForm`]s.
const LITERALS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/literals.bin"));
/// Their [`Leads`].
const LEADS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/leads.bin"));
/// The [`Uses`] of these literals.
const USES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/uses.bin"));
/// The [`Clues`] of these files.
const CLUES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/clues.bin"));

/// Whether the example texts are read with the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Examples {
    /// For trying and listing the rules.
    Read,
    /// For reading logs.
    Skipped,
}

/// Returns all built-in files. The tests check them in full; here they only become tables.
#[must_use]
pub fn builtin_files(examples: Examples) -> Vec<RulesFile> {
    if examples == Examples::Skipped {
        return compiled_files();
    }
    let files: Vec<_> = FILES.iter().map(|(name, text)| parse(name, text, false)).collect();
    debug_assert!(files.iter().all(Result::is_ok), "{files:?}");
    files.into_iter().flatten().collect()
}

/// Returns the files as the build has read them.
fn compiled_files() -> Vec<RulesFile> {
    let file = |family: &Family| RulesFile { family: family.clone(), entries: Vec::new(), cancels: Vec::new(), first: false };
    let mut files: Vec<RulesFile> = families().iter().map(file).collect();
    for (at, place) in index().places.iter().enumerate() {
        files[usize::from(place.family)].entries.push(entry(at));
    }
    for ((family, _), cancel) in index().cancels.iter().zip(cancels()) {
        files[usize::from(*family)].cancels.push(cancel);
    }
    files
}

/// Decodes what the build wrote with the same types.
fn left<T: Deserialize<'static>>(bytes: &'static [u8]) -> T {
    postcard::from_bytes(bytes).expect("the build wrote it with the same types")
}

/// Reads what the build left at the beginning of `bytes`; returns it with what follows.
fn first_left<T: Deserialize<'static>>(bytes: &'static [u8]) -> (T, &'static [u8]) {
    postcard::take_from_bytes(bytes).expect("the build wrote it with the same types")
}

fn index() -> &'static Index<'static> {
    static READ: OnceLock<Index> = OnceLock::new();
    READ.get_or_init(|| left(INDEX))
}

/// Returns the families of the built-in rules.
pub(super) fn families() -> &'static [Family] {
    static READ: OnceLock<Vec<Family>> = OnceLock::new();
    READ.get_or_init(|| FILES.iter().zip(&index().families).map(|((name, _), spec)| Family::new(name, spec.clone())).collect())
}

/// Returns the built-in cancels.
pub(super) fn cancels() -> Vec<Cancel> {
    let cancel = |(at, (family, spec)): (u16, &(u16, EntrySpec))| {
        let cancel = load::compiled_cancel(&families()[usize::from(*family)], spec.clone());
        Cancel { compiled: Some(at), ..cancel }
    };
    (0..).zip(&index().cancels).map(cancel).collect()
}

/// Returns the numbers of the built-in entries in a table.
pub(super) fn of_table(table: Table) -> Vec<u16> {
    (0..).zip(&index().places).filter(|(_, place)| Table::ALL[usize::from(place.table)] == table).map(|(at, _)| at).collect()
}

/// Returns the numbers of the built-in entries in the order of their ids.
pub(super) fn by_id() -> &'static [u16] {
    &index().by_id
}

/// Returns the places of the built-in entries, by number.
pub(super) fn places() -> &'static [Place<'static>] {
    &index().places
}

/// Returns the id of an entry.
pub(super) fn id(at: u16) -> &'static str {
    places()[usize::from(at)].id
}

/// Returns the number of the entry with an id.
pub(super) fn position(id: &str) -> Option<u16> {
    let found = by_id().binary_search_by(|&at| self::id(at).cmp(id)).ok()?;
    Some(by_id()[found])
}

/// Returns the entries that are tried only in the region with this number; none if the entry is not a region.
pub(super) fn weak(region: u16) -> Vec<u16> {
    left::<Left>(&ENTRIES[places()[usize::from(region)].at as usize..]).weak
}

/// Returns the ids of the built-in entries that have `literal`, as written in their files.
pub fn entries_with(literal: &str) -> impl Iterator<Item = &'static str> {
    static READ: OnceLock<Uses> = OnceLock::new();
    let uses = READ.get_or_init(|| left(USES));
    let found = uses.binary_search_by_key(&literal, |(literal, _)| literal).ok();
    found.into_iter().flat_map(|at| &uses[at].1).map(|&at| id(at))
}

/// Reads an entry anew.
pub(super) fn entry(at: usize) -> Entry {
    let place = &index().places[at];
    let Left { spec, weak } = left(&ENTRIES[place.at as usize..]);
    let table = Table::ALL[usize::from(place.table)];
    let entry = load::compiled_entry(&families()[usize::from(place.family)], table, spec).expect("the tests read every entry");
    entry.linked(place.family, families(), weak)
}

/// Reads the literals of the built-in rules anew, one by one: only tables that are made from them need them.
pub fn literals() -> impl ExactSizeIterator<Item = LiteralForm> {
    let (count, mut rest) = first_left::<usize>(LITERALS);
    (0..count).map(move |_| {
        let literal;
        (literal, rest) = first_left(rest);
        literal
    })
}

/// Returns what these literals lead to, reading it at the first call.
pub fn leads() -> &'static Leads {
    static READ: OnceLock<Leads> = OnceLock::new();
    READ.get_or_init(|| left(LEADS))
}

/// Returns the clues of the built-in rules.
pub(super) fn clues() -> Clues {
    left(CLUES)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use crate::rules::entries::Member;
    use crate::rules::{Entry, Examples, Kind, LiteralForm, RuleSet, builtin_files, parse};

    const OWN: &str = r#"
[family]
id = "generic"
title = "Generic"
depth = "head"
[[rule]]
id = "generic.error"
literals = ["rror: ", "panic: ", "blunder = "]
regex = "(?:rror: |panic: |blunder = )"
[[noise]]
id = "generic.hum"
regex = "pump hums"
reason = "it does"
[[cancel]]
id = "generic.calm"
regex = "no blunder = at all"
[[trace]]
id = "generic.hint"
region = "pytest.failures"
rows = [{ from = "start", regex = "^hint: ", to = "end" }]
"#;

    #[test]
    fn what_joins_the_built_in_rules_comes_to_what_all_come_to_that_are_read_anew() {
        let own = || parse("own.toml", OWN, true).unwrap();
        let without = |mut set: RuleSet, off: &[&str]| {
            set.disable(&off.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>());
            set
        };
        for off in [&[][..], &["python", "generic.deprecation"]] {
            let anew = without(RuleSet::with_files(builtin_files(Examples::Read).into_iter().chain([own()]).collect()), off);
            let joined = without(RuleSet::compiled_with(vec![own()]), off);
            let literals = [&anew, &joined].map(|set| set.own_literals().unwrap());
            assert_eq!(literals.map(|own| own.inherited), [0, super::literals().len()]);
            let ids = |set: &RuleSet| set.entries.iter().map(|entry| entry.id.clone()).collect::<Vec<_>>();
            assert!(ids(&anew) == ids(&joined), "the order");
            let wanted = |set: &RuleSet| -> BTreeMap<LiteralForm, Vec<u16>> {
                let own = set.own_literals().unwrap();
                let all = own.forms.iter().cloned().enumerate().map(|(at, form)| (form, own.leads.of(at).to_vec()));
                all.filter(|(_, entries)| !entries.is_empty()).collect()
            };
            assert!(wanted(&anew) == wanted(&joined));
            assert_eq!((anew.clues(), &anew.noise, &anew.facts), (joined.clues(), &joined.noise, &joined.facts));
            for (anew, joined) in anew.entries.iter().zip(joined.entries.iter()) {
                assert_eq!(format!("{:?} {:?} {}", anew.kind, anew.labels, anew.family), format!("{:?} {:?} {}", joined.kind, joined.labels, joined.family));
            }
            let weak = |set: &RuleSet| set.entries.iter().filter(|entry| matches!(&entry.kind, Kind::Region(region) if !region.weak.is_empty())).count();
            assert!(weak(&anew) > 1, "regions that others are tried in");
        }
    }

    #[test]
    fn the_build_found_what_the_files_hold() {
        let (whole, compiled) = (RuleSet::builtin(), RuleSet::compiled());
        assert!(compiled.is_compiled());
        let ids = |set: &RuleSet| set.entries.iter().map(|entry| entry.id.clone()).collect::<Vec<_>>();
        assert_eq!((ids(&whole), &whole.noise), (ids(&compiled), &compiled.noise));
        let own = whole.own_literals().unwrap();
        assert!(super::literals().eq(own.forms.iter().cloned()) && own.leads == *compiled.leads());
        assert_eq!(whole.clues(), compiled.clues());
    }

    #[test]
    fn what_the_build_read_is_what_the_files_say() {
        let without_examples = |mut set: RuleSet| {
            let read = |member| match member {
                Member::Compiled(at) => super::entry(usize::from(at)),
                Member::Read(entry) => *entry,
            };
            let mut entries: Vec<Entry> = std::mem::take(&mut set.entries).into_members().map(read).collect();
            entries.iter_mut().for_each(|entry| entry.examples = Default::default());
            set.cancels.iter_mut().for_each(|cancel| (cancel.examples, cancel.compiled) = Default::default());
            (entries, set.cancels, set.families, set.noise, set.facts)
        };
        let (whole, compiled) = (without_examples(RuleSet::builtin()), without_examples(RuleSet::compiled()));
        for (whole, compiled) in whole.0.iter().zip(&compiled.0) {
            assert_eq!(format!("{whole:?}"), format!("{compiled:?}"));
        }
        assert!(format!("{whole:?}") == format!("{compiled:?}"));
    }

    #[test]
    fn an_entry_is_found_by_its_id_before_it_is_read() {
        let (whole, compiled) = (RuleSet::builtin(), RuleSet::compiled());
        for (at, entry) in (0..).zip(whole.entries.iter()) {
            assert_eq!((whole.entries.position(&entry.id), compiled.entries.position(&entry.id)), (Some(at), Some(at)), "{}", entry.id);
        }
        assert_eq!(compiled.entries.position("no.such"), None);
    }
}
