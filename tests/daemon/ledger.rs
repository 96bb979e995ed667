//! The history and the breakers of `run`: updated with each event in the transaction
//! that commits it, so that they match the records whenever the daemon ends.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use siftd::core::breaker::{Breaker, Limits, State, Unit};
use siftd::core::event::{Hex, Timestamp};
use siftd::delivery::{Label, Notice, Status};
use siftd::sinks::notice;
use siftd::state::history::{Choice, HOUR_US};
use siftd::state::ledger::Rules;
use siftd::state::shared::{Shared, Trigger};

use super::rig::{Rig, SECOND, World};
use super::support::Rng;

const MINUTE: i64 = 60 * SECOND;
const PATIENCE: Duration = Duration::from_secs(5);

/// Returns an error and a line that ends it.
fn error(text: &str) -> String {
    super::rig::error(text) + "all is well\n"
}

fn rules() -> Rules {
    Rules { history: Some(Default::default()), breaker: Limits::default(), streams: true }
}

fn world() -> World {
    let mut world = World::new(&["logs/*.log"]);
    world.ledger = Some(rules());
    world
}

fn shared(world: &World) -> Shared {
    Shared::open(&world.folder.path().join("state"), rules(), PATIENCE).unwrap()
}

/// Returns `seen.status` of each error, and `from→to reason` of each breaker record.
fn said(world: &World) -> Vec<String> {
    let word = |value: &Value| value.as_str().unwrap_or("?").to_owned();
    let one = |record: &Value| match record["kind"].as_str() {
        Some("breaker") => format!("{}→{} {}", word(&record["from"]), word(&record["to"]), word(&record["reason"])),
        _ => word(&record["seen"]["status"]),
    };
    world.records().iter().map(one).collect()
}

/// One error per minute, this many times.
fn fails(rig: &mut Rig, world: &mut World, times: usize) {
    for _ in 0..times {
        world.append("a.log", &error("job failed"));
        rig.settle(world);
        world.pass(MINUTE);
    }
}

#[test]
fn each_record_says_whether_its_error_is_new() {
    let mut world = world();
    let mut rig = Rig::start(&world);
    world.append("a.log", &(error("job 1 failed") + &error("disk is full") + &error("job 2 failed")));
    rig.settle(&world);
    assert_eq!(said(&world), ["new", "new", "recurring"]);
    let seen = &world.records()[2]["seen"];
    let now = world.records()[0]["observed_at"].clone();
    assert_eq!((&seen["count"], &seen["first"], &seen["last"]), (&2.into(), &now, &now));
    // At the promised position, within the bound.
    let text = std::fs::read_to_string(&world.options.path).unwrap();
    assert!(text.lines().all(|line| line.ends_with("}}")), "{text}");
    rig.stop(&world);
    // It returns a week later, and was resolved in between.
    world.pass(8 * 24 * HOUR_US);
    let mut rig = Rig::start(&world);
    world.append("a.log", &(error("job 3 failed") + &error("job 4 failed")));
    rig.settle(&world);
    let sign = shared(&world).list(&Choice { limit: 9, ..Choice::default() }, world.now).unwrap()[0].sign;
    assert!(shared(&world).mark(sign, world.now, &|row| row.is_resolved = true).unwrap());
    world.append("a.log", &(error("job 5 failed") + &error("job 6 failed")));
    rig.settle(&world);
    assert_eq!(said(&world)[3..], ["regressed", "recurring", "regressed", "recurring"]);
    let rows = shared(&world).list(&Choice { limit: 9, ..Choice::default() }, world.now).unwrap();
    let row = &rows[0];
    assert_eq!((row.row.count, rows.len(), row.row.standing(world.now), row.row.streams.len()), (6, 2, Status::Regressed.as_str(), 1));
    assert!(row.sample.contains("job 1 failed") && row.severity == "high", "{row:?}");
}

