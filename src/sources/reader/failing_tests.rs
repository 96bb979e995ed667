//! Reads that fail in the middle: what was not read then is read later, and nothing is taken for read.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use super::*;
use crate::core::engine::Limits;
use crate::rules::RuleSet;
use crate::sources::bytes::ReadAt;
use crate::sources::content::{bytes_at, read_at};
use crate::sources::open;

const NOW: Timestamp = Timestamp(1_795_000_000_000_000);
/// Longer than anything waits.
const LATER: Timestamp = Timestamp(NOW.0 + 3_600_000_000);

/// Content of which nothing from `bad` on can be read, a few bytes at a time; the first `interrupts` reads are interrupted.
struct Failing<'a> {
    content: &'a [u8],
    bad: usize,
    interrupts: Cell<u32>,
}

impl<'a> Failing<'a> {
    fn new(content: &'a [u8], bad: usize) -> Self {
        Self { content, bad, interrupts: Cell::new(2) }
    }
}

impl ReadAt for Failing<'_> {
    fn read_at(&self, space: &mut [u8], offset: u64) -> io::Result<usize> {
        if self.interrupts.get() > 0 {
            self.interrupts.set(self.interrupts.get() - 1);
            return Err(ErrorKind::Interrupted.into());
        }
        let from = (offset as usize).min(self.content.len());
        if from >= self.bad {
            return Err(rustix::io::Errno::IO.into());
        }
        let count = space.len().min(7).min(self.content.len().min(self.bad) - from);
        space[..count].copy_from_slice(&self.content[from..from + count]);
        Ok(count)
    }
}

/// A file that is read, and the errors found in it.
struct World {
    folder: tempfile::TempDir,
    reader: Reader,
    space: Space,
    found: BTreeSet<String>,
}

impl World {
    fn new(content: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.log");
        fs::write(&path, content).unwrap();
        // Each of hundreds of readers needs one.
        static ENGINE: LazyLock<Arc<Engine>> = LazyLock::new(|| Arc::new(Engine::new(RuleSet::compiled(), Limits::default())));
        let engine = ENGINE.clone();
        let opened = open::open(&path, &Trust::Named).unwrap();
        let reader = Reader::new(engine, [7; 16], path, Trust::Named, opened, 0);
        Self { folder, reader, space: Space::default(), found: BTreeSet::new() }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("a.log")
    }

    /// Does a turn, notes what it found, and returns its trouble.
    fn turn(&mut self, now: Timestamp) -> Option<String> {
        let turn = self.reader.turn(&mut self.space, now);
        self.note(turn)
    }

    fn note(&mut self, turn: Turn) -> Option<String> {
        assert!(turn.events.is_empty() || turn.mark.is_some(), "events never go without a mark");
        self.found.extend(turn.events.iter().map(|(_, event)| event.text.to_string()));
        turn.trouble
    }

    /// As `cp a.log a.log.1; : > a.log`, after `unread` was written; then others write `new`.
    fn copy_and_cut(&self, unread: &str, new: &str) -> Vec<u8> {
        let old = fs::read_to_string(self.path()).unwrap() + unread;
        fs::write(self.folder.path().join("a.log.1"), &old).unwrap();
        fs::write(self.path(), new).unwrap();
        old.into_bytes()
    }

    fn all(&self) -> Vec<&str> {
        self.found.iter().map(String::as_str).collect()
    }
}

/// An error, and enough after it to show that it is over.
fn error(n: u32) -> String {
    let after = format!("2026-09-21T10:00:01Z INFO {n} is well\n").repeat(9);
    format!("2026-09-21T10:00:00Z ERROR job-{n} failed\n{after}")
}

fn line(n: u32) -> String {
    format!("ERROR job-{n} failed")
}

fn directory(path: &Path) -> Bytes {
    // A folder can be opened, but not read.
    Bytes::Plain(File::open(path).unwrap())
}

#[test]
fn what_came_before_a_failure_is_not_taken_for_the_whole() {
    let content = b"the first line\nthe second line\n";
    let mut space = [0; 64];
    assert_eq!(read_at(&Failing::new(content, 99), &mut space, 4).unwrap(), content.len() - 4);
    for bad in [0, 1, 20, content.len()] {
        assert!(read_at(&Failing::new(content, bad), &mut space, 0).is_err(), "{bad}");
        assert!(bytes_at(&Failing::new(content, bad), 0, content.len() + 1).is_err(), "{bad}");
        assert_eq!(bytes_at(&Failing::new(content, bad), 0, bad).unwrap(), content[..bad]);
    }
}

