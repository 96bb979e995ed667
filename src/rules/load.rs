//! Turns the text of a rules file into checked entries. Every mistake is reported with its place in the file, the entry,
//! the key and the correction. The tests have checked the compiled-in files, so `parse` skips the costly checks for them.

use std::collections::HashMap;

use regex_syntax::ParserBuilder;

use crate::words::did_you_mean;

use super::keys;
use super::literal::MIN_LITERAL_BYTES;
use super::located::Located;
use super::parsed::{Problem, syntax_message, toml_problem};
use super::prove::{Needle, every_match_has_literal, every_match_has_literal_in_some_case};
use super::spec::{EntrySpec, FileSpec, Table};
use super::{Cancel, Entry, FactKind, Family, Fault, Kind, Labels, MAX_ENTRIES_PER_LITERAL, Note, Pattern, Region, Verdicts};

mod trace;

/// The groups that are read from matches.
const GROUPS: [&str; 9] = ["type", "message", "name", "key", "file", "line", "column", "function", "pre"];

/// A parsed file.
#[derive(Debug)]
pub struct RulesFile {
    /// Its family.
    pub family: Family,
    /// Its entries.
    pub entries: Vec<Entry>,
    /// Its cancels.
    pub cancels: Vec<Cancel>,
    /// Whether its entries are tried before the built-in ones of their kind instead of after them.
    pub first: bool,
}

/// Parses a rules file. With `check`, every regex is compiled and proved against its literals.
///
/// # Errors
/// All mistakes found, in file order.
pub fn parse(name: &str, text: &str, check: bool) -> Result<RulesFile, Vec<Problem>> {
    parse_beside(name, text, check, &|_| 0)
}

/// [`parse`] of a file that joins others; `known` returns how many of their entries already have a literal.
///
/// # Errors
/// All mistakes found, in file order.
pub fn parse_beside(name: &str, text: &str, check: bool, known: &dyn Fn(&str) -> usize) -> Result<RulesFile, Vec<Problem>> {
    let spec: FileSpec = toml::from_str(text).map_err(|error| vec![toml_problem(&error)])?;
    read(name, spec, check, known)
}

/// Reads the spec of the file `name`; `known` returns how many entries of other files already have a literal.
///
/// # Errors
/// All mistakes found, in file order.
fn read(name: &str, mut spec: FileSpec, check: bool, known: &dyn Fn(&str) -> usize) -> Result<RulesFile, Vec<Problem>> {
    let tables: Vec<_> = Table::ALL.iter().map(|&table| (table, std::mem::take(spec.table(table)))).collect();
    let family = Family::new(name, spec.family);
    let mut reader = Reader::new(&family, check, known);
    let mut entries = Vec::with_capacity(tables.iter().map(|(_, specs)| specs.len()).sum());
    for (table, specs) in tables {
        entries.extend(specs.into_iter().filter_map(|spec| reader.entry(table, spec)));
    }
    let cancels = spec.cancel.into_iter().map(|spec| reader.cancel(spec)).collect();
    if reader.problems.is_empty() { Ok(RulesFile { family, entries, cancels, first: false }) } else { Err(reader.problems) }
}

/// Makes an entry that the build has read; `None` if its spec is incomplete, which the tests find.
pub(super) fn compiled_entry(family: &Family, table: Table, spec: EntrySpec) -> Option<Entry> {
    Reader::new(family, false, &|_| 0).entry(table, spec)
}

/// Makes a cancel that the build has read.
pub(super) fn compiled_cancel(family: &Family, spec: EntrySpec) -> Cancel {
    Reader::new(family, false, &|_| 0).cancel(spec)
}

/// Says that a regex matches its literals in a letter case that nothing searches for, and what to do.
fn letter_case(ignore_case: bool) -> (&'static str, &'static str) {
    if ignore_case {
        (
            "the regex can match a literal in any letter case, but only lower, Capitalised and UPPER are searched for",
            "drop `(?i)`: `ignore_case = true` lets the regex ignore case, too",
        )
    } else {
        (
            "the regex can match a literal in another letter case, which is not searched for",
            "write the literal as the regex has it; or drop `(?i)`, and set `ignore_case = true`, which searches for lower, Capitalised and UPPER",
        )
    }
}

