//! `siftd run`: what it follows, what it survives, and how it ends.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{Done, Folder, error, shown};

/// Far longer than any wait takes unless something is broken.
const DEADLINE: Duration = Duration::from_secs(20);

#[test]
fn a_file_in_the_place_of_the_state_folder_is_called_one() {
    let folder = Folder::new();
    folder.write("f", "");
    folder.write("a.log", error("boom"));
    for (state, said) in [("f", "state folder f: it is a file, no folder: name another"), ("f/st", "state folder f/st: f is a file, no folder: name another")] {
        let done = folder.siftd(["run", "--file", "a.log", "--state-dir", state]).ended(2);
        assert!(done.err().contains(said), "{}", done.err());
    }
}

/// A running siftd that writes to `out.ndjson`.
struct Running<'a> {
    folder: &'a Folder,
    child: Option<Child>,
}

impl<'a> Running<'a> {
    fn new(folder: &'a Folder, args: &[&str]) -> Self {
        Self::with_output(folder, "out.ndjson", args)
    }

    fn with_output(folder: &'a Folder, output: &str, args: &[&str]) -> Self {
        let child = folder.heedful(["run", "--output", output].iter().chain(args)).spawn().unwrap();
        Self { folder, child: Some(child) }
    }

    fn records(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.folder.path().join("out.ndjson")).unwrap_or_default();
        // The last line may be incomplete.
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Waits until exactly these events are written.
    #[track_caller]
    fn wait_for(&self, wanted: &[&str]) {
        let got = || self.records().iter().map(shown).collect::<Vec<_>>();
        until(|| got().len() >= wanted.len(), || format!("got {:?}, want {wanted:?}", got()));
        let mut sorted = got();
        sorted.sort();
        let mut wanted = wanted.to_vec();
        wanted.sort_unstable();
        assert_eq!(sorted, wanted);
    }

    /// Waits until this event is the last one written. The one before it may be in the file as well: if a file is deleted while a
    /// record is written to it, the record is written again into the next one.
    #[track_caller]
    fn wait_for_last(&self, wanted: &str) {
        let got = || self.records().iter().map(shown).collect::<Vec<_>>();
        until(|| got().last().is_some_and(|last| last == wanted), || format!("got {:?}, want {wanted}", got()));
        assert!(got().len() <= 2, "{:?}", got());
    }

    #[track_caller]
    fn end(mut self, signal: &str, code: i32) -> Done {
        let child = self.child.take().unwrap();
        let killed = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
        assert!(killed.success());
        Done::of(child).ended(code)
    }
}