#[test]
fn a_read_that_fails_is_made_up_for_by_the_next_turn() {
    let mut world = World::new(&error(1));
    assert_eq!(world.turn(NOW), None);
    let mut file = fs::OpenOptions::new().append(true).open(world.path()).unwrap();
    io::Write::write_all(&mut file, error(2).as_bytes()).unwrap();
    let (read, good) = (world.reader.mark().read, world.reader.file.replace(directory(world.folder.path())));
    for _ in 0..3 {
        assert!(world.turn(NOW).is_some());
        assert_eq!(world.reader.mark().read, read);
    }
    world.reader.file = good;
    assert_eq!(world.turn(LATER), None);
    assert_eq!(world.all(), [line(1), line(2)]);
}

/// Asserts that all four errors are found, wherever the copy fails: `old` was read, and `end` ends the error in it, `first`.
fn assert_made_up_for(old: &str, end: &str, first: &str) {
    let (unread, new) = (end.to_owned() + &error(2) + &error(3), error(4).repeat(9));
    let all = [first.to_owned(), line(2), line(3), line(4)].into_iter().collect::<BTreeSet<_>>();
    for (at, rests) in (0..old.len() + unread.len()).step_by(41).flat_map(|at| [(at, false), (at, true)]) {
        let mut world = World::new(old);
        assert_eq!(world.turn(NOW), None);
        let whole = world.copy_and_cut(&unread, &new);
        if rests {
            // As a turn after a rest does: it opens the file and finds other content.
            world.reader.rest();
            world.reader.file = Some(Bytes::Plain(File::open(world.path()).unwrap()));
        }
        let mut turn = Turn::default();
        if let Some(stream) = &mut world.reader.stream {
            stream.attach(&mut world.space.stream);
        }
        let done = world.reader.replaced(Some(&Failing::new(&whole, at)), &mut world.space, NOW, &mut turn);
        if let Some(stream) = &mut world.reader.stream {
            stream.detach(&mut world.space.stream);
        }
        assert!(done.is_err(), "{at}");
        world.found.extend(turn.events.iter().map(|(_, event)| event.text.to_string()));
        while world.found.len() < all.len() {
            let turn = world.reader.turn(&mut world.space, LATER);
            assert!(turn.bytes > 0 || turn.more || turn.rewritten, "{at} {rests}: {:?}", world.found);
            assert_eq!(world.note(turn), None);
        }
        assert_eq!(world.found, all, "{at} {rests}");
    }
}

#[test]
fn a_copy_that_fails_at_any_place_is_read_by_a_later_turn() {
    assert_made_up_for(&error(1), "", &line(1));
}

/// A trace is open since the first byte, where reading must go on after a rest.
#[test]
fn a_copy_that_fails_within_the_first_error_is_read_by_a_later_turn() {
    let head = "Traceback (most recent call last):\n  File \"a.py\", line 3, in <module>\n    sell()\n";
    assert_made_up_for(head, "ValueError: job-1 failed\n", "ValueError: job-1 failed");
}

#[test]
fn a_last_line_that_cannot_be_read_again_is_published_later() {
    let mut world = World::new(&format!("all is well\n{}", line(1)));
    assert_eq!(world.turn(NOW), None);
    let good = world.reader.file.replace(directory(world.folder.path()));
    let later = Timestamp(NOW.0 + 60_000_000);
    let turn = world.reader.pause(&mut world.space, later);
    assert!(world.note(turn).is_some());
    world.reader.file = good;
    assert_eq!(world.turn(later), None);
    assert_eq!(world.all(), [""; 0], "it waits, as before");
    assert_eq!(world.turn(LATER), None);
    assert_eq!(world.all(), [line(1)]);
}

#[test]
fn what_is_due_when_its_file_is_gone_goes_with_a_mark() {
    let mut world = World::new("Traceback (most recent call last):\n  File \"a.py\", line 3, in <module>\n    sell()\nValueError: job-1 failed\n");
    assert_eq!(world.turn(NOW), None);
    assert_eq!(world.all(), [""; 0], "it may go on");
    world.reader.file = None;
    fs::remove_file(world.path()).unwrap();
    let turn = world.reader.turn(&mut world.space, LATER);
    assert!(turn.lost);
    world.note(turn);
    assert_eq!(world.all(), ["ValueError: job-1 failed"]);
}
