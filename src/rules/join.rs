//! Puts the rules of several files together: the entries are numbered in the order in which a line is offered to them.
//! Of compiled-in entries only the place is known here; what the build has computed for them is reused as it is.

use std::collections::HashMap;

use super::entries::Member;
use super::literal::Literals;
use super::spec::Table;
use super::{Cancel, Entries, Entry, Family, Kind, RuleSet, RulesFile, builtin};

/// Rank of an entry that goes before all built-in ones.
const FIRST: u16 = 0;
/// Rank of an entry that goes after all built-in ones.
const LAST: u16 = u16::MAX;

/// A rule set under construction.
#[derive(Default)]
pub(super) struct Joined {
    families: Vec<Family>,
    /// Each member with its rank among the entries that are offered a line together:
    /// the position in the files of the built-in entry that it is or replaces.
    members: Vec<(u16, Member)>,
    cancels: Vec<Cancel>,
    /// Position of each entry in `members`.
    by_id: HashMap<String, usize>,
}

impl Joined {
    /// Starts from the compiled-in rules.
    pub(super) fn compiled() -> Self {
        let members: Vec<_> = (0..).zip(builtin::places()).map(|(at, place)| (FIRST + 1 + place.order, Member::Compiled(at))).collect();
        let by_id = members.iter().enumerate().map(|(at, (_, member))| (member.id().to_owned(), at)).collect();
        Self { families: builtin::families().to_vec(), members, cancels: builtin::cancels(), by_id }
    }

    /// Takes a set apart, leaving out whatever is `off`.
    pub(super) fn without(set: RuleSet, off: impl Fn(&str) -> bool) -> Self {
        let RuleSet { families, entries, mut cancels, .. } = set;
        cancels.retain(|cancel| !off(&cancel.id));
        let members = entries.into_members().filter(|member| !off(member.id())).map(|member| (0, member)).collect();
        Self { families, members, cancels, by_id: HashMap::new() }
    }

    /// Adds a file. An entry with the id of an earlier one takes its place, since the first of several machines that take
    /// equally many lines wins.
    pub(super) fn add(&mut self, file: RulesFile) {
        let family = self.family(file.family);
        for mut entry in file.entries {
            entry.family = family;
            match self.by_id.get(&entry.id) {
                Some(&known) => self.members[known].1 = Member::Read(Box::new(entry)),
                None => {
                    self.by_id.insert(entry.id.clone(), self.members.len());
                    self.members.push((if file.first { FIRST } else { LAST }, Member::Read(Box::new(entry))));
                }
            }
        }
        for cancel in file.cancels {
            match self.cancels.iter_mut().find(|known| known.id == cancel.id) {
                Some(known) => *known = cancel,
                None => self.cancels.push(cancel),
            }
        }
    }

    fn family(&mut self, family: Family) -> u16 {
        let known = self.families.iter().position(|f| f.id == family.id).unwrap_or_else(|| {
            self.families.push(family);
            self.families.len() - 1
        });
        known as u16
    }

    pub(super) fn set(mut self) -> RuleSet {
        self.members.sort_by_key(|(rank, member)| (member.table(), member.is_generic(), *rank));
        let members: Vec<Member> = self.members.into_iter().map(|(_, member)| member).collect();
        let of_table = |table: Table| (0..).zip(&members).filter(|(_, member)| member.table() == table).map(|(at, _)| at).collect();
        let (noise, facts, own) = (of_table(Table::Noise), of_table(Table::Fact), literals(&members));
        let entries = Entries::new(members, &self.families);
        RuleSet { families: self.families, entries, cancels: self.cancels, noise, facts, own: Some(own) }
    }
}

/// Returns the literals. Those of the built-in entries are known; one whose entries are gone leads nowhere and is not searched for.
fn literals(members: &[Member]) -> Literals {
    let read = (0..).zip(members).filter_map(|(at, member)| Some((at, member.read()?)));
    let own = read.map(|(at, entry): (u16, &Entry)| (at, &entry.gate, matches!(entry.kind, Kind::Fact(_))));
    let compiled: HashMap<u16, u16> = (0..).zip(members).filter_map(|(at, member)| Some((member.compiled()?, at))).collect();
    if compiled.is_empty() {
        Literals::of(own.map(|(_, gate, fact)| (gate, fact)))
    } else {
        Literals::joined(builtin::literals().collect(), builtin::leads(), |known| compiled.get(&known).copied(), own)
    }
}
