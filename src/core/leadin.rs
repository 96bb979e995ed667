//! What some transports put before each line, in shapes that a single line does not reveal: `[web] `,
//! `web-6f7 app `, `#12 3.456 `, `build\tRun tests\t2026-11-20T10:00:00.1Z `. The head of a trace shows where
//! its text begins. What precedes it is a prefix if the next line has it, too; a line with another prefix of
//! the same shape is another writer's. No writer is known by name, and nothing is kept between traces.

use super::decode::level_word;
use super::line::{Line, View};

/// Longest prefix, in bytes.
const MAX_BYTES: usize = 256;
/// Maximum number of blanks before a name in brackets.
const MAX_INDENT: usize = 12;
/// Longest name in brackets, in bytes.
const MAX_NAME_BYTES: usize = 40;
/// Maximum number of words that a logger puts between level and message, and of their bytes.
const MAX_NAMES: usize = 4;
const MAX_NAMES_BYTES: usize = 96;
/// Maximum number of blanks before what is quoted.
const MAX_QUOTE_INDENT: usize = 24;
/// Marks that quote the output of a program, line by line, between
/// blanks. `>` and `#` are not among them: people quote with those.
const QUOTES: [&[u8]; 11] = [b"remote:", b"|", "│".as_bytes(), "┃".as_bytes(), "▸".as_bytes(), b"E  ", b"stderr:", b"stdout:", b"STDERR:", b"err:", b"ERR>"];

/// What precedes the head of a trace.
#[derive(Clone, Debug, Default)]
pub struct LeadIn {
    text: Vec<u8>,
    /// Whether a further line had it.
    shared: bool,
    /// Whether it marks the lines as quoted, rather than naming their writer.
    quotes: bool,
}

impl LeadIn {
    /// Creates a lead-in from the text before a head; `None` if that
    /// is indented, words only (`Unhandled `, `error: `), or too long.
    pub fn new(text: &[u8]) -> Option<Self> {
        let is_prefix = Self::may_begin(text) && text.len() <= MAX_BYTES && !is_place(text);
        // What follows a writer's name is said by that writer; blanks beyond the first are the text's own indentation.
        let text = writer(text).map_or(text, |length| &text[..length]);
        let indent = text.iter().rev().take_while(|byte| **byte == b' ').count();
        let text = &text[..text.len() - indent.saturating_sub(1)];
        is_prefix.then(|| Self { text: text.to_vec(), ..Self::default() })
    }

    /// Whether `text` may begin with a lead-in.
    pub fn may_begin(text: &[u8]) -> bool {
        let is_mark = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'[' | b'#' | b'|' | b'\t');
        text.first().is_some_and(|byte| !is_blank(*byte)) && text.iter().any(is_mark) || writer(text).is_some() || names_package(text)
    }

    /// Returns what precedes the part of `line` that `view` shows, if that is a writer's name in brackets.
    pub fn of_writer(line: &Line, view: View) -> Self {
        let (body, part) = (line.body(), view.of(line));
        let text = if view == View::AfterWriter { &body[..body.len() - part.len()] } else { &[] };
        Self { text: text.to_vec(), ..Self::default() }
    }

    /// Returns a writer's name in brackets, which stands before the stamp of the head and before the text of further lines.
    pub fn named(name: &[u8]) -> Self {
        Self { text: [name, b" "].concat(), ..Self::default() }
    }

    /// Returns what quotes `line` up to offset `from` of its text.
    pub fn quoting(line: &Line, from: usize) -> Self {
        let body = line.prefix().body.min(from);
        Self { text: line.text[body..from].to_vec(), shared: false, quotes: true }
    }

    /// Returns the line without the lead-in; `None` if the line does not have it.
    pub fn strip<'a>(&self, line: &'a [u8]) -> Option<&'a [u8]> {
        // The blanks of an otherwise empty line may have been cut off.
        let is_blank_alike = self.quotes && !self.text.is_empty() && line.trim_ascii().is_empty() && self.text.trim_ascii().is_empty();
        if is_blank_alike { Some(&line[line.len()..]) } else { strip(&self.text, line) }
    }

    /// Returns the line without the lead-in, or as it is.
    pub fn cut<'a>(&self, line: &'a [u8]) -> &'a [u8] {
        self.strip(line).unwrap_or(line)
    }

    /// Whether another writer's lead-in precedes the line: `[db] ` beside `[web] `, `#13 3.5 ` beside `#12 3.4 `.
    pub fn is_other(&self, line: &[u8]) -> bool {
        if self.text.is_empty() || self.quotes {
            return false;
        }
        if let Some(length) = writer(&self.text) {
            let is_indented = |text: &[u8]| text.first().is_some_and(|byte| is_blank(*byte));
            return writer(line).is_some_and(|other| self.text[..length] != line[..other]) && is_indented(line) == is_indented(&self.text);
        }
        // Programs put their names before single messages, too.
        let is_message = names_package(&self.text) && !(self.shared && names_package(line));
        if line.first().is_none_or(|byte| is_blank(*byte)) || is_message {
            return false;
        }
        let mut own = words(&self.text);
        let mut others = words(line);
        let (Some(first), Some(other)) = (own.next(), others.next()) else { return false };
        first != other
            && is_alike(first, other)
            && own.all(|word| others.next().is_some_and(|other| word == other || is_time(word) && has_shape_of(word, other)))
    }

    /// Returns the name in brackets, if the lead-in is nothing else.
    pub fn name(&self) -> Option<&[u8]> {
        let name = self.text.trim_ascii();
        (writer(&self.text) == Some(self.text.len())).then(|| name[1..].rsplit(|byte| *byte == b']').nth(1).unwrap_or_default())
    }

    /// Its length in bytes.
    pub fn len(&self) -> usize {
        self.text.len()
    }

    /// Records that a line with it belongs to the trace.
    pub fn confirm(&mut self) {
        self.shared = true;
    }

    /// Whether further lines of the trace have it.
    pub fn is_shared(&self) -> bool {
        self.shared
    }

    /// Whether it marks the lines as quoted: a line without it is not one of them, but no other writer's either.
    pub fn is_quote(&self) -> bool {
        self.quotes
    }
}

