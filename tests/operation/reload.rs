//! SIGHUP: applies what has changed in the configuration and nothing else; a configuration with mistakes changes nothing.

use nix::sys::signal::Signal;

use super::rig::{Daemon, ONE, World, error};
use super::wait::wait;

const BOTH: &str = r#"
[[source]]
name = "a"
type = "file"
include = ["@/a*.log"]
start_at = "beginning"
[[source]]
name = "b"
type = "file"
include = ["@/b*.log"]
[[sink]]
name = "one"
type = "file"
path = "@/one.ndjson"
[[sink]]
name = "two"
type = "file"
path = "@/two.ndjson"
"#;

fn reload(world: &World, daemon: &Daemon, configuration: &str) {
    world.configure(configuration);
    world.hear_no_more();
    daemon.signal(Signal::SIGHUP);
    let said = world.hears("RELOADING=1");
    assert!(said.contains("MONOTONIC_USEC="), "{said}");
    world.hears("READY=1");
}

#[test]
fn sources_and_sinks_come_and_go_and_nothing_is_lost_or_doubled() {
    let world = World::new();
    world.configure(ONE);
    world.append("a.log", &error("first"));
    world.append("b.log", &error("before b was followed"));
    let daemon = world.start(&[]);
    assert_eq!(world.written("one.ndjson", 1), ["first"]);

    // A source and a sink are added: the source starts at its end, the sink with the next record.
    reload(&world, &daemon, BOTH);
    wait("the new sink", || world.path("two.ndjson").exists().then_some(()));
    world.append("a.log", &error("second"));
    world.written("one.ndjson", 2);
    world.append("b.log", &error("third"));
    assert_eq!(world.written("one.ndjson", 3), ["first", "second", "third"]);
    assert_eq!(world.written("two.ndjson", 2), ["second", "third"]);

    // They are removed: what was written before is still read, later lines are not.
    world.append("b.log", &error("fourth"));
    reload(&world, &daemon, ONE);
    assert_eq!(world.written("one.ndjson", 4)[3..], ["fourth"]);
    world.append("b.log", &error("while b was not followed"));
    world.append("a.log", &error("fifth"));
    assert_eq!(world.written("one.ndjson", 5)[4..], ["fifth"]);

    // They are added again: the source continues where it was, the sink with new records.
    reload(&world, &daemon, BOTH);
    assert_eq!(world.written("one.ndjson", 6)[5..], ["while b was not followed"]);
    assert_eq!(daemon.stop(), Some(0));
    assert_eq!(world.texts("one.ndjson").len(), 6, "nothing twice");
    let two = world.texts("two.ndjson");
    assert!(two.starts_with(&["second".to_owned(), "third".to_owned()]) && !two.contains(&"fifth".to_owned()), "{two:?}");
    assert_eq!(world.said(), "");
}