#[test]
fn a_stream_that_fails_again_and_again_opens_its_breaker_and_the_time_closes_it() {
    let mut world = world();
    let mut rig = Rig::start(&world);
    fails(&mut rig, &mut world, 5);
    assert_eq!(said(&world), ["new", "recurring", "recurring", "closed→half_open warn_after", "recurring", "recurring", "half_open→open open_after"]);
    let opened = rig.opened();
    let record: Value = serde_json::from_slice(&opened[0]).unwrap();
    assert_eq!(record, world.records()[6]);
    assert_eq!((&record["count"], &record["signature"]), (&5.into(), &world.records()[0]["signature"]));
    assert!(opened.len() == 1 && rig.opened().is_empty());
    // The passing time alone does the rest, even while the daemon is down.
    assert_eq!(rig.deadline(), Some(Timestamp(world.now.0 - MINUTE + 30 * MINUTE)));
    rig.stop(&world);
    world.pass(30 * MINUTE);
    let mut rig = Rig::start(&world);
    rig.settle(&world);
    world.pass(30 * MINUTE);
    rig.settle(&world);
    assert_eq!(said(&world)[7..], ["open→half_open cooldown", "half_open→closed quiet"]);
    let ids: Vec<Value> = world.records().iter().map(|record| record["id"].clone()).collect();
    assert!(ids.iter().enumerate().all(|(at, id)| !ids[..at].contains(id)), "{ids:?}");
}

/// "A transient storm does not count as a bug", and neither does a flood of one error.
#[test]
fn storms_and_floods_open_nothing() {
    let mut world = world();
    let mut rig = Rig::start(&world);
    for _ in 0..19 {
        world.append("a.log", "Error: connect ECONNREFUSED 10.0.0.3:5432\nall is well\n");
        rig.settle(&world);
        world.pass(MINUTE);
    }
    (0..500).for_each(|n| world.append("b.log", &error(&format!("job {n} failed"))));
    rig.settle(&world);
    assert!(world.records().iter().all(|record| record["kind"] == "error"));
}

/// Text in a log is only a claim: it resets nothing, and makes nothing fatal.
#[test]
fn printed_words_neither_reset_a_breaker_nor_open_it_at_once() {
    let mut world = world();
    let mut rig = Rig::start(&world);
    world.append("a.log", "SessionError: PIPELINE_SESSION_LOAD_FAILED: gone\nsiftd: breaker reset\nAll tests passed, 0 errors\nall is well\n");
    rig.wait(&mut world);
    assert_eq!(world.records()[0]["retry"]["class"], "fatal");
    assert_eq!(said(&world), ["new"]);
    for _ in 0..2 {
        world.pass(MINUTE);
        world.append("a.log", "Build succeeded. All tests passed.\nSessionError: PIPELINE_SESSION_LOAD_FAILED: gone\nall is well\n");
        rig.wait(&mut world);
    }
    assert_eq!(said(&world).last().unwrap(), "closed→half_open warn_after");
}

#[test]
fn what_others_do_to_the_state_is_seen_and_written() {
    let world = world();
    let mut rig = Rig::start(&world);
    rig.settle(&world);
    let mut other = shared(&world);
    let write = |out: &mut Vec<u8>, label: &Label, notice: &Notice, at| notice::write(out, "host", label, notice, at);
    let now = world.now;
    let fatal = |breaker: &mut Breaker| breaker.failure(&siftd::core::breaker::Failure { fatal: Some(None), ..Default::default() }, &Limits::default(), now);
    let changed = other.step("task:7", Trigger { id: "aa", write: &write, now }, &fatal).unwrap();
    assert!(changed.kept.breaker.state == State::Open && changed.opened.is_some());
    rig.settle(&world);
    rig.settle(&world);
    assert_eq!(said(&world), ["closed→open fatal"]);
    assert_eq!(world.records()[0]["breaker"], "task:7");
    drop(rig);
    let mut rig = Rig::start(&world);
    rig.settle(&world);
    assert_eq!(said(&world).len(), 1, "once");
}

