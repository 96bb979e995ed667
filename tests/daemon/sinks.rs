//! Sinks and the records they hold back: stepped, with real files.

use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;

use siftd::config::Schema;
use siftd::core::event::{Category, Severity};
use siftd::sinks::generations;
use siftd::state::store::Store;

use super::killing::{Daemon, until};
use super::rig::{Rig, SECOND, World, error};

#[test]
fn rotation_by_size_keeps_every_record_and_drops_the_oldest_files() {
    let mut world = World::new(&["logs/*.log"]);
    world.options.rotate_size = 6000;
    let mut rig = Rig::start(&world);
    for n in 0..60 {
        world.append("a.log", &error(&format!("number {n}")));
        rig.settle(&world);
    }
    rig.wait(&mut world);
    let texts = world.texts();
    assert_eq!(texts, (0..60).map(|n| format!("ERROR number {n}")).collect::<Vec<_>>());
    let files = generations::all(&world.options.path).len();
    assert!(files > 3, "{files}");
}

#[test]
fn rotation_by_age_and_compression() {
    let mut world = World::new(&["logs/*.log"]);
    (world.options.rotate_age_us, world.options.compress, world.options.keep) = (60 * SECOND, true, 2);
    let mut rig = Rig::start(&world);
    for n in 0..5 {
        world.append("a.log", &(error(&format!("number {n}")) + "fine\n"));
        rig.settle(&world);
        world.pass(61 * SECOND);
        rig.settle(&world);
    }
    drop(rig);
    let mut names: Vec<String> = generations::all(&world.options.path).iter().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect();
    names.sort();
    assert_eq!(names, ["out.ndjson", "out.ndjson.1.gz", "out.ndjson.2.gz"]);
}

/// Runs a daemon that finds error `number` and ends after this many steps of writing.
fn cut_short(world: &World, number: usize, steps: usize) {
    world.append("a.log", &error(&format!("number {number}")));
    let mut rig = Rig::start(world);
    rig.look(world);
    while rig.turn(world) {}
    for step in 0..steps {
        rig.write(world);
        if step % 3 == 2 {
            rig.commit(1, world);
        }
    }
}

#[test]
fn an_end_between_any_two_steps_of_a_rotation() {
    for steps in 0..40 {
        let mut world = World::new(&["logs/*.log"]);
        world.options.rotate_size = 3000;
        let mut wanted = Vec::new();
        for n in 0..12 {
            cut_short(&world, n, steps);
            wanted.push(format!("ERROR number {n}"));
        }
        let mut rig = Rig::start(&world);
        rig.wait(&mut world);
        assert_eq!(world.texts(), wanted, "{steps} steps");
    }
}

/// Returns all lines of the output and its older files, compressed or not.
fn lines_of_all(world: &World) -> Vec<String> {
    let read = |path: &std::path::PathBuf| {
        let mut text = String::new();
        match path.extension().is_some_and(|end| end == "gz") {
            true => drop(flate2::read::GzDecoder::new(fs::File::open(path).unwrap()).read_to_string(&mut text).unwrap()),
            false => text = fs::read_to_string(path).unwrap(),
        }
        text
    };
    generations::all(&world.options.path).iter().flat_map(|path| read(path).lines().map(str::to_owned).collect::<Vec<_>>()).collect()
}

/// The file that the state says was written last is intact, whatever has been compressed or removed since.
#[test]
fn an_end_between_any_two_steps_of_a_rotation_leaves_the_file_that_was_written_last() {
    for (steps, keep) in (0..18).flat_map(|steps| [(steps, 1000), (steps, 0)]) {
        let mut world = World::new(&["logs/*.log"]);
        (world.options.rotate_size, world.options.compress, world.options.keep) = (1, true, keep);
        for n in 0..4 {
            // Compression is not interrupted here, which makes it more likely that the file is gone.
            cut_short(&world, n, steps);
            let marks = Store::look(&world.folder.path().join("state")).unwrap().unwrap().sinks().unwrap();
            let Some(mark) = marks.iter().find(|mark| mark.node.ino != 0) else { continue };
            let metas = generations::all(&world.options.path).into_iter().map(|path| path.metadata().unwrap());
            assert!(metas.into_iter().any(|meta| meta.ino() == mark.node.ino && meta.len() >= mark.len), "{steps} steps, keep {keep}, {n}: {mark:?}");
        }
        let mut rig = Rig::start(&world);
        rig.wait(&mut world);
        drop(rig);
        let lines = lines_of_all(&world);
        if keep > 0 {
            let count = |n: usize| lines.iter().filter(|line| line.contains(&format!("\"text\":\"ERROR number {n}\""))).count();
            assert_eq!((0..4).map(count).collect::<Vec<_>>(), [1; 4], "{steps} steps: {lines:#?}");
        }
        let plain = generations::name(&world.options.path, 1, false);
        assert!(!plain.exists(), "{steps} steps, keep {keep}: {} stays", plain.display());
    }
}

