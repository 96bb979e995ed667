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
    let mut found = Vec::new();
    for (path, text) in program(folder) {
        found.extend(text.lines().enumerate().filter(|(_, line)| forbidden(line)).map(|(n, line)| format!("{}:{}: {}", path.display(), n + 1, line.trim())));
    }
    found
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

/// Checks that `crate::` and `super::super::` imports of `folder` name only these modules.
fn imports_only(folder: &str, allowed: &[&str]) {
    let outside = |line: &str| {
        let names = line.match_indices("crate::").map(|(at, _)| &line[at + "crate::".len()..]);
        names
            .into_iter()
            .any(|rest| !allowed.iter().any(|name| rest.strip_prefix(name).is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))))
    };
    none(offences(folder, outside));
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
