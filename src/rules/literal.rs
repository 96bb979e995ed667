//! From a rule's literals to the exact bytes that the prefilter looks for.
//!
//! A log may hold the text of a line raw or inside a JSON string. A literal with bytes that JSON escapes is therefore
//! either reduced to its longest run of stable bytes and the neighbours of that run, or written out in all its forms.

use std::borrow::Borrow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

mod escapes;
mod leads;

use escapes::{Encoder, is_stable};
pub use leads::Leads;

/// Shortest literal that the prefilter can find.
pub const MIN_LITERAL_BYTES: usize = 3;
/// Shortest stable run that may replace a whole literal.
const MIN_RUN_BYTES: usize = 8;
/// The only thing that may follow an `at_end` literal: the line's end, which may follow any literal.
const LINE_END: &str = "\r";
/// Most texts that a literal with classes may stand for.
const MAX_MEANT: usize = 2000;
/// Most bytes of a literal that are compared.
const MAX_BYTES: usize = 64;

/// The literals of an entry, as written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gate {
    /// Every match contains one of these.
    pub literals: Vec<String>,
    /// Literals that count only at the end of the line.
    pub at_end: Vec<String>,
    /// Whether other cases of the literals count too.
    pub ignore_case: bool,
    /// The only bytes that may follow; empty: any.
    pub after: String,
    /// Bytes that may not follow.
    pub not_after: String,
    /// The only bytes that may follow a number behind the literal; empty: any.
    pub after_number: String,
    /// The same behind a word of ASCII letters.
    pub after_word: String,
    /// Bytes that may not precede.
    pub not_before: String,
    /// Text that may not precede.
    pub not_preceded_by: String,
}

/// A literal as the prefilter uses it: exact bytes, and which neighbours it may have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize, Serialize)]
pub struct LiteralForm {
    /// The bytes to find.
    pub bytes: Vec<u8>,
    /// Ascending positions in `bytes` at which any of the given bytes may stand.
    pub classes: Vec<(u8, Vec<u8>)>,
    /// If not empty, an occurrence is a hit only if it is followed by one of these bytes, a quote, an escape or the line's end.
    pub after: Vec<u8>,
    /// An occurrence followed by one of these bytes is no hit.
    pub not_after: Vec<u8>,
    /// If not empty, an occurrence followed by a number is a hit only if one of these bytes, a quote, an escape or the line's end follows that.
    pub after_number: Vec<u8>,
    /// The same behind a word of ASCII letters.
    pub after_word: Vec<u8>,
    /// If present, an occurrence preceded by any other byte is no hit, unless an escape stands near.
    pub before: Option<u8>,
    /// An occurrence preceded by one of these bytes is no hit, unless an escape stands near.
    pub not_before: Vec<u8>,
    /// An occurrence preceded by this text is no hit; empty: no such text.
    pub not_preceded_by: Vec<u8>,
}

impl LiteralForm {
    /// Returns the byte at a position if no other byte may stand there.
    #[must_use]
    pub fn only(&self, at: usize) -> Option<u8> {
        self.bytes.get(at).copied().filter(|_| !self.classes.iter().any(|(place, _)| usize::from(*place) == at))
    }

    /// Whether it matters what follows.
    fn guards_what_follows(&self) -> bool {
        !(self.after.is_empty() && self.not_after.is_empty() && self.after_number.is_empty() && self.after_word.is_empty())
    }
}

/// The literals of a rule set.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Literals {
    /// What the prefilter looks for, sorted and without duplicates.
    pub forms: Vec<LiteralForm>,
    /// What each form leads to.
    pub leads: Leads,
    /// How many of the first forms are those of the built-in rules, whatever they lead to. Tables made from those alone
    /// serve for all; the other forms follow them, so the whole list is not sorted.
    pub inherited: usize,
}

