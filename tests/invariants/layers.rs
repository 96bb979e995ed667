//! Invariants 1 and 10: what the core may use, the direction of
//! dependencies, and that no code names a rule. Checked on the sources.

use std::path::{Path, PathBuf};

use crate::support::usual;

/// What of a program is looked at; comments and tests never are.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    /// Everything but literals.
    Code,
    /// Literals, too.
    CodeAndLiterals,
}

/// Returns the program text of every file below `folder`: without
/// comments, and without what follows `#[cfg(test)]`.
fn program(folder: &str, part: Part) -> Vec<(PathBuf, String)> {
    let mut files = Vec::new();
    collect(&source().join(folder), &mut files);
    assert!(!files.is_empty(), "{folder}");
    files.into_iter().filter(|path| !is_test(path)).map(|path| (path.clone(), stripped(&std::fs::read_to_string(&path).unwrap(), part))).collect()
}

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) {
    if path.is_dir() {
        std::fs::read_dir(path).unwrap().for_each(|entry| collect(&entry.unwrap().path(), files));
    } else if path.extension().is_some_and(|extension| extension == "rs") {
        files.push(path.to_path_buf());
    }
}

fn is_test(path: &Path) -> bool {
    let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
    name.ends_with("_tests") || path.iter().any(|part| part == "tests" || part == "tests.rs")
}

/// Leaves a space for each stretch that is left out, and its line ends, so that lines keep their numbers.
fn stripped(text: &str, part: Part) -> String {
    let (mut program, mut rest) = (String::new(), text);
    while !rest.is_empty() {
        let skipped = comment(rest).or_else(|| literal(rest).filter(|_| part == Part::Code));
        let (piece, next) = rest.split_at(skipped.or_else(|| literal(rest)).unwrap_or_else(|| token(rest)));
        match skipped {
            Some(_) => program.extend([' '].into_iter().chain(piece.chars().filter(|c| *c == '\n'))),
            None => program.push_str(piece),
        }
        rest = next;
    }
    program.split("\n#[cfg(test)]\nmod ").next().unwrap_or_default().to_owned()
}

/// Returns the length of the comment that the text begins with.
fn comment(text: &str) -> Option<usize> {
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    text.strip_prefix("/*")?;
    let (mut depth, mut at) = (1, 2);
    while depth > 0 && at < text.len() {
        let rest = &text.as_bytes()[at..];
        let (step, change) = if rest.starts_with(b"/*") { (2, 1) } else { (if rest.starts_with(b"*/") { 2 } else { 1 }, -i32::from(rest.starts_with(b"*/"))) };
        (at, depth) = (at + step, depth + change);
    }
    Some(at)
}

/// Returns the length of the string or character that the text begins with. A lifetime is neither.
fn literal(text: &str) -> Option<usize> {
    let rest = text.strip_prefix(['b', 'c']).unwrap_or(text);
    let head = text.len() - rest.len();
    if let Some(raw) = rest.strip_prefix('r') {
        let hashes = raw.bytes().take_while(|byte| *byte == b'#').count();
        let inside = raw[hashes..].strip_prefix('"')?;
        let end = format!("\"{}", "#".repeat(hashes));
        return Some(text.len() - inside.len() + inside.find(&end)? + end.len());
    }
    let quote = rest.chars().next().filter(|c| *c == '"' || *c == '\'')?;
    let mut chars = rest.char_indices().skip(1);
    let is_lifetime = quote == '\'' && !rest[1..].starts_with('\\') && rest.chars().nth(2) != Some('\'');
    while let Some((at, c)) = chars.next().filter(|_| !is_lifetime) {
        match c {
            '\\' => drop(chars.next()),
            _ if c == quote => return Some(head + at + 1),
            _ => {}
        }
    }
    None
}

/// Returns the length of the word or of the other character that the text begins with. (A word's end is no literal's `b` or `r`.)
fn token(text: &str) -> usize {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    match text.find(|c| !is_word(c)).unwrap_or(text.len()) {
        0 => text.chars().next().map_or(0, char::len_utf8),
        word => word,
    }
}

#[test]
fn comments_and_literals_are_told_from_code() {
    let text = r###"a("//"); // b "c"
let d = b"x\"y" /* e /* f */ g */ + r#"h " // i"# + '"' + 'j + b'\'' + "\\" + nob"k";
l
#[cfg(test)]
mod tests"###;
    assert_eq!(stripped(text, Part::Code), "a( );  \nlet d =     +   +   + 'j +   +   + nob ;\nl");
    assert_eq!(stripped(text, Part::CodeAndLiterals), "a(\"//\");  \nlet d = b\"x\\\"y\"   + r#\"h \" // i\"# + '\"' + 'j + b'\\'' + \"\\\\\" + nob\"k\";\nl");
    assert_eq!(stripped("\"two\nlines\" x\n/*\n*/y", Part::Code), " \n x\n \ny", "lines keep their numbers");
    // So that a test module is cut, and nothing else, the cut is made in the stripped text.
    assert_eq!(stripped("\"\n#[cfg(test)]\nmod \" x", Part::Code), " \n\n x");
}

/// Returns lines of the program text in `folder` that `forbidden` rejects.
fn offences(folder: &str, part: Part, forbidden: impl Fn(&str) -> bool) -> Vec<String> {
    offences_in(folder, part, |_, line| forbidden(line))
}

