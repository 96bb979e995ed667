//! From a rule's literals to the exact bytes that the prefilter looks for.
//! A log may hold the text of a line raw or inside a JSON string, so a literal that has bytes which
//! JSON escapes is reduced to its longest run of stable bytes, or written out in both forms.

use std::borrow::Borrow;

use serde::{Deserialize, Serialize};

/// Shortest literal that the prefilter can find.
pub const MIN_LITERAL_BYTES: usize = 3;
/// Shortest stable run that may stand for a whole literal.
const MIN_RUN_BYTES: usize = 8;
/// The line's end, which may always follow a literal: nothing else may.
const LINE_END: &str = "\r";
/// Most texts that a literal with classes stands for.
const MAX_MEANT: usize = 2000;
/// Longest part of a literal that is compared.
const MAX_BYTES: usize = 64;

/// The literals of an entry, as written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gate {
    /// Every match contains one of these.
    pub literals: Vec<String>,
    /// Literals that count only at the end of the line.
    pub at_end: Vec<String>,
    /// Their other cases count too.
    pub ignore_case: bool,
    /// Bytes that may follow; empty: all.
    pub after: String,
    /// Bytes that may not follow.
    pub not_after: String,
    /// Bytes that may not precede.
    pub not_before: String,
    /// Text that may not precede.
    pub not_behind: String,
}

/// A literal as the prefilter takes it: exact bytes and the neighbours that it may not have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize, Serialize)]
pub struct LiteralForm {
    /// The bytes to find.
    pub bytes: Vec<u8>,
    /// Positions in it, in their order, at which any of these bytes may stand.
    pub classes: Vec<(u8, Vec<u8>)>,
    /// An occurrence is a hit only before one of these bytes, a quote, an escape or the line's end;
    /// empty: before any byte.
    pub after: Vec<u8>,
    /// An occurrence that is followed by one of these bytes is no hit.
    pub not_after: Vec<u8>,
    /// An occurrence that follows one of these bytes is no hit, unless an escape stands near.
    pub not_before: Vec<u8>,
    /// An occurrence that follows this text is no hit; empty: none.
    pub not_behind: Vec<u8>,
}

impl LiteralForm {
    /// The byte at a position, where no other may stand.
    #[must_use]
    pub fn only(&self, at: usize) -> Option<u8> {
        self.bytes.get(at).copied().filter(|_| !self.classes.iter().any(|(place, _)| usize::from(*place) == at))
    }
}

/// The literals of a rule set.
#[derive(Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Literals {
    /// What the prefilter looks for, sorted.
    pub forms: Vec<LiteralForm>,
    /// For each of them, the entries it leads to.
    pub targets: Vec<Vec<u16>>,
}

impl Literals {
    /// Those of entries in the order in which a line is offered to them, each with whether it is a fact.
    pub fn of(entries: impl Iterator<Item = (impl Borrow<Gate>, bool)>) -> Self {
        let mut all: Vec<(LiteralForm, u16)> = Vec::new();
        for (index, (gate, fact)) in (0..).zip(entries) {
            all.extend(forms(gate.borrow(), fact).into_iter().map(|form| (form, index)));
        }
        all.sort_unstable();
        let mut literals = Self::default();
        for (form, entry) in all {
            match literals.targets.last_mut().filter(|_| literals.forms.last() == Some(&form)) {
                Some(known) if known.last() == Some(&entry) => {}
                Some(known) => known.push(entry),
                None => {
                    literals.forms.push(form);
                    literals.targets.push(vec![entry]);
                }
            }
        }
        literals
    }
}

/// The exact forms of all literals of an entry; some may come twice. A fact's literals are the raw bytes of a record:
/// they stay whole.
fn forms(gate: &Gate, fact: bool) -> Vec<LiteralForm> {
    let anywhere = gate.literals.iter().map(|literal| (literal, gate.after.as_str()));
    let at_end = gate.at_end.iter().map(|literal| (literal, LINE_END));
    let mut forms = Vec::new();
    for (literal, after) in anywhere.chain(at_end) {
        let written = if fact { Written::with_classes(literal) } else { Written::plain(literal) };
        for (mut form, mut whole) in written.cases(gate.ignore_case).into_iter().flat_map(|case| case.encodings(fact)) {
            whole &= form.bytes.len() <= MAX_BYTES;
            form.bytes.truncate(MAX_BYTES);
            // What may stand beside a literal says nothing about what stands beside a part of it.
            let beside = |set: &str| if whole { set.as_bytes().to_vec() } else { Vec::new() };
            let (after, not_after, not_before, not_behind) = (beside(after), beside(&gate.not_after), beside(&gate.not_before), beside(&gate.not_behind));
            forms.push(LiteralForm { after, not_after, not_before, not_behind, ..form });
        }
    }
    forms
}