impl Literals {
    /// Returns the literals of entries in the order in which a line is offered to them, each with whether it is a fact.
    pub fn of(entries: impl Iterator<Item = (impl Borrow<Gate>, bool)>) -> Self {
        let mut all: Vec<(LiteralForm, u16)> = Vec::new();
        for (index, (gate, fact)) in (0..).zip(entries) {
            all.extend(forms(gate.borrow(), fact).into_iter().map(|form| (form, index)));
        }
        all.sort_unstable();
        all.dedup();
        let mut literals = Self::default();
        all.into_iter().for_each(|(form, entry)| literals.push(form, entry));
        literals
    }

    /// Returns the built-in literals `known`, with the entries of `leads` renumbered by `number`, or dropped if it returns
    /// `None`, together with those of the `own` entries, each with its number and whether it is a fact.
    pub(super) fn joined<'g>(
        known: Vec<LiteralForm>,
        leads: &Leads,
        number: impl Fn(u16) -> Option<u16>,
        own: impl Iterator<Item = (u16, &'g Gate, bool)>,
    ) -> Self {
        let mut added: Vec<(LiteralForm, u16)> = own.flat_map(|(at, gate, fact)| forms(gate, fact).into_iter().map(move |form| (form, at))).collect();
        added.sort_unstable();
        added.dedup();
        let mut to_known: BTreeMap<usize, Vec<u16>> = BTreeMap::new();
        added.retain(|(form, entry)| match known.binary_search(form) {
            Ok(at) => {
                to_known.entry(at).or_default().push(*entry);
                false
            }
            Err(_) => true,
        });
        let mut joined = Self { inherited: known.len(), ..Self::default() };
        for (at, form) in known.iter().enumerate() {
            let mut entries: Vec<u16> = leads.of(at).iter().filter_map(|entry| number(*entry)).chain(to_known.remove(&at).unwrap_or_default()).collect();
            entries.sort_unstable();
            joined.leads.push(form, entries);
        }
        joined.forms = known;
        added.into_iter().for_each(|(form, entry)| joined.push(form, entry));
        joined
    }

    /// Adds an entry of a form: of the last one, or of a new one behind those that are inherited.
    fn push(&mut self, form: LiteralForm, entry: u16) {
        if self.forms.len() > self.inherited && self.forms.last() == Some(&form) {
            self.leads.push_entry(entry);
        } else {
            self.leads.push(&form, [entry]);
            self.forms.push(form);
        }
    }
}

/// Returns the exact forms of all literals of an entry; duplicates are possible.
/// A fact's literals are the raw bytes of a record, so they stay whole.
fn forms(gate: &Gate, fact: bool) -> Vec<LiteralForm> {
    let anywhere = gate.literals.iter().map(|literal| (literal, gate.after.as_str()));
    let at_end = gate.at_end.iter().map(|literal| (literal, LINE_END));
    let mut forms = Vec::new();
    for (literal, after) in anywhere.chain(at_end) {
        let written = if fact { Written::with_classes(literal) } else { Written::plain(literal) };
        let guards = guards(gate, after);
        forms.extend(written.cases(gate.ignore_case).into_iter().flat_map(|case| case.encodings(&guards, fact)));
    }
    forms
}

/// Returns what may stand beside the literals of a gate; `after` differs between its literals.
fn guards(gate: &Gate, after: &str) -> LiteralForm {
    let [after, not_after, after_number, after_word] = [after, &gate.not_after, &gate.after_number, &gate.after_word].map(|set| set.as_bytes().to_vec());
    let [not_before, not_preceded_by] = [&gate.not_before, &gate.not_preceded_by].map(|set| set.as_bytes().to_vec());
    LiteralForm { after, not_after, after_number, after_word, not_before, not_preceded_by, ..LiteralForm::default() }
}

/// A literal as written in a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Written {
    /// The text, with the first member of each class.
    text: String,
    /// The classes, by character position.
    classes: Vec<(usize, Vec<u8>)>,
}

