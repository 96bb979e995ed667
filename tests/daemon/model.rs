//! Random sequences of everything that happens to logs and to the daemon, checked against
//! a model that knows what was written. Every error is reported once, however its file
//! was rotated and whenever the daemon ended. `SIFTD_ROUNDS=50` runs fifty times as many.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Seek, SeekFrom, Write};

use siftd::sources::open::look;
use siftd::state::store::Store;

use super::rig::{ROTATE_WAIT, Rig, SECOND, World};
use super::support::Rng;

const FILES: [&str; 3] = ["a", "b", "c"];

/// What the test knows.
struct Model {
    world: World,
    rig: Option<Rig>,
    rng: Rng,
    next: u32,
    wanted: BTreeMap<String, String>,
    /// The missing second half of a line, for each file.
    half: BTreeMap<&'static str, String>,
    rotations: u32,
    /// Files whose newest generation the daemon may not have seen.
    unseen: BTreeMap<&'static str, bool>,
    played: Vec<String>,
}

impl Model {
    fn new(seed: u64) -> Self {
        let mut rng = Rng(seed);
        // In half of the worlds, the glob also matches rotated files.
        let world = World::new(if rng.one_in(2) { &["logs/*.log*"] } else { &["logs/*.log"] });
        let (next, wanted, half, rotations, unseen, played) = Default::default();
        let mut world = world;
        if rng.one_in(3) {
            world.options.rotate_size = 4000;
        }
        Self { world, rig: None, rng, next, wanted, half, rotations, unseen, played }
    }

    /// Returns an error, or a line that is not an error.
    fn text(&mut self) -> String {
        self.next += 1;
        let n = self.next;
        let at = format!("step {}", self.played.len());
        match self.rng.below(5) {
            0 => format!("2026-09-21T10:00:00Z INFO all is well with job {n}\n"),
            1 => {
                self.wanted.insert(format!("trace-{n}x"), at);
                format!(
                    "2026-09-21T10:00:00Z INFO job {n} begins\nTraceback (most recent call last):\n  File \"/srv/app/job.py\", line {n}, in run\n    work()\nValueError: trace-{n}x\n"
                )
            }
            _ => {
                self.wanted.insert(format!("job-{n}x"), at);
                format!("2026-09-21T10:00:00Z ERROR job-{n}x failed\n")
            }
        }
    }

    fn name(&self, file: &str) -> String {
        format!("{file}.log")
    }

    fn step(&mut self) {
        let file = *self.rng.pick(&FILES);
        let name = self.name(file);
        let kind = self.rng.below(42);
        self.played.push(format!("{kind} {name}"));
        match kind {
            0..=9 => self.write(file, &name),
            10..=13 => self.write_half(file, &name),
            14..=20 => self.read(),
            21..=24 => self.commit(),
            25..=26 => self.deliver(),
            27 => self.world.pass(SECOND / 2),
            28 => self.world.pass(20 * SECOND),
            29..=30 => self.rename(file, &name),
            31..=32 => self.copytruncate(file, &name),
            33 => self.delete(file, &name),
            34 => self.slow_writer(file),
            35 => self.hole(file, &name),
            36 => self.settle(),
            40..=41 => self.renew(file, &name),
            37 => {
                if let Some(rig) = self.rig.take() {
                    rig.stop(&self.world);
                    self.unseen.clear();
                }
            }
            _ => self.rig = None,
        }
        self.world.records();
    }

    fn write(&mut self, file: &'static str, name: &str) {
        let mut text = self.half.remove(file).unwrap_or_default();
        for _ in 0..self.rng.below(4) {
            text += &self.text();
        }
        self.world.append(name, &text);
    }

    fn write_half(&mut self, file: &'static str, name: &str) {
        let text = self.half.remove(file).unwrap_or_default() + &self.text();
        let at = text.floor_char_boundary(self.rng.below(text.len()));
        self.world.append(name, &text[..at]);
        self.half.insert(file, text[at..].to_owned());
    }

