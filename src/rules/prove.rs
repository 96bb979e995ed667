//! Proves over a parsed regex that every match contains one of its rule's literals; otherwise the prefilter could miss what
//! the regex would confirm. The proof may refuse too much, but never accepts a regex that can match without a literal.

use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, Hir, HirKind, Repetition};

use super::source::parsed;

/// Most strings that a part of a regex is expanded into.
const MAX_STRINGS: usize = 512;
/// Most words that are searched for instead of a regex.
const MAX_WORDS: usize = 24;
/// Most words that tell much; beyond this many bytes a longer word tells no more; and the shortest word.
const MAX_TELLING: usize = 32;
const LONG_WORD_BYTES: usize = 6;
const MIN_WORD_BYTES: usize = 3;

/// A literal, and what the prefilter allows after it.
#[derive(Clone, Copy, Debug)]
pub struct Needle<'a> {
    /// The literal.
    pub text: &'a str,
    /// The only bytes that may follow; empty: any.
    pub after: &'a str,
    /// Bytes that may not follow.
    pub not_after: &'a str,
    /// Whether only the end of the line may follow.
    pub at_end: bool,
}

/// What may follow any literal: the end of the line, and what represents it inside a string.
const ALWAYS_AFTER: &[u8] = b"\n\r\\\"\x1b";

impl Needle<'_> {
    /// Whether the prefilter finds the literal if `next` follows; `None` is unknown, and accepted.
    fn may_precede(&self, next: Option<u8>) -> bool {
        let Some(next) = next.filter(|next| !ALWAYS_AFTER.contains(next)) else { return true };
        let allowed = self.after.is_empty() || self.after.as_bytes().contains(&next);
        !self.at_end && allowed && !self.not_after.as_bytes().contains(&next)
    }
}

/// Returns whether every match of `regex` contains one of `literals`, followed by a byte that may follow
/// it, as far as the regex determines that byte. With `ignore_case` both are compared in lower case.
///
/// # Errors
/// The regex does not parse.
pub fn every_match_has_literal(regex: &str, literals: &[Needle], ignore_case: bool) -> Result<bool, Box<regex_syntax::Error>> {
    let hir = ParserBuilder::new().utf8(false).build().parse(regex).map_err(Box::new)?;
    let literals = literals.iter().map(|needle| (fold(needle.text.as_bytes(), ignore_case), *needle)).collect();
    Ok(Proof { literals, ignore_case }.holds(&hir))
}

/// Returns whether every match has one of the literals if the case of letters counts neither in it nor in them: then a regex
/// that is refused fails by its letter case alone.
pub fn every_match_has_literal_in_some_case(regex: &str, literals: &[Needle]) -> bool {
    let literals = literals.iter().map(|needle| (fold(needle.text.as_bytes(), true), *needle)).collect();
    // Over bytes, as it will run: with Unicode's tables, `s` has a third case.
    parsed(regex, true).is_some_and(|hir| Proof { literals, ignore_case: true }.holds(&lower(&hir)))
}

/// Returns the longest string that every match of `regex` contains; serves as the literal of a custom pattern.
///
/// # Errors
/// The regex does not parse.
pub fn longest_required_literal(regex: &str) -> Result<Option<String>, Box<regex_syntax::Error>> {
    let hir = ParserBuilder::new().utf8(false).build().parse(regex).map_err(Box::new)?;
    let mut best: Vec<u8> = Vec::new();
    for run in runs(&hir) {
        if let [only] = &run[..]
            && only.len() > best.len()
        {
            best.clone_from(only);
        }
    }
    Ok(String::from_utf8(best).ok().filter(|s| !s.is_empty()))
}

/// Returns lower-case strings of which every match of `hir` contains one, in any case; the longest that
/// are known. `None` when nothing is known, or when they are too many or too short to be worth a search.
#[must_use]
pub fn required_words(hir: &Hir) -> Option<Vec<String>> {
    text(required(&lower(hir)).into_iter().filter(|words| words.len() <= MAX_WORDS).max_by_key(|words| least(words))?)
}