impl Written {
    fn plain(text: &str) -> Self {
        Self { text: text.to_owned(), classes: Vec::new() }
    }

    /// Parses a fact's literal, which may hold classes of letters and digits in `‹›`, as `‹EF›0‹1-9›‹0-3›‹0-9› `: any
    /// of their members may stand there. If the classes stand for too many texts, the whole literal is plain text.
    fn with_classes(literal: &str) -> Self {
        let mut written = Self::plain("");
        let mut rest = literal;
        let mut count = 1;
        while let Some((before, (class, after))) = rest.split_once('‹').and_then(|(before, tail)| Some((before, tail.split_once('›')?))) {
            let members = members(class);
            count *= members.len();
            let Some(first) = members.first().filter(|_| count <= MAX_MEANT && members.iter().all(u8::is_ascii_alphanumeric)) else {
                return Self::plain(literal);
            };
            written.text.push_str(before);
            written.classes.push((written.text.chars().count(), members.clone()));
            written.text.push(char::from(*first));
            rest = after;
        }
        written.text.push_str(rest);
        written
    }

    fn cases(self, ignore_case: bool) -> Vec<Self> {
        if !ignore_case {
            return vec![self];
        }
        let in_both = |(at, members): &(usize, Vec<u8>)| (*at, members.iter().flat_map(|b| [b.to_ascii_lowercase(), b.to_ascii_uppercase()]).collect());
        let classes: Vec<_> = self.classes.iter().map(in_both).collect();
        let mut cases = cases(&self.text).to_vec();
        cases.sort_unstable();
        cases.dedup();
        cases.into_iter().map(|text| Self { text, classes: classes.clone() }).collect()
    }

    /// Returns the bytes to look for, with what may stand beside them.
    fn encodings(&self, guards: &LiteralForm, fact: bool) -> Vec<LiteralForm> {
        let encoders = if self.text.bytes().all(is_stable) { &Encoder::ALL[..1] } else { &Encoder::ALL };
        let run = if fact || encoders.len() == 1 { None } else { self.run(guards) };
        let mut forms = run.map_or_else(|| encoders.iter().map(|encoder| self.form(*encoder, guards)).collect(), |run| vec![run]);
        for form in forms.iter_mut().filter(|form| form.bytes.len() > MAX_BYTES) {
            // What may follow a literal says nothing about what follows a part of it.
            form.bytes.truncate(MAX_BYTES);
            (form.after, form.not_after, form.after_number, form.after_word) = Default::default();
        }
        forms.dedup();
        forms
    }

    /// Returns the longest run of stable bytes, with the literal's own byte on either side or what may stand there; `None`
    /// if the run is short, or if a guard beside the literal would be lost because the run does not reach that side.
    fn run(&self, guards: &LiteralForm) -> Option<LiteralForm> {
        let text = self.text.as_bytes();
        let mut end = 0;
        let runs = text.split_inclusive(|byte| !is_stable(*byte)).map(|run| {
            end += run.len();
            end - run.len()..end - usize::from(run.last().is_some_and(|byte| !is_stable(*byte)))
        });
        let run = runs.max_by_key(ExactSizeIterator::len).filter(|run| run.len() >= MIN_RUN_BYTES)?;
        let (before, after) = (text[..run.start].last().copied(), text.get(run.end));
        let loses_before = before.is_some() && !(guards.not_before.is_empty() && guards.not_preceded_by.is_empty());
        let loses_after = after.is_some() && guards.guards_what_follows();
        // An escape in place of either byte passes the guards: before the run it
        // ends with a byte near a backslash, after the run it begins with one.
        let after = after.map_or_else(|| guards.after.clone(), |byte| vec![*byte]);
        (!loses_before && !loses_after).then(|| LiteralForm { bytes: text[run].to_vec(), before, after, ..guards.clone() })
    }