    fn rig(&mut self) -> &mut Rig {
        self.rig.get_or_insert_with(|| Rig::start(&self.world))
    }

    fn read(&mut self) {
        self.rig();
        let turns = self.rng.below(6);
        if let Some(rig) = &mut self.rig {
            rig.look(&self.world);
            for _ in 0..turns {
                rig.turn(&self.world);
            }
        }
    }

    fn commit(&mut self) {
        self.rig();
        let count = self.rng.below(4);
        if let Some(rig) = &mut self.rig {
            rig.commit(count, &self.world);
        }
    }

    fn deliver(&mut self) {
        self.rig();
        let steps = self.rng.below(5);
        if let Some(rig) = &mut self.rig {
            for _ in 0..steps {
                rig.write(&self.world);
            }
        }
    }

    fn settle(&mut self) {
        self.rig();
        if let Some(rig) = &mut self.rig {
            rig.settle(&self.world);
        }
        self.unseen.clear();
    }

    /// Avoids rotations that no daemon could notice: of a file that was never seen, or two between two checks.
    fn before_rotation(&mut self, file: &'static str, name: &str) {
        if self.unseen.insert(file, true).is_some() || !self.is_known(name) {
            self.settle();
            self.unseen.insert(file, true);
        }
    }

    /// With fewer bytes, a new start of a file could equal the old one.
    fn is_known(&self, name: &str) -> bool {
        let store = Store::look(&self.world.folder.path().join("state")).unwrap();
        let rows = store.map(|store| store.streams().unwrap()).unwrap_or_default();
        rows.iter()
            .any(|row| row.mark.read > 60 && row.mark.path == self.world.path(name) && look(&row.mark.path).is_some_and(|seen| seen.node == row.mark.node))
    }

    fn rename(&mut self, file: &'static str, name: &str) {
        if !self.world.path(name).exists() {
            return;
        }
        self.before_rotation(file, name);
        self.rotations += 1;
        self.world.rename(name, &format!("{file}.log.{}", self.rotations));
        // The line continues in the new file, so it and its error stay cut in two.
        self.drop_half(file);
        if self.rng.one_in(2) {
            let text = self.text();
            self.world.append(name, &text);
        }
    }

    /// Completes the line that the writer has begun.
    fn drop_half(&mut self, file: &'static str) {
        if let Some(rest) = self.half.remove(file) {
            self.world.append(&format!("{file}.log.{}", self.rotations), &rest);
        }
    }

    fn copytruncate(&mut self, file: &'static str, name: &str) {
        if !self.world.path(name).exists() {
            return;
        }
        if let Some(rest) = self.half.remove(file) {
            self.world.append(name, &rest);
        }
        self.before_rotation(file, name);
        self.rotations += 1;
        self.world.copytruncate(name, &format!("{file}.log.{}", self.rotations));
        if self.rng.one_in(2) {
            let text = self.text();
            self.world.append(name, &text);
        }
    }

    /// Bytes that were never read would be lost, so everything is committed before the deletion.
    fn delete(&mut self, file: &'static str, name: &str) {
        if let Some(rest) = self.half.remove(file) {
            self.world.append(name, &rest);
        }
        self.settle();
        self.world.pass(SECOND);
        self.settle();
        drop(fs::remove_file(self.world.path(name)));
        if self.rng.one_in(2) {
            let text = self.text();
            self.world.append(name, &text);
        }
    }

    /// Writes to the most recently renamed file, if it belongs to `file` and is still read.
    fn slow_writer(&mut self, file: &'static str) {
        let name = format!("{file}.log.{}", self.rotations);
        if self.world.path(&name).exists() && self.rig.as_ref().is_some_and(|rig| rig.read().contains_key(&self.name(file))) {
            self.settle();
        }
    }

    /// Replaces the file by a longer copy, as rsync does.
    fn renew(&mut self, file: &'static str, name: &str) {
        self.settle();
        let mut text = fs::read_to_string(self.world.path(name)).unwrap_or_default();
        // Fewer bytes prove nothing.
        if text.len() < 256 {
            return;
        }
        text += &self.half.remove(file).unwrap_or_default();
        text += &self.text();
        fs::write(self.world.path("renewed"), text).unwrap();
        self.world.rename("renewed", name);
    }