/// Returns such strings if they tell much: few, and none that most errors contain. `None` when all that is known tells little.
#[must_use]
pub fn telling_words(hir: &Hir) -> Option<Vec<String>> {
    let mut groups = required(&lower(hir));
    groups.retain(|words| words.len() <= MAX_TELLING && !words.iter().any(|word| is_common(word)));
    text(groups.into_iter().max_by_key(|words| (least(words).min(LONG_WORD_BYTES), std::cmp::Reverse(words.len())))?)
}

fn text(words: Vec<Vec<u8>>) -> Option<Vec<String>> {
    words.into_iter().map(String::from_utf8).collect::<Result<_, _>>().ok()
}

fn least(words: &[Vec<u8>]) -> usize {
    words.iter().map(Vec::len).min().unwrap_or(0)
}

/// Returns a pattern that matches the lower case of all that `hir` matches: a letter in either case becomes one letter.
fn lower(hir: &Hir) -> Hir {
    let all = |parts: &[Hir]| parts.iter().map(lower).collect();
    match hir.kind() {
        HirKind::Literal(literal) => Hir::literal(literal.0.to_ascii_lowercase()),
        HirKind::Class(class) => match class_strings(class).map(|strings| distinct(&strings)).as_deref() {
            Some([letter]) => Hir::literal(letter.clone()),
            _ => hir.clone(),
        },
        HirKind::Repetition(repeat) => Hir::repetition(Repetition { sub: Box::new(lower(&repeat.sub)), ..repeat.clone() }),
        HirKind::Capture(group) => lower(&group.sub),
        HirKind::Concat(parts) => Hir::concat(all(parts)),
        HirKind::Alternation(parts) => Hir::alternation(all(parts)),
        HirKind::Empty | HirKind::Look(_) => hir.clone(),
    }
}

/// Whether a lower-case string tells no more than a word that most errors contain, or a part of one.
fn is_common(word: &[u8]) -> bool {
    const COMMON: [&[u8]; 6] = [b"error", b"fail", b"exception", b"fatal", b"critical", b"file"];
    // Several blanks beside the word are more than most errors have.
    let word = word.strip_prefix(b" ").unwrap_or(word);
    let word = word.strip_suffix(b" ").unwrap_or(word);
    let word = word.strip_suffix(b":").unwrap_or(word);
    let is_one = |common: &[u8]| word.strip_prefix(common).is_some_and(|ending| ending.iter().all(u8::is_ascii_lowercase));
    COMMON.iter().any(|common| is_one(common) || memchr::memmem::find(common, word).is_some())
}

fn required(hir: &Hir) -> Vec<Vec<Vec<u8>>> {
    let inside = match hir.kind() {
        HirKind::Capture(group) => required(&group.sub),
        HirKind::Repetition(repeat) if repeat.min > 0 => required(&repeat.sub),
        HirKind::Concat(parts) => parts.iter().flat_map(required).collect(),
        HirKind::Alternation(branches) => {
            let each = branches.iter().map(|branch| required(branch).into_iter().max_by_key(|words| least(words))).collect::<Option<Vec<_>>>();
            each.map(|words| words.concat()).into_iter().collect()
        }
        _ => Vec::new(),
    };
    let all = runs(hir).into_iter().chain(inside).map(|run| distinct(&run));
    all.filter(|words| words.len() <= MAX_TELLING && least(words) >= MIN_WORD_BYTES).collect()
}

/// Returns each string once, in lower case, without those that contain another.
fn distinct(strings: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = strings.iter().map(|s| s.to_ascii_lowercase()).collect();
    all.sort_unstable();
    all.dedup();
    let is_spare = |word: &Vec<u8>| all.iter().any(|other| other.len() < word.len() && memchr::memmem::find(word, other).is_some());
    all.iter().filter(|word| !is_spare(word)).cloned().collect()
}

fn fold(bytes: &[u8], ignore_case: bool) -> Vec<u8> {
    if ignore_case { bytes.to_ascii_lowercase() } else { bytes.to_vec() }
}

