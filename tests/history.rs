//! `siftd history`, `scan --new-only` and `replay` as people and builds use them.

#![allow(clippy::unwrap_used, reason = "clippy knows only functions marked as tests")]

#[path = "support/folder.rs"]
mod folder;

use std::time::Duration;

use folder::{Done, Folder};
use rusqlite::{Connection, params};
use serde_json::Value;
use siftd::core::event::{Hex, Timestamp};
use siftd::state::history::{Choice, HOUR_US, Order, Rules};
use siftd::state::ledger;
use siftd::state::shared::Shared;

const TWO: &str = "KeyError: 'price'\nall is well\nTypeError: x is not a function\nall is well\n";
const PATIENCE: Duration = Duration::from_secs(5);

fn scan(folder: &Folder, flags: &[&str], log: &str) -> Done {
    folder.write("log", log);
    folder.siftd([&["scan", "--format", "ndjson", "log"][..], flags].concat())
}

fn history(folder: &Folder, words: &[&str]) -> Done {
    folder.siftd([&["history"][..], words, &["--state-dir", "st"]].concat())
}

fn statuses(done: &Done) -> Vec<Value> {
    done.records().iter().map(|record| record["seen"]["status"].clone()).collect()
}

#[test]
fn what_is_new_is_told_from_what_recurs_and_from_what_has_come_back() {
    let folder = Folder::new();
    assert_eq!(statuses(&scan(&folder, &["--state-dir", "st"], TWO).ended(0)), ["new", "new"]);
    assert_eq!(statuses(&scan(&folder, &["--state-dir", "st"], TWO).ended(0)), ["recurring", "recurring"]);
    assert_eq!(scan(&folder, &["--state-dir", "st", "--new-only"], TWO).ended(0).out(), "");
    let rows = history(&folder, &["--json"]).ended(0).records();
    assert_eq!((rows.len(), &rows[0]["count"], &rows[0]["status"]), (2, &3.into(), &"recurring".into()));
    let key = rows.iter().find(|row| row["text"] == "KeyError: 'price'").unwrap()["signature"].as_str().unwrap().to_owned();
    // A resolved error leaves the list, and returns as regressed.
    history(&folder, &["resolve", &key[..8]]).ended(0);
    assert_eq!(history(&folder, &["--json"]).ended(0).records().len(), 1);
    assert_eq!(statuses(&scan(&folder, &["--state-dir", "st", "--new-only"], TWO).ended(0)), ["regressed"]);
    let shown = history(&folder, &["show", &key]).ended(0).out();
    assert!(shown.contains("status     regressed") && shown.contains("seen       4 times") && shown.contains("in         log"), "{shown}");
    let diff = history(&folder, &["diff", "--since", "1h"]).ended(0).out();
    assert!(diff.contains("2 new, 1 regressed, 0 gone"), "{diff}");
    // A muted error leaves the list, too, and is still counted.
    history(&folder, &["mute", &key[..8]]).ended(0);
    assert_eq!(history(&folder, &[]).ended(0).out().matches("KeyError").count(), 0);
    assert_eq!(history(&folder, &["--all"]).ended(0).out().matches("muted").count(), 1);
    history(&folder, &["mute", "--off", &key[..8]]).ended(0);
    assert_eq!(history(&folder, &[]).ended(0).out().matches("KeyError").count(), 1);
    let trend = history(&folder, &["trend", "--days", "1"]).ended(0).out();
    assert!(trend.lines().count() == 24 && trend.contains("2 new, 1 regressed"), "{trend}");
}

#[test]
fn mistakes_are_told_with_their_mend() {
    let folder = Folder::new();
    assert!(history(&folder, &[]).ended(2).err().contains("--state-dir"));
    scan(&folder, &["--state-dir", "st"], TWO).ended(0);
    for (words, said) in [
        (&["show", "zz"][..], "at least 4"),
        (&["show", "0123456789"], "no such error"),
        (&["resolve", "' OR 1=1"], "at least 4"),
        (&["list", "--since", "soon"], "yesterday"),
    ] {
        let done = history(&folder, words).ended(2);
        assert!(done.err().contains(said), "{}", done.err());
    }
}