/// Whether a package, a service or a host is named first: `shop-store: ` (Lerna), `web: `.
fn names_package(text: &[u8]) -> bool {
    let end = text.iter().position(|byte| !byte.is_ascii_alphanumeric() && *byte != b'-').unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    name.first().is_some_and(u8::is_ascii_lowercase) && rest.starts_with(b": ") && level_word(name).is_none()
}

/// Whether the text is a place in a file: `src/shop.d(75,27): `. Several lines about one place are not its writer's.
fn is_place(text: &[u8]) -> bool {
    let text = text.trim_ascii_end();
    let Some(inner) = text.strip_suffix(b"):") else { return false };
    let numbers = inner.iter().rev().take_while(|byte| byte.is_ascii_digit() || **byte == b',').count();
    let name = &inner[..inner.len() - numbers];
    numbers > 0 && name.ends_with(b"(") && name.contains(&b'.')
}

/// Returns the length of a writer's name in brackets at the start of `text`: `[web] `, `[0] `, `    [java] ` (Ant), `[@scope/pkg]: ` (Yarn).
/// A tool that starts several programs at once marks their lines so. A level or a count (`[3/7] `) is no writer.
pub fn writer(text: &[u8]) -> Option<usize> {
    let indent = text.iter().take_while(|byte| **byte == b' ').count().min(MAX_INDENT);
    let inner = text[indent..].strip_prefix(b"[")?;
    let scope = usize::from(inner.first() == Some(&b'@'));
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b':' | b'@') || (scope > 0 && byte == b'/');
    let name = inner.iter().take_while(|byte| is_part(**byte)).count();
    let is_name = (1..=MAX_NAME_BYTES).contains(&name) && inner.get(scope).is_some_and(u8::is_ascii_alphanumeric) && level_word(&inner[..name]).is_none();
    let rest = inner.get(name..)?.strip_prefix(b"]")?;
    let colon = usize::from(indent == 0 && rest.first() == Some(&b':'));
    let blank = usize::from(rest.len() > colon);
    (is_name && rest.get(colon).is_none_or(|byte| is_blank(*byte))).then_some(indent + name + colon + blank + 2)
}

/// Returns the writer's name in brackets at the start of `text`, brackets included, unless it is a moment: `[10:00:00] `.
pub fn name(text: &[u8]) -> Option<&[u8]> {
    let name = text[..writer(text)?].trim_ascii();
    let inner = &name[1..];
    let is_moment = inner[0].is_ascii_digit() && inner.iter().any(|byte| matches!(byte, b':' | b'.' | b'-'));
    (!is_moment).then_some(name)
}