struct Reader<'k> {
    family: &'k str,
    check: bool,
    problems: Vec<Problem>,
    /// How many entries have each literal, those of other files included.
    uses: HashMap<String, usize>,
    known: &'k dyn Fn(&str) -> usize,
}

impl<'k> Reader<'k> {
    fn new(family: &'k Family, check: bool, known: &'k dyn Fn(&str) -> usize) -> Self {
        Self { family: &family.id, check, problems: Vec::new(), uses: HashMap::new(), known }
    }

    fn problem(&mut self, at: &Located, key: &str, problem: impl Into<String>, mend: impl Into<String>) {
        self.problems.push(Problem { span: at.span(), key: key.to_owned(), problem: problem.into(), mend: mend.into() });
    }

    fn required(&mut self, spec: &EntrySpec, key: &str, regex: Option<&Located>) -> Pattern {
        match regex {
            Some(regex) => self.gated(spec, key, regex),
            None => {
                let id = spec.id.get();
                self.problem(&spec.id, key, format!("`{id}` has no `{key}`"), format!("add `{key} = '''…'''`"));
                Pattern::new("", false)
            }
        }
    }

    /// Makes a regex whose every match must contain one of the entry's literals.
    fn gated(&mut self, spec: &EntrySpec, key: &str, regex: &Located) -> Pattern {
        let pattern = self.pattern(spec, key, regex);
        if self.check {
            let anywhere = spec.literals.iter().map(|l| Needle { text: l.get(), after: &spec.after, not_after: &spec.not_after, at_end: false });
            let at_end = spec.at_end.iter().map(|l| Needle { text: l.get(), after: "", not_after: "", at_end: true });
            let literals: Vec<Needle> = anywhere.chain(at_end).collect();
            match every_match_has_literal(regex.get(), &literals, spec.ignore_case) {
                Ok(true) | Err(_) => {}
                Ok(false) if literals.is_empty() => {
                    self.problem(
                        regex,
                        key,
                        "the entry has no literals, so the prefilter would never find it",
                        "add `literals = […]`: parts of the text, one of which every match contains",
                    );
                }
                Ok(false) if every_match_has_literal_in_some_case(regex.get(), &literals) => {
                    let (problem, mend) = letter_case(spec.ignore_case);
                    self.problem(regex, key, problem, mend);
                }
                Ok(false) => {
                    self.problem(
                        regex,
                        key,
                        "the regex can match a line that has none of the literals, with what may stand behind them",
                        "add the missing literal, allow what follows it, or make that part of the regex required",
                    );
                }
            }
        }
        pattern
    }

    fn pattern(&mut self, spec: &EntrySpec, key: &str, regex: &Located) -> Pattern {
        let pattern = Pattern::new(regex.get(), spec.ignore_case);
        if self.check {
            // Patterns run on bytes, so a match need not be valid UTF-8.
            if let Err(error) = ParserBuilder::new().utf8(false).build().parse(regex.get()) {
                self.problem(regex, key, syntax_message(&error), "mend the regex");
            } else {
                match pattern.check() {
                    Ok(names) => self.groups(key, regex, &names),
                    Err(error) => self.problem(regex, key, error.to_string(), "make the regex smaller: bounded repeats of large classes cost most"),
                }
            }
        }
        pattern
    }

    /// Reports groups that nothing reads: what they match would silently be missing from the event.
    fn groups(&mut self, key: &str, regex: &Located, names: &[String]) {
        for name in names {
            if !GROUPS.contains(&name.as_str()) {
                let mend = did_you_mean(name, &GROUPS).unwrap_or_else(|| format!("name it one of {}, or write `(?:…)`", GROUPS.join(", ")));
                self.problem(regex, key, format!("nothing reads the group `{name}`"), mend);
            } else if !regex.get().contains(&format!("(?P<{name}>")) {
                self.problem(regex, key, format!("nothing reads the group `{name}` in this form"), format!("write `(?P<{name}>…)`"));
            }
        }
    }

