//! Globs that cover what siftd itself writes.

use super::rig::{ONE, World, error, siftd};

/// A source that means everything in the folder.
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
        // An older output is none of its logs, either.
        std::fs::copy(world.path("one.ndjson"), world.path("one.ndjson.1")).unwrap();
    }
    assert_eq!(world.texts("one.ndjson"), ["one", "two", "three"]);
    let (code, _, hints) = siftd(&["check", "--config", "siftd.toml"], world.folder.path());
    assert!(code == Some(0) && hints.contains("/state is siftd's own and is left out"), "{hints}");
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