    /// Writes the literal as an encoder does.
    fn form(&self, encoder: Encoder, guards: &LiteralForm) -> LiteralForm {
        let mut form = guards.clone();
        let mut classes = self.classes.iter().peekable();
        for (at, c) in self.text.chars().enumerate() {
            let class = classes.next_if(|(place, _)| *place == at);
            if let Some((_, members)) = class.filter(|_| form.bytes.len() < MAX_BYTES) {
                form.classes.push((form.bytes.len() as u8, members.clone()));
            }
            let hex_letter = |at, digit: u8| {
                if at < MAX_BYTES {
                    form.classes.push((at as u8, vec![digit.to_ascii_lowercase(), digit.to_ascii_uppercase()]));
                }
            };
            encoder.write(c, &mut form.bytes, hex_letter);
        }
        form
    }
}

/// Returns the characters of a class: `A-Za-z3`; a class of any other shape has none.
fn members(class: &str) -> Vec<u8> {
    let mut members = Vec::new();
    let mut rest = class.as_bytes();
    loop {
        match rest {
            [first, b'-', last, after @ ..] => {
                members.extend(*first..=*last);
                rest = after;
            }
            [first, after @ ..] => {
                members.push(*first);
                rest = after;
            }
            [] => return members,
        }
    }
}