#[test]
fn samples_hold_no_secret_and_lists_no_escape() {
    let folder = Folder::new();
    let log = "Error: login failed for token=ghp_abcdefghijklmnopqrstuvwxyz0123456789\x1b]0;x\x07\nall is well\n";
    scan(&folder, &["--state-dir", "st"], log).ended(0);
    let file = std::fs::read(folder.at("st/siftd.db")).unwrap();
    let wal = std::fs::read(folder.at("st/siftd.db-wal")).unwrap_or_default();
    assert!([file, wal].iter().all(|bytes| memchr::memmem::find(bytes, b"ghp_abcdefghij").is_none()));
    let shown = history(&folder, &[]).ended(0).out();
    assert!(shown.contains("login failed") && !shown.contains('\x1b'), "{shown}");
}

#[test]
fn a_build_fails_only_by_errors_that_its_baseline_lacks() {
    let folder = Folder::new();
    let base = scan(&folder, &[], "KeyError: 'price'\nall is well\n").ended(0).out();
    folder.write("base.ndjson", base);
    let flags = ["--new-only", "--baseline", "base.ndjson"];
    assert_eq!(scan(&folder, &flags, "KeyError: 'price'\nall is well\n").ended(0).out(), "");
    let done = scan(&folder, &flags, TWO).ended(1);
    assert_eq!(done.records().iter().map(|record| record["text"].clone()).collect::<Vec<_>>(), ["TypeError: x is not a function"]);
    scan(&folder, &[&flags[..], &["--fail-on", "blocking"]].concat(), TWO).ended(0);
    // An earlier scan that found nothing is a valid baseline; a log is not.
    folder.write("base.ndjson", "");
    scan(&folder, &flags, TWO).ended(1);
    folder.write("base.ndjson", TWO);
    assert!(scan(&folder, &flags, TWO).ended(2).err().contains("line 1 is no record"));
    assert!(scan(&folder, &["--new-only"], TWO).ended(2).err().contains("--baseline"));
}

fn kept(rules: Rules) -> ledger::Rules {
    ledger::Rules { history: Some(rules), ..ledger::Rules::default() }
}

/// Returns a state with tables filled by SQL.
fn filled(folder: &Folder, rows: u32) -> Shared {
    drop(Shared::open(&folder.at("st"), kept(Rules::default()), PATIENCE).unwrap());
    let mut db = Connection::open(folder.at("st/siftd.db")).unwrap();
    db.execute_batch("PRAGMA synchronous = OFF; PRAGMA cache_size = -65536").unwrap();
    let tx = db.transaction().unwrap();
    {
        let mut put = tx
            .prepare(
                "INSERT INTO history (signature, recipe, first, last, count, resolved, muted, back, streams, hours, severity, category, rule, sample)
                 VALUES (?1, 1, ?2, ?3, ?4, 0, NULL, NULL, 'a.log', x'', 'high', 'unknown_error', 'generic.error', 'Error: made up')",
            )
            .unwrap();
        for n in 0..rows {
            let digest = Hex::parse(&siftd::delivery::derived_id("row", &[&n.to_be_bytes()])).unwrap().digest();
            let at = i64::from(n) * 1000;
            put.execute(params![digest, at, at + i64::from(n.reverse_bits() % 1000), n % 77]).unwrap();
        }
        tx.execute("UPDATE history_size SET rows = ?1", [rows]).unwrap();
    }
    tx.commit().unwrap();
    Shared::open(&folder.at("st"), kept(Rules::default()), PATIENCE).unwrap()
}

#[test]
fn a_history_is_listed_in_pages_in_any_order() {
    let folder = Folder::new();
    let shared = filled(&folder, 2_000);
    let page = |order| shared.list(&Choice { limit: 50, order, ..Choice::default() }, Timestamp(0)).unwrap();
    let (by_time, by_count) = (page(Order::Last), page(Order::Count));
    assert_eq!((by_time.len(), by_count.len()), (50, 50));
    assert!(by_time.windows(2).all(|pair| pair[0].row.last >= pair[1].row.last));
    assert!(by_count.windows(2).all(|pair| pair[0].row.count >= pair[1].row.count));
    assert_eq!(shared.count(&Choice::default(), Timestamp(0)).unwrap(), 2_000);
    drop(shared);
    // The newest one, also through the command.
    let rows = history(&folder, &["--json", "--limit", "1"]).ended(0).records();
    assert_eq!(rows[0]["text"], "Error: made up");
}

