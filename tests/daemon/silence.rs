//! Which sources count as silent when files are renamed. Stepped, with real files and the test's own clock.

use std::collections::HashMap;

use siftd::sources::silence::{Limit, Said, Silence};

use super::rig::{Rig, SECOND, World};

const SILENT_AFTER: i64 = 3 * SECOND;
const TURN: i64 = SECOND / 5;

/// Does what the daemon does between two checks of its files: the existing files must be known before a silence is reported.
fn listen(world: &World, rig: &mut Rig, silence: &mut Silence) -> Vec<Said> {
    rig.settle(world);
    let mut said: Vec<Said> = rig.talked.drain(..).flat_map(|(uid, label)| silence.heard(uid, &label, world.now)).collect();
    said.extend(silence.keep(&rig.follower.voices().collect(), world.now));
    said.extend(silence.due(world.now));
    said
}

#[test]
fn a_rotated_file_whose_name_another_has_is_not_told_silent() {
    // One generation loses every name of the source, the next one keeps a name.
    let mut world = World::new(&["logs/*.{log,1}"]);
    let limit = Limit { after_us: SILENT_AFTER, kind: "file", by_stream: true };
    let mut silence = Silence::new(HashMap::from([(world.source.to_owned(), limit)]), Vec::new(), world.now);
    let mut rig = Rig::start(&world);
    for turn in 0..40 {
        match turn {
            4 => world.rename("a.log", "a.old"),
            8 => world.rename("a.log", "a.1"),
            _ => {}
        }
        world.append("a.log", "all is well\n");
        assert_eq!(listen(&world, &mut rig, &mut silence), [], "turn {turn}");
        world.pass(TURN);
    }
    world.pass(SILENT_AFTER);
    let said = listen(&world, &mut rig, &mut silence);
    let [(_, label, _)] = &said[..] else { panic!("{said:?}") };
    assert!(label.path.ends_with("/a.log"), "{said:?}");
}

#[test]
fn rotated_files_are_one_voice_after_a_restart_too() {
    let mut world = World::new(&["logs/a.log"]);
    let limit = Limit { after_us: SILENT_AFTER, kind: "file", by_stream: true };
    let limits = HashMap::from([(world.source.to_owned(), limit)]);
    let mut rig = Rig::start(&world);
    for number in (0..5).rev() {
        world.append("a.log", "all is well\nthis line has no end yet");
        rig.settle(&world);
        if number > 0 {
            world.rename("a.log", &format!("a.log.{number}"));
        }
        world.pass(TURN);
    }
    rig.stop(&world);
    let mut rig = Rig::start(&world);
    let mut silence = Silence::new(limits, Vec::new(), world.now);
    let mut said = listen(&world, &mut rig, &mut silence);
    world.pass(SILENT_AFTER);
    said.extend(listen(&world, &mut rig, &mut silence));
    assert!(matches!(&said[..], [_]), "{said:?}");
}
