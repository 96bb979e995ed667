//! Turns a user's patterns into rules of the family `custom`: error patterns become rules with the literals that the
//! prefilter needs, false positives become cancels, noise patterns become noise. `config` has already validated them.

use regex_syntax::ParserBuilder;
use regex_syntax::hir::literal::{ExtractKind, Extractor, Seq};
use regex_syntax::hir::{Hir, HirKind};

use crate::config::{ErrorDetection, Pattern as Custom, PatternKind};
use crate::rules::{Cancel, Entry, ExampleSpec, Family, Fault, Gate, Kind, Labels, Library, MIN_LITERAL_BYTES, Pattern, RulesFile, longest_required_literal};
use crate::words::Depth;

const FAMILY: &str = "custom";
/// Maximum number of literals for one pattern.
const MAX_LITERALS: usize = 64;

/// Checks that the prefilter can find what a regex matches; the configuration calls it for each custom regex.
///
/// # Errors
/// The regex has no usable literals.
pub fn check_literals(regex: &str) -> Result<(), String> {
    match literals(regex) {
        Some(_) => Ok(()),
        None => Err(format!("has no fixed text of at least {MIN_LITERAL_BYTES} bytes that every match contains")),
    }
}

/// Returns the patterns of `[error_detection]` as one rules file; `None` if there are none.
pub fn rules(detection: &ErrorDetection) -> Option<RulesFile> {
    let (errors, noise, cancels) = (&detection.custom_patterns, &detection.noise_patterns, &detection.custom_false_positives);
    let rules = errors.iter().enumerate().map(|(index, custom)| rule(index, custom));
    let noise = noise.iter().enumerate().map(|(index, custom)| noise_entry(index, custom));
    let entries: Vec<Entry> = rules.chain(noise).collect();
    let cancels: Vec<Cancel> = cancels.iter().enumerate().map(|(index, custom)| cancel(index, custom)).collect();
    (!entries.is_empty() || !cancels.is_empty()).then(|| RulesFile { family: family(), entries, cancels, first: false })
}

fn family() -> Family {
    Family {
        id: FAMILY.to_owned(),
        title: "Patterns of the configuration".to_owned(),
        depth: Depth::Head,
        language: None,
        test: false,
        library: Library::default(),
        covers: Vec::new(),
        file: "[error_detection]".to_owned(),
    }
}

fn rule(index: usize, custom: &Custom) -> Entry {
    let literals = match custom.kind {
        PatternKind::Substring => vec![custom.pattern.clone()],
        PatternKind::Regex => literals(&custom.pattern).unwrap_or_default(),
    };
    let fault = Fault { category: custom.category, severity: custom.severity, hint: custom.reason.clone(), ..Fault::default() };
    Entry { gate: Gate { literals, ..Gate::default() }, fault, ..entry(format!("{FAMILY}.pattern-{}", index + 1), Kind::Rule(pattern(custom))) }
}

fn noise_entry(index: usize, custom: &Custom) -> Entry {
    let reason = custom.reason.clone().unwrap_or_default();
    entry(format!("{FAMILY}.noise-{}", index + 1), Kind::Noise { regex: pattern(custom), block: None, undecided: false, reason })
}

fn cancel(index: usize, custom: &Custom) -> Cancel {
    let id = format!("{FAMILY}.false-positive-{}", index + 1);
    Cancel { id, regex: pattern(custom), reason: custom.reason.clone(), examples: ExampleSpec::default(), compiled: None }
}

/// A user who names a text means it anywhere, even on a line that looks like code.
fn entry(id: String, kind: Kind) -> Entry {
    Entry {
        id,
        family: 0,
        labels: Labels::default(),
        kind,
        fault: Fault::default(),
        generic: false,
        leveled: false,
        code: true,
        whole: true,
        above: None,
        gate: Gate::default(),
        region: None,
        claimed_by: Vec::new(),
        examples: ExampleSpec::default(),
    }
}

fn pattern(custom: &Custom) -> Pattern {
    match custom.kind {
        PatternKind::Substring => Pattern::new(regex::escape(&custom.pattern), false),
        PatternKind::Regex => Pattern::new(custom.pattern.clone(), false),
    }
}

/// Returns texts of which each match of `regex` contains at least one.
fn literals(regex: &str) -> Option<Vec<String>> {
    if let Ok(Some(literal)) = longest_required_literal(regex)
        && literal.len() > MIN_LITERAL_BYTES
    {
        return Some(vec![literal]);
    }
    let hir = ParserBuilder::new().utf8(false).build().parse(regex).ok()?;
    within(&hir)
}

/// Returns the best set of texts that any required part of a pattern starts or ends with.
fn within(hir: &Hir) -> Option<Vec<String>> {
    let edges = [ExtractKind::Prefix, ExtractKind::Suffix].into_iter().filter_map(|kind| texts(&extractor(kind).extract(hir)));
    let inner = match hir.kind() {
        HirKind::Capture(group) => within(&group.sub),
        HirKind::Repetition(repeat) if repeat.min > 0 => within(&repeat.sub),
        HirKind::Alternation(branches) => branches.iter().map(within).collect::<Option<Vec<_>>>().map(|sets| sets.concat()),
        HirKind::Concat(parts) => (1..parts.len())
            .filter_map(|from| texts(&extractor(ExtractKind::Prefix).extract(&Hir::concat(parts[from..].to_vec()))))
            .chain(parts.iter().filter_map(within))
            .max_by_key(|set| worth(set)),
        _ => None,
    };
    edges.chain(inner).max_by_key(|set| worth(set))
}

fn extractor(kind: ExtractKind) -> Extractor {
    let mut extractor = Extractor::new();
    extractor.kind(kind).limit_total(MAX_LITERALS);
    extractor
}

fn texts(set: &Seq) -> Option<Vec<String>> {
    let literals = set.literals().filter(|literals| !literals.is_empty())?;
    let texts: Option<Vec<String>> = literals.iter().map(|literal| String::from_utf8(literal.as_bytes().to_vec()).ok()).collect();
    texts.filter(|texts| texts.iter().all(|text| text.len() >= MIN_LITERAL_BYTES))
}

/// Ranks a set of literals: long ones are rare, and few are cheap.
fn worth(set: &[String]) -> (usize, usize) {
    let shortest = set.iter().map(String::len).min().unwrap_or_default();
    (shortest.min(6), usize::MAX - set.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_literals_for_every_pattern_that_the_configuration_lets_in() {
        for (pattern, line) in [
            (r"job \d+ gave up", "job 7 gave up"),
            ("fault|error", "an error"),
            ("(?i)reconcile mismatch", "ReConcile mismatch"),
            (r"\d+ (lost|gone)+ \d", "1 gonelost 2"),
            (r"\w+(boom|crash)\w+", "xcrashx"),
            (r"(?i)\d+ fault \d", "3 FaUlT 4"),
        ] {
            let literals = literals(pattern).unwrap();
            assert!(literals.iter().any(|literal| line.contains(literal)), "{pattern}: {literals:?}");
        }
        assert!(check_literals(r"^\d+$").is_err());
    }
}