#[test]
fn more_signatures_than_are_kept_stay_within_the_bounds() {
    let folder = Folder::new();
    folder.write("c.toml", "[history]\nmax_signatures = 500\n[error_detection]\ncustom_patterns = [\"BOOM\"]\n");
    let word = |n: u32| (0..10).map(|bit| if n >> bit & 1 == 1 { "ab" } else { "cd" }).collect::<String>();
    let log = |numbers: std::ops::Range<u32>| numbers.map(|n| format!("BOOM {}\n", word(n))).collect::<String>();
    for numbers in [0..600, 600..1000] {
        scan(&folder, &["--config", "c.toml", "--state-dir", "st"], &log(numbers)).ended(0);
    }
    let shared = Shared::open(&folder.at("st"), kept(Rules::default()), PATIENCE).unwrap();
    let page = shared.list(&Choice { limit: 2000, ..Choice::default() }, Timestamp(0)).unwrap();
    assert!(page.len() <= 500, "{} rows", page.len());
    // The newest rows stay.
    let stays = |n: u32| page.iter().any(|entry| entry.sample.ends_with(&word(n)));
    assert!((600..1000).all(stays) && (0..600).filter(|n| stays(*n)).count() < 100);
}

#[test]
fn what_is_too_old_is_forgotten() {
    let folder = Folder::new();
    scan(&folder, &["--state-dir", "st"], TWO).ended(0);
    let db = Connection::open(folder.at("st/siftd.db")).unwrap();
    db.execute("UPDATE history SET last = last - ?1 WHERE sample LIKE 'KeyError%'", [100 * 24 * HOUR_US]).unwrap();
    drop(db);
    scan(&folder, &["--state-dir", "st"], "OSError: disk is gone\nall is well\n").ended(0);
    let texts: Vec<Value> = history(&folder, &["--json", "--all"]).ended(0).records().iter().map(|row| row["text"].clone()).collect();
    assert_eq!(texts, ["OSError: disk is gone", "TypeError: x is not a function"]);
}

/// Scans, lets two hours pass for a `KeyError`, and scans another log with this key. Returns the folder, and what the second scan has found.
fn after_two_hours(key: &str, log: &str) -> (Folder, Done) {
    let folder = Folder::new();
    folder.write("c.toml", format!("[history]\n{key}\n"));
    scan(&folder, &["--state-dir", "st"], TWO).ended(0);
    let db = Connection::open(folder.at("st/siftd.db")).unwrap();
    db.execute("UPDATE history SET last = last - ?1 WHERE sample LIKE 'KeyError%'", [2 * HOUR_US]).unwrap();
    drop(db);
    let done = scan(&folder, &["--config", "c.toml", "--state-dir", "st"], log).ended(0);
    (folder, done)
}

#[test]
fn max_age_says_what_is_too_old() {
    for (key, left) in [("max_age = \"1h\"", 2), ("", 3)] {
        let (folder, _) = after_two_hours(key, "OSError: disk is gone\nall is well\n");
        assert_eq!(history(&folder, &["--json", "--all"]).ended(0).records().len(), left, "{key}");
    }
}

#[test]
fn regressed_after_says_what_has_come_back() {
    for (key, status) in [("regressed_after = \"1h\"", "regressed"), ("", "recurring")] {
        assert_eq!(statuses(&after_two_hours(key, TWO).1), [status, "recurring"], "{key}");
    }
}

/// A new version of the recipe gives an error a different signature; its history continues.
#[test]
fn a_history_goes_on_under_a_new_recipe() {
    let folder = Folder::new();
    scan(&folder, &["--state-dir", "st"], TWO).ended(0);
    let db = Connection::open(folder.at("st/siftd.db")).unwrap();
    let old = [7_u8; 16];
    db.execute("UPDATE history SET recipe = 0, signature = ?1, count = 41 WHERE sample LIKE 'KeyError%'", [old]).unwrap();
    db.execute("UPDATE history_recipe SET version = 0", []).unwrap();
    drop(db);
    let record = scan(&folder, &["--state-dir", "st"], TWO).ended(0).records().remove(0);
    assert_eq!((&record["seen"]["status"], &record["seen"]["count"]), (&"recurring".into(), &42.into()));
    let shown = history(&folder, &["show", record["signature"].as_str().unwrap()]).ended(0).out();
    assert!(shown.contains(&format!("before     {} (recipe 0)", Hex::new(old))), "{shown}");
    // Both rows exist, and the list shows one.
    assert_eq!(history(&folder, &["--json"]).ended(0).records().len(), 2);
    history(&folder, &["show", &Hex::new(old)]).ended(0);
}

