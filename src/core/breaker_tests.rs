//! What the breaker is to do, transition by transition, with the test's own clock.

use super::*;

const MINUTE: i64 = 60_000_000;
const HOUR: i64 = 60 * MINUTE;

fn sig(name: char) -> Hex {
    Hex::new([name as u8; 16])
}

/// A breaker and its clock.
struct Bench {
    breaker: Breaker,
    limits: Limits,
    now: i64,
}

impl Bench {
    fn new(unit: Unit) -> Self {
        Self { breaker: Breaker::new(unit, Timestamp(0)), limits: Limits::default(), now: 0 }
    }

    fn runs() -> Self {
        Self::new(Unit::Run)
    }

    /// `from→to reason` of each transition.
    fn shown(made: &[Transition]) -> String {
        let one = |t: &Transition| format!("{}→{} {}", t.from.as_str(), t.to.as_str(), t.reason.as_str());
        made.iter().map(one).collect::<Vec<_>>().join(", ")
    }

    /// A run that fails with these errors.
    fn fails(&mut self, names: &str) -> String {
        self.now += 1;
        let failure = Failure { signatures: names.chars().map(sig).collect(), ..Failure::default() };
        Self::shown(&self.breaker.failure(&failure, &self.limits, Timestamp(self.now)))
    }

    fn fails_by_the_network(&mut self) -> String {
        self.now += 1;
        let failure = Failure { is_transient: true, ..Failure::default() };
        Self::shown(&self.breaker.failure(&failure, &self.limits, Timestamp(self.now)))
    }

    fn succeeds(&mut self) -> String {
        self.now += 1;
        Self::shown(&self.breaker.success(&self.limits, Timestamp(self.now)))
    }

    /// An event of a stream, `after` microseconds later.
    fn event(&mut self, after: i64, name: char) -> String {
        self.now += after;
        Self::shown(&self.breaker.event(sig(name), false, &self.limits, Timestamp(self.now)))
    }

    fn wait(&mut self, micros: i64) -> String {
        self.now += micros;
        Self::shown(&self.breaker.pass(&self.limits, Timestamp(self.now)))
    }

    fn opened(mut self) -> Self {
        (0..5).for_each(|_| drop(self.fails("A")));
        assert_eq!(self.breaker.state, State::Open);
        self
    }
}

#[test]
fn closed_becomes_half_open_when_a_signatures_count_reaches_warn_after() {
    let mut bench = Bench::runs();
    assert_eq!([bench.fails("A"), bench.fails("A"), bench.fails("A")], ["", "", "closed→half_open warn_after"]);
    assert!(!bench.breaker.is_probe);
}

#[test]
fn closed_and_half_open_become_open_when_it_reaches_open_after() {
    let mut bench = Bench::runs();
    (0..3).for_each(|_| drop(bench.fails("A")));
    assert_eq!(bench.fails("A"), "");
    let made = bench.breaker.failure(&Failure { signatures: vec![sig('A')], ..Failure::default() }, &bench.limits, Timestamp(9));
    let until = Some(Timestamp(9 + 30 * MINUTE));
    let (from, to, reason, signature) = (State::HalfOpen, State::Open, Reason::OpenAfter, Some(sig('A')));
    assert_eq!(made, [Transition { from, to, reason, signature, count: 5, at: Timestamp(9), until }]);
    // Without a warning in between.
    let mut bench = Bench::runs();
    bench.limits.warn_after = 5;
    let all: Vec<String> = (0..5).map(|_| bench.fails("A")).collect();
    assert_eq!(all[3..], ["", "closed→open open_after"]);
}

#[test]
fn or_a_fatal_error() {
    for failures in [0, 3] {
        let mut bench = Bench::runs();
        (0..failures).for_each(|_| drop(bench.fails("A")));
        let from = bench.breaker.state.as_str();
        let fatal = Failure { fatal: Some(Some(sig('F'))), signatures: vec![sig('F')], ..Failure::default() };
        let made = bench.breaker.failure(&fatal, &bench.limits, Timestamp(9));
        assert_eq!(Bench::shown(&made), format!("{from}→open fatal"));
        assert_eq!((made[0].signature, made[0].count), (Some(sig('F')), 1));
    }
}

