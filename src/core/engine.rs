//! What all streams of the core share: rules, prefilter, limits. Immutable once built.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::keywords::Keywords;
use super::line::Line;
use super::prefilter::{Hit, Plan, Prefilter, Scratch};
use super::redact::Redactor;
use super::simd::is_wide;
use super::table::Table;
use super::trace::Room;
use super::transcript::Mode;
use super::word_gate::{Maybe, WordGate};
use crate::rules::{Kind, Literals, Pattern, RuleSet, Shown, Signs, compiled_leads, compiled_literals};
use crate::words::{Category, Severity};

/// Where the prefilter looks for the literals of the built-in rules, one plan for
/// each of its two ways: a [`Plan`] in `postcard` form, written by `src/build.rs`.
const STEPS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/steps.bin"));
const SIEVE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/sieve.bin"));

/// Most places of one literal in a line that are followed up, besides the last. A line that repeats
/// one more often says nothing new, and each place costs memory for every entry it leads to.
const MAX_HITS_OF_LITERAL: usize = 1000;

/// Bounds and switches of the core; `config` fills them.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Longest line that is examined whole, in bytes.
    pub max_line_bytes: usize,
    /// Maximum number of lines kept of a trace.
    pub max_trace_lines: usize,
    /// Maximum number of bytes kept of a trace.
    pub max_trace_bytes: usize,
    /// Idle time after which an open trace is published, in microseconds.
    pub trace_idle_us: i64,
    /// Lines of context, including the error's first line.
    pub max_context_lines: usize,
    /// Maximum number of frames of an exception.
    pub max_stack_depth: usize,
    /// Join the lines that belong to one error.
    pub capture_multiline: bool,
    /// Run the prefilter first and skip lines without a hit. If `false`, every line goes to the assembler.
    pub two_stage: bool,
    /// How streams are read.
    pub mode: Mode,
    /// Category or rule id → severity.
    pub severity_overrides: Vec<(String, Severity)>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_line_bytes: 1 << 20,
            max_trace_lines: 2000,
            max_trace_bytes: 256 << 10,
            trace_idle_us: 500_000,
            max_context_lines: 5,
            max_stack_depth: 20,
            capture_multiline: true,
            two_stage: true,
            mode: Mode::Auto,
            severity_overrides: Vec::new(),
        }
    }
}

impl Limits {
    /// Returns the number of context lines on each side of the error.
    #[must_use]
    pub fn context_a_side(&self) -> usize {
        self.max_context_lines.saturating_sub(1) / 2
    }

    /// Returns how much of a trace is kept.
    #[must_use]
    pub fn room(&self) -> Room {
        Room { lines: self.max_trace_lines, bytes: self.max_trace_bytes }
    }

    /// Returns the severity that the configuration sets for a rule or its category.
    #[must_use]
    pub fn severity_override(&self, rule: &str, category: Category) -> Option<Severity> {
        let of = |name: &str| self.severity_overrides.iter().find(|(known, _)| known == name).map(|(_, s)| *s);
        of(rule).or_else(|| of(category.as_str()))
    }
}

/// An entry that a literal of the line leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Candidate {
    /// Index of the entry.
    pub entry: u16,
    /// Offset of the literal in the line.
    pub at: u32,
    /// Length of the literal.
    pub len: u16,
}

/// Rules, prefilter and limits; immutable once built.
pub struct Engine {
    /// The rules.
    pub rules: RuleSet,
    /// Bounds and switches.
    pub limits: Limits,
    prefilter: OnceLock<Prefilter>,
    word_gate: OnceLock<WordGate>,
    /// Lines that each noise rule has silenced; for statistics only.
    silenced: Box<[AtomicU64]>,
    /// Removes secrets.
    pub redactor: &'static Redactor,
}

impl Engine {
    /// Creates an engine. What is derived from the rules is built at first use.
    #[must_use]
    pub fn new(rules: RuleSet, limits: Limits) -> Self {
        let silenced = rules.noise.iter().map(|_| AtomicU64::new(0)).collect();
        let (prefilter, word_gate) = Default::default();
        Self { rules, limits, prefilter, word_gate, silenced, redactor: Redactor::builtin() }
    }