#[test]
fn two_errors_that_are_one_are_joined_by_hand() {
    let folder = Folder::new();
    scan(&folder, &["--state-dir", "st"], TWO).ended(0);
    let rows = history(&folder, &["--json"]).ended(0).records();
    let [a, b] = [0, 1].map(|at| rows[at]["signature"].as_str().unwrap().to_owned());
    history(&folder, &["join", &a, &b]).ended(0);
    assert!(history(&folder, &["join", &b, &a]).ended(2).err().contains("already"));
    let left = history(&folder, &["--json"]).ended(0).records();
    assert_eq!((left.len(), &left[0]["signature"], &left[0]["count"]), (1, &b.into(), &2.into()));
}

#[test]
fn a_joined_error_leads_to_the_one_that_it_goes_on_as() {
    let folder = Folder::new();
    scan(&folder, &["--state-dir", "st"], &format!("{TWO}ValueError: third\nOSError: fourth\n")).ended(0);
    let rows = history(&folder, &["--json"]).ended(0).records();
    let [a, b, c, _] = [0, 1, 2, 3].map(|at| rows[at]["signature"].as_str().unwrap().to_owned());
    history(&folder, &["join", &a, &b]).ended(0);
    let shown = history(&folder, &["show", &a]).ended(0).out();
    assert!(shown.contains("status     joined\n") && shown.contains(&format!("goes on as {b} ")), "{shown}");
    let shown = history(&folder, &["show", &a, "--json"]).ended(0).records().remove(0);
    assert_eq!((&shown["status"], &shown["goes_on_as"]["signature"]), (&"joined".into(), &b.as_str().into()));
    assert!(history(&folder, &["--limit", "1"]).ended(0).out().contains("more of 3 "));
    history(&folder, &["mute", &c]).ended(0);
    assert!(history(&folder, &["--limit", "1"]).ended(0).out().contains("more of 2 "));
    assert!(history(&folder, &["--limit", "1", "--all"]).ended(0).out().contains("more of 3 "));
    assert!(history(&folder, &["trend"]).ended(0).out().contains("  3 new"));
    let said = history(&folder, &["resolve", &a]).ended(0).out();
    assert!(said.starts_with(&format!("resolved: {} ", &b[..12])) && said.contains(&format!("({} goes on as it)", &a[..12])), "{said}");
    assert_eq!(history(&folder, &["--json"]).ended(0).records().len(), 1);
    assert!(history(&folder, &["trend", &a]).ended(0).out().starts_with(&b[..12]));
}

const NEW: &str = r#"
[family]
id = "shop"
title = "The shop"
depth = "head"
[[rule]]
id = "shop.sold-out"
literals = ["SOLD OUT"]
regex = "SOLD OUT"
category = "runtime_error"
examples = { match = ["SOLD OUT: tea"] }
[[cancel]]
id = "shop.drill"
literals = ["drill"]
regex = "(?:KeyError|TypeError): drill.*"
reason = "a drill"
examples = { no_match = ["KeyError: drill"] }
"#;