/// Whether both lines begin with the names of writers in brackets, which differ.
pub fn names_differ(line: &[u8], other: &[u8]) -> bool {
    matches!((name(line), name(other)), (Some(name), Some(others)) if name != others)
}

/// Returns the length of what marks the text after it as another program's: a writer's name in brackets or what
/// quotes it, except an indentation and pytest's sign, which are also parts of the reports of one program.
pub fn mark(text: &[u8]) -> Option<usize> {
    let is_sign = |length: &usize| !matches!(text[..*length].trim_ascii(), b"" | b"E");
    writer(text).or_else(|| quote(text).filter(is_sign))
}

/// Returns the length of what quotes the text after it: an indentation, or a mark between blanks.
pub fn quote(text: &[u8]) -> Option<usize> {
    let indent = run(text, true);
    let rest = text.get(indent..).filter(|rest| indent <= MAX_QUOTE_INDENT && !rest.is_empty())?;
    // Most texts begin with none of the first bytes.
    let sign = QUOTES.iter().find(|sign| sign.first() == rest.first() && rest.starts_with(sign)).map_or(0, |sign| sign.len());
    if let Some(length) = named(rest, indent).filter(|_| sign == 0) {
        return Some(indent + length);
    }
    let blanks = run(&rest[sign..], true);
    match sign {
        0 => (indent > 0).then_some(indent),
        _ => ((1..=MAX_QUOTE_INDENT).contains(&blanks) && sign + blanks < rest.len()).then_some(indent + sign + blanks),
    }
}

/// Returns the length of a name that quotes the text after it, behind `indent` blanks: `==> web: `, `    amazon-ebs.web: ` (Packer,
/// Vagrant), `   +build | ` (Earthly), `    web │ ` (Tilt), `till> ` (Stack, Nix). One blank follows: further ones are the text's.
fn named(text: &[u8], indent: usize) -> Option<usize> {
    /// Blanks that Packer and Vagrant put in place of their arrow.
    const ARROW: usize = 4;
    let arrow = if text.starts_with(b"==> ") && indent == 0 { ARROW } else { usize::from(text.starts_with(b"+")) };
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'+');
    let name = text[arrow..].iter().take(MAX_NAME_BYTES).take_while(|byte| is_part(byte)).count();
    let (name, rest) = text[arrow..].split_at(name);
    let after = |rest: &[u8], mark: &[u8]| rest.strip_prefix(mark).filter(|rest| rest.first() == Some(&b' ')).map(|rest| text.len() - rest.len() + 1);
    if !name.first()?.is_ascii_lowercase() || level_word(name).is_some() {
        return None;
    }
    let column = &rest[run(rest, true)..];
    match (arrow, indent) {
        (ARROW, _) => after(rest, b":"),
        (0, ARROW) if is_builder(name) => after(rest, b":"),
        (0, 0) => after(rest, b">"),
        (1, 1..) => after(column, b"|"),
        (0, _) => after(column, "│".as_bytes()),
        _ => None,
    }
}

/// Whether the name is one of Packer's builders or Vagrant's first machine, and no file or class of that form.
fn is_builder(name: &[u8]) -> bool {
    let kind = name.split(|byte| *byte == b'.').next().unwrap_or_default();
    kind.contains(&b'-') || [&b"default"[..], b"docker", b"qemu", b"googlecompute", b"openstack", b"digitalocean", b"hcloud"].contains(&kind)
}

/// Returns where words begin from `from` on, including the one at `from`.
pub fn word_starts(text: &[u8], from: usize) -> impl Iterator<Item = usize> {
    let next = move |&at: &usize| {
        let word = at + run(text.get(at..)?, false);
        let next = word + run(&text[word..], true);
        (word < next && next < text.len() && next <= from + MAX_NAMES_BYTES).then_some(next)
    };
    std::iter::successors((from < text.len()).then_some(from), next).take(MAX_NAMES + 1)
}

fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| is_blank(*byte)).filter(|word| !word.is_empty())
}

/// Whether both are names or numbers in the same marks: `#12` and `#13`, `web-6f7` and `db-5c4`.
fn is_alike(word: &[u8], other: &[u8]) -> bool {
    let signs = |word: &[u8]| word.iter().copied().filter(|byte| !byte.is_ascii_alphanumeric()).collect::<Vec<u8>>();
    !signs(word).is_empty() && signs(word) == signs(other) && word.first() != Some(&b'[')
}