    /// Builds the tables that the first event needs and that do not depend on the rules. If only the built-in
    /// rules are used (`alone`), it also builds their prefilter; otherwise it only reads what their literals
    /// lead to. Optional: call it on a spare thread while the rules are being read.
    pub fn prepare_tables(alone: bool) {
        let _ = (compiled_leads(), alone.then(compiled_prefilter), Redactor::builtin(), Keywords::builtin(), Table::builtin());
    }

    /// Builds what the first candidate line needs. Optional: call it
    /// on a spare thread while the first block is being searched.
    pub fn prepare(&self) {
        self.word_gate();
    }

    /// Returns the prefilter for the literals of all rules.
    pub fn prefilter(&self) -> &Prefilter {
        match self.rules.own_literals() {
            None => compiled_prefilter(),
            Some(own) => self.prefilter.get_or_init(|| own_prefilter(own)),
        }
    }

    fn word_gate(&self) -> &WordGate {
        self.word_gate.get_or_init(|| WordGate::new(&self.rules))
    }

    /// Returns which noise the line may be, and which cancels may match in it; `signs` are the line's.
    #[must_use]
    pub fn maybe(&self, line: &Line, signs: Signs) -> Maybe {
        self.word_gate().of(line, signs)
    }

    /// Whether the line is noise.
    #[must_use]
    pub fn is_noise(&self, line: &Line, maybe: &Maybe) -> bool {
        let silencing = self.noise(line, maybe).next();
        if let Some(at) = silencing {
            self.silenced[at].fetch_add(1, Ordering::Relaxed);
        }
        silencing.is_some()
    }

    /// Whether the line is noise, whatever follows it.
    #[must_use]
    pub fn is_settled_noise(&self, line: &Line, maybe: &Maybe) -> bool {
        let is_settled = |at: usize| matches!(self.rules.entries[usize::from(self.rules.noise[at])].kind, Kind::Noise { undecided: false, .. });
        self.noise(line, maybe).any(is_settled)
    }

    /// Returns the rule whose noise block begins at the line, and how many further lines the block may take.
    #[must_use]
    pub fn noise_block(&self, line: &Line, maybe: &Maybe) -> Option<(u16, u32)> {
        self.noise(line, maybe).find_map(|at| {
            let entry = self.rules.noise[at];
            match &self.rules.entries[usize::from(entry)].kind {
                Kind::Noise { block: Some((_, lines)), .. } => Some((entry, *lines)),
                _ => None,
            }
        })
    }

    /// Whether a noise rule that is written for JSON records matches `record`.
    #[must_use]
    pub fn is_noisy_record(&self, record: &[u8]) -> bool {
        let noisy = |&entry: &u16| match &self.rules.entries[usize::from(entry)].kind {
            Kind::Noise { regex, .. } => regex.spells_records() && regex.is_match(record),
            _ => false,
        };
        let silencing = self.rules.noise.iter().position(noisy);
        if let Some(at) = silencing {
            self.silenced[at].fetch_add(1, Ordering::Relaxed);
        }
        silencing.is_some()
    }

    /// Returns the noise rules that match the line, as indices into the noise rules.
    fn noise<'a>(&'a self, line: &'a Line<'_>, maybe: &'a Maybe) -> impl Iterator<Item = usize> + 'a {
        let bodies = line.bodies();
        let matching = move |(at, pattern): &(usize, &Pattern)| {
            let entry = &self.rules.entries[usize::from(self.rules.noise[*at])];
            let fits = |text| pattern.takes(Shown::new(text, line.signs()));
            bodies.clone().any(fits) || (entry.whole && fits(line.text))
        };
        self.word_gate().noise(maybe).filter(matching).map(|(at, _)| at)
    }

