//! Small file systems that fill up and are freed again: one with the state, one with the output.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::killing::{Daemon, Shipper, counts, until, until_or};

/// A file system of its own, unmounted on drop.
struct Small(PathBuf);

impl Small {
    fn mount(folder: &Path, size: &str) -> Option<Self> {
        fs::create_dir_all(folder).unwrap();
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]).arg(folder).output();
        if !mounted.is_ok_and(|output| output.status.success()) {
            crate::skip::skipped("the right to mount a tmpfs");
            return None;
        }
        Some(Self(folder.to_owned()))
    }

    fn fill(&self) {
        let mut filler = OpenOptions::new().append(true).create(true).open(self.0.join("filler")).unwrap();
        while filler.write_all(&[b'x'; 1024]).is_ok() {}
    }

    /// Frees this many bytes.
    fn leave(&self, bytes: u64) {
        let filler = OpenOptions::new().write(true).open(self.0.join("filler")).unwrap();
        filler.set_len(filler.metadata().unwrap().len() - bytes).unwrap();
    }

    fn free(&self) {
        fs::remove_file(self.0.join("filler")).unwrap();
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        drop(Command::new("umount").args(["-l"]).arg(&self.0).status());
    }
}

fn append(daemon: &Daemon, from: u32, to: u32) {
    let mut file = OpenOptions::new().append(true).create(true).open(daemon.log("a.log")).unwrap();
    for n in from..=to {
        writeln!(file, "2026-09-21T10:00:00Z ERROR job-{n} {}\nall is well", "x".repeat(300)).unwrap();
    }
}

/// Returns the exit code of `siftd status` and its output.
fn status(state: &Path) -> (Option<i32>, String) {
    let asked = Command::new(env!("CARGO_BIN_EXE_siftd")).args(["status", "--state-dir"]).arg(state).output().unwrap();
    (asked.status.code(), String::from_utf8(asked.stdout).unwrap())
}

fn is_out(out: &Path, n: u32) -> bool {
    memchr::memmem::find(&fs::read(out).unwrap_or_default(), format!("ERROR job-{n} ").as_bytes()).is_some()
}

fn play(state: &Path, out: &Path, folder: &Path, small: &Small) {
    let mut daemon = Daemon::with(folder, state, out, "");
    let shipper = Shipper::new(out.to_owned());
    daemon.start();
    append(&daemon, 1, 50);
    until("the first ones do not come", || is_out(out, 50));
    small.fill();
    append(&daemon, 51, 1500);
    until(&format!("nobody says that it is full\n{}", daemon.stderr()), || daemon.stderr().contains("nothing is lost"));
    if state.starts_with(&small.0) {
        let (code, said) = status(state);
        assert!(code == Some(1) && said.contains("\ntrouble: state: "), "{code:?} {said}");
        let head = said.lines().next().unwrap_or_default();
        assert!(head.contains(": not ready, up for "), "{said}");
    }
    // Ends the daemon while the disk is full, and again when there is room.
    daemon.kill();
    let said = daemon.stderr().len();
    daemon.start();
    append(&daemon, 1501, 1600);
    until("it does not say again that it is full", || daemon.stderr().len() > said);
    small.free();
    until(&format!("the last ones do not come\n{}", daemon.stderr()), || is_out(out, 1600));
    daemon.kill();
    daemon.start();
    append(&daemon, 1601, 1601);
    until("it does not go on", || is_out(out, 1601));
    until("it does not say that it is well again", || status(state).0 == Some(0));
    daemon.stop();
    let counts = counts(&shipper.end());
    let wrong: Vec<_> = (1..=1601).map(|n| format!("job-{n}")).filter(|word| counts.get(word) != Some(&1)).collect();
    assert!(wrong.is_empty(), "{wrong:?}\n{}", daemon.stderr());
}

#[test]
fn a_full_disk_under_the_state_stops_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let Some(small) = Small::mount(&folder.path().join("small"), "16m") else { return };
    play(&folder.path().join("small/state"), &folder.path().join("out.ndjson"), folder.path(), &small);
}