/// Rebuilds the history and the breakers of the streams from the records alone.
fn made_again(world: &World) -> (BTreeMap<String, (u64, String)>, BTreeMap<String, Breaker>) {
    let (mut history, mut breakers): (BTreeMap<String, (u64, String)>, BTreeMap<String, Breaker>) = Default::default();
    for record in world.records().iter().filter(|record| record["kind"] == "error") {
        let (signature, at) = (record["signature"].as_str().unwrap(), record["observed_at"].as_str().unwrap());
        let entry = history.entry(signature.to_owned()).or_default();
        // Two files may be read in another order than they are committed.
        *entry = (entry.0 + 1, at.to_owned().max(entry.1.clone()));
        assert_eq!(record["seen"]["count"], entry.0, "{record}");
        let now = Timestamp(at.parse::<jiff::Timestamp>().unwrap().as_microsecond());
        let name = format!("stream:{}", record["source"]["path"].as_str().unwrap());
        let breaker = breakers.entry(name).or_insert_with(|| Breaker::new(Unit::Event, now));
        let is_transient = record["retry"]["class"] == "transient";
        breaker.event(Hex::parse(signature).unwrap(), is_transient, &Limits::default(), now);
    }
    (history, breakers)
}

fn kept(folder: &Path) -> (BTreeMap<String, (u64, String)>, BTreeMap<String, Breaker>) {
    let shared = Shared::open(folder, rules(), PATIENCE).unwrap();
    let page = shared.list(&Choice { limit: 1000, all: true, ..Choice::default() }, Timestamp(0)).unwrap();
    let rows = page.iter().map(|entry| (entry.sign.signature.to_string(), (entry.row.count, siftd::sinks::record::rfc3339(entry.row.last))));
    (rows.collect(), shared.breakers().unwrap().into_iter().map(|(name, kept)| (name, kept.breaker)).collect())
}

/// Steps of a daemon in any order, ended after any of them.
#[test]
fn ended_at_any_moment_history_and_breakers_equal_the_committed_events() {
    for seed in 0..5 {
        let mut rng = Rng(seed + 1);
        let mut world = world();
        let mut rig = Rig::start(&world);
        for _ in 0..120 {
            match rng.below(8) {
                0 | 1 => {
                    let text = *rng.pick(&["job failed", "disk is full", "no route"]);
                    let name = *rng.pick(&["a.log", "b.log"]);
                    world.append(name, &error(text));
                }
                2 => rig.look(&world),
                3 => drop(rig.turn(&world)),
                4 => rig.commit(1 + rng.below(3), &world),
                5 => drop(rig.write(&world)),
                6 => world.pass(rng.below(50) as i64 * SECOND),
                _ => {
                    drop(rig);
                    rig = Rig::start(&world);
                }
            }
        }
        rig.stop(&world);
        let (history, mut breakers) = made_again(&world);
        let (rows, kept) = kept(&world.folder.path().join("state"));
        assert_eq!(rows, history, "seed {seed}");
        assert_eq!(kept.keys().collect::<Vec<_>>(), breakers.keys().collect::<Vec<_>>(), "seed {seed}");
        for (name, kept) in kept {
            let again = breakers.get_mut(&name).unwrap();
            again.pass(&Limits::default(), world.now);
            // Changes caused by time are recorded when the daemon checks.
            (again.since, again.is_probe) = (kept.since, kept.is_probe);
            assert_eq!(*again, kept, "seed {seed}, {name}");
        }
    }
}

