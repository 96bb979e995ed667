//! Invariants 1 and 10: what the core may use, the direction of
//! dependencies, and that no code names a rule. Checked on the sources.

use std::path::{Path, PathBuf};

use crate::support::usual;

/// Returns the program text of every file below `folder`: without
/// comments, strings that span lines, and what follows `#[cfg(test)]`.
fn program(folder: &str) -> Vec<(PathBuf, String)> {
    let mut files = Vec::new();
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(folder), &mut files);
    assert!(!files.is_empty(), "{folder}");
    files.into_iter().filter(|path| !is_test(path)).map(|path| (path.clone(), stripped(&std::fs::read_to_string(&path).unwrap()))).collect()
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

fn stripped(text: &str) -> String {
    let program = text.split("\n#[cfg(test)]\nmod ").next().unwrap_or_default();
    let code = |line: &str| line.split("//").next().unwrap_or_default().to_owned();
    program.lines().map(code).collect::<Vec<_>>().join("\n")
}

/// Returns lines of the program text in `folder` that `forbidden` rejects.
fn offences(folder: &str, forbidden: impl Fn(&str) -> bool) -> Vec<String> {
    offences_in(folder, |_, line| forbidden(line))
}

/// The same; `forbidden` is also given how many `super::` lead from the file to the root of the crate.
fn offences_in(folder: &str, forbidden: impl Fn(usize, &str) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    for (path, text) in program(folder) {
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
        none(offences(folder, |line| words.iter().any(|word| line.contains(word) && !line.contains("b\""))));
    }
}

#[test]
fn invariant_1_the_core_cannot_fail() {
    // `expect` is allowed, as its message states a reason; `panic!` and the like are not.
    let words = [".unwrap()", "panic!(", "todo!(", "unimplemented!(", "unreachable!(", "process::exit"];
    none(offences("core", |line| words.iter().any(|word| line.contains(word) && !line.contains("b\""))));
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
    none(offences_in(folder, |depth, line| from_root(depth, line).into_iter().any(|rest| !is_allowed(rest))));
}

#[test]
fn the_root_is_found_by_either_path() {
    let root = Path::new("/x/src");
    assert_eq!([depth(&root.join("core/a.rs")), depth(&root.join("core/a/mod.rs")), depth(&root.join("words.rs"))], [2, 2, 1]);
    assert_eq!(from_root(2, "use super::super::sinks::x;"), ["sinks::x;"]);
    assert_eq!(from_root(2, "use super::event::x; use crate::words;"), ["words;"]);
}

#[test]
fn invariant_1_dependencies_point_one_way() {
    imports_only("words.rs", &[]);
    imports_only("locks.rs", &[]);
    imports_only("pem.rs", &[]);
    imports_only("socket_file.rs", &[]);
    imports_only("rules", &["rules", "words"]);
    imports_only("core", &["core", "rules", "words"]);
    imports_only("delivery", &["core", "words"]);
    imports_only("telemetry", &["telemetry", "words", "socket_file"]);
    imports_only("sinks", &["sinks", "delivery", "core", "rules", "words", "locks", "config", "telemetry", "pem"]);
    imports_only("sources", &["sources", "delivery", "core", "rules", "words", "config", "telemetry", "pem", "socket_file"]);
    imports_only("state", &["state", "delivery", "core", "words", "locks", "telemetry"]);
    none(offences("sinks", |line| line.contains("sources::")));
    none(offences("sources", |line| line.contains("sinks::")));
}

#[test]
fn invariant_10_no_rule_is_named_in_the_code() {
    let engine = usual();
    let ids: Vec<String> =
        engine.rules.entries.iter().map(|entry| &entry.id).chain(engine.rules.cancels.iter().map(|cancel| &cancel.id)).map(|id| format!("\"{id}\"")).collect();
    assert!(ids.len() > 100);
    none(offences("", |line| ids.iter().any(|id| line.contains(id.as_str()))));
}