/// The same; `forbidden` is also given how many `super::` lead from the file to the root of the crate.
fn offences_in(folder: &str, part: Part, forbidden: impl Fn(usize, &str) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    for (path, text) in program(folder, part) {
        let depth = depth(&path);
        let lines = text.lines().enumerate().filter(|(_, line)| forbidden(depth, line));
        found.extend(lines.map(|(n, line)| format!("{}:{}: {}", path.display(), n + 1, line.trim())));
    }
    found
}

fn depth(path: &Path) -> usize {
    let parts = path.iter().skip_while(|part| *part != "src").skip(1).count();
    if path.ends_with("mod.rs") { parts - 1 } else { parts }
}

fn none(found: Vec<String>) {
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

#[test]
fn invariant_1_the_core_knows_no_files_no_clock_no_threads_and_no_logger() {
    let words = [
        "tokio",
        "notify",
        "std::fs",
        "std::env",
        "std::io",
        "std::net",
        "std::process",
        "std::thread",
        "Instant",
        "SystemTime",
        "Zoned::now",
        "Timestamp::now",
        "tracing::",
        "log::",
        "println!",
        "print!(",
        "dbg!",
        "async fn",
        "async {",
        "async move",
        ".await",
        "rand::",
        "static mut",
    ];
    for folder in ["core", "rules", "words.rs"] {
        none(offences(folder, Part::Code, |line| words.iter().any(|word| line.contains(word))));
    }
}

#[test]
fn invariant_1_the_core_cannot_fail() {
    // `expect` is allowed, as its message states a reason; `panic!` and the like are not.
    let words = [".unwrap()", "panic!(", "todo!(", "unimplemented!(", "unreachable!(", "process::exit"];
    none(offences("core", Part::Code, |line| words.iter().any(|word| line.contains(word))));
}

/// Returns what follows each path to the root of the crate: `crate::`, or as many `super::` as lead there.
fn from_root(depth: usize, line: &str) -> Vec<&str> {
    let supers = "super::".repeat(depth);
    let of = |root: &str| line.match_indices(root).map(|(at, _)| &line[at + root.len()..]).collect::<Vec<_>>();
    [of("crate::"), of(&supers)].concat()
}

/// Checks that imports of `folder` name only these modules.
fn imports_only(folder: &str, allowed: &[&str]) {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let is_allowed = |rest: &str| allowed.iter().any(|name| rest.strip_prefix(name).is_some_and(|rest| !rest.starts_with(is_word)));
    none(offences_in(folder, Part::Code, |depth, line| from_root(depth, line).into_iter().any(|rest| !is_allowed(rest))));
}

#[test]
fn the_root_is_found_by_either_path() {
    let root = Path::new("/x/src");
    assert_eq!([depth(&root.join("core/a.rs")), depth(&root.join("core/a/mod.rs")), depth(&root.join("words.rs"))], [2, 2, 1]);
    assert_eq!(from_root(2, "use super::super::sinks::x;"), ["sinks::x;"]);
    assert_eq!(from_root(2, "use super::event::x; use crate::words;"), ["words;"]);
}

/// For each module, what it may import besides itself; each module comes after those that it imports.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("words", &[]),
    ("locks", &[]),
    ("pem", &[]),
    ("socket_file", &[]),
    ("hook", &[]),
    ("diag", &["words"]),
    ("telemetry", &["words", "socket_file"]),
    ("rules", &["words"]),
    ("core", &["rules", "words"]),
    ("examples", &["core", "rules"]),
    ("json", &["core"]),
    ("config", &["core", "diag", "words"]),
    ("delivery", &["core", "words"]),
    ("verdict", &["delivery", "core", "json"]),
    ("sinks", &["delivery", "core", "words", "locks", "config", "telemetry", "pem", "json"]),
    ("sources", &["delivery", "core", "rules", "words", "config", "telemetry", "pem", "socket_file"]),
    ("state", &["delivery", "core", "words", "locks", "telemetry"]),
    ("digest", &["verdict", "sinks", "core", "words", "json"]),
    ("memory", &["state", "sources", "sinks", "delivery", "core"]),
    ("exec", &["digest", "verdict", "memory", "hook", "state", "sources", "sinks", "delivery", "config", "core"]),
    ("daemon", &["hook", "state", "sources", "sinks", "delivery", "telemetry", "config", "core"]),
];

#[test]
fn invariant_1_dependencies_point_one_way() {
    for (at, (module, allowed)) in MAY_IMPORT.iter().enumerate() {
        assert!(allowed.iter().all(|name| MAY_IMPORT[..at].iter().any(|(earlier, _)| earlier == name)), "{module}: not one way");
        let file = format!("{module}.rs");
        let place = if source().join(&file).exists() { &file } else { *module };
        imports_only(place, &[&[*module], *allowed].concat());
    }
}

#[test]
fn every_module_but_the_command_line_has_a_rule() {
    let known = |name: &str| ["main", "lib", "build", "cli"].contains(&name) || MAY_IMPORT.iter().any(|(module, _)| *module == name);
    for entry in std::fs::read_dir(source()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap().to_owned();
        assert!(known(&name), "{name}: say in MAY_IMPORT what it may import");
    }
}

#[test]
fn invariant_10_no_rule_is_named_in_the_code() {
    let engine = usual();
    let ids: Vec<String> =
        engine.rules.entries.iter().map(|entry| &entry.id).chain(engine.rules.cancels.iter().map(|cancel| &cancel.id)).map(|id| format!("\"{id}\"")).collect();
    assert!(ids.len() > 100);
    none(offences("", Part::CodeAndLiterals, |line| ids.iter().any(|id| line.contains(id.as_str()))));
}