    /// Returns the ranges of the line's text that cancels cover. Cancels are
    /// matched against the line's [bodies](Line::bodies) only.
    #[must_use]
    pub fn cancelled(&self, line: &Line, maybe: &Maybe) -> Vec<Range<usize>> {
        let mut ranges = Vec::new();
        for body in line.bodies() {
            let from = line.text.len() - body.len();
            let cancels = self.word_gate().cancels(maybe, Shown::new(body, line.signs())).into_iter().map(|at| &self.rules.cancels[at].regex);
            ranges.extend(cancels.flat_map(|regex| regex.spans(body)).map(|span| from + span.start..from + span.end));
        }
        ranges
    }

    /// Returns the id of each noise rule that has silenced lines, and how many.
    pub fn silenced(&self) -> impl Iterator<Item = (&str, u64)> {
        let counts = self.silenced.iter().map(|count| count.load(Ordering::Relaxed));
        let all = self.rules.noise.iter().zip(counts).filter(|(_, count)| *count > 0);
        all.map(|(&entry, count)| (self.rules.entries[usize::from(entry)].id.as_str(), count))
    }

    /// Fills `out` with the entries that the literals in `text` lead to, in the order in which they are asked.
    /// Returns whether it left out places of a literal that the text repeats too often.
    pub fn candidates(&self, text: &[u8], scratch: &mut Scratch, hits: &mut Vec<Hit>, out: &mut Vec<Candidate>) -> bool {
        hits.clear();
        self.prefilter().scan(text, scratch, hits);
        self.resolve(hits, 0, out)
    }

    /// Returns the entries that the literals in `text` lead to, for a text that is not part of a block.
    #[must_use]
    pub fn candidates_of(&self, text: &[u8]) -> Vec<Candidate> {
        let mut found = Vec::new();
        self.candidates(text, &mut Scratch::default(), &mut Vec::new(), &mut found);
        found
    }

    /// Fills `out` with the entries behind the `hits` of one line; positions become relative to `base`.
    /// Returns whether it left out places of a literal that the line repeats too often.
    pub fn resolve(&self, hits: &[Hit], base: u32, out: &mut Vec<Candidate>) -> bool {
        if hits.len() <= MAX_HITS_OF_LITERAL {
            self.resolve_all(hits, base, out);
            return false;
        }
        let kept = thinned(hits);
        self.resolve_all(&kept, base, out);
        kept.len() < hits.len()
    }

    fn resolve_all(&self, hits: &[Hit], base: u32, out: &mut Vec<Candidate>) {
        out.clear();
        let leads = self.rules.leads();
        for hit in hits {
            let literal = usize::from(hit.literal);
            let len = leads.len_of(literal);
            out.extend(leads.of(literal).iter().map(|&entry| Candidate { entry, at: hit.pos - base, len }));
        }
        // The same order as by fields, but in a single comparison.
        out.sort_unstable_by_key(|found| u64::from(found.entry) << 48 | u64::from(found.at) << 16 | u64::from(found.len));
    }
}

/// Returns the hits without those of literals that the line repeats more than [`MAX_HITS_OF_LITERAL`] times,
/// but for their last: it stands where repetitions made to hide it would end.
fn thinned(hits: &[Hit]) -> Vec<Hit> {
    // Grown as needed: there are few literals, and perhaps a million hits.
    let mut last: HashMap<u16, usize> = HashMap::new();
    for (at, hit) in hits.iter().enumerate() {
        last.insert(hit.literal, at);
    }
    let mut seen = HashMap::new();
    let is_kept = |(at, hit): &(usize, &Hit)| {
        let count = seen.entry(hit.literal).or_insert(0_usize);
        *count += 1;
        *count <= MAX_HITS_OF_LITERAL || last.get(&hit.literal) == Some(at)
    };
    hits.iter().enumerate().filter(is_kept).map(|(_, hit)| *hit).collect()
}

/// Returns the prefilter of the built-in rules, built at the first call.
fn compiled_prefilter() -> &'static Prefilter {
    static PREFILTER: OnceLock<Prefilter> = OnceLock::new();
    PREFILTER.get_or_init(|| Prefilter::new(compiled_literals(), compiled_plan()))
}

