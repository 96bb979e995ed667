//! Runs the sessions of a page in a folder of their own, with bash and the built binary.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use regex::Regex;

/// Separates the outputs of two commands.
const MARK: &str = "\u{1e}";

/// A folder with copies of the files that the commands read.
pub struct Session {
    folder: tempfile::TempDir,
}

impl Session {
    pub fn new(root: &Path) -> Self {
        let session = Self { folder: tempfile::tempdir().unwrap() };
        for name in ["fixtures", "config"] {
            copy(&root.join(name), &session.folder.path().join(name));
        }
        fs::create_dir(session.folder.path().join("bin")).unwrap();
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_siftd"), session.folder.path().join("bin/siftd")).unwrap();
        session
    }

    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.folder.path().join(name), format!("{text}\n")).unwrap();
    }

    /// Returns what a script prints on stdout and stderr.
    pub fn output(&self, script: &str) -> String {
        let bin = self.folder.path().join("bin");
        let path = std::env::join_paths(std::iter::once(bin).chain(std::env::split_paths(&std::env::var_os("PATH").unwrap()))).unwrap();
        // A session that waits for something that never happens fails; nothing here takes that long.
        let mut command = Command::new("timeout");
        command.args(["300", "bash", "-c", &format!("exec 2>&1\n{script}")]).current_dir(self.folder.path());
        command.env("PATH", path).env("HOME", self.folder.path()).env("LC_ALL", "C.UTF-8").env_remove("SIFTD_LOG").env_remove("BASH_ENV");
        let output = command.stdin(Stdio::null()).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a session and returns its lines with the new output.
    /// Output that still matches the old lines leaves them unchanged.
    pub fn play(&self, lines: &[String]) -> Vec<String> {
        let mut commands: Vec<(&String, &[String])> = Vec::new();
        for (number, line) in lines.iter().enumerate() {
            if line.starts_with("$ ") {
                let rest = &lines[number + 1..];
                let end = rest.iter().position(|line| line.starts_with("$ ")).unwrap_or(rest.len());
                commands.push((line, &rest[..end]));
            }
        }
        // Preserves the status of a command, which the next one may ask for.
        let script: Vec<String> = commands.iter().map(|(line, _)| format!("{}\nstatus=$?; printf '{MARK}'; (exit $status)", as_run(&line[2..]))).collect();
        let output = self.output(&script.join("\n"));
        let outputs: Vec<&str> = output.split(MARK).collect();
        assert_eq!(outputs.len(), commands.len() + 1, "{output}");
        let mut played = Vec::new();
        for ((line, expected), got) in commands.iter().zip(outputs) {
            played.push((*line).clone());
            let mut got: Vec<String> = got.lines().map(neutral).collect();
            while got.last().is_some_and(String::is_empty) {
                got.pop();
            }
            played.extend(recorded(expected, &got));
        }
        played
    }
}

/// Replaces `cargo run` by the binary that is already built, as if on a terminal, where `scan` uses the format `pretty`.
fn as_run(command: &str) -> String {
    match command.strip_prefix("cargo run --release -- scan ") {
        Some(args) => format!("siftd scan --format pretty {args}"),
        None => command.to_owned(),
    }
}

/// Returns the old lines if they still match; otherwise the new ones, shortened like the old ones.
fn recorded(expected: &[String], got: &[String]) -> Vec<String> {
    if holds(expected, got) {
        return expected.to_vec();
    }
    let Some(gap) = expected.iter().position(|line| line == "...") else { return got.to_vec() };
    let tail = expected.len() - gap - 1;
    if got.len() <= gap + tail {
        return got.to_vec();
    }
    [&got[..gap], &["...".to_owned()], &got[got.len() - tail..]].concat()
}

fn holds(expected: &[String], got: &[String]) -> bool {
    match expected.split_first() {
        None => got.is_empty(),
        Some((line, rest)) if line == "..." => (0..=got.len()).any(|skip| holds(rest, &got[skip..])),
        Some((line, rest)) => got.first().is_some_and(|first| without_id(line) == without_id(first)) && holds(rest, &got[1..]),
    }
}

/// Returns a line without the parts that differ between times and machines.
fn neutral(line: &str) -> String {
    let changes = [
        (r#""(timestamp|observed_at)":"[^"]*""#, r#""$1":"2026-11-20T14:00:00.000000Z""#),
        (r#""host":"[^"]*""#, r#""host":"build-1""#),
        (r"\b\d+\.\d s$", "0.0 s"),
        (r#""duration_ms":\d+"#, r#""duration_ms":5"#),
    ];
    changes.iter().fold(line.to_owned(), |line, (what, by)| Regex::new(what).unwrap().replace_all(&line, *by).into_owned())
}

/// Removes the ids of `run`: they depend on the file, which differs in each session.
fn without_id(line: &str) -> String {
    if line.contains(r#""name":"run""#) { Regex::new(r#""id":"[0-9a-f]{32}""#).unwrap().replace(line, "").into_owned() } else { line.to_owned() }
}

/// Returns the first lines that differ.
pub fn difference(page: &str, before: &str, after: &str) -> String {
    let (before, after): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let same = before.iter().zip(&after).take_while(|(a, b)| a == b).count();
    let show = |lines: &[&str], sign: char| lines.iter().skip(same).take(12).map(|line| format!("{sign} {line}\n")).collect::<String>();
    format!("{page}:{}: the page says -, it is +\n{}{}", same + 1, show(&before, '-'), show(&after, '+'))
}

fn copy(from: &Path, to: &Path) {
    if from.is_dir() {
        fs::create_dir_all(to).unwrap();
        fs::read_dir(from).unwrap().map(|entry| entry.unwrap()).for_each(|entry| copy(&entry.path(), &to.join(entry.file_name())));
    } else {
        fs::copy(from, to).unwrap();
    }
}
