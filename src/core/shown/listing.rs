//! How tools display a line: a numbered listing, a diff, a search. Strips
//! the mark and says how certain it is; never looks at what the line says.

/// A line without the mark of the tool that displays it.
pub struct Shown<'a> {
    /// The text, without white space at both ends.
    pub text: &'a [u8],
    /// Whether a diff or a search certainly displays it: its own indentation follows the mark.
    pub marked: bool,
    /// Whether it is indented.
    pub indented: bool,
    /// Set if a search displays it: the number of bytes of white space between the place and the text.
    pub found: Option<usize>,
}

impl Shown<'_> {
    /// Whether this is a line of a file, with its indentation, or of a comment of
    /// several lines. A tool that names a place puts one blank after it, or none.
    pub fn is_of_a_file(&self) -> bool {
        let is_comment = matches!(self.text, [b'*', b' ' | b'\t', ..] | [b'*', b'*', b' ', ..]);
        self.found.is_some_and(|blanks| (blanks > 0 && self.marked) || is_comment)
    }
}

/// Longest path before the line number of a search's result, in bytes.
const PATH_BYTES: usize = 256;

const CARGO_STEPS: &[&[u8]] =
    &[b"Compiling ", b"Finished `", b"Finished ", b"Checking ", b"Downloaded ", b"Running `", b"Running unittests", b"Doc-tests ", b"Blocking waiting "];

/// Whether an indented line is the next thing that a tool prints, rather than a continuation of
/// an error before it: a line of a numbered listing, a step of cargo, a mark of a test runner.
#[must_use]
pub fn stands_alone(line: &[u8]) -> bool {
    let text = line.trim_ascii_start();
    let Some(first) = text.first().filter(|_| text.len() < line.len()) else { return false };
    match first {
        b'0'..=b'9' => {
            let digits = digits(text);
            digits <= 6 && (text[digits..].starts_with(b"\t") || text[digits..].starts_with("\u{2192}".as_bytes()))
        }
        // Cargo's words end in the twelfth column; if they are deeper, they are quoted.
        b'A'..=b'Z' => {
            let word = memchr::memchr(b' ', text).unwrap_or(text.len());
            line.len() - text.len() + word <= 12 && CARGO_STEPS.iter().any(|step| text.starts_with(step))
        }
        0xe2 => text.starts_with("\u{2713} ".as_bytes()) || text.starts_with("\u{2714} ".as_bytes()),
        _ => false,
    }
}

/// Marks of Azure Pipelines and, in its logs, GitHub's runner.
const GROUPS: [&[u8]; 4] = [b"##[group]", b"##[endgroup]", b"##[section]", b"##[command]"];
/// Those of the other runners.
const MARKS: [&[u8]; 6] = [b"::group::", b"::endgroup::", b"section_start:1", b"section_end:1", b"travis_fold:", b"travis_time:"];

/// Whether the line is a CI runner's mark between two steps, which no program's output spans: GitHub Actions' and Azure
/// Pipelines' groups and sections, GitLab's sections, Travis' folds.
#[must_use]
pub fn begins_step(line: &[u8]) -> bool {
    match line.first() {
        Some(b'#') => GROUPS.iter().any(|mark| line.starts_with(mark)),
        Some(b':' | b's' | b't') => MARKS.iter().any(|mark| line.starts_with(mark)),
        _ => false,
    }
}

/// Whether the raw line begins with a mark that its runner overwrites with the command that begins, so that of all pieces of the
/// line the last one counts. Which piece a rule sees is settled before any rule is asked, so no rule can say this.
#[must_use]
pub fn is_overwritten(raw: &[u8]) -> bool {
    raw.starts_with(b"travis_")
}

/// Whether such a mark may stand in the text, behind whatever precedes it. Most lines have no sign of one, and need not be decoded to tell.
#[must_use]
pub fn may_begin_step(text: &[u8]) -> bool {
    // Most of these bytes stand in names and places, which the next or the last one tells.
    memchr::memchr3_iter(b'#', b':', b'_', text).any(|at| match text.split_at(at) {
        (_, [b'#', b'#', b'[', ..]) => true,
        (_, behind @ [b':', b':', b'e' | b'g', ..]) => behind.starts_with(b"::group::") || behind.starts_with(b"::endgroup::"),
        (before @ [.., b'n' | b's'], [b'_', ..]) => before.ends_with(b"section") || before.ends_with(b"travis"),
        _ => false,
    })
}