/// Builds the prefilter for anything but the built-in rules alone. The
/// build-time plan still holds for those of its literals that remain.
fn own_prefilter(literals: &Literals) -> Prefilter {
    match literals.inherited {
        0 => Prefilter::new(&literals.forms, if is_wide() { Plan::sifting(&literals.forms) } else { Plan::stepping(&literals.forms) }),
        known => Prefilter::new(&literals.forms, compiled_plan().joined(&literals.forms, known, |at| !literals.leads.of(at).is_empty())),
    }
}

fn compiled_plan() -> Plan {
    postcard::from_bytes(if is_wide() { SIEVE } else { STEPS }).expect("the build wrote it with the same types")
}

#[cfg(test)]
mod tests {
    use super::super::prefilter::SAMPLE;
    use super::*;
    use crate::rules::LiteralForm;

    #[test]
    fn a_line_that_repeats_a_literal_is_followed_up_at_its_first_places_and_its_last() {
        let of = |literal: u16, places: std::ops::Range<u32>| places.map(move |pos| Hit { pos, literal });
        let hits: Vec<Hit> = of(7, 0..5000).chain(of(3, 5000..5010)).collect();
        let kept = thinned(&hits);
        let places = |literal| kept.iter().filter(|hit| hit.literal == literal).map(|hit| hit.pos).collect::<Vec<_>>();
        assert_eq!(places(7), (0..MAX_HITS_OF_LITERAL as u32).chain([4999]).collect::<Vec<_>>());
        assert_eq!(places(3), (5000..5010).collect::<Vec<_>>());
    }

    #[test]
    fn a_plan_that_is_joined_is_the_plan_of_all_its_literals() {
        let forms = &compiled_literals().collect::<Vec<_>>()[..];
        for known in [0, 1, forms.len() / 2, forms.len() - 1, forms.len()] {
            assert!(Plan::stepping(&forms[..known]).joined(forms, known, |_| true) == Plan::stepping(forms), "{known}");
        }
        // An unwanted literal is like one without a window.
        let none = LiteralForm::default();
        let every_third = |at: usize| at.is_multiple_of(3);
        let left: Vec<LiteralForm> = forms.iter().enumerate().map(|(at, form)| if every_third(at) { form.clone() } else { none.clone() }).collect();
        assert!(Plan::stepping(forms).joined(forms, forms.len(), every_third) == Plan::stepping(&left));
    }

    /// Where literals are placed depends on those placed before; what is found does not.
    #[test]
    fn a_sieve_that_is_joined_finds_the_literals_of_all() {
        let forms = &compiled_literals().collect::<Vec<_>>()[..];
        let known = forms.len() - 200;
        let compiled: Plan = postcard::from_bytes(SIEVE).expect("the build wrote it with the same types");
        let half = |at: usize| at < known / 2 || at >= known;
        let joined = Prefilter::new(forms, Plan::sifting(&forms[..known]).joined(forms, known, half));
        let whole = Prefilter::new(forms, compiled);
        let stepping = Prefilter::new(forms, Plan::stepping(forms));
        let mut text = SAMPLE.as_bytes().to_vec();
        forms.iter().for_each(|form| text.extend([b"\n ", form.bytes.as_slice(), b" "].concat()));
        let found = |filter: &Prefilter| {
            let mut hits = Vec::new();
            filter.scan(&text, &mut Scratch::default(), &mut hits);
            hits
        };
        let all = found(&stepping);
        assert!(all.len() > forms.len());
        assert!(found(&whole) == all);
        let of_half: Vec<Hit> = all.into_iter().filter(|hit| half(usize::from(hit.literal))).collect();
        assert!(found(&joined) == of_half);
    }

    #[test]
    fn the_build_planned_for_the_literals_of_the_files() {
        let compiled = |plan| postcard::from_bytes::<Plan>(plan).expect("the build wrote it with the same types");
        let rules = RuleSet::builtin();
        let forms = &rules.own_literals().unwrap().forms;
        assert!(compiled(STEPS) == Plan::stepping(forms));
        assert!(compiled(SIEVE) == Plan::sifting(forms));
    }
}