/// logrotate without `delaycompress` while siftd is down: nothing is lost. If the file was removed, that is reported.
#[test]
fn a_file_that_was_compressed_is_not_missed_and_one_that_was_removed_is() {
    for is_removed in [false, true] {
        let world = World::new(&["logs/*.log"]);
        let mut rig = Rig::start(&world);
        world.append("a.log", &(error("one") + "fine\n"));
        rig.settle(&world);
        world.append("a.log", &(error("two") + "fine\n"));
        // Committed, but not written.
        rig.look(&world);
        while rig.turn(&world) {}
        rig.commit(9, &world);
        drop(rig);
        let (folder, out) = (world.folder.path(), &world.options.path);
        let old = generations::name(out, 1, false);
        fs::rename(out, &old).unwrap();
        if is_removed {
            fs::remove_file(&old).unwrap()
        } else {
            generations::pack(&old).unwrap()
        }
        let mut daemon = Daemon::with(folder, &folder.join("state"), out, "");
        let config = fs::read_to_string(folder.join("siftd.toml")).unwrap();
        fs::write(folder.join("siftd.toml"), config.replace("\"events\"", "\"out\"")).unwrap();
        daemon.start();
        until("what waited does not come", || fs::read_to_string(out).is_ok_and(|text| text.contains("ERROR two") && text.ends_with('\n')));
        daemon.stop();
        assert_eq!(daemon.stderr().contains("the file that was written last is not there"), is_removed, "{}", daemon.stderr());
        assert_eq!(fs::read_to_string(out).unwrap().lines().count(), 1);
    }
}

#[test]
fn moved_away_by_someone_else_and_opened_anew() {
    use siftd::sinks::Sink;
    let mut world = World::new(&["logs/*.log"]);
    let mut rig = Rig::start(&world);
    world.append("a.log", &(error("one") + "fine\n"));
    rig.settle(&world);
    let moved = world.folder.path().join("out.ndjson.1");
    fs::rename(&world.options.path, &moved).unwrap();
    world.append("a.log", &(error("two") + "fine\n"));
    rig.settle(&world);
    assert_eq!(fs::read_to_string(&moved).unwrap().lines().count(), 2, "until it is told, it writes on");
    rig.sink.reopen();
    world.append("a.log", &(error("three") + "fine\n"));
    rig.wait(&mut world);
    assert_eq!(fs::read_to_string(&world.options.path).unwrap().lines().count(), 1);
    assert_eq!(world.texts(), ["ERROR one", "ERROR two", "ERROR three"]);
}

#[test]
fn a_torn_end_is_completed_and_foreign_bytes_are_left() {
    for (cut, foreign) in [(1, ""), (100, ""), (0, "not ours\n"), (0, "not ours, and torn"), (0, "{\"schema\":1,")] {
        let mut world = World::new(&["logs/*.log"]);
        world.append("a.log", &(error("one") + "fine\n"));
        let mut rig = Rig::start(&world);
        rig.settle(&world);
        world.append("a.log", &(error("two") + "fine\n"));
        // Read and committed, but never reported by the sink.
        rig.look(&world);
        while rig.turn(&world) {}
        rig.commit(9, &world);
        drop(rig);
        let store = Store::look(&world.folder.path().join("state")).unwrap().unwrap();
        let record = store.chunk_after(1).unwrap().unwrap().body;
        let mut bytes = fs::read(&world.options.path).unwrap();
        bytes.extend(foreign.as_bytes());
        bytes.extend(&record[..cut]);
        fs::write(&world.options.path, &bytes).unwrap();
        let mut rig = Rig::start(&world);
        rig.wait(&mut world);
        let text = fs::read_to_string(&world.options.path).unwrap();
        assert!(text.as_bytes().starts_with(&bytes), "{text}");
        let ours: Vec<&str> = text.lines().filter(|line| line.ends_with('}')).collect();
        assert_eq!(ours.len(), 2, "{cut} {foreign:?}: {text}");
        assert!(text.ends_with('\n') && ours[1].contains("ERROR two"));
    }
}

