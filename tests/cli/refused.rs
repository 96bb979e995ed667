//! All that keeps `siftd run` from starting is said at once: whoever mends one thing need not come back for the next.

use super::Folder;

fn source(name: &str, rest: &str) -> String {
    format!("[[source]]\nname = \"{name}\"\n{rest}\n")
}

fn sink(name: &str, path: &str) -> String {
    format!("[[sink]]\nname = \"{name}\"\ntype = \"file\"\npath = \"{path}\"\n")
}

/// Fails unless the program has said these things, each as a message of its own, in this order.
#[track_caller]
fn all_said(err: &str, said: &[&str]) {
    let at: Vec<Option<usize>> = said.iter().map(|said| err.find(&format!("siftd: {said}"))).collect();
    assert!(at.is_sorted() && at.iter().all(Option::is_some), "{at:?} {err}");
}

#[test]
fn run_says_all_that_is_wrong_with_sources_and_sinks() {
    let folder = Folder::new();
    let sources = source("c", "type = \"command\"\nargv = [\"no-such-program\"]") + &source("u", "type = \"unix\"\npath = \"none/a.sock\"");
    folder.write("a.toml", format!("state_dir = \"a.toml\"\n{sources}{}{}", sink("deep", "none/out.ndjson"), sink("flat", ".")));
    let said = ["sink deep: there is no folder", "sink flat: . is a folder", "state folder a.toml: ", "source \"c\": ", "source \"u\": "];
    for words in [&["run", "--config", "a.toml"][..], &["run", "--dry-run", "--config", "a.toml"]] {
        let done = folder.siftd(words).ended(2);
        assert!(done.out().is_empty(), "{}", done.out());
        all_said(&done.err(), &said);
    }
    let err = folder.siftd(["run", "--file", "[a.log", "--file", "b.log", "--file", "c{.log"]).ended(2).err();
    all_said(&err, &["--file [a.log: ", "--file c{.log: "]);
}

/// These show only when the sources and sinks begin.
#[test]
fn run_says_all_that_cannot_begin() {
    let folder = Folder::new();
    let sources = source("c", "type = \"command\"\nargv = [\"no-such-program\"]") + &source("u", "type = \"unix\"\npath = \"none/a.sock\"");
    folder.write("a.toml", format!("state_dir = \"st\"\n{sources}"));
    all_said(&folder.siftd(["run", "--config", "a.toml"]).ended(2).err(), &["source \"c\": ", "source \"u\": "]);
    let files = source("f", "type = \"file\"\ninclude = [\"*.log\"]");
    folder.write("a.toml", format!("state_dir = \"st\"\n{files}{}{}", sink("one", "/proc/one"), sink("two", "/proc/two")));
    all_said(&folder.siftd(["run", "--config", "a.toml"]).ended(2).err(), &["sink /proc/one: ", "sink /proc/two: "]);
}