#[test]
fn or_in_the_probe_the_same_signature_once() {
    let mut bench = Bench::runs().opened();
    assert_eq!(bench.wait(30 * MINUTE), "open→half_open cooldown");
    assert_eq!(bench.fails("B"), "", "another error is not the same one");
    assert_eq!(bench.fails("BA"), "half_open→open probe_failed");
    // The cooldown begins again.
    assert_eq!(bench.wait(30 * MINUTE - 1), "");
    assert_eq!(bench.wait(1), "open→half_open cooldown");
}

#[test]
fn half_open_becomes_closed_on_success() {
    let mut bench = Bench::runs();
    (0..3).for_each(|_| drop(bench.fails("A")));
    assert_eq!(bench.succeeds(), "half_open→closed success");
    // The count begins anew.
    assert_eq!([bench.fails("A"), bench.fails("A"), bench.fails("A")], ["", "", "closed→half_open warn_after"]);
    // So after the probe.
    let mut bench = Bench::runs().opened();
    bench.wait(30 * MINUTE);
    assert_eq!(bench.succeeds(), "half_open→closed success");
    assert_eq!(bench.fails("A"), "");
}

#[test]
fn open_becomes_half_open_for_a_probe_when_the_cooldown_has_passed() {
    let mut bench = Bench::runs().opened();
    assert_eq!(bench.breaker.deadline(&bench.limits), Some(Timestamp(5 + 30 * MINUTE)));
    assert_eq!(bench.wait(30 * MINUTE - 1), "");
    assert_eq!(bench.wait(1), "open→half_open cooldown");
    assert!(bench.breaker.is_probe);
    // What comes late finds the same: first the time passes, then the run counts.
    let mut bench = Bench::runs().opened();
    bench.now += 31 * MINUTE;
    assert_eq!(bench.fails("A"), "open→half_open cooldown, half_open→open probe_failed");
    bench.now += 31 * MINUTE;
    assert_eq!(bench.succeeds(), "open→half_open cooldown, half_open→closed success");
}

#[test]
fn any_state_becomes_closed_by_a_reset() {
    let mut bench = Bench::runs();
    assert_eq!(bench.breaker.reset(Timestamp(1)), None);
    (0..3).for_each(|_| drop(bench.fails("A")));
    assert_eq!(bench.breaker.reset(Timestamp(9)).map(|t| (t.from, t.to, t.reason)), Some((State::HalfOpen, State::Closed, Reason::Reset)));
    let mut bench = Bench::runs().opened();
    assert_eq!(bench.breaker.reset(Timestamp(9)).map(|t| (t.from, t.to)), Some((State::Open, State::Closed)));
    assert_eq!([bench.fails("A"), bench.fails("A")], ["", ""]);
}

/// "The count is of runs since the last success that contain the signature, so A, B, A, B, A trips too."
#[test]
fn a_b_a_b_a_trips() {
    let mut bench = Bench::runs();
    let all: Vec<String> = "ABABA".chars().map(|name| bench.fails(&name.to_string())).collect();
    assert_eq!(all, ["", "", "", "", "closed→half_open warn_after"]);
    let all: Vec<String> = "BABA".chars().map(|name| bench.fails(&name.to_string())).collect();
    assert_eq!(all, ["", "", "", "half_open→open open_after"]);
}

#[test]
fn five_different_errors_do_not() {
    let mut bench = Bench::runs();
    assert!("ABCDEFGHIJ".chars().all(|name| bench.fails(&name.to_string()).is_empty()));
    assert_eq!(bench.breaker.state, State::Closed);
}

#[test]
fn a_signature_counts_once_per_run() {
    let mut bench = Bench::runs();
    assert_eq!([bench.fails("AAAAA"), bench.fails("AAB")], ["", ""]);
    assert_eq!(bench.breaker.counts.iter().map(|count| count.runs).collect::<Vec<_>>(), [2, 1]);
}

/// "Transient errors have a counter and a limit of their own."
#[test]
fn a_transient_storm_is_no_bug_and_has_its_own_limit() {
    let mut bench = Bench::runs();
    assert!((0..19).all(|_| bench.fails_by_the_network().is_empty()));
    assert_eq!(bench.fails("A"), "", "a first bug after the storm is a first bug");
    assert_eq!(bench.fails_by_the_network(), "closed→open transient_open_after");
    bench.wait(30 * MINUTE);
    assert_eq!(bench.fails("A"), "", "a bug in the probe is not what opened it");
    assert_eq!(bench.fails_by_the_network(), "half_open→open probe_failed");
    // A success ends the storm.
    let mut bench = Bench::runs();
    (0..19).for_each(|_| drop(bench.fails_by_the_network()));
    bench.succeeds();
    assert_eq!(bench.fails_by_the_network(), "");
}