#[test]
fn an_output_that_is_gone_is_written_again() {
    let mut world = World::new(&["logs/*.log"]);
    world.append("a.log", &(error("one") + "fine\n"));
    let mut rig = Rig::start(&world);
    rig.look(&world);
    while rig.turn(&world) {}
    rig.commit(9, &world);
    for _ in 0..6 {
        rig.write(&world);
        rig.commit(0, &world);
    }
    drop(rig);
    fs::remove_file(&world.options.path).unwrap();
    let mut rig = Rig::start(&world);
    world.append("a.log", &(error("two") + "fine\n"));
    world.seen.lock().unwrap().clear();
    rig.wait(&mut world);
    assert_eq!(world.texts().last().map(String::as_str), Some("ERROR two"));
}

#[test]
fn filters_and_schemas() {
    let mut world = World::new(&["logs/*.log"]);
    world.options.choose.categories = vec![Category::parse("network_error").unwrap()];
    world.options.choose.min_severity = Severity::Medium;
    world.options.choose.schema = Schema::Ecs;
    world.append("a.log", &(error("something else") + "curl: (7) Failed to connect to db port 5432: Connection refused\nfine\n"));
    let mut rig = Rig::start(&world);
    rig.wait(&mut world);
    let records = world.records();
    assert_eq!(records.len(), 1, "{records:?}");
    assert_eq!((records[0]["error"]["code"].as_str(), records[0]["log"]["file"]["path"].is_string()), (Some("network_error"), true));
    world.options.choose.sources = vec!["another".to_owned()];
    world.append("a.log", "curl: (7) Failed to connect to db port 5432: Connection refused\nfine\n");
    drop(rig);
    let mut rig = Rig::start(&world);
    rig.wait(&mut world);
    assert_eq!(world.records().len(), 1);
}

#[test]
fn what_is_withheld_is_said_with_its_count_whatever_happens() {
    let mut world = World::new(&["logs/*.log"]);
    world.rules.per_second.insert("agent".to_owned(), 10);
    let mut rig = Rig::start(&world);
    for n in 0..50 {
        world.append("a.log", &(error(&format!("number {n}")) + "fine\n"));
    }
    rig.look(&world);
    while rig.turn(&world) {}
    rig.commit(99, &world);
    // An end in the middle of a flood: the count is kept.
    drop(rig);
    let mut rig = Rig::start(&world);
    rig.settle(&world);
    world.pass(2 * SECOND);
    rig.settle(&world);
    let records = world.records();
    let gaps: Vec<_> = records.iter().filter(|record| record["kind"] == "gap").collect();
    assert_eq!((records.len(), gaps.len(), gaps[0]["count"].as_u64()), (11, 1, Some(40)));
    assert_eq!(gaps[0]["why"], "rate_limit");
}

#[test]
fn repeats_collapse_to_the_first_and_a_count() {
    let mut world = World::new(&["logs/*.log"]);
    world.rules.repeat_window_us = 10 * SECOND;
    let mut rig = Rig::start(&world);
    for _ in 0..30 {
        world.append("a.log", &(error("the same again") + "fine\n"));
        rig.settle(&world);
    }
    world.pass(11 * SECOND);
    rig.settle(&world);
    let records = world.records();
    assert_eq!(records.len(), 2);
    assert_eq!((records[1]["kind"].as_str(), records[1]["count"].as_u64()), (Some("repeat"), Some(29)));
    assert_eq!(records[1]["signature"], records[0]["signature"]);
}

#[test]
fn a_state_that_cannot_be_read_is_set_aside() {
    for bytes in [&b"not a database at all, but long enough to be taken for one"[..], b"SQLite format 3\0 and then nothing that makes sense"] {
        let mut world = World::new(&["logs/*.log"]);
        world.append("a.log", &error("one"));
        let state = world.folder.path().join("state");
        fs::create_dir_all(&state).unwrap();
        fs::write(state.join("siftd.db"), bytes).unwrap();
        let (_, said) = Store::open(&state).unwrap();
        let said = said.unwrap();
        assert!(said.contains("set aside as") && said.contains("siftd.db.unreadable-"), "{said}");
        let mut rig = Rig::start(&world);
        rig.wait(&mut world);
        assert_eq!(world.texts(), ["ERROR one"]);
        let kept = fs::read_dir(&state).unwrap().flatten().filter(|entry| entry.file_name().to_string_lossy().contains("unreadable")).count();
        assert_eq!(kept, 1);
    }
}