struct Proof<'a> {
    literals: Vec<(Vec<u8>, Needle<'a>)>,
    ignore_case: bool,
}

impl Proof<'_> {
    fn holds(&self, hir: &Hir) -> bool {
        if runs(hir).iter().any(|run| run.iter().all(|s| self.contains_literal(s))) {
            return true;
        }
        match hir.kind() {
            HirKind::Capture(group) => self.holds(&group.sub),
            HirKind::Repetition(repeat) => repeat.min > 0 && self.holds(&repeat.sub),
            // Parts that can be expanded were already checked in their run, together with what follows them.
            HirKind::Concat(parts) => parts.iter().any(|part| strings(part).is_none() && self.holds(part)),
            HirKind::Alternation(branches) => branches.iter().all(|branch| self.holds(branch)),
            _ => false,
        }
    }

    fn contains_literal(&self, text: &[u8]) -> bool {
        let folded = fold(text, self.ignore_case);
        let stands = |(literal, needle): &(Vec<u8>, Needle)| {
            memchr::memmem::find_iter(&folded, literal).any(|at| needle.may_precede(text.get(at + literal.len()).copied()))
        };
        self.literals.iter().any(stands)
    }
}

/// Returns the runs of consecutive parts that can be expanded, each as its set of strings.
fn runs(hir: &Hir) -> Vec<Vec<Vec<u8>>> {
    let mut found = Vec::new();
    let mut open: Option<Vec<Vec<u8>>> = None;
    for part in flatten(hir) {
        match strings(part) {
            Some(set) => {
                let joined = open.as_ref().and_then(|run| product(run, &set));
                if joined.is_none() {
                    found.extend(open.take());
                }
                open = joined.or(Some(set));
            }
            None => found.extend(open.take()),
        }
    }
    found.extend(open);
    found
}

fn flatten(hir: &Hir) -> Vec<&Hir> {
    match hir.kind() {
        HirKind::Concat(parts) => parts.iter().flat_map(flatten).collect(),
        HirKind::Capture(group) => flatten(&group.sub),
        _ => vec![hir],
    }
}

/// Returns every string that `hir` can match, if there are few.
fn strings(hir: &Hir) -> Option<Vec<Vec<u8>>> {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => Some(vec![Vec::new()]),
        HirKind::Literal(literal) => Some(vec![literal.0.to_vec()]),
        HirKind::Class(class) => class_strings(class),
        HirKind::Capture(group) => strings(&group.sub),
        HirKind::Concat(parts) => parts.iter().try_fold(vec![Vec::new()], |all, part| product(&all, &strings(part)?)),
        HirKind::Alternation(branches) => {
            let mut all = Vec::new();
            for branch in branches {
                all.extend(strings(branch)?);
            }
            (all.len() <= MAX_STRINGS).then_some(all)
        }
        HirKind::Repetition(repeat) => repeated(repeat.min, repeat.max?, &strings(&repeat.sub)?),
    }
}

fn repeated(min: u32, max: u32, once: &[Vec<u8>]) -> Option<Vec<Vec<u8>>> {
    if max > 3 {
        return None;
    }
    let mut all = Vec::new();
    let mut power = vec![Vec::new()];
    for count in 0..=max {
        if count >= min {
            all.extend(power.iter().cloned());
        }
        power = product(&power, once)?;
    }
    (all.len() <= MAX_STRINGS).then_some(all)
}

fn class_strings(class: &Class) -> Option<Vec<Vec<u8>>> {
    let few = 16;
    match class {
        Class::Unicode(class) => {
            let chars: Vec<char> = class.iter().flat_map(|r| r.start()..=r.end()).take(few + 1).collect();
            (chars.len() <= few).then(|| chars.iter().map(|c| c.to_string().into_bytes()).collect())
        }
        Class::Bytes(class) => {
            let bytes: Vec<u8> = class.iter().flat_map(|r| r.start()..=r.end()).take(few + 1).collect();
            (bytes.len() <= few).then(|| bytes.iter().map(|b| vec![*b]).collect())
        }
    }
}

