//! Times in the messages of `siftd exec`.

use std::time::Duration;

use crate::sources::clock::now;

/// From here on a time is told in minutes and hours.
const LONG_MS: u128 = 2 * 60 * 1000;

/// Writes a time as people say it: `250 ms`, `90 s`, `1h 5m`.
pub(super) fn spoken(time: Duration) -> String {
    match time.as_millis() {
        LONG_MS.. => format!("{:#}", jiff::SignedDuration::from_secs(time.as_secs().div_ceil(60).saturating_mul(60).try_into().unwrap_or(i64::MAX))),
        millis if millis.is_multiple_of(1000) => format!("{} s", time.as_secs()),
        millis => format!("{millis} ms"),
    }
}

/// Says when a retry can help, for a time that is further away than siftd waits.
pub(super) fn later(pause: Duration) -> String {
    let at = i64::try_from(pause.as_micros()).ok().and_then(|micros| jiff::Timestamp::from_microsecond(now().0.checked_add(micros)?).ok());
    let at = at.map_or_else(|| "much later".to_owned(), |at| format!("at {}", at.strftime("%Y-%m-%dT%H:%M:%SZ")));
    format!("it may be tried again {at}, in {}; --max-reset-wait {}s would wait for that", spoken(pause), pause.as_secs_f64().ceil())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_told_in_units_that_one_can_picture() {
        let told = |millis| spoken(Duration::from_millis(millis));
        assert_eq!(told(250), "250 ms");
        assert_eq!(told(1500), "1500 ms");
        assert_eq!(told(90_000), "90 s");
        assert_eq!(told(120_000), "2m");
        assert_eq!(told(3_900_000), "1h 5m");
        assert_eq!(told(7_199_001), "2h");
        assert_eq!(told(7_201_000), "2h 1m");
        assert!(!spoken(Duration::MAX).is_empty());
    }
}