/// A literal as a rule has it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Written {
    /// Its text, with the first member of each class.
    text: String,
    /// By character, the classes.
    classes: Vec<(usize, Vec<u8>)>,
}

impl Written {
    fn plain(text: &str) -> Self {
        Self { text: text.to_owned(), classes: Vec::new() }
    }

    /// A fact's literal may hold classes of letters and digits in `‹›`, as `‹EF›0‹1-9›‹0-3›‹0-9› `: any of
    /// their members may stand there. One that would stand for more than the limit is no class but text.
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

    /// The bytes to look for, and whether they are the whole literal.
    fn encodings(&self, fact: bool) -> Vec<(LiteralForm, bool)> {
        let bytes = self.text.as_bytes();
        if bytes.iter().all(|b| is_stable(*b)) {
            return vec![(self.form(Escapes::None), true)];
        }
        let run = bytes.split(|b| !is_stable(*b)).max_by_key(|run| run.len()).unwrap_or_default();
        if run.len() >= MIN_RUN_BYTES && !fact {
            return vec![(LiteralForm { bytes: run.to_vec(), ..LiteralForm::default() }, false)];
        }
        [Escapes::None, Escapes::Needed, Escapes::All].map(|escapes| (self.form(escapes), true)).into()
    }

    /// As a JSON string holds it.
    fn form(&self, escapes: Escapes) -> LiteralForm {
        if self.classes.is_empty() && escapes == Escapes::None {
            return LiteralForm { bytes: self.text.as_bytes().to_vec(), ..LiteralForm::default() };
        }
        let mut form = LiteralForm::default();
        let mut classes = self.classes.iter().peekable();
        for (at, c) in self.text.chars().enumerate() {
            let class = classes.next_if(|(place, _)| *place == at);
            if let Some((_, members)) = class.filter(|_| form.bytes.len() < MAX_BYTES) {
                form.classes.push((form.bytes.len() as u8, members.clone()));
            }
            escapes.write(c, &mut form.bytes);
        }
        form
    }
}

/// `A-Za-z3` → its characters; a class with others has none.
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

/// As written, UPPER, Capitalised, Each Word, lower.
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

fn is_stable(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b" .,:;-_()[]{}!?*#@%^~|$".contains(&byte)
}

/// What an encoder of JSON strings escapes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Escapes {
    /// Nothing: the text stands raw.
    None,
    /// What it must.
    Needed,
    /// All that it may.
    All,
}

impl Escapes {
    fn write(self, c: char, out: &mut Vec<u8>) {
        let all = self == Self::All;
        match c {
            c if self == Self::None => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            '\t' => out.extend_from_slice(b"\\t"),
            '/' if all => out.extend_from_slice(b"\\/"),
            '\'' | '<' | '>' | '&' if all => out.extend_from_slice(format!("\\u{:04x}", c as u32).as_bytes()),
            c if all && !c.is_ascii() => {
                let units = c.encode_utf16(&mut [0; 2]).to_vec();
                units.iter().for_each(|unit| out.extend_from_slice(format!("\\u{unit:04x}").as_bytes()));
            }
            c => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
        let places: Vec<_> = forms(&gate, true).into_iter().map(|form| (form.bytes, form.classes.iter().map(|(at, _)| *at).collect::<Vec<_>>())).collect();
        assert_eq!(places, [(b"\"E/0".to_vec(), vec![1, 3]), (b"\\\"E/0".to_vec(), vec![2, 4]), (b"\\\"E\\/0".to_vec(), vec![2, 5])]);
        assert!(forms(&gate, false).iter().all(|form| form.classes.is_empty()));
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
    }
}