fn product(left: &[Vec<u8>], right: &[Vec<u8>]) -> Option<Vec<Vec<u8>>> {
    if left.len() * right.len() > MAX_STRINGS {
        return None;
    }
    Some(left.iter().flat_map(|a| right.iter().map(move |b| [a.as_slice(), b].concat())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proves_and_refuses() {
        let cases: &[(&str, &[&str], bool, bool)] = &[
            (r"^error: (.*)$", &["error: "], false, true),
            (r"^(error|fatal): ", &["error: ", "fatal: "], false, true),
            (r"^(error|fatal): ", &["error: "], false, false),
            (r"(foo)?bar", &["foobar"], false, false),
            (r"[Ee]rror: ", &["rror:"], false, true),
            (r"panicked at '[^']*', src", &["panicked at"], false, true),
            (r"\w+Error: ", &["Error:"], false, true),
            (r"(Error: )*x", &["Error"], false, false),
            (r"(Error: )+x", &["Error"], false, true),
            (r"(?i)error", &["error"], true, true),
            (r"(?i)error", &["error"], false, false),
            (r"a|", &["a"], false, false),
            (r"npm (ERR!|error) code", &["npm ERR!", "npm error"], false, true),
        ];
        for (regex, literals, ignore_case, wanted) in cases {
            let needles: Vec<Needle> = literals.iter().map(|text| Needle { text, after: "", not_after: "", at_end: false }).collect();
            let got = every_match_has_literal(regex, &needles, *ignore_case).expect("parses");
            assert_eq!(got, *wanted, "{regex} with {literals:?}");
        }
    }

    #[test]
    fn letter_case_alone_is_told_apart() {
        let has = |regex, text| every_match_has_literal_in_some_case(regex, &[Needle { text, after: "", not_after: "", at_end: false }]);
        assert!(has("(?i)node lost contact with", "node lost") && has("Node Lost", "node lost") && has("node lost", "NODE LOST"));
        assert!(!has("(?i)node lost contact", "node gone") && !has("(?i)(node lost)?", "node lost") && !has("(", "node lost"));
    }

    #[test]
    fn what_follows_a_literal_must_be_allowed() {
        let proves = |regex, needle: Needle| every_match_has_literal(regex, &[needle], false).expect("parses");
        let error = Needle { text: "ERROR", after: " :", not_after: "", at_end: false };
        assert!(proves("^ERROR: x", error) && proves(r"^ERROR\s*", error) && proves("ERROR$", error));
        assert!(!proves("^ERROR_LOG", error) && !proves("ERROR(_x|-y)", error));
        assert!(!proves("^ERROR: x", Needle { after: "", not_after: ":", ..error }));
        assert!(!proves("^ERROR: x", Needle { after: "", at_end: true, ..error }) && proves("^x ERROR$", Needle { after: "", at_end: true, ..error }));
    }

    #[test]
    fn finds_the_words_that_a_match_requires() {
        let cases: &[(&str, &[&str])] = &[
            (r"^(?:\S+ )?(?i)warn(?:ing)?:", &["warn:", "warning:"]),
            (r"^npm warn\b|^W: |Deprecated", &["deprecated", "npm warn", "w: "]),
            (r"\d+ (?:error|failure)s?\b", &[" error", " failure"]),
            (r"^\w+ x$", &[]),
            (r"(?:abc)?\d", &[]),
            (r"abc|\d+", &[]),
        ];
        for (regex, wanted) in cases {
            let hir = ParserBuilder::new().utf8(false).build().parse(regex).expect("parses");
            let words = required_words(&hir).unwrap_or_default();
            assert_eq!(words, *wanted, "{regex}");
        }
    }

    #[test]
    fn finds_the_literal_of_a_custom_pattern() {
        let longest = |regex| longest_required_literal(regex).expect("parses");
        assert_eq!(longest(r"disk \d+ is (full|empty)").as_deref(), Some("disk "));
        assert_eq!(longest(r"\d+"), None);
    }
}