/// The cases of a text: as written, UPPER, Capitalised, Each Word, lower.
fn cases(text: &str) -> [String; 5] {
    let lower = text.to_ascii_lowercase();
    let mut start_of_word = true;
    let title: String = lower
        .chars()
        .map(|c| {
            let cased = if start_of_word { c.to_ascii_uppercase() } else { c };
            start_of_word = c == ' ';
            cased
        })
        .collect();
    let mut capitalised = lower.clone();
    if let Some(first) = capitalised.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    [text.to_owned(), text.to_ascii_uppercase(), capitalised, title, lower]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{Kind, RuleSet};
    use std::collections::BTreeSet;

    #[test]
    fn classes_stand_for_their_members() {
        let classes = |literal| Written::with_classes(literal).classes;
        assert_eq!(Written::with_classes("<‹0-2›>‹JF›").text, "<0>J");
        assert_eq!(classes("<‹0-2›>‹JF›"), [(1, b"012".to_vec()), (3, b"JF".to_vec())]);
        assert_eq!(classes("‹a-cX›é‹7›"), [(0, b"abcX".to_vec()), (2, b"7".to_vec())]);
        for text in ["plain - ‹", "‹›x", "‹é›", "‹/›", &"‹0-9›".repeat(5)] {
            assert_eq!(Written::with_classes(text), Written::plain(text));
        }
    }

    #[test]
    fn classes_keep_their_place_in_every_encoding() {
        let gate = Gate { literals: vec!["\"‹EF›/‹01›".into()], ..Gate::default() };
        let of = |text: &str, at: &[u8]| (text.as_bytes().to_vec(), at.to_vec());
        let places: BTreeSet<_> = forms(&gate, true).into_iter().map(|form| (form.bytes, form.classes.iter().map(|(at, _)| *at).collect::<Vec<_>>())).collect();
        let wanted = [of("\"E/0", &[1, 3]), of("\\\"E/0", &[2, 4]), of("\\\"E\\/0", &[2, 5]), of("\\u0022E/0", &[6, 8])];
        assert_eq!(places, BTreeSet::from(wanted));
        let raw = |form: &&LiteralForm| form.bytes.starts_with("\"‹EF›".as_bytes());
        assert!(forms(&gate, false).iter().filter(raw).all(|form| form.classes.is_empty()));
    }

    fn of(literal: &str, ignore_case: bool) -> Vec<String> {
        let gate = Gate { literals: vec![literal.into()], ignore_case, ..Gate::default() };
        let forms: BTreeSet<LiteralForm> = forms(&gate, false).into_iter().collect();
        forms.into_iter().map(|f| String::from_utf8_lossy(&f.bytes).into_owned()).collect()
    }

    #[test]
    fn literals_become_stable_bytes() {
        assert_eq!(of("panicked at", false), ["panicked at"]);
        assert_eq!(of("Cannot find module '", false), ["Cannot find module "]);
        assert_eq!(of("● ", false), ["\\u25cf ", "● "]);
        assert_eq!(of("timed out", true), ["TIMED OUT", "Timed Out", "Timed out", "timed out"]);
        assert_eq!(of("a=<'", false), ["a=<'", "a=\\u003c'", "a=\\u003c\\u0027", "a\\u003d\\u003c\\u0027"]);
    }

    #[test]
    fn a_hexadecimal_letter_may_be_small_or_large() {
        let gate = Gate { literals: vec!["●".into()], ..Gate::default() };
        let numbered: Vec<_> = forms(&gate, false).into_iter().filter(|form| form.bytes == b"\\u25cf").collect();
        let [form, ..] = &numbered[..] else { panic!("{numbered:?}") };
        assert_eq!(form.classes, [(4, b"cC".to_vec()), (5, b"fF".to_vec())]);
    }

    #[test]
    fn what_stands_beside_a_run_counts() {
        let only = |literal: &str, gate: Gate| {
            let forms = forms(&Gate { literals: vec![literal.into()], ..gate }, false);
            let [form] = &forms[..] else { panic!("{forms:?}") };
            (String::from_utf8_lossy(&form.bytes).into_owned(), form.before.map(char::from), String::from_utf8_lossy(&form.after).into_owned())
        };
        let digits = || "0123456789".to_owned();
        assert_eq!(only("Failures=", Gate::default()), ("Failures".into(), None, "=".into()));
        assert_eq!(only("'a' is not defined <b", Gate::default()), (" is not defined ".into(), Some('\''), "<".into()));
        // A guard on the side that the run reaches stays; on the other side it would be lost.
        assert_eq!(only("=> Failures: ", Gate { after: digits(), ..Gate::default() }), (" Failures: ".into(), Some('>'), digits()));
        let written_out = forms(&Gate { literals: vec!["Failures=".into()], after: digits(), ..Gate::default() }, false);
        assert!(written_out.iter().all(|form| form.after == digits().as_bytes()), "{written_out:?}");
        assert!(written_out.iter().any(|form| form.bytes == b"Failures=") && written_out.iter().any(|form| form.bytes == b"Failures\\u003d"));
    }

    #[test]
    fn no_built_in_literal_loses_what_may_stand_beside_it() {
        let rules = RuleSet::builtin();
        let mut lost = Vec::new();
        for entry in rules.entries.iter() {
            let gate = &entry.gate;
            let guarded = (guards(gate, &gate.after).guards_what_follows(), !(gate.not_before.is_empty() && gate.not_preceded_by.is_empty()));
            for literal in &gate.literals {
                let one = Gate { literals: vec![literal.clone()], at_end: Vec::new(), ..gate.clone() };
                let is_free = |form: &&LiteralForm| {
                    let is_cut = form.bytes.len() == MAX_BYTES;
                    let free_after = !form.guards_what_follows() && !is_cut;
                    let free_before = form.before.is_none() && form.not_before.is_empty() && form.not_preceded_by.is_empty();
                    let is_part = form.bytes.len() < literal.len() && !is_cut && !matches!(entry.kind, Kind::Fact(_));
                    guarded.0 && free_after || guarded.1 && free_before || is_part && free_after && free_before
                };
                let forms = forms(&one, matches!(entry.kind, Kind::Fact(_)));
                lost.extend(forms.iter().find(is_free).map(|form| format!("{}: {literal:?} as {:?}", entry.id, String::from_utf8_lossy(&form.bytes))));
            }
        }
        assert!(lost.is_empty(), "{lost:#?}");
    }
}