#[test]
fn replay_shows_what_changed_rules_change() {
    let folder = Folder::new();
    folder.write("new/shop.toml", NEW.split("[[cancel]]").next().unwrap());
    folder.write(
        "old.toml",
        NEW.split("[[cancel]]")
            .next()
            .unwrap()
            .replace("runtime_error", "build_error")
            .replace("[\"SOLD OUT\"]", "[\"SOLD OUT:\"]")
            .replace("regex = \"SOLD OUT\"", "regex = \"SOLD OUT:\""),
    );
    folder.write("app.log", "KeyError: 'price'\nall is well\nSOLD OUT: tea\nSOLD OUT, sorry\nall is well\n");
    let done = folder.siftd(["replay", "app.log", "--rules", "new"]).ended(0);
    let lines: Vec<String> = done.out().lines().map(str::to_owned).collect();
    assert_eq!(
        lines,
        [
            "+ app.log:3  high runtime_error by shop.sold-out: SOLD OUT: tea",
            "+ app.log:4  high runtime_error by shop.sold-out: SOLD OUT, sorry",
            "2 appear, 0 vanish, 0 change, 1 stay"
        ]
    );
    let done = folder.siftd(["replay", "app.log", "--rules", "new/shop.toml", "--against", "old.toml"]).ended(0).out();
    assert!(done.contains("~ app.log:3  category build_error → runtime_error, severity blocking → high"), "{done}");
    assert!(done.ends_with("1 appear, 0 vanish, 1 change, 1 stay\n"), "{done}");
    let rows = folder.siftd(["replay", "app.log", "--rules", "old.toml", "--against", "new", "--json"]).ended(0).records();
    let words: Vec<&str> = rows.iter().map(|row| row["change"].as_str().unwrap()).collect();
    assert_eq!((words, &rows[0]["was"]["category"]), (vec!["changes", "vanishes"], &"runtime_error".into()));
    let piped = folder.piped(["replay", "-", "--rules", "new"], folder.read("app.log")).ended(0).out();
    assert!(piped.starts_with("+ stdin:3  high"), "{piped}");
    assert!(folder.siftd(["replay", "gone.log", "--rules", "new"]).ended(2).err().contains("gone.log"));
    assert!(folder.siftd(["replay", "app.log"]).ended(2).err().contains("--rules"));
}

/// Returns names, bytes and times of everything in a folder.
fn seen(folder: &Folder) -> Vec<(String, Vec<u8>, std::time::SystemTime)> {
    let mut all: Vec<_> = std::fs::read_dir(folder.at("st"))
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            let bytes = std::fs::read(entry.path()).unwrap();
            (entry.file_name().into_string().unwrap(), bytes, entry.metadata().unwrap().modified().unwrap())
        })
        .collect();
    all.sort();
    all
}

#[test]
fn who_only_asks_changes_nothing() {
    const ASKED: [&[&str]; 9] = [
        &["history"],
        &["history", "trend"],
        &["history", "diff", "--since", "1h"],
        &["breaker", "status"],
        &["breaker", "check", "b"],
        &["state", "list"],
        &["status"],
        &["run", "--file", "log", "--dry-run"],
        &["check", "--config", "c.toml"],
    ];
    let folder = Folder::new();
    folder.write("c.toml", "state_dir = \"st\"\n[[source]]\nname = \"u\"\ntype = \"unix\"\npath = \"u.sock\"\n");
    let ask = || {
        for words in ASKED {
            let place = if words[0] == "check" { &[][..] } else { &["--state-dir", "st"] };
            folder.siftd([words, place].concat());
        }
    };
    ask();
    assert!(!folder.at("st").exists() && !folder.at("u.sock").exists());
    folder.write("st/other", "");
    ask();
    assert_eq!(seen(&folder).len(), 1);
    scan(&folder, &["--state-dir", "st"], TWO).ended(0);
    folder.siftd(["breaker", "record", "b", "--failure", "--error", "x", "--state-dir", "st"]).ended(0);
    let before = seen(&folder);
    ask();
    assert!(seen(&folder) == before, "{:?}", seen(&folder).iter().map(|(name, ..)| name).collect::<Vec<_>>());
    // Nor is a state of an earlier version changed; its content is shown all the same.
    let db = Connection::open(folder.at("st/siftd.db")).unwrap();
    db.execute_batch(
        "DROP TABLE history_tail; DROP TABLE loss; DROP TABLE left_out; DROP TABLE dropped; PRAGMA user_version=4; PRAGMA journal_mode=DELETE; PRAGMA journal_mode=WAL;",
    )
    .unwrap();
    drop(db);
    let before = seen(&folder);
    ask();
    assert!(seen(&folder) == before);
    assert_eq!(history(&folder, &["--json"]).ended(0).records().len(), 3);
    assert!(folder.siftd(["breaker", "status", "b", "--state-dir", "st"]).ended(0).out().starts_with("b: closed"));
}