    fn optional(&mut self, spec: &EntrySpec, key: &str, regex: Option<&Located>) -> Option<Pattern> {
        regex.map(|regex| self.pattern(spec, key, regex))
    }

    fn noise(&mut self, spec: &EntrySpec) -> Kind {
        // Without literals, the lines of a noise block count only where every line is tried, as in `filter`.
        let regex = match &spec.regex {
            Some(regex) if spec.block.is_none() || (spec.literals.is_empty() && spec.at_end.is_empty()) => self.pattern(spec, "regex", regex),
            regex => self.required(spec, "regex", regex.as_ref()),
        };
        let block = spec.block.as_ref().map(|block| (self.pattern(spec, "block.regex", &block.regex), block.max_lines));
        if spec.reason.is_none() {
            self.problem(&spec.id, "reason", "noise without a reason", "add `reason = \"…\"`: what prints it and why it is no error");
        }
        Kind::Noise { regex, block, undecided: spec.undecided, reason: spec.reason.clone().unwrap_or_default() }
    }

    fn region(&mut self, spec: &EntrySpec) -> Kind {
        let open = self.required(spec, "open", spec.open.as_ref());
        let close = self.optional(spec, "close", spec.close.as_ref());
        if close.is_none() || spec.max_lines.is_none() {
            self.problem(&spec.id, "close", "a region needs `close` and `max_lines`", "say what ends it, and after how many lines it ends by itself");
        }
        if spec.pass.is_some() && (spec.absorb || spec.seal) {
            self.problem(&spec.id, "pass", "a region that owns everything in it holds nothing back", "remove `absorb` and `seal`, or `pass`");
        }
        if spec.implied.is_some() && spec.pass.is_none() {
            self.problem(
                &spec.id,
                "implied",
                "a region that no line has opened only holds errors back",
                "say in `pass` what takes them back, or remove `implied`",
            );
        }
        let fail = self.optional(spec, "fail", spec.fail.as_ref());
        let pass_by_caller = self.optional(spec, "pass_by_caller", spec.pass_by_caller.as_ref());
        let verdicts = self.optional(spec, "pass", spec.pass.as_ref()).map(|pass| Box::new(Verdicts { pass, pass_by_caller, fail }));
        Kind::Region(Region {
            open,
            close: close.unwrap_or_else(|| Pattern::new("", false)),
            max_lines: spec.max_lines.unwrap_or_default(),
            implied: spec.implied,
            late: spec.late,
            allowed: spec.allowed,
            absorb: spec.absorb,
            seal: spec.seal,
            verdicts,
            weak: Vec::new(),
        })
    }

    fn note(&mut self, spec: &EntrySpec) -> Kind {
        let regex = self.required(spec, "regex", spec.regex.as_ref());
        let before = self.before(spec);
        let EntrySpec { waits, silent, of_job, of_one, max_lines, .. } = *spec;
        Kind::Note(Note { regex, claimed_by: Vec::new(), waits, silent, of_job, of_one, max_lines, before })
    }

    fn cancel(&mut self, spec: EntrySpec) -> Cancel {
        let regex = match &spec.regex {
            Some(regex) => self.pattern(&spec, "regex", regex),
            None => self.required(&spec, "regex", None),
        };
        self.check_keys(&spec, "cancel", &["reason", "examples"]);
        Cancel { id: spec.id.get().to_owned(), regex, reason: spec.reason, examples: spec.examples, compiled: None }
    }