    fn hole(&mut self, file: &'static str, name: &str) {
        let Ok(length) = fs::metadata(self.world.path(name)).map(|meta| meta.len()) else { return };
        if length < 200 {
            return;
        }
        self.copytruncate(file, name);
        let text = self.text();
        let mut writer = fs::OpenOptions::new().write(true).open(self.world.path(name)).unwrap();
        let now = writer.metadata().unwrap().len();
        writer.seek(SeekFrom::Start(length.max(now))).unwrap();
        writer.write_all(text.as_bytes()).unwrap();
    }

    /// For debugging a single seed.
    fn show(&self) {
        let mut files: Vec<_> = fs::read_dir(self.world.path("")).unwrap().map(|entry| entry.unwrap()).collect();
        files.sort_by_key(|entry| entry.path());
        let files: Vec<_> = files.iter().map(|entry| format!("{:?} {}", entry.file_name(), entry.metadata().unwrap().len())).collect();
        let words: Vec<_> = self.world.texts();
        eprintln!("{:?}: {files:?}\n  read {:?}\n  out {words:?}", self.played.last(), self.rig.as_ref().map(|rig| (rig.read(), rig.pending.len())));
    }

    fn finish(&mut self) -> Result<(), String> {
        for file in FILES {
            if let Some(rest) = self.half.remove(file) {
                let name = self.name(file);
                self.world.append(&name, &rest);
            }
        }
        self.settle();
        for _ in 0..4 {
            self.world.pass(ROTATE_WAIT);
            self.settle();
        }
        let (mut counts, mut parts): (BTreeMap<String, u32>, BTreeMap<String, u32>) = Default::default();
        let mut ids = BTreeMap::new();
        for record in self.world.records() {
            *ids.entry(record["id"].to_string()).or_insert(0) += 1;
            let Some(text) = record["text"].as_str() else { continue };
            let word = text.split(' ').find(|word| word.starts_with("job-") || word.starts_with("trace-")).unwrap_or(text);
            let is_part = record["closed"] == "idle" && !self.wanted.contains_key(word);
            let counts = if is_part { &mut parts } else { &mut counts };
            *counts.entry(word.to_owned()).or_default() += 1;
        }
        // A pause publishes an unfinished trace or line: its id is final, its text is what had arrived.
        let halves: u32 = parts.values().sum();
        let lost: Vec<_> = self.wanted.iter().filter(|(text, _)| !counts.contains_key(*text)).collect();
        let extra: Vec<_> = counts.iter().filter(|(text, count)| **count != 1 || !self.wanted.contains_key(*text)).collect();
        let twice = ids.values().filter(|count| **count > 1).count();
        let lost: Vec<_> = if lost.len() == halves as usize { Vec::new() } else { lost };
        if lost.is_empty() && extra.is_empty() && twice == 0 {
            return Ok(());
        }
        Err(format!("include {:?}\nlost: {lost:?}\nparts: {parts:?}\ntoo many: {extra:?}\n{twice} ids twice\n{}", self.world.include, self.played.join(", ")))
    }
}

#[test]
fn every_error_once_whatever_happens() {
    let rounds = std::env::var("SIFTD_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(1);
    let steps = std::env::var("SIFTD_STEPS").ok().and_then(|steps| steps.parse().ok()).unwrap_or(120);
    let mut failed = Vec::new();
    let only: Option<u64> = std::env::var("SIFTD_SEED").ok().and_then(|seed| seed.parse().ok());
    for seed in only.map_or(0..25 * rounds, |seed| seed..seed + 1) {
        let mut model = Model::new(seed);
        for _ in 0..steps {
            model.step();
            if only.is_some() {
                model.show();
            }
        }
        if let Err(why) = model.finish() {
            failed.push(format!("seed {seed}: {why}"));
        }
        if failed.len() > 2 {
            break;
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}
