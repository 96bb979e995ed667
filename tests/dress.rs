//! What surrounds the lines of an output changes no error: blanks at their ends, line ends of another system, the stamp
//! of a CI system, the name of a container. Changes each line of every fixture so, and compares the events with those
//! of the fixture as it is. The fixtures that come out otherwise are listed in a file and compared exactly: a new one
//! fails, and so does one that has been mended (`UPDATE_EXPECT=1` rewrites the file).
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use siftd::core::engine::{Engine, Limits};
use siftd::core::event::{Event, Timestamp};
use siftd::core::extract::Origin;
use siftd::core::pipeline::Stream;
use siftd::rules::RuleSet;

/// 2026-11-20T14:00:00Z: shortly after the newest of the logs, whose dates may lack a year.
const NOW: Timestamp = Timestamp(1_795_183_200_000_000);
/// What comes out otherwise: mostly an output that has such stamps of its own.
const FAULTS: &str = "tests/dress.txt";

/// What is put before and behind each line.
struct Dress {
    name: &'static str,
    before: &'static str,
    behind: &'static str,
}

const DRESSES: &[Dress] = &[
    Dress { name: "blank", before: "", behind: " " },
    Dress { name: "blanks", before: "", behind: "  " },
    Dress { name: "tab", before: "", behind: "\t" },
    Dress { name: "crlf", before: "", behind: "\r" },
    Dress { name: "actions", before: "2026-11-20T10:00:00.1234567Z ", behind: "" },
    Dress { name: "clock", before: "12:01:02 ", behind: "" },
    Dress { name: "colour", before: "\u{1b}[31m", behind: "\u{1b}[0m" },
    Dress { name: "compose", before: "web-1  | ", behind: "" },
    Dress { name: "cri", before: "2026-11-20T10:00:00.123456789Z stdout F ", behind: "" },
    Dress { name: "gitlab", before: "2026-11-20T10:00:00.123456Z 00O ", behind: "" },
    Dress { name: "harness", before: "[task 2026-11-20T10:00:00.123Z] 12:01:02     INFO -  ", behind: "" },
    Dress { name: "jenkins", before: "[2026-11-20T10:00:00.123Z] ", behind: "" },
    Dress { name: "journal", before: "Nov 20 10:00:00 host unit[12]: ", behind: "" },
    Dress { name: "kubectl", before: "[pod/x-1/app] ", behind: "" },
    Dress { name: "named", before: "[web] ", behind: "" },
    Dress { name: "worker", before: "[worker 3] ", behind: "" },
    Dress { name: "zuul", before: "2026-11-20 10:00:00.123456 | ", behind: "" },
];

/// Prompts of a shell, between an output and the next one.
const PROMPTS: [(&str, &str); 5] = [
    ("prompt", "$ make\n"),
    ("prompt-of-host", "ann@web-1:~/shop$ make\n"),
    ("prompt-of-root", "root@1f2e:/app# make\n"),
    ("prompt-of-zsh", "ann@web-1 shop % make\n"),
    ("prompt-of-powershell", "PS C:\\shop> make\n"),
];

#[test]
fn what_surrounds_the_lines_changes_no_error() {
    let engine = Arc::new(Engine::new(RuleSet::compiled(), Limits::default()));
    let cases = cases();
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let found: BTreeSet<String> = std::thread::scope(|scope| {
        let engine = &engine;
        let next: Vec<PathBuf> = cases.iter().skip(1).chain(&cases[..1]).cloned().collect();
        let pairs: Vec<(&PathBuf, PathBuf)> = cases.iter().zip(next).collect();
        let parts: Vec<_> =
            pairs.chunks(pairs.len().div_ceil(workers)).map(|part| part.to_vec()).map(|part| scope.spawn(move || faults(engine, &part))).collect();
        parts.into_iter().flat_map(|part| part.join().unwrap()).collect()
    });
    let listed: String = found.iter().map(|fault| format!("{fault}\n")).collect();
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(FAULTS, &listed).unwrap();
    }
    let known: BTreeSet<String> = fs::read_to_string(FAULTS).unwrap_or_default().lines().map(str::to_owned).collect();
    let new: Vec<_> = found.difference(&known).collect();
    let mended: Vec<_> = known.difference(&found).collect();
    assert!(new.is_empty() && mended.is_empty(), "new: {new:#?}\nmended: {mended:#?}");
}