#[test]
fn a_full_disk_under_the_output_stops_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let Some(small) = Small::mount(&folder.path().join("small"), "6m") else { return };
    play(&folder.path().join("state"), &folder.path().join("small/out.ndjson"), folder.path(), &small);
}

/// The outcome for four errors.
struct Came {
    said: String,
    told: Vec<u8>,
    /// The names in the state's folder.
    names: Vec<String>,
}

/// Starts a daemon with this much room (in KiB) for the state, after `prepare` has filled its folder.
/// Kills it with SIGKILL, starts it again and frees the disk. Returns `None` without the right to mount.
fn starts_on_a_full_disk(room: u64, prepare: impl FnOnce(&Path)) -> Option<Came> {
    let folder = tempfile::tempdir().unwrap();
    let small = Small::mount(&folder.path().join("small"), "1m")?;
    let (state, out) = (small.0.join("state"), folder.path().join("out.ndjson"));
    prepare(&state);
    small.fill();
    small.leave(room << 10);
    let mut daemon = Daemon::with(folder.path(), &state, &out, "");
    append(&daemon, 1, 3);
    daemon.start();
    until(&format!("with {room} KiB nobody says that it is full\n{}", daemon.stderr()), || daemon.stderr().contains("nothing is lost") || is_out(&out, 3));
    let said = daemon.stderr();
    assert!(is_out(&out, 3) || said.contains("no room is left on its disk"), "{room} KiB: {said}");
    daemon.kill();
    daemon.start();
    small.free();
    append(&daemon, 4, 4);
    until(&format!("with {room} KiB they do not come\n{}", daemon.stderr()), || is_out(&out, 4));
    daemon.stop();
    let names = fs::read_dir(&state).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    Some(Came { said: daemon.stderr(), told: fs::read(&out).unwrap(), names })
}

/// Whatever room the first start has, a state that it could not finish is no lost
/// state. If it is killed at that time, the next start is a first start as well.
#[test]
fn a_first_start_on_a_full_disk_waits_and_is_a_first_start_when_there_is_room() {
    for room in (0..=240).step_by(16) {
        let Some(Came { said, told, names }) = starts_on_a_full_disk(room, |_| ()) else { return };
        assert!(!said.contains("ERROR") && !said.contains("set aside"), "{room} KiB: {said}");
        assert_eq!(counts(&told).into_values().collect::<Vec<_>>(), [1; 4], "{room} KiB");
        assert!(!names.iter().any(|name| name.contains("unreadable") || name.contains(".new")), "{room} KiB: {names:?}");
    }
}

/// A state that is damaged while it is used is replaced when there is room for a new one; until then reading waits.
#[test]
fn a_state_that_is_damaged_in_use_on_a_full_disk_waits_for_room() {
    let folder = tempfile::tempdir().unwrap();
    let (state, out) = (folder.path().join("state"), folder.path().join("out.ndjson"));
    let Some(small) = Small::mount(&state, "4m") else { return };
    let mut daemon = Daemon::with(folder.path(), &state, &out, "");
    daemon.start();
    append(&daemon, 1, 50);
    until("the first ones do not come", || is_out(&out, 50));
    small.fill();
    // Overwritten in place: the mapped files must not be truncated.
    for name in ["siftd.db", "siftd.db-wal", "siftd.db-shm"] {
        let file = OpenOptions::new().write(true).open(state.join(name)).unwrap();
        let length = file.metadata().unwrap().len() as usize;
        std::os::unix::fs::FileExt::write_all_at(&file, &vec![0xa5; length], 0).unwrap();
    }
    append(&daemon, 51, 60);
    until(&format!("nobody says that it is full\n{}", daemon.stderr()), || daemon.stderr().contains("nothing is lost"));
    small.free();
    until(&format!("the others do not come\n{}", daemon.stderr()), || is_out(&out, 60));
    assert!(daemon.stderr().contains("it was set aside as") && daemon.stderr().contains("reading goes on where it was"), "{}", daemon.stderr());
    daemon.stop();
    daemon.start();
    append(&daemon, 61, 61);
    until("the last one does not come", || is_out(&out, 61));
    daemon.stop();
    let text = fs::read_to_string(&out).unwrap();
    let wrong: Vec<usize> = (1..=61).filter(|n| text.matches(&format!("\"text\":\"ERROR job-{n} ")).count() != 1).collect();
    assert!(wrong.is_empty() && !text.contains("state_lost"), "{wrong:?}\n{}", daemon.stderr());
}