/// Returns `line` without `prefix`, whose times may differ.
pub fn strip<'a>(prefix: &[u8], line: &'a [u8]) -> Option<&'a [u8]> {
    let (mut prefix, mut rest) = (prefix, line);
    loop {
        let blank = is_blank(prefix.first().copied()?);
        let (word, next) = prefix.split_at(run(prefix, blank));
        let (other, tail) = rest.split_at(if blank { word.len().min(rest.len()) } else { run(rest, false) });
        if word != other && !(is_time(word) && has_shape_of(word, other)) {
            // The blank at the end of an otherwise empty line may have been cut off.
            return (blank && next.is_empty() && rest.is_empty()).then_some(rest);
        }
        (prefix, rest) = (next, tail);
        if prefix.is_empty() {
            return Some(rest);
        }
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// Returns the length of the blanks, or of the word, that `text` begins with.
fn run(text: &[u8], blank: bool) -> usize {
    text.iter().take_while(|byte| is_blank(**byte) == blank).count()
}

/// Whether a word counts or tells time: `3.456`, `10:00:00`.
fn is_time(word: &[u8]) -> bool {
    word.windows(3).any(|at| at[0].is_ascii_digit() && matches!(at[1], b'.' | b':') && at[2].is_ascii_digit())
}

/// Whether two words are equal except for their digits.
fn has_shape_of(word: &[u8], other: &[u8]) -> bool {
    let is_sign = |byte: &&u8| !byte.is_ascii_digit();
    other.iter().any(u8::is_ascii_digit) && word.iter().filter(is_sign).eq(other.iter().filter(is_sign))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_that_lines_share() {
        for (prefix, line, part) in [
            ("[web] ", "[web]   File", "  File"),
            ("web-6f7 app ", "web-6f7 app x", "x"),
            ("#12 3.456 ", "#12 10.1     x", "    x"),
            ("build\tRun tests\t2026-11-20T10:00:00.1Z ", "build\tRun tests\t2026-11-20T10:00:01.23Z x", "x"),
            ("[web] ", "[web]", ""),
            ("shop-store: ", "shop-store:   File", "  File"),
            ("web: ", "web:   File", "  File"),
        ] {
            let lead_in = LeadIn::new(prefix.as_bytes()).unwrap();
            assert_eq!(lead_in.strip(line.as_bytes()), Some(part.as_bytes()), "{line}");
            assert_eq!(lead_in.strip(b"[db] x"), None);
        }
    }

    #[test]
    fn a_place_is_no_prefix() {
        for place in ["shop.d(75): ", "src/shop.d(75,27): "] {
            assert!(LeadIn::new(place.as_bytes()).is_none(), "{place}");
        }
        for prefix in ["[web] ", "worker(3): ", "web-1.shop(): "] {
            assert!(LeadIn::new(prefix.as_bytes()).is_some(), "{prefix}");
        }
    }

    #[test]
    fn a_name_with_a_colon_is_a_writer_once_two_lines_have_it() {
        let mut lead_in = LeadIn::new(b"web: ").unwrap();
        assert!(!lead_in.is_other(b"db: x"));
        lead_in.confirm();
        assert!(lead_in.is_other(b"db: x") && !lead_in.is_other(b"ValueError: x") && !lead_in.is_other(b"web: x"));
        assert!(LeadIn::new(b"error: ").is_none());
    }

    #[test]
    fn other_writers() {
        for (prefix, line, other) in [
            ("[web] ", "[db] x", true),
            ("[0] ", "[1] x", true),
            ("[web] ", "[api-2] x", true),
            ("#12 3.4 ", "#13 3.5 x", true),
            ("web-6f7 app ", "db-5c4 app x", true),
            ("[web] ", "[web] x", false),
            ("[web] ", "[INFO] x", false),
            ("[ERROR] ", "[web] x", false),
            ("[!] ", "[cause] x", false),
            ("[web] ", "  [cause] x", false),
            ("[web] ", "x", false),
            ("[main] c.a.Foo - caught: ", "[main] c.a.Bar - next: x", false),
            ("#12 3.4 ", "#13 DONE 0.1s", false),
        ] {
            assert_eq!(LeadIn::new(prefix.as_bytes()).unwrap().is_other(line.as_bytes()), other, "{prefix} {line}");
        }
    }

    #[test]
    fn names_in_brackets() {
        for (text, length) in [("[web] x", Some(6)), ("[0] x", Some(4)), ("[web]\tx", Some(6)), ("[web]: x", Some(7)), ("[@till/web]: x", Some(13))] {
            assert_eq!(writer(text.as_bytes()), length, "{text}");
        }
        for text in ["[ERROR] x", "[3/7] x", "[web]x", "[] x", "[!] x", "[@] x", "[web]:x", "[a/b] x", "web x", "[a b] x", ""] {
            assert_eq!(writer(text.as_bytes()), None, "{text}");
        }
        assert_eq!(LeadIn::new(b"[web] ").unwrap().name(), Some(&b"web"[..]));
        assert_eq!(LeadIn::new(b"[@till/web]: ").unwrap().name(), Some(&b"@till/web"[..]));
        assert_eq!(LeadIn::new(b"#12 3.4 ").unwrap().name(), None);
    }

    #[test]
    fn a_moment_is_no_name() {
        for (text, wanted) in [("[web] x", Some("[web]")), ("[0] x", Some("[0]")), ("    [exec] x", Some("[exec]")), ("[web:test]: x", Some("[web:test]:"))] {
            assert_eq!(name(text.as_bytes()), wanted.map(str::as_bytes), "{text}");
        }
        for text in ["[10:00:00] x", "[2026-11-20T10:00:00.123Z] x", "[12.345] x", "[ERROR] x", "x"] {
            assert_eq!(name(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn what_marks_another_programs_text() {
        let mark = |text: &'static str| mark(text.as_bytes()).map(|length| &text[length..]);
        assert_eq!(mark("[web] 0 errors"), Some("0 errors"));
        assert_eq!(mark("     [exec] 0 errors"), Some("0 errors"));
        assert_eq!(mark("remote: 0 errors"), Some("0 errors"));
        assert_eq!(mark("    default: 0 errors"), Some("0 errors"));
        assert_eq!(mark("    0 errors"), None);
        assert_eq!(mark("E   0 errors"), None);
        assert_eq!(mark("[ERROR] 0 errors"), None);
    }

    #[test]
    fn what_quotes_a_text() {
        for (text, length) in
            [("    x", 4), ("\tx", 1), ("| x", 2), ("  |   x", 6), ("│ x", 4), ("E   x", 4), ("stderr: x", 8), ("remote:        x", 15), ("▸ x", 4)]
        {
            assert_eq!(quote(text.as_bytes()), Some(length), "{text}");
        }
        for (text, length) in
            [("==> web:   x", 9), ("    amazon-ebs.web: x", 20), ("    default:   x", 13), ("  +build |   x", 11), ("   web │   x", 11), ("till>   x", 6)]
        {
            assert_eq!(quote(text.as_bytes()), Some(length), "{text}");
        }
        for text in ["x", "", "    ", "|", "|x", "> x", "# x", "E x", "error: x", "==> Fetching: x", "==> error: x", "till>x", "error> x"] {
            assert_eq!(quote(text.as_bytes()), None, "{text}");
        }
        for (head, line, part) in [
            ("    x", "      y", Some("  y")),
            ("    x", "", Some("")),
            ("    x", "  ", Some("")),
            ("    x", "  y", None),
            ("| x", "|", Some("")),
            ("| x", "y", None),
        ] {
            let head = Line::new(Default::default(), head.as_bytes(), Default::default());
            let lead_in = LeadIn::quoting(&head, quote(head.text).unwrap());
            assert_eq!(lead_in.strip(line.as_bytes()), part.map(str::as_bytes), "{line}");
            assert!(!lead_in.is_other(line.as_bytes()));
        }
    }

    #[test]
    fn indentation_is_the_texts() {
        let lead_in = LeadIn::new(b"#12 0.780       ").unwrap();
        assert_eq!(lead_in.strip(b"#12 0.790     [end of output]"), Some(&b"    [end of output]"[..]));
        assert_eq!(lead_in.strip(b"#12 0.820 error: x"), Some(&b"error: x"[..]));
    }

    #[test]
    fn lines_without_it() {
        for (prefix, line) in [("[web] ", "[db] x"), ("#12 3.4 ", "#13 3.5 x"), ("app[1]: ", "  File"), ("[web] ", "")] {
            assert_eq!(LeadIn::new(prefix.as_bytes()).unwrap().strip(line.as_bytes()), None, "{line}");
        }
        for text in ["    ", "", "  [cause]: ", "Unhandled ", "error: "] {
            assert!(LeadIn::new(text.as_bytes()).is_none(), "{text}");
        }
    }
}