impl Running<'_> {
    /// Waits for a run that ends because it has nothing more to do.
    #[track_caller]
    fn end_by_itself(mut self) -> Done {
        let child = std::cell::RefCell::new(self.child.as_mut().unwrap());
        until(|| child.borrow_mut().try_wait().unwrap().is_some(), || "it does not end".into());
        Done::of(self.child.take().unwrap()).ended(0)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

#[track_caller]
fn until(done: impl Fn() -> bool, state: impl Fn() -> String) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < DEADLINE, "{}", state());
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn append(folder: &Folder, name: &str, text: &str) {
    let mut file = OpenOptions::new().append(true).create(true).open(folder.path().join(name)).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

#[test]
fn follows_growth_and_later_files_and_ends_well() {
    // Without a configuration to reload, SIGHUP means that the terminal was closed.
    for signal in ["-TERM", "-INT", "-HUP"] {
        let folder = Folder::new();
        folder.write("a.log", error("old"));
        let running = Running::new(&folder, &["--file", "*.log", "--file", "sub/named.txt"]);
        running.wait_for(&["a.log:1 ERROR old"]);
        append(&folder, "a.log", &error("new"));
        folder.write("later.log", error("later"));
        folder.write("other.txt", error("not asked for"));
        folder.write("sub/named.txt", error("named"));
        running.wait_for(&["a.log:1 ERROR old", "a.log:2 ERROR new", "later.log:1 ERROR later", "sub/named.txt:1 ERROR named"]);
        // An unfinished line is drained, too.
        append(&folder, "a.log", error("unfinished").trim_end());
        let folder = running.folder;
        running.end(signal, 0);
        let text = fs::read_to_string(folder.path().join("out.ndjson")).unwrap();
        assert!(text.ends_with('\n') && text.lines().count() == 5 && text.contains("ERROR unfinished"), "{text}");
    }
}

/// A script ignores SIGINT for what it starts with `&`; a daemon can be ended with it all the same.
#[test]
fn in_the_background_of_a_script_an_interrupt_ends_it() {
    let folder = Folder::new();
    folder.write("a.log", error("old"));
    let start = "trap '' INT; exec \"$0\" run --file a.log --output out.ndjson";
    let child = folder.run("sh", ["-c", start, env!("CARGO_BIN_EXE_siftd")]).spawn().unwrap();
    let running = Running { folder: &folder, child: Some(child) };
    running.wait_for(&["a.log:1 ERROR old"]);
    running.end("-INT", 0);
}

/// It outlives its terminal, as `nohup` intends.
#[test]
fn under_nohup_a_closed_terminal_ends_nothing() {
    let folder = Folder::new();
    folder.write("a.log", error("old"));
    let siftd = env!("CARGO_BIN_EXE_siftd");
    let child = folder.run("nohup", [siftd, "run", "--file", "a.log", "--output", "out.ndjson"]).spawn().unwrap();
    let running = Running { folder: &folder, child: Some(child) };
    running.wait_for(&["a.log:1 ERROR old"]);
    let id = running.child.as_ref().unwrap().id().to_string();
    assert!(Command::new("kill").args(["-HUP", &id]).status().unwrap().success());
    append(&folder, "a.log", &error("new"));
    running.wait_for(&["a.log:1 ERROR old", "a.log:2 ERROR new"]);
    // The line before could have been read during a shutdown.
    append(&folder, "a.log", &error("newer"));
    running.wait_for(&["a.log:1 ERROR old", "a.log:2 ERROR new", "a.log:3 ERROR newer"]);
    running.end("-TERM", 0);
}

/// If its own log cannot be written, because the disk is full or the terminal gone, everything else still is.
#[test]
fn what_cannot_be_said_ends_nothing() {
    let folder = Folder::new();
    folder.write("a.log", error("boom"));
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let child = folder.command(["run", "--output", "out.ndjson", "--file", "a.log", "--file", "nothing*.log"]).stderr(full).spawn().unwrap();
    let running = Running { folder: &folder, child: Some(child) };
    running.wait_for(&["a.log:1 ERROR boom"]);
    running.end("-TERM", 0);
}

#[test]
fn survives_rotation_by_rename() {
    let folder = Folder::new();
    folder.write("a.log", error("one"));
    let running = Running::new(&folder, &["--file", "a.log"]);
    running.wait_for(&["a.log:1 ERROR one"]);
    append(&folder, "a.log", &error("two"));
    fs::rename(folder.path().join("a.log"), folder.path().join("a.log.1")).unwrap();
    append(&folder, "a.log.1", &error("three"));
    append(&folder, "a.log", &error("four"));
    running.wait_for(&["a.log:1 ERROR one", "a.log:2 ERROR two", "a.log:3 ERROR three", "a.log:1 ERROR four"]);
    // Writers that are slow to reopen still write to the old file.
    append(&folder, "a.log.1", &error("five"));
    running.wait_for(&["a.log:1 ERROR one", "a.log:2 ERROR two", "a.log:3 ERROR three", "a.log:1 ERROR four", "a.log:4 ERROR five"]);
    running.end("-TERM", 0);
}

#[test]
fn a_renamed_file_that_the_glob_also_matches_is_not_read_again() {
    let folder = Folder::new();
    folder.write("logs/a.log", error("one"));
    let running = Running::new(&folder, &["--file", "logs/*"]);
    running.wait_for(&["logs/a.log:1 ERROR one"]);
    fs::rename(folder.path().join("logs/a.log"), folder.path().join("logs/a.log.1")).unwrap();
    append(&folder, "logs/a.log", &error("two"));
    running.wait_for(&["logs/a.log:1 ERROR one", "logs/a.log:1 ERROR two"]);
    append(&folder, "logs/a.log", &error("three"));
    running.wait_for(&["logs/a.log:1 ERROR one", "logs/a.log:1 ERROR two", "logs/a.log:2 ERROR three"]);
    running.end("-TERM", 0);
}

#[test]
fn survives_truncation() {
    let folder = Folder::new();
    folder.write("a.log", error("a rather long first line"));
    let running = Running::new(&folder, &["--file", "a.log"]);
    running.wait_for(&["a.log:1 ERROR a rather long first line"]);
    folder.write("a.log", "");
    append(&folder, "a.log", &error("again"));
    running.wait_for(&["a.log:1 ERROR a rather long first line", "a.log:1 ERROR again"]);
    let ids: Vec<_> = running.records().iter().map(|record| record["id"].clone()).collect();
    assert_ne!(ids[0], ids[1], "the same place in another generation");
    running.end("-TERM", 0);
}

#[test]
fn trouble_is_said_the_others_go_on_and_exit_is_2() {
    let folder = Folder::new();
    folder.write("good.log", error("good"));
    folder.write("gone.log", error("gone"));
    fs::create_dir(folder.path().join("folder")).unwrap();
    std::os::unix::fs::symlink("loop", folder.path().join("loop")).unwrap();
    let running = Running::new(&folder, &["--file", "good.log", "--file", "folder", "--file", "gone.log", "--file", "loop", "--file", "never.log"]);
    running.wait_for(&["good.log:1 ERROR good", "gone.log:1 ERROR gone"]);
    fs::remove_file(folder.path().join("gone.log")).unwrap();
    append(&folder, "good.log", &error("still"));
    running.wait_for(&["good.log:1 ERROR good", "gone.log:1 ERROR gone", "good.log:2 ERROR still"]);
    let err = running.end("-TERM", 2).err();
    for said in ["folder: is a folder", "gone.log: has vanished", "loop: ", "never.log: is not there"] {
        assert!(err.contains(said), "{said} in {err}");
    }
}

/// Globs match files; a folder that has such a name, now or later, is ignored.
#[test]
fn a_folder_that_a_glob_matches_is_no_trouble() {
    let folder = Folder::new();
    folder.write("logs/a.log", error("one"));
    fs::create_dir(folder.at("logs/old.log")).unwrap();
    let running = Running::new(&folder, &["--file", "logs/*"]);
    running.wait_for(&["logs/a.log:1 ERROR one"]);
    fs::create_dir(folder.at("logs/new.log")).unwrap();
    fs::rename(folder.at("logs/old.log"), folder.at("logs/older.log")).unwrap();
    folder.write("logs/b.log", error("two"));
    running.wait_for(&["logs/a.log:1 ERROR one", "logs/b.log:1 ERROR two"]);
    assert_eq!(running.end("-TERM", 0).err(), "");
}

#[test]
fn only_a_folder_is_nothing_to_wait_for() {
    let folder = Folder::new();
    fs::create_dir(folder.path().join("folder")).unwrap();
    assert!(folder.siftd(["run", "--file", "folder"]).ended(2).err().contains("is a folder"));
}

#[test]
fn only_what_is_no_file_is_nothing_to_wait_for() {
    let folder = Folder::new();
    assert!(folder.run("mkfifo", [folder.at("pipe")]).status().unwrap().success());
    let done = folder.siftd(["run", "--file", "pipe", "--file", "/dev/null"]).ended(2);
    assert!(done.err().contains("pipe: is no regular file but a named pipe, which is read as stdin: siftd run < PIPE\n"), "{}", done.err());
    assert!(done.err().contains("/dev/null: is no regular file\n"), "{}", done.err());
    // What it says to do works.
    let script = format!("(echo '2026-01-01T00:00:00Z ERROR boom' > pipe &); {} run < pipe", crate::folder::siftd().display());
    let followed = Done(folder.run("sh", ["-c", &script]).output().unwrap()).ended(0);
    assert_eq!(followed.shown(), ["-:1 ERROR boom"]);
}

#[test]
fn a_position_before_the_end_of_what_was_read_is_explained() {
    let folder = Folder::new();
    let show = |text: &str, wanted: &str| {
        folder.write("a.log", text);
        folder.write("out.ndjson", "");
        let state = format!("state-{}", text.len());
        let running = Running::new(&folder, &["--file", "a.log", "--state-dir", &state]);
        running.wait_for(&["a.log:1 ERROR boom"]);
        running.end("-TERM", 0);
        let shown = folder.siftd(["state", "show", "a.log", "--state-dir", &state]).ended(0).out();
        assert!(shown.contains(wanted), "{wanted:?} in {shown}");
    };
    let text = error("boom");
    let size = text.len();
    show(&text, &format!("goes on at  byte 0, line 1: the last {size} bytes are read again, as an error in them may not be over; none is reported twice\n"));
    show(&(text + "fine\n"), &format!("goes on at  byte {}, line 3\n", size + 5));
}

#[test]
fn a_vanished_file_that_comes_back_is_no_trouble() {
    let folder = Folder::new();
    folder.write("a.log", error("one"));
    let running = Running::new(&folder, &["--file", "a.log"]);
    running.wait_for(&["a.log:1 ERROR one"]);
    fs::remove_file(folder.path().join("a.log")).unwrap();
    folder.write("a.log", error("two"));
    running.wait_for(&["a.log:1 ERROR one", "a.log:1 ERROR two"]);
    running.end("-TERM", 0);
}

#[test]
fn a_glob_follows_links_only_within_its_folder() {
    let folder = Folder::new();
    folder.write("secret.txt", error("secret"));
    folder.write("logs/real.txt", error("real"));
    std::os::unix::fs::symlink("../secret.txt", folder.path().join("logs/evil.log")).unwrap();
    std::os::unix::fs::symlink("real.txt", folder.path().join("logs/fine.log")).unwrap();
    std::os::unix::fs::symlink("secret.txt", folder.path().join("named.log")).unwrap();
    let running = Running::new(&folder, &["--file", "logs/*.log", "--file", "named.log"]);
    running.wait_for(&["logs/fine.log:1 ERROR real", "named.log:1 ERROR secret"]);
    assert!(running.end("-TERM", 0).err().contains("logs/evil.log: leads to "));
}

#[test]
fn stdin_is_followed_to_its_end() {
    let folder = Folder::new();
    let done = folder.piped(["run"], error("one") + "fine\n" + &error("two")).ended(0);
    assert_eq!(done.shown(), ["-:1 ERROR one", "-:3 ERROR two"]);
    assert_eq!(folder.piped(["run", "--file", "-", "--min-severity", "high"], error("one")).ended(0).out(), "");
}

/// Text longer than what may wait to be examined, without a line
/// end: it is cut as in a file, and the lines after it are read.
#[test]
fn long_lines_on_stdin_are_cut_and_keep_nobody_waiting() {
    let long = "x".repeat(400_000);
    let folder = Folder::new();
    let lines = [error("before"), format!("{long}\n").repeat(3), error(&"y".repeat(3 << 20)), error("behind"), long.repeat(6)];
    folder.write("in.log", lines.concat());
    for from_pipe in [false, true] {
        let (input, mut cat) = match from_pipe {
            false => (Stdio::from(fs::File::open(folder.at("in.log")).unwrap()), None),
            true => {
                let mut cat = Command::new("cat").arg(folder.at("in.log")).stdout(Stdio::piped()).spawn().unwrap();
                (Stdio::from(cat.stdout.take().unwrap()), Some(cat))
            }
        };
        let running = Running { folder: &folder, child: Some(folder.command(["run", "--output", "out.ndjson"]).stdin(input).spawn().unwrap()) };
        assert_eq!(running.end_by_itself().err(), "");
        cat.iter_mut().for_each(|cat| assert!(cat.wait().unwrap().success()));
        let records = folder.records("out.ndjson");
        let lines: Vec<_> = records.iter().map(|record| record["line_num"].as_u64().unwrap()).collect();
        assert_eq!(lines, [1, 5, 6]);
        assert_eq!(records[1]["truncated"], true);
        fs::remove_file(folder.at("out.ndjson")).unwrap();
    }
}

#[test]
fn a_pause_publishes_an_error_of_a_live_pipe() {
    let folder = Folder::new();
    let mut child = folder.command(["run", "--output", "out.ndjson"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    pipe.write_all(error("waits").as_bytes()).unwrap();
    let written = || fs::read_to_string(folder.path().join("out.ndjson")).unwrap_or_default();
    until(|| written().contains("ERROR waits"), written);
    drop(pipe);
    Done::of(child).ended(0);
    assert_eq!(written().lines().count(), 1);
}

#[test]
fn sources_and_sinks_of_a_configuration() {
    let folder = Folder::new();
    folder.write("logs/old.log", error("before"));
    folder.write("logs/not.log", error("excluded"));
    let path = folder.path().display();
    folder.write(
        "siftd.toml",
        format!(
            "state_dir = \"{path}/state\"\n[[source]]\nname = \"agent\"\ntype = \"file\"\ninclude = [\"{path}/logs/*.log\"]\nexclude = [\"{path}/logs/not.log\"]\nlabels = {{ team = \"shop\", key = \"password=hunter22\" }}\n\
             [[sink]]\nname = \"all\"\ntype = \"file\"\npath = \"{path}/all.ndjson\"\n\
             [[sink]]\nname = \"bad\"\ntype = \"file\"\npath = \"{path}/bad.ndjson\"\nmin_severity = \"blocking\"\n"
        ),
    );
    let child = folder.command(["run", "--config", "siftd.toml"]).spawn().unwrap();
    until(|| ["bad.ndjson", "all.ndjson"].iter().all(|name| folder.path().join(name).exists()), || "no sink".into());
    // `start_at = "end"` applies to what exists at the start. Whether a line is
    // written too early is unknown here, so lines are written until one is seen.
    let written = || fs::read_to_string(folder.path().join("all.ndjson")).unwrap();
    until(
        || {
            append(&folder, "logs/old.log", &error("after"));
            !written().is_empty()
        },
        written,
    );
    assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
    Done::of(child).ended(0);
    let text = written();
    assert!(
        !text.contains("\"text\":\"ERROR before")
            && !text.contains("excluded")
            && text.contains(&format!("\"path\":\"{path}/logs/old.log"))
            && text.contains("\"name\":\"agent\"")
            && text.contains(",\"labels\":{\"key\":\"")
            && text.contains("\"team\":\"shop\"}}\n")
            && !text.contains("hunter22"),
        "{text}"
    );
    assert_eq!(fs::read_to_string(folder.path().join("bad.ndjson")).unwrap(), "");
}

/// The input makes no difference: stdin as a source of a configuration has a state, and can be queried.
#[test]
fn stdin_of_a_configuration_keeps_its_state_and_answers() {
    let folder = Folder::new();
    let text = format!("state_dir = \"{0}/state\"\n[[source]]\nname = \"pipe\"\ntype = \"stdin\"\n", folder.path().display());
    folder.write("siftd.toml", text);
    let mut child = folder.command(["run", "--config", "siftd.toml", "--output", "out.ndjson"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let running = Running { folder: &folder, child: Some(child) };
    pipe.write_all(error("one").as_bytes()).unwrap();
    running.wait_for(&["-:1 ERROR one"]);
    assert_eq!(running.records()[0]["seen"]["status"], "new");
    let status = folder.siftd(["status", "--config", "siftd.toml"]).ended(0);
    assert!(status.out().contains("pipe") && status.out().contains("stdin"), "{}", status.out());
    drop(pipe);
    running.end_by_itself();
}

/// `siftd state` shows absolute paths, and `siftd status` those of the records.
#[test]
fn the_breaker_of_a_stream_has_its_file_in_whatever_way_it_is_named() {
    let folder = Folder::new();
    folder.write("ag/a.log", error("one"));
    folder.write("siftd.toml", "state_dir = \"st\"\n[[source]]\nname = \"a\"\ntype = \"file\"\ninclude = [\"ag/*.log\"]\nstart_at = \"beginning\"\n");
    let running = Running::new(&folder, &["--config", "siftd.toml"]);
    running.wait_for(&["ag/a.log:1 ERROR one"]);
    running.end("-TERM", 0);
    let whole = folder.at("ag/a.log").canonicalize().unwrap().display().to_string();
    let said = |path: &str| folder.siftd(["breaker", "status", "--stream", path, "--state-dir", "st"]).ended(0).out();
    assert!(said("ag/a.log").contains("ERROR one"), "{}", said("ag/a.log"));
    assert_eq!([said(&whole), said("./ag/a.log")], [said("ag/a.log"), said("ag/a.log")]);
}

/// Deleted by somebody who needs space: nothing more is written to a file that nobody can find.
#[test]
fn an_output_file_that_is_deleted_is_made_anew() {
    let folder = Folder::new();
    folder.write("a.log", error("one"));
    let running = Running::new(&folder, &["--file", "a.log"]);
    running.wait_for(&["a.log:1 ERROR one"]);
    fs::remove_file(folder.at("out.ndjson")).unwrap();
    append(&folder, "a.log", &error("two"));
    running.wait_for_last("a.log:2 ERROR two");
    // Nothing is written, but the file exists all the same.
    fs::remove_file(folder.at("out.ndjson")).unwrap();
    until(|| folder.at("out.ndjson").exists(), || "it does not come back".into());
    append(&folder, "a.log", &error("three"));
    running.wait_for_last("a.log:3 ERROR three");
    let err = running.end("-TERM", 0).err();
    assert_eq!(err.matches("out.ndjson: was deleted while siftd wrote to it; it goes on in a new file").count(), 2, "{err}");
}

#[test]
fn never_follows_its_own_output() {
    let folder = Folder::new();
    folder.write("a.log", error("one"));
    let running = Running::new(&folder, &["--file", "*"]);
    running.wait_for(&["a.log:1 ERROR one"]);
    append(&folder, "a.log", &error("two"));
    running.wait_for(&["a.log:1 ERROR one", "a.log:2 ERROR two"]);
    running.end("-TERM", 0);
}

#[test]
fn what_this_version_cannot_run_is_refused() {
    let folder = Folder::new();
    folder.write("tcp.toml", "[[source]]\nname = \"net\"\ntype = \"tcp\"\n");
    let refused = folder.piped(["run", "--config", "tcp.toml"], "").ended(2);
    assert!(!refused.err().is_empty());
    folder.write("http.toml", "[[sink]]\nname = \"net\"\ntype = \"http\"\n");
    folder.piped(["run", "--config", "http.toml"], "").ended(2);
}

/// `--mode` means the same as in `scan`.
#[test]
fn a_transcript_is_read_as_one_where_it_begins_unless_told_otherwise() {
    let folder = Folder::new();
    let record = r#"{"type":"user","sessionId":"s","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","is_error":true,"content":"String to replace not found"}]}}"#;
    let late = "all is well\n".repeat(100) + record + "\n";
    for (mode, input, calls) in [("auto", &format!("{record}\n"), 1), ("text", &format!("{record}\n"), 0), ("auto", &late, 0), ("records", &late, 1)] {
        let piped = folder.piped(["run", "--mode", mode], input).ended(0);
        let found = piped.records().iter().filter(|event| event["tool_call_id"] == "t1").count();
        assert_eq!(found, calls, "{mode}: {}", piped.out());
        folder.write("a.jsonl", input);
        let scanned = folder.siftd(["scan", "--mode", mode, "a.jsonl"]).ended(0);
        assert_eq!(scanned.records().iter().filter(|event| event["tool_call_id"] == "t1").count(), calls, "{mode}");
    }
}

/// `run` waits for bytes appended to a file: with an archive it would wait for ever without a message.
#[test]
fn what_is_no_log_is_left_out_and_said_once() {
    let folder = Folder::new();
    let (xz, zip) = (b"\xfd7zXZ\0\0\x04\xe6\xd6", b"PK\x03\x04\x14\0\x08\0");
    folder.write("named.xz", xz);
    folder.write("old.log.gz.1", b"\x1f\x8b\x08\0\0");
    folder.write("logs/a.log", error("one"));
    folder.write("logs/b.zip", zip);
    folder.write("logs/tool", b"\x7fELF\x02\x01\x01\0\0\x03\0>\0\nERROR: usage\0ERROR: two\0\n");
    let named = ["--file", "named.xz", "--file", "old.log.gz.1"];
    let dry = folder.siftd(["run", "--dry-run", "--file", "named.xz", "--file", "logs/*"]).ended(0).out();
    assert!(
        dry.contains("  named.xz  is compressed with xz") && dry.contains("  logs/tool  is a binary file") && dry.contains("  logs/a.log  from its beg"),
        "{dry}"
    );

    let running = Running::new(&folder, &["--file", "logs/*"]);
    running.wait_for(&["logs/a.log:1 ERROR one"]);
    // As with `xz`: the file exists before it holds anything.
    append(&folder, "logs/c.xz", "");
    append(&folder, "logs/a.log", &error("two"));
    running.wait_for(&["logs/a.log:1 ERROR one", "logs/a.log:2 ERROR two"]);
    folder.write("logs/c.xz", xz);
    fs::OpenOptions::new().append(true).open(folder.at("logs/c.xz")).unwrap().write_all(&error("no text").into_bytes()).unwrap();
    // A file that was left out and is rewritten as a log is read.
    folder.write("logs/b.zip", error("three"));
    append(&folder, "logs/a.log", &error("four"));
    running.wait_for(&["logs/a.log:1 ERROR one", "logs/a.log:2 ERROR two", "logs/b.zip:1 ERROR three", "logs/a.log:3 ERROR four"]);
    // A glob may also match what is no log, which is no fault.
    let said = running.end("-TERM", 0).err();
    for (name, why) in [("logs/b.zip", "b.zip | siftd run"), ("logs/c.xz", "c.xz | siftd run"), ("logs/tool", "is a binary file")] {
        let lines: Vec<_> = said.lines().filter(|line| line.contains(name)).collect();
        assert!(lines.len() == 1 && lines[0].contains(why), "{name}: {said}");
    }

    let running = Running::new(&folder, &[&named[..], &["--file", "logs/a.log"]].concat());
    append(&folder, "logs/a.log", &error("five"));
    until(|| running.records().iter().any(|record| shown(record).contains("five")), || "five".into());
    let said = running.end("-TERM", 2).err();
    assert!(said.contains("named.xz: is compressed with xz") && said.contains("old.log.gz.1: is compressed with gzip, and is read here only if"), "{said}");
}

/// As `scan` recognises them: by zeros, or by control characters of all kinds.
#[test]
fn bytes_that_were_drawn_by_lot_are_no_log() {
    let folder = Folder::new();
    let drawn: Vec<u8> = (0..5000_u64).map(|n| ((n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 29) as u8).collect();
    let mixed = [error("first").as_bytes(), &drawn].concat();
    for (name, bytes) in [("drawn", &drawn), ("mixed", &mixed)] {
        folder.write(&format!("logs/{name}"), bytes);
        let path = format!("logs/{name}");
        folder.siftd(["scan", &path]).ended(2);
        let done = Done(folder.command(["run"]).stdin(fs::File::open(folder.at(&path)).unwrap()).output().unwrap()).ended(2);
        assert!(done.err().contains("stdin: is a binary file and is not read") && done.bytes().is_empty(), "{name}: {}", done.err());
        folder.write("out.ndjson", "");
        folder.write("b.log", error("last"));
        for (file, code) in [(path.as_str(), 2), ("logs/*", 0)] {
            folder.write("out.ndjson", "");
            let running = Running::new(&folder, &["--file", file, "--file", "b.log"]);
            running.wait_for(&["b.log:1 ERROR last"]);
            let said = running.end("-TERM", code).err();
            assert!(said.contains(&format!("{path}: is a binary file")), "{said}");
        }
    }
}

/// A glob may match what is no log; only a file that was named is missed.
#[test]
fn what_a_glob_matches_besides_files_is_said_once_and_is_no_fault() {
    let folder = Folder::new();
    folder.write("logs/a.log", error("one"));
    folder.write("secret", error("two"));
    assert!(Command::new("mkfifo").arg(folder.at("logs/fifo.log")).arg(folder.at("logs/packed.log.gz")).status().unwrap().success());
    std::os::unix::fs::symlink("../secret", folder.at("logs/out.log")).unwrap();
    let globs = ["--file", "logs/*.log", "--file", "logs/*.gz"];
    let dry = folder.siftd([&["run", "--dry-run"][..], &globs].concat()).ended(0);
    assert!(dry.out().contains("source run: 1 file\n"), "{}", dry.out());
    let running = Running::new(&folder, &globs);
    running.wait_for(&["logs/a.log:1 ERROR one"]);
    append(&folder, "logs/a.log", &error("three"));
    running.wait_for(&["logs/a.log:1 ERROR one", "logs/a.log:2 ERROR three"]);
    let said = running.end("-TERM", 0).err();
    for (name, why) in [("fifo.log", "is no regular file"), ("packed.log.gz", "is no regular file"), ("out.log", "out of the folders of its source")] {
        let lines: Vec<_> = said.lines().filter(|line| line.contains(name)).collect();
        assert!(lines.len() == 1 && lines[0].contains(why), "{name}: {said}");
    }
    folder.write("out.ndjson", "");
    let running = Running::new(&folder, &["--file", "logs/fifo.log", "--file", "logs/a.log"]);
    running.wait_for(&["logs/a.log:1 ERROR one", "logs/a.log:2 ERROR three"]);
    assert!(running.end("-TERM", 2).err().contains("fifo.log: is no regular file"));
}

#[test]
fn stdin_is_unpacked_or_left_out_as_scan_does() {
    let folder = Folder::new();
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packer.write_all(error("packed").as_bytes()).unwrap();
    let packed = packer.finish().unwrap();
    assert_eq!(folder.piped(["run"], &packed).ended(0).shown(), ["-:1 ERROR packed"]);
    let said = folder.piped(["run"], b"\xfd7zXZ\0\0\x04\xe6\xd6").ended(2).err();
    assert!(said.contains("stdin: is compressed with xz, which is not read here: xz -dc FILE | siftd run"), "{said}");
    let said = folder.piped(["run"], &packed[..packed.len() - 4]).ended(2).err();
    assert!(said.contains("stdin: reading ended early: unexpected end of file"), "{said}");
}

#[test]
fn a_glob_that_matches_nothing_yet_is_said() {
    let folder = Folder::new();
    folder.write("logs/a.log", error("one"));
    let running = Running::new(&folder, &["--file", "logs/*.log", "--file", "none/*.log"]);
    running.wait_for(&["logs/a.log:1 ERROR one"]);
    folder.write("none/b.log", error("two"));
    running.wait_for(&["logs/a.log:1 ERROR one", "none/b.log:1 ERROR two"]);
    let said = running.end("-TERM", 0).err();
    assert_eq!(said.matches("matches no file yet").count(), 1, "{said}");
    assert!(said.contains("source run: none/*.log matches no file yet; waiting for one"), "{said}");
    folder.write("c.toml", "state_dir = \"st\"\n[[source]]\nname = \"a\"\ntype = \"file\"\ninclude = [\"later/*.log\"]\n");
    for (level, count) in [("warn", 0), ("info", 1)] {
        let mut command = folder.command(["run", "--config", "c.toml"]);
        let child = command.env("SIFTD_LOG", level).spawn().unwrap();
        until(|| folder.siftd(["status", "--config", "c.toml"]).code() == Some(0), || "ready".into());
        let said = Running { folder: &folder, child: Some(child) }.end("-TERM", 0).err();
        assert_eq!(said.matches("later/*.log matches no file yet").count(), count, "{said}");
    }
}

/// The records of two writers would be mixed, and each would rotate the file of the other.
#[test]
fn only_one_writes_to_an_output_file() {
    let folder = Folder::new();
    folder.write("a.log", error("one"));
    let second = || folder.siftd(["run", "--file", "a.log", "--state-dir", "two", "--output", "out.ndjson"]).ended(2).err();
    let running = Running::new(&folder, &["--file", "a.log", "--state-dir", "one"]);
    running.wait_for(&["a.log:1 ERROR one"]);
    let said = second();
    let pid = running.child.as_ref().map_or(0, Child::id);
    assert!(
        said.contains("out.ndjson: process ") && said.contains(&format!(" {pid} (siftd) writes to it already: give each siftd an output of its own\n")),
        "{said}"
    );
    assert!(said.lines().count() == 1 && !said.contains("tried again"), "{said}");
    assert_eq!(folder.read("out.ndjson").lines().count(), 1);
    // Others may move the file away; the new one is locked, too.
    fs::rename(folder.at("out.ndjson"), folder.at("out.ndjson.1")).unwrap();
    assert!(Command::new("kill").args(["-USR1", &pid.to_string()]).status().unwrap().success());
    append(&folder, "a.log", &error("two"));
    running.wait_for(&["a.log:2 ERROR two"]);
    assert!(second().contains("writes to it already"));
    running.end("-TERM", 0);

    // A descriptor that the shell has opened may be shared.
    let held = OpenOptions::new().append(true).open(folder.at("out.ndjson")).unwrap();
    held.try_lock().unwrap();
    assert!(second().contains("writes to it already"));
    for output in [&[][..], &["--output", "/dev/stdout"]] {
        let run = folder.command([&["run"][..], output].concat()).stdin(fs::File::open(folder.at("a.log")).unwrap()).stdout(held.try_clone().unwrap()).status();
        assert!(run.unwrap().success());
    }
    assert_eq!(folder.read("out.ndjson").lines().count(), 1 + 2 * 2);
}

#[test]
fn check_says_which_files_are_no_logs() {
    let folder = Folder::new();
    folder.write("a.log.xz", b"\xfd7zXZ\0\0\x04\xe6\xd6");
    folder.write("b.log.gz", b"\x1f\x8b\x08");
    folder.write("c.toml", "state_dir = \"st\"\n[[source]]\nname = \"a\"\ntype = \"file\"\ninclude = [\"a.log.xz\", \"b.log.gz\"]\n");
    let said = folder.siftd(["check", "--config", "c.toml"]).err();
    assert!(
        said.contains("hint: source a: a.log.xz: is compressed with xz, which is not read here: xz -dc a.log.xz | siftd run\n") && !said.contains(".gz"),
        "{said}"
    );
}

/// Records in the file at the old path are not written again, and none is missing.
#[test]
fn another_output_path_is_no_trouble() {
    let folder = Folder::new();
    folder.write("a.log", error("one"));
    let run = |output: &str, records: usize| {
        let running = Running::with_output(&folder, output, &["--file", "a.log", "--state-dir", "st"]);
        until(|| folder.read(output).lines().count() >= records, || folder.read(output));
        assert_eq!(running.end("-TERM", 0).err(), "");
    };
    run("one.ndjson", 1);
    append(&folder, "a.log", &error("two"));
    run("two.ndjson", 1);
    append(&folder, "a.log", &error("three"));
    run("one.ndjson", 2);
    assert_eq!((folder.read("one.ndjson").lines().count(), folder.read("two.ndjson").lines().count()), (2, 1));
}

/// What was there before a source that starts at the end is counted, for the numbers of lines, and not read.
#[test]
fn where_a_file_begins_is_said_as_it_is() {
    let folder = Folder::new();
    folder.write("pre.log", error("boom"));
    folder.write("a.toml", "state_dir = \"st\"\n[[source]]\nname = \"f\"\ntype = \"file\"\ninclude = [\"*.log\"]\nstart_at = \"end\"\n");
    let size = error("boom").len();
    let dry = || folder.siftd(["run", "--dry-run", "--config", "a.toml"]).ended(0).out();
    assert!(dry().contains("pre.log  from its end, 0 B to read"), "{}", dry());
    let mut daemon = folder.heedful(["run", "--config", "a.toml", "--output", "out.ndjson"]).env("SIFTD_LOG", "info").spawn().unwrap();
    let lines = std::io::BufRead::lines(std::io::BufReader::new(daemon.stderr.take().unwrap()));
    let said = lines.map(Result::unwrap).find(|line| line.contains("is followed from")).unwrap();
    assert!(said.contains(&format!("from byte {size}, what is before is only counted")), "{said}");
    let kept = || folder.siftd(["state", "list", "--state-dir", "st"]).out().contains(&format!("{size} B  0 B"));
    until(kept, || "the position is not kept".to_owned());
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(daemon.id() as i32), nix::sys::signal::Signal::SIGTERM).unwrap();
    assert!(daemon.wait().unwrap().success());
    assert!(dry().contains(&format!("pre.log  read to its end, byte {size}, 0 B to read")), "{}", dry());
}