#[test]
fn a_damaged_state_is_set_aside() {
    let mut world = World::new(&["logs/*.log"]);
    world.append("a.log", &error("one"));
    let mut rig = Rig::start(&world);
    rig.wait(&mut world);
    drop(rig);
    let path = world.folder.path().join("state/siftd.db");
    let mut bytes = fs::read(&path).unwrap();
    let length = bytes.len();
    bytes[4096..length].fill(0xa5);
    fs::write(&path, bytes).unwrap();
    let (_, said) = Store::open(path.parent().unwrap()).unwrap();
    assert!(said.is_some());
}

#[test]
fn a_state_that_is_damaged_while_it_is_used_is_set_aside_and_nothing_is_lost() {
    let mut world = World::new(&["logs/*.log"]);
    world.append("a.log", &error("one"));
    world.append("b.log", &error("of another file"));
    let mut rig = Rig::start(&world);
    rig.wait(&mut world);
    let state = world.folder.path().join("state");
    // Overwritten in place: the mapped files must not be truncated.
    for name in ["siftd.db", "siftd.db-wal", "siftd.db-shm"] {
        let length = fs::metadata(state.join(name)).unwrap().len() as usize;
        let file = fs::OpenOptions::new().write(true).open(state.join(name)).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &vec![0xa5; length], 0).unwrap();
    }
    world.append("a.log", &error("two"));
    let said = rig.settle_with_renewal(&world);
    assert!(said.contains("set aside as") && said.contains("unreadable-"), "{said}");
    drop(rig);
    world.append("a.log", &error("three"));
    let mut rig = Rig::start(&world);
    rig.wait(&mut world);
    let mut texts = world.texts();
    texts.sort();
    assert_eq!(texts, ["ERROR of another file", "ERROR one", "ERROR three", "ERROR two"]);
}

#[test]
fn a_sink_that_does_not_want_an_error_does_not_hear_of_its_repeats() {
    for (wanted, records) in [("network_error", 2), ("build_error", 0)] {
        let mut world = World::new(&["logs/*.log"]);
        world.rules.repeat_window_us = 10 * SECOND;
        world.options.choose.categories = vec![Category::parse(wanted).unwrap()];
        world.append("a.log", &"curl: (7) Failed to connect to db port 5432: Connection refused\nfine\n".repeat(5));
        let mut rig = Rig::start(&world);
        rig.settle(&world);
        // An event that is held back survives the restart, with its kind.
        drop(rig);
        world.pass(11 * SECOND);
        let mut rig = Rig::start(&world);
        rig.wait(&mut world);
        assert_eq!(world.records().len(), records, "{:?}", world.records());
    }
}

#[test]
fn a_stdout_that_nobody_reads_any_more_ends_no_other_sink() {
    let folder = tempfile::tempdir().unwrap();
    let mut daemon = Daemon::new(folder.path(), "[[sink]]\nname = \"console\"\ntype = \"stdout\"\n");
    let (gone, stdout) = std::io::pipe().unwrap();
    drop(gone);
    daemon.start_with(stdout.into());
    let out = folder.path().join("out.ndjson");
    let is_told = |text: &str| fs::read_to_string(&out).unwrap_or_default().contains(text);
    fs::write(daemon.log("a.log"), error("one")).unwrap();
    until("nobody says so", || daemon.stderr().contains("sink console: nobody reads it any more"));
    fs::write(daemon.log("b.log"), error("two")).unwrap();
    until("the file is not written", || is_told("ERROR one") && is_told("ERROR two"));
    daemon.stop();
}

/// As in `siftd run … | head -1`: the next record may be hours away.
#[test]
fn a_stdout_that_nobody_reads_any_more_is_noticed_without_a_record() {
    let folder = tempfile::tempdir().unwrap();
    let mut daemon = Daemon::new(folder.path(), "[[sink]]\nname = \"console\"\ntype = \"stdout\"\n");
    let (mut reader, stdout) = std::io::pipe().unwrap();
    daemon.start_with(stdout.into());
    fs::write(daemon.log("a.log"), error("one")).unwrap();
    let mut first = [0];
    reader.read_exact(&mut first).unwrap();
    drop(reader);
    until("nobody says so", || daemon.stderr().contains("sink console: nobody reads it any more"));
    daemon.stop();
}