#[test]
fn while_it_is_open_a_straggler_changes_nothing() {
    let mut bench = Bench::runs().opened();
    assert_eq!([bench.succeeds(), bench.fails("A"), bench.fails("B")], ["", "", ""]);
    assert_eq!(bench.breaker.since, Timestamp(5), "the cooldown goes on");
}

/// "There the unit is an event, at most one per signature and minute."
#[test]
fn a_stream_counts_a_signature_once_a_minute() {
    let mut bench = Bench::new(Unit::Event);
    assert!((0..1000).all(|_| bench.event(10_000, 'A').is_empty()), "ten seconds of the same error are one");
    assert_eq!([bench.event(MINUTE, 'A'), bench.event(1, 'B'), bench.event(MINUTE, 'A')], ["", "", "closed→half_open warn_after"]);
    assert_eq!([bench.event(MINUTE, 'A'), bench.event(MINUTE, 'A')], ["", "half_open→open open_after"]);
    // Transient ones, too, whichever they are.
    let mut bench = Bench::new(Unit::Event);
    for at in 0..100 {
        drop(bench.breaker.event(sig((b'A' + at % 20) as char), true, &bench.limits, Timestamp(i64::from(at))));
    }
    assert_eq!((bench.breaker.transient, bench.breaker.counts.len()), (1, 0));
}

/// "… and one quiet hour counts as success."
#[test]
fn a_quiet_hour_of_a_stream_is_a_success() {
    let mut bench = Bench::new(Unit::Event);
    (0..3).for_each(|_| drop(bench.event(MINUTE, 'A')));
    assert_eq!(bench.breaker.deadline(&bench.limits), Some(Timestamp(bench.now + HOUR)));
    assert_eq!([bench.wait(HOUR - 1), bench.wait(1)], ["", "half_open→closed quiet"]);
    assert_eq!(bench.breaker.deadline(&bench.limits), None);
    assert_eq!(bench.event(MINUTE, 'A'), "");
    // Two in an hour are forgotten silently.
    bench.event(MINUTE, 'A');
    assert_eq!(bench.wait(HOUR), "");
    assert_eq!([bench.event(1, 'A'), bench.event(MINUTE, 'A')], ["", ""]);
    // The cooldown comes first, and the probe of a quiet stream succeeds.
    let mut bench = Bench::new(Unit::Event);
    (0..5).for_each(|_| drop(bench.event(MINUTE, 'A')));
    assert_eq!([bench.wait(30 * MINUTE), bench.wait(30 * MINUTE)], ["open→half_open cooldown", "half_open→closed quiet"]);
    // Runs are not forgotten by time.
    let mut bench = Bench::runs();
    (0..3).for_each(|_| drop(bench.fails("A")));
    assert_eq!(bench.wait(1000 * HOUR), "");
}

#[test]
fn it_counts_a_bounded_number_of_errors_and_forgets_the_longest_unseen() {
    let mut bench = Bench::runs();
    bench.fails("A");
    for n in 0..1000_u32 {
        bench.now += 1;
        let mut digest = [0; 16];
        digest[..4].copy_from_slice(&n.to_le_bytes());
        let failure = Failure { signatures: vec![Hex::new(digest)], ..Failure::default() };
        bench.breaker.failure(&failure, &bench.limits, Timestamp(bench.now));
    }
    assert_eq!(bench.breaker.counts.len(), MAX_SIGNATURES);
    assert!(!bench.breaker.counts.iter().any(|count| count.signature == sig('A')));
}

#[test]
fn clocks_that_go_back_and_far_away_limits_do_no_harm() {
    let mut bench = Bench::runs().opened();
    bench.limits.cooldown_us = i64::MAX;
    bench.now = i64::MAX - 10;
    assert_eq!(bench.wait(1), "");
    bench.now = -5;
    assert_eq!([bench.wait(0), bench.fails("A")], ["", ""]);
}