/// No record follows the reload. What is added to the source's files while siftd is down must not count as old content,
/// which `start_at` skips.
#[test]
fn a_source_that_came_with_a_reload_is_known_after_a_kill() {
    let world = World::new();
    world.configure(ONE);
    let mut daemon = world.start(&[]);
    reload(&world, &daemon, BOTH);
    let is_known = || {
        let state = rusqlite::Connection::open(world.path("state/siftd.db")).unwrap();
        state.query_row("SELECT count(*) FROM source WHERE name = 'b'", [], |row| row.get(0)).is_ok_and(|count: i64| count == 1)
    };
    wait("the source in the state", || is_known().then_some(()));
    daemon.child.kill().unwrap();
    daemon.child.wait().unwrap();
    world.append("b.log", &error("while nothing ran"));
    world.hear_no_more();
    let daemon = world.start(&[]);
    assert_eq!(world.written("one.ndjson", 1), ["while nothing ran"]);
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn one_with_mistakes_changes_nothing_and_is_said() {
    let world = World::new();
    world.configure(ONE);
    let daemon = world.start(&[]);
    for (configuration, why) in [
        ("[limits]\nmax_line_byte = 1\n", "did you mean `max_line_bytes`?"),
        (&ONE.replace("one.ndjson", "nowhere/one.ndjson"), "there is no folder"),
        (&ONE[ONE.find("[[sink]]").unwrap()..], "it has no source any more"),
        (&format!("{ONE}[rules]\nfiles = [\"@/bad.toml\"]\n"), "bad.toml"),
    ] {
        world.append("bad.toml", "[[rule]]\n");
        reload(&world, &daemon, configuration);
        let said = wait(why, || Some(world.said()).filter(|said| said.contains(why)));
        assert!(said.contains("the old one goes on"), "{said}");
    }
    world.append("a.log", &error("still there"));
    assert_eq!(world.written("one.ndjson", 1), ["still there"]);
    world.configure(&ONE.replace("@/state", "@/elsewhere"));
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn other_rules_are_in_force_at_once_and_find_nothing_twice() {
    let world = World::new();
    world.configure(ONE);
    let daemon = world.start(&[]);
    world.append("a.log", &format!("{}RECONCILE MISMATCH\n", error("first")));
    world.written("one.ndjson", 1);
    let with_pattern = format!("[error_detection]\ncustom_patterns = [\"RECONCILE MISMATCH\"]\n{ONE}");
    reload(&world, &daemon, &with_pattern);
    world.append("a.log", "nightly: RECONCILE MISMATCH in 3 rows\n");
    let texts = world.written("one.ndjson", 2);
    assert_eq!(texts.last().unwrap(), "nightly: RECONCILE MISMATCH in 3 rows");
    assert_eq!(texts.iter().filter(|text| *text == "first").count(), 1);
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn a_sink_that_changes_goes_on_where_it_was() {
    let world = World::new();
    world.configure(ONE);
    let daemon = world.start(&[]);
    world.append("a.log", &error("first"));
    world.written("one.ndjson", 1);
    reload(&world, &daemon, &ONE.replace("one.ndjson", "other.ndjson"));
    world.append("a.log", &error("second"));
    assert_eq!(world.written("other.ndjson", 1), ["second"]);
    reload(&world, &daemon, &format!("{}min_severity = \"blocking\"\n", ONE.replace("one.ndjson", "other.ndjson")));
    world.append("a.log", &error("third"));
    world.append("a.log", "/bin/sh: 1: kubectll: not found\n");
    assert!(world.written("other.ndjson", 2)[1].contains("kubectll"));
    assert_eq!(daemon.stop(), Some(0));
    assert_eq!(world.texts("one.ndjson"), ["first"]);
    assert_eq!(world.said(), "");
}

/// Lines are written all the time; a sink gets another name, with the same file or a different one.
#[test]
fn what_is_found_while_a_sink_is_renamed_is_written_once() {
    let world = World::new();
    world.configure(ONE);
    let daemon = world.start(&[]);
    let is_over = std::sync::atomic::AtomicBool::new(false);
    let count = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let lines = (0..).take_while(|_| !is_over.load(std::sync::atomic::Ordering::Relaxed));
            let write = |n| {
                world.append("a.log", &error(&format!("number {n}")));
                // More lines would only take longer.
                std::thread::sleep(std::time::Duration::from_millis(1));
            };
            lines.map(write).count()
        });
        for turn in 0..12 {
            let file = if turn < 6 { "one.ndjson".to_owned() } else { format!("one{turn}.ndjson") };
            let renamed = ONE.replace("name = \"one\"", &format!("name = \"one{turn}\"")).replace("one.ndjson", &file);
            let before = world.texts(&file).len();
            reload(&world, &daemon, &renamed);
            world.written(&file, before + 1);
        }
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        writer.join().unwrap()
    });
    assert_eq!(daemon.stop(), Some(0));
    let files = std::iter::once("one.ndjson".to_owned()).chain((6..12).map(|turn| format!("one{turn}.ndjson")));
    let mut texts: Vec<String> = files.flat_map(|file| world.texts(&file)).collect();
    texts.sort();
    let mut wanted: Vec<String> = (0..count).map(|n| format!("number {n}")).collect();
    wanted.sort();
    assert!(texts == wanted, "{} of {count}", texts.len());
}

/// The sink that a reload has brought may not have begun when the run is told to end.
#[test]
fn a_sink_that_came_right_before_the_end_writes_what_is_its_own() {
    for _ in 0..4 {
        let world = World::new();
        world.configure(ONE);
        let daemon = world.start(&[]);
        world.append("a.log", &error("first"));
        world.written("one.ndjson", 1);
        reload(&world, &daemon, &ONE.replace("name = \"one\"", "name = \"two\"").replace("one.ndjson", "two.ndjson"));
        world.append("a.log", &error("second"));
        assert_eq!(daemon.stop(), Some(0));
        assert_eq!((world.texts("one.ndjson"), world.texts("two.ndjson")), (vec!["first".to_owned()], vec!["second".to_owned()]));
    }
}