/// A damaged state stays in place if there is no room for a new one. Its loss is reported once, when there is room.
#[test]
fn a_damaged_state_on_a_full_disk_is_not_forgotten() {
    let damaged = |state: &Path| {
        fs::create_dir(state).unwrap();
        fs::write(state.join("siftd.db"), "no database, as a disk leaves it that has failed").unwrap();
    };
    for room in (0..=240).step_by(48) {
        let Some(Came { said, told, names }) = starts_on_a_full_disk(room, damaged) else { return };
        let told = String::from_utf8(told).unwrap();
        assert_eq!(told.lines().filter(|line| line.contains("\"state_lost\"")).count(), 1, "{room} KiB: {told}{said}");
        assert_eq!(names.iter().filter(|name| name.contains("unreadable")).count(), 1, "{room} KiB: {names:?}");
        assert!(!names.iter().any(|name| name.contains(".new") || name.contains(".next")), "{room} KiB: {names:?}");
    }
}

/// Pipes this many errors into a small file, with these flags.
struct Piped {
    folder: PathBuf,
    errors: u32,
}

impl Piped {
    fn start(&self, flags: &[&str], grace: &str) -> std::process::Child {
        fs::write(self.folder.join("siftd.toml"), format!("[delivery]\nshutdown_grace = \"{grace}\"\n")).unwrap();
        let input: String = (1..=self.errors).map(|n| format!("2026-09-21T10:00:00Z ERROR job-{n} {}\n", "x".repeat(300))).collect();
        fs::write(self.folder.join("in.log"), input).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_siftd"));
        command.args(["run", "--config", "siftd.toml", "--output", "small/out.ndjson"]).args(flags).current_dir(&self.folder);
        let errors = OpenOptions::new().append(true).create(true).open(self.folder.join("stderr")).unwrap();
        let input = fs::File::open(self.folder.join("in.log")).unwrap();
        command.env_remove("SIFTD_LOG").stdin(Stdio::from(input)).stdout(Stdio::null()).stderr(errors).spawn().unwrap()
    }

    fn end(&self, flags: &[&str], grace: &str) -> Option<i32> {
        self.start(flags, grace).wait().unwrap().code()
    }

    fn said(&self) -> String {
        fs::read_to_string(self.folder.join("stderr")).unwrap()
    }

    /// Returns how many of its errors are in the file, each once and complete.
    fn written(&self) -> u32 {
        let counts = counts(&fs::read(self.folder.join("small/out.ndjson")).unwrap());
        assert!(counts.values().all(|count| *count == 1), "{counts:?}");
        counts.len() as u32
    }
}

#[test]
fn without_a_state_what_a_full_disk_does_not_take_is_counted_and_nothing_is_torn() {
    let folder = tempfile::tempdir().unwrap();
    let Some(_small) = Small::mount(&folder.path().join("small"), "16k") else { return };
    let piped = Piped { folder: folder.path().to_owned(), errors: 100 };
    assert_eq!(piped.end(&[], "300ms"), Some(2), "{}", piped.said());
    let lost = 100 - piped.written();
    assert!((1..100).contains(&lost), "{lost}");
    let said = format!("sink output: {lost} records could not be written within shutdown_grace and are lost");
    assert!(piped.said().contains(&said) && !piped.said().contains("nothing is lost"), "{said}\n{}", piped.said());
}