/// Whether the line is of a numbered listing: `   12\tcode`, `12→code`, `>  12 | code`.
pub fn is_numbered(line: &[u8]) -> bool {
    let text = line.trim_ascii_start();
    let text = text.strip_prefix(b">").unwrap_or(text).trim_ascii_start();
    let digits = digits(text);
    if digits == 0 || digits > 6 {
        return false;
    }
    let rest = &text[digits..];
    rest.starts_with(b"\t") || rest.starts_with("\u{2192}".as_bytes()) || rest.starts_with(b" | ") || rest.starts_with(b" |\t") || rest.starts_with(b"| ")
}

/// Whether the line is a quotation in Markdown or in an old diff: `> Traceback (most recent call last):`,
/// `> TypeError: x`. Other tools begin their own messages like this, so only the head of an error counts.
pub fn is_quoted(line: &[u8]) -> bool {
    let Some(text) = line.strip_prefix(b"> ").map(<[u8]>::trim_ascii_start) else { return false };
    let word = text.iter().take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_')).count();
    let head = text[word..].starts_with(b":") && [&b"Error"[..], b"Exception", b"error"].iter().any(|end| text[..word].ends_with(end));
    head || text.starts_with(b"Traceback (most recent") || text.starts_with(b"Exception in thread ")
}

/// Separates the mark from the text: `+ code` of a diff, `src/a.rs:12:code` and `12-code` of a search.
pub fn unmarked(line: &[u8]) -> Shown<'_> {
    let trimmed = line.trim_ascii();
    let indented = matches!(line.first(), Some(b' ' | b'\t'));
    if let Some(text) = prompted(trimmed) {
        return Shown { text, marked: false, indented: true, found: None };
    }
    let diff = diff_line(trimmed);
    let found = if diff.is_none() && !indented { found_line(trimmed) } else { None };
    let Some(all) = diff.or(found) else { return Shown { text: trimmed, marked: false, indented, found: None } };
    let text = all.trim_ascii_start();
    Shown { text, marked: !is_one_blank(all), indented: true, found: found.map(|_| all.len() - text.len()) }
}

/// Returns what follows the prompt of an interactive example: `>>> code`, `... code`.
fn prompted(text: &[u8]) -> Option<&[u8]> {
    text.strip_prefix(b">>> ").or_else(|| text.strip_prefix(b"... ")).map(<[u8]>::trim_ascii_start)
}

/// Whether the line is of `git blame`: `58190597 (Ann Other 2026-11-20 17:54:13 +0000 187) code`.
pub fn is_blamed(line: &[u8]) -> bool {
    let id = line.strip_prefix(b"^").unwrap_or(line);
    let hex = id.iter().take_while(|b| b.is_ascii_hexdigit()).count();
    if !(7..=40).contains(&hex) || id.get(hex) != Some(&b' ') {
        return false;
    }
    let Some(close) = memchr::memchr(b')', id) else { return false };
    // Number, time zone and time of the line, from their end.
    let mut words = id[..close].rsplit(|b| *b == b' ').filter(|word| !word.is_empty());
    let is_number = |word: &[u8]| word.iter().all(u8::is_ascii_digit);
    let number = words.next().is_some_and(is_number);
    let zone = words.next().is_some_and(|word| word.len() == 5 && matches!(word[0], b'+' | b'-') && is_number(&word[1..]));
    number && zone && words.next().is_some_and(|word| word.len() == 8 && word[2] == b':')
}

/// Returns what follows the sign of a diff: `+ code`, `- code`.
fn diff_line(text: &[u8]) -> Option<&[u8]> {
    let rest = text.strip_prefix(b"+").or_else(|| text.strip_prefix(b"-"))?;
    (!rest.starts_with(b"-") && !rest.starts_with(b"+")).then_some(rest)
}

/// Returns what follows the number, and a column after it: `src/a.rs:12:code`, `src/a.rs-12-code`, `12:code`.
fn found_line(text: &[u8]) -> Option<&[u8]> {
    let number = if text.first()?.is_ascii_digit() { 0 } else { path_end(text)? + 1 };
    let end = number + digits(&text[number..]);
    let sign = *text.get(end).filter(|sign| end > number && end - number <= 6 && matches!(sign, b':' | b'-'))?;
    if number > 0 && text[number - 1] != sign {
        return None;
    }
    let rest = &text[end + 1..];
    let column = digits(rest);
    Some(if sign == b':' && column > 0 && rest.get(column) == Some(&b':') { &rest[column + 1..] } else { rest })
}