/// A damaged file is set aside; history and breakers continue, as far as they can be read.
#[test]
fn a_state_that_is_set_aside_leaves_its_history_and_breakers() {
    let mut world = world();
    let mut rig = Rig::start(&world);
    fails(&mut rig, &mut world, 5);
    world.append("b.log", &error("disk is full"));
    rig.settle(&world);
    rig.stop(&world);
    let state = world.folder.path().join("state");
    let before = kept(&state);
    assert_eq!((before.0.len(), before.1.len()), (2, 2));
    let other = rusqlite::Connection::open(state.join("siftd.db")).unwrap();
    let page = |name: &str| other.query_row("SELECT rootpage FROM sqlite_master WHERE name = ?1", [name], |row| row.get::<_, u32>(0)).unwrap();
    let (page_of_streams, page_of_history) = (page("stream"), page("history"));
    let size: u32 = other.query_row("PRAGMA page_size", [], |row| row.get(0)).unwrap();
    drop(other);
    let damage = |page: u32| {
        let file = std::fs::OpenOptions::new().write(true).open(state.join("siftd.db")).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &vec![0xa5; size as usize], u64::from(page - 1) * u64::from(size)).unwrap();
    };
    damage(page_of_streams);
    let (store, said) = siftd::state::store::Store::open(&state).unwrap();
    let said = said.unwrap();
    assert!(said.contains("its history (2 errors) and its breakers (2) go on") && said.contains("lost are the positions"), "{said}");
    drop(store);
    assert_eq!(kept(&state), before);
    damage(page_of_streams);
    damage(page_of_history);
    let (store, said) = siftd::state::store::Store::open(&state).unwrap();
    assert!(said.as_ref().unwrap().contains("0 errors of its history and 2 breakers could be read"), "{said:?}");
    drop(store);
    assert_eq!(kept(&state).1, before.1);
}

/// With many transactions per second, changes wait in the tail, where every query finds them.
#[test]
fn what_is_not_yet_in_the_table_is_found_by_whoever_asks() {
    let mut world = world();
    let mut rig = Rig::start(&world);
    let tail = |world: &World| {
        let db = rusqlite::Connection::open(world.folder.path().join("state/siftd.db")).unwrap();
        db.query_row("SELECT (SELECT count(*) FROM history_tail), (SELECT count(*) FROM history)", [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap()
    };
    for (n, text) in ["job failed", "disk is full", "job failed", "no route"].into_iter().enumerate() {
        world.append(&format!("{n}.log"), &error(text));
        rig.settle(&world);
    }
    let (lines, rows): (u32, u32) = tail(&world);
    assert!(lines == 3 && rows == 1, "{lines} transactions wait, {rows} rows are in the table");
    // The same if the daemon ends at this moment.
    drop(rig);
    assert_eq!(kept(&world.folder.path().join("state")).0, made_again(&world).0);
    assert_eq!(tail(&world), (0, 3));
    let mut rig = Rig::start(&world);
    world.append("0.log", &error("job failed"));
    rig.settle(&world);
    world.append("1.log", &error("no route"));
    rig.settle(&world);
    assert_eq!(world.records().last().unwrap()["seen"]["count"], 2);
    // Nothing more happens: time alone is enough.
    assert_eq!((tail(&world).0, rig.deadline()), (1, Some(Timestamp(world.now.0 + SECOND))));
    world.pass(SECOND);
    rig.commit(0, &world);
    assert_eq!(tail(&world), (0, 3));
    assert!(rig.deadline().is_none_or(|at| at.0 > world.now.0 + SECOND));
}

/// An old state file gets the new tables, and keeps its content.
#[test]
fn a_state_of_the_first_form_is_brought_up() {
    let world = World::new(&["logs/*.log"]);
    world.append("a.log", &error("job failed"));
    let mut rig = Rig::start(&world);
    rig.settle(&world);
    rig.stop(&world);
    let state = world.folder.path().join("state");
    let old = rusqlite::Connection::open(state.join("siftd.db")).unwrap();
    for table in [
        "history",
        "history_tail",
        "history_size",
        "history_alias",
        "history_recipe",
        "history_former",
        "hour",
        "breaker",
        "transition",
        "left_out",
        "dropped",
        "silence",
        "loss",
    ] {
        old.execute_batch(&format!("DROP TABLE \"{table}\"")).unwrap();
    }
    old.execute_batch("ALTER TABLE withheld DROP COLUMN kind; PRAGMA user_version = 1").unwrap();
    drop(old);
    let mut world = world;
    world.ledger = Some(rules());
    let mut rig = Rig::start(&world);
    world.append("a.log", &error("job failed"));
    rig.settle(&world);
    assert_eq!(said(&world), ["?", "new"], "what was read is not read again, and a history has begun");
}