#[test]
fn what_a_full_disk_has_taken_is_not_counted_while_the_rest_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let Some(_small) = Small::mount(&folder.path().join("small"), "64k") else { return };
    let piped = Piped { folder: folder.path().to_owned(), errors: 400 };
    assert_eq!(piped.end(&[], "3s"), Some(2), "{}", piped.said());
    let left = 400 - piped.written();
    assert!((1..400).contains(&left), "{left}");
    assert!(piped.said().contains(&format!("ending: {left} records are not written yet")), "{left}\n{}", piped.said());
}

#[test]
fn without_a_state_a_disk_that_is_freed_in_time_gets_everything() {
    let folder = tempfile::tempdir().unwrap();
    let Some(small) = Small::mount(&folder.path().join("small"), "1m") else { return };
    small.fill();
    let piped = Piped { folder: folder.path().to_owned(), errors: 100 };
    let mut child = piped.start(&[], "50s");
    until("nobody says that it is full", || piped.said().contains("it is tried again") || child.try_wait().unwrap().is_some());
    assert!(!until_or(Duration::from_secs(2), || child.try_wait().unwrap().is_some()), "it ends although there is time: {}", piped.said());
    small.free();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{}", piped.said());
    assert_eq!(piped.written(), 100);
}

#[test]
fn with_a_state_what_a_full_disk_does_not_take_waits_and_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let Some(small) = Small::mount(&folder.path().join("small"), "1m") else { return };
    small.fill();
    // Room for some of them.
    small.leave(16 << 10);
    let piped = Piped { folder: folder.path().to_owned(), errors: 100 };
    let flags = ["--file", "-", "--state-dir", "state"];
    assert_eq!(piped.end(&flags, "300ms"), Some(0), "{}", piped.said());
    let text = fs::read(folder.path().join("small/out.ndjson")).unwrap();
    let waiting = 100 - memchr::memchr_iter(b'\n', &text).count();
    let said = format!("sink output: {waiting} records could not be written by now and wait in the state for the next start");
    assert!(piped.said().contains(&said), "{said}\n{}", piped.said());
    small.free();
    let rest = Piped { errors: 0, ..piped };
    assert_eq!(rest.end(&flags, "10s"), Some(0), "{}", rest.said());
    assert_eq!(rest.written(), 100);
    assert!(fs::read(folder.path().join("small/out.ndjson")).unwrap().starts_with(&text), "no byte was taken back");
}

/// A peer at which nothing listens, and room for only a few records that wait for it.
const AWAY: &str = "[[sink]]\nname = \"peer\"\ntype = \"tcp\"\naddress = \"127.0.0.1:1\"\n[delivery]\noutbox_max = \"1MiB\"\nshutdown_grace = \"1s\"\n";

/// Starts a daemon whose reader threads wait for room.
fn held_up(folder: &Path) -> Daemon {
    let mut daemon = Daemon::new(folder, AWAY);
    append(&daemon, 1, 6000);
    daemon.start();
    until("it does not wait", || daemon.stderr().contains("outbox_max is reached"));
    let read = || fs::metadata(daemon.folder.join("out.ndjson")).map_or(0, |meta| meta.len());
    until("nothing comes", || read() > 1 << 20);
    daemon
}

#[track_caller]
fn ends(daemon: &mut Daemon) {
    daemon.signal("-TERM");
    let child = daemon.child.as_mut().unwrap();
    until("it does not end", || child.try_wait().unwrap().is_some());
}

#[test]
fn a_rotation_while_reading_waits_keeps_nobody_from_ending_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut daemon = held_up(folder.path());
    fs::rename(daemon.log("a.log"), daemon.log("b.log")).unwrap();
    append(&daemon, 6001, 6001);
    ends(&mut daemon);
}

#[test]
fn a_state_that_is_removed_while_reading_waits_keeps_nobody_from_ending_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut daemon = held_up(folder.path());
    fs::remove_dir_all(daemon.folder.join("state")).unwrap();
    until("it does not say so", || daemon.stderr().contains("while it is in use"));
    ends(&mut daemon);
}