/// Returns the name of each dress with the cases that come out otherwise in it, and of each prompt with
/// those before it that lose an error, or of whose followers one is lost.
fn faults(engine: &Arc<Engine>, pairs: &[(&PathBuf, PathBuf)]) -> Vec<String> {
    let mut faults = Vec::new();
    for (case, next) in pairs {
        let input = read(case);
        let plain = events(engine, &input);
        let name = case.strip_prefix(root()).unwrap().display();
        let differing = DRESSES.iter().filter(|dress| events(engine, &dress.put_on(&input)) != plain);
        faults.extend(differing.map(|dress| format!("{} {name}", dress.name)));
        let behind = read(next);
        for (prompt, line) in PROMPTS {
            let first = [&input, line.as_bytes()].concat();
            let count = memchr::memchr_iter(b'\n', &first).count() as u64;
            let starts: BTreeSet<u64> = starts_of(engine, &[first, behind.clone()].concat(), 0).collect();
            let is_lost = starts_of(engine, &input, 0).chain(starts_of(engine, &behind, count)).any(|start| !starts.contains(&start));
            faults.extend(is_lost.then(|| format!("{prompt} {name}")));
        }
    }
    faults
}

impl Dress {
    fn put_on(&self, input: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        for line in input.split_inclusive(|byte| *byte == b'\n') {
            let (text, end): (&[u8], &[u8]) = line.strip_suffix(b"\n").map_or((line, b""), |text| (text, b"\n"));
            [self.before.as_bytes(), text, self.behind.as_bytes(), end].iter().for_each(|part| out.extend_from_slice(part));
        }
        out
    }
}

fn scanned(engine: &Arc<Engine>, input: &[u8]) -> Vec<Event> {
    let (mut stream, mut out) = (Stream::new(Arc::clone(engine), Origin::default()).of_finished(), Vec::new());
    stream.push(input, NOW, &mut out);
    stream.finish(NOW, &mut out);
    out
}

/// Returns what each error of an output is, and which lines it has.
fn events(engine: &Arc<Engine>, input: &[u8]) -> Vec<String> {
    let essence = |event: &Event| format!("{}-{}.{} {} {:?} {}", event.line_num, event.line_end, event.inner, event.rule, event.category, event.text);
    scanned(engine, input).iter().map(essence).collect()
}

/// Returns the lines at which the errors of an output begin, counted from `first`.
fn starts_of(engine: &Arc<Engine>, input: &[u8], first: u64) -> impl Iterator<Item = u64> + use<> {
    scanned(engine, input).into_iter().map(move |event| first + event.line_num)
}

/// Returns the output of a case, with its last line ended.
fn read(case: &Path) -> Vec<u8> {
    let mut input = fs::read(case.join("input.log")).unwrap();
    if input.last().is_some_and(|byte| *byte != b'\n') {
        input.push(b'\n');
    }
    input
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")
}

/// Returns the folders with an `input.log`, in order. UTF-16 is no dress for single bytes.
fn cases() -> Vec<PathBuf> {
    let folders = |of: PathBuf| fs::read_dir(of).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
    let is_case = |case: &PathBuf| fs::read(case.join("input.log")).is_ok_and(|input| !input.starts_with(b"\xff\xfe") && !input.starts_with(b"\xfe\xff"));
    let mut found: Vec<PathBuf> = folders(root()).flat_map(folders).filter(is_case).collect();
    found.sort();
    assert!(found.len() > 100, "only {} cases", found.len());
    found
}
