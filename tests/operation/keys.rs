//! `max_events_per_second`: what comes beyond it is counted in a `gap`.

use super::rig::{ONE, World, error};
use super::wait::wait;

#[test]
fn max_events_per_second_holds_a_flood_back() {
    let world = World::new();
    world.configure(&ONE.replace("[[sink]]", "max_events_per_second = 10\n[[sink]]"));
    let flood: String = (0..500).map(|n| error(&format!("job-{n} failed")) + "fine\n").collect();
    world.append("a.log", &flood);
    let daemon = world.start(&[]);
    let gaps = || {
        let records = world.records("one.ndjson");
        let gaps = records.iter().filter(|record| record["why"] == "rate_limit").map(|gap| gap["count"].as_u64().unwrap()).sum::<u64>();
        (gaps, records.iter().filter(|record| record["kind"] == "error").count() as u64)
    };
    let (held_back, written) = wait("all of the flood", || Some(gaps()).filter(|(held_back, written)| held_back + written == 500));
    assert!(held_back > 0, "{written}");
    assert_eq!(daemon.stop(), Some(0));
}