/// Returns the end of a path with a folder or an extension, if `:12` or `-12` follows it.
fn path_end(text: &[u8]) -> Option<usize> {
    let path = &text[..text.len().min(PATH_BYTES)];
    let path = &path[..path.iter().position(|b| matches!(b, b' ' | b'\t' | b'"' | b'\'' | b'(' | b'<' | b'=')).unwrap_or(path.len())];
    let ends = |at: usize| path.get(at + 1).is_some_and(u8::is_ascii_digit) && path[..at].iter().any(|b| matches!(b, b'/' | b'.'));
    memchr::memchr2_iter(b':', b'-', path).find(|&at| ends(at) && matches!(path[at + 1 + digits(&path[at + 1..])..].first(), Some(sign) if *sign == path[at]))
}

/// Whether exactly one blank comes first: a tool puts that before a message, while code has its indentation.
fn is_one_blank(text: &[u8]) -> bool {
    matches!(text, [b' ', next, ..] if !matches!(next, b' ' | b'\t'))
}

fn digits(text: &[u8]) -> usize {
    text.iter().take_while(|b| b.is_ascii_digit()).count()
}

#[cfg(test)]
mod tests {
    use super::{GROUPS, MARKS, begins_step, is_blamed, is_quoted, may_begin_step, stands_alone, unmarked};

    #[test]
    fn blame_and_search() {
        assert!(is_blamed(b"^b5893d8 (Ann Other 2026-11-20 13:19:16 +0000  38)     error: x"));
        assert!(is_blamed(b"58190597 src/a.rs (Ann 2026-11-20 17:54:13 +0100 187) error: x"));
        for line in ["58190597 (Ann) error: x", "deadbeef failed (job 3) 17:54:13 +0100 187)", "5819059 error: x"] {
            assert!(!is_blamed(line.as_bytes()), "{line}");
        }
        let found = |line: &str| unmarked(line.as_bytes()).is_of_a_file();
        assert!(found("lib/a.py:143:    ValueError: x") && found("a/b.h:20:\terror: x"));
        assert!(!found("src/a.c:3: error: x") && !found("src/a.c:3:5: error: x") && !found("+    error: x") && !found("a.py:3:error: x"));
    }

    #[test]
    fn tells_the_next_line_from_a_continuation() {
        for line in ["   785\tconst total = 1;", "   Compiling serde v1.0.2 (/srv/app)", "    Finished `release` profile in 2s", "  \u{2713} should retry"] {
            assert!(stands_alone(line.as_bytes()), "{line}");
        }
        for line in ["      Compiling a.pyx because it changed.", "Compiling the rules failed", "    at f (/a.js:1:1)", "   12 | code", "  code: 'E1',", ""] {
            assert!(!stands_alone(line.as_bytes()), "{line}");
        }
    }

    #[test]
    fn a_line_with_a_mark_of_a_step_is_told_by_its_signs() {
        for mark in GROUPS.iter().chain(&MARKS) {
            assert!(begins_step(mark), "{mark:?}");
            assert!(may_begin_step(&[b"2026-11-20T10:00:00.1234567Z ", *mark, b"_x"].concat()), "{mark:?}");
        }
        for line in ["    at f (/a_b.js:1:1)", "  File \"/srv/my_app.py\", line 3, in f", "  12: core::panicking::panic", "# x", ""] {
            assert!(!may_begin_step(line.as_bytes()), "{line}");
        }
    }

    #[test]
    fn quotes_are_heads_of_errors() {
        for line in ["> Traceback (most recent call last):", "> ValueError: 'price'", ">   error: x"] {
            assert!(is_quoted(line.as_bytes()), "{line}");
        }
        for line in ["> Task :run FAILED", "> Could not resolve com.acme:x:1.0.", ">error: x", "> See the error: x", "> app@1.0 build"] {
            assert!(!is_quoted(line.as_bytes()), "{line}");
        }
    }

    #[test]
    fn strips_what_displays_a_line() {
        let rows = [
            ("+    code", "code", true),
            ("- item", "item", false),
            ("src/a.rs:5:code", "code", true),
            ("src/a.rs-5-\tcode", "code", true),
            ("a-1.rs-5-  code", "code", true),
            ("./a.py:5:7:  code", "code", true),
            ("12:    code", "code", true),
            ("a.c:5:7: error: x", "error: x", false),
            ("a.c:5: error: x", "error: x", false),
            ("host:5: code", "host:5: code", false),
            ("--- a/x.rs", "--- a/x.rs", false),
        ];
        for (line, text, marked) in rows {
            let shown = unmarked(line.as_bytes());
            assert_eq!((String::from_utf8_lossy(shown.text).as_ref(), shown.marked), (text, marked), "{line}");
        }
    }
}
