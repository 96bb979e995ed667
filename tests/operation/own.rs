//! Globs that match files siftd itself writes.

use std::os::unix::fs::MetadataExt;

use nix::sys::signal::Signal;

use super::rig::{ONE, World, error, siftd};
use super::wait::wait;

/// Maximum number of logs created until one gets the inode of an output.
const MOST_LOGS: usize = 50;

/// Returns a source that matches everything in the folder.
fn everything() -> String {
    ONE.replace("include = [\"@/a*.log\"]", "include = [\"@/**\"]\nexclude = [\"@/said.txt\", \"@/siftd.toml\", \"@/notify\"]")
}

#[test]
fn the_state_and_the_outputs_are_left_out_and_that_is_said_once() {
    let world = World::new();
    world.configure(&everything());
    for name in ["one", "two", "three"] {
        let daemon = world.start(&[]);
        world.append("a.log", &error(name));
        let texts = world.written("one.ndjson", 1 + ["one", "two", "three"].iter().position(|known| *known == name).unwrap());
        assert_eq!(texts.last().map(String::as_str), Some(name));
        for own in ["/state is siftd's own and is left out", "/one.ndjson is siftd's own and is left out"] {
            assert_eq!(world.said().matches(own).count(), 1, "{}", world.said());
        }
        assert_eq!(daemon.stop(), Some(0));
        // An older output is not one of its logs, either.
        std::fs::copy(world.path("one.ndjson"), world.path("one.ndjson.1")).unwrap();
    }
    assert_eq!(world.texts("one.ndjson"), ["one", "two", "three"]);
    let (code, _, hints) = siftd(&["check", "--config", "siftd.toml"], world.folder.path());
    assert!(code == Some(0) && hints.contains("/state is siftd's own and is left out"), "{hints}");
}

#[test]
fn a_log_in_the_inode_of_an_output_that_is_gone_is_read() {
    let world = World::new();
    world.configure(ONE);
    let daemon = world.start(&[]);
    let (output, old) = (world.path("one.ndjson"), world.path("one.ndjson.1"));
    for number in 0..MOST_LOGS {
        wait("the output", || output.exists().then_some(()));
        let freed = output.metadata().unwrap().ino();
        std::fs::rename(&output, &old).unwrap();
        daemon.signal(Signal::SIGUSR1);
        wait("a new output", || output.exists().then_some(()));
        std::fs::remove_file(&old).unwrap();
        let name = format!("a{number}.log");
        world.append(&name, &error(&name));
        assert_eq!(world.written("one.ndjson", 1), [name.as_str()]);
        if world.path(&name).metadata().unwrap().ino() == freed {
            assert_eq!(daemon.stop(), Some(0));
            return;
        }
    }
    crate::skip::skipped("a file system that hands inodes out again");
}

#[test]
fn check_refuses_a_sink_whose_folder_is_not_there_as_run_does() {
    let world = World::new();
    world.configure(&ONE.replace("@/one.ndjson", "@/out/one.ndjson"));
    for command in ["check", "run"] {
        let (code, _, said) = siftd(&[command, "--config", "siftd.toml"], world.folder.path());
        assert!(code == Some(2) && said.contains("sink one: there is no folder") && said.contains("make it"), "{code:?} {said}");
    }
}