    /// Makes an entry of `table`; `None` if its spec does not say what it is.
    fn entry(&mut self, table: Table, spec: EntrySpec) -> Option<Entry> {
        let kind = match table {
            Table::Border => Kind::Border(self.required(&spec, "regex", spec.regex.as_ref())),
            Table::Noise => self.noise(&spec),
            Table::Region => self.region(&spec),
            Table::Trace => self.trace(&spec),
            Table::Note => self.note(&spec),
            Table::Rule => Kind::Rule(self.required(&spec, "regex", spec.regex.as_ref())),
            Table::Fact => Kind::Fact(self.fact(&spec)?),
        };
        Some(self.finish(spec, kind))
    }

    fn fact(&mut self, spec: &EntrySpec) -> Option<FactKind> {
        if spec.fact.is_none() {
            self.problem(&spec.id, "fact", "a [[fact]] names no fact", "add `fact = \"level\"` or `fact = \"flag\"`");
        }
        spec.fact
    }

    fn finish(&mut self, spec: EntrySpec, kind: Kind) -> Entry {
        self.check_entry(&spec, &kind);
        self.check_keys(&spec, kind.table().as_str(), keys::of(kind.table()));
        let above = self.optional(&spec, "above", spec.above.as_ref());
        let gate = spec.gate();
        Entry {
            id: spec.id.get().to_owned(),
            family: 0,
            labels: Labels::default(),
            kind,
            fault: Fault { category: spec.category, severity: spec.severity, cause: spec.cause, retry: spec.retry, hint: spec.hint, language: spec.language },
            generic: spec.generic,
            leveled: spec.leveled,
            code: spec.code,
            whole: false,
            above,
            gate,
            region: spec.region.map(Located::into_text),
            claimed_by: spec.claimed_by,
            examples: spec.examples,
        }
    }

    fn check_entry(&mut self, spec: &EntrySpec, kind: &Kind) {
        let id = spec.id.get();
        if !id.strip_prefix(self.family).is_some_and(|rest| rest.len() > 1 && rest.starts_with('.')) {
            let mend = format!("call it `{}.…`", self.family);
            self.problem(&spec.id, "id", format!("`{id}` does not begin with the name of its family"), mend);
        }
        for literal in spec.literals.iter().chain(&spec.at_end) {
            if literal.get().len() < MIN_LITERAL_BYTES {
                self.problem(literal, "literals", format!("a literal has at least {MIN_LITERAL_BYTES} bytes"), "write more of the text that stands there");
            }
        }
        self.count_uses(spec);
        if matches!(kind, Kind::Fact(fact) if !fact.is_step()) && spec.literals.is_empty() {
            self.problem(&spec.id, "literals", "a fact needs the literals that show it", "add `literals = […]`");
        }
    }

    /// Limits the entries of a literal: each of them is tried on every line that contains it.
    fn count_uses(&mut self, spec: &EntrySpec) {
        for literal in spec.literals.iter().chain(&spec.at_end).filter(|_| self.check) {
            let text = literal.get();
            let uses = self.uses.entry(text.to_owned()).or_insert_with(|| (self.known)(text));
            *uses += 1;
            if *uses == MAX_ENTRIES_PER_LITERAL + 1 {
                let problem =
                    format!("more than {MAX_ENTRIES_PER_LITERAL} entries have the literal {text:?}, and each is asked about every line that holds it");
                self.problems.push(Problem {
                    span: literal.span(),
                    key: "literals".to_owned(),
                    problem,
                    mend: "write more of the text that stands there, or join entries".to_owned(),
                });
            }
        }
    }

    /// Reports keys that the table does not take, which would otherwise be silently ignored.
    fn check_keys(&mut self, spec: &EntrySpec, table: &str, allowed: &[&str]) {
        for (key, is_given) in keys::given(spec) {
            if is_given && !allowed.contains(&key) {
                let key_name = if key == "fault" { "category/severity/cause/retry/hint/language" } else { key };
                self.problem(&spec.id, key_name, format!("[[{table}]] takes no `{key_name}`"), "remove it, or use another table");
            }
        }
    }
}
