//! Decides whether a failed run is retried, and after which pause. Pure: takes retry advice and the time, returns a decision.

use std::time::Duration;

use jiff::tz::TimeZone;

use super::reset;
use crate::config::Retry as Config;
use crate::core::event::{Retry, RetryClass, Timestamp};
use crate::core::retry::backoff_ms;

/// The reason that has its own number of retries.
const RATE_LIMIT: &str = "api_rate_limit";

/// Which failures are retried, and how often.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Pauses, and the number of retries if `retries` does not set it.
    pub config: Config,
    /// How often a run is retried.
    pub retries: Retries,
    /// Reasons that are retried even though they are not transient.
    pub also: Vec<String>,
}

/// The reason in the verdict of a run that is not retried because its stdin was read.
pub const STDIN_READ: &str = "stdin_read";

/// How often a run is retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retries {
    /// Never.
    None,
    /// As configured for the reason.
    Configured,
    /// This many times, for every reason.
    Count(u32),
}

/// What happens after a failed run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// No retry can help, or none was requested.
    Stop,
    /// A retry could help, but none is left.
    Exhausted,
    /// A retry could help only after this pause, which is longer than siftd waits.
    Later(Duration),
    /// The run is repeated after a pause.
    Again {
        /// Maximum number of retries.
        max: u32,
        /// The pause.
        delay: Duration,
    },
}

impl Policy {
    /// Decides what follows run `attempt` (from 1), which failed with `retry` as advice.
    #[must_use]
    pub fn next(&self, attempt: u32, retry: &Retry, now: Timestamp) -> Next {
        let wanted = retry.class == RetryClass::Transient || (retry.class != RetryClass::Fatal && self.also.iter().any(|reason| *reason == retry.reason));
        match self.max(&retry.reason) {
            0 => Next::Stop,
            _ if !wanted => Next::Stop,
            max if attempt > max => Next::Exhausted,
            max => match stated(retry.reset_at.as_deref(), now).filter(|stated| *stated > self.config.max_reset_wait) {
                // A retry before that time would fail in the same way.
                Some(stated) => Next::Later(stated),
                None => Next::Again { max, delay: delay(&self.config, attempt, retry.reset_at.as_deref(), now) },
            },
        }
    }

    fn max(&self, reason: &str) -> u32 {
        match self.retries {
            Retries::None => 0,
            Retries::Count(count) => count,
            Retries::Configured if reason == RATE_LIMIT => self.config.api_rate_limit.max_retries,
            Retries::Configured => self.config.max_retries,
        }
    }
}

/// Returns the pause before retry `attempt` (from 1): exponential up to a cap, or longer if the failure names a time.
#[must_use]
pub fn delay(config: &Config, attempt: u32, reset_at: Option<&str>, now: Timestamp) -> Duration {
    let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let backoff = Duration::from_millis(backoff_ms(attempt, millis(config.base_delay), millis(config.max_delay)));
    stated(reset_at, now).map_or(backoff, |stated| backoff.max(stated))
}

/// Returns the pause that the failure itself names.
fn stated(reset_at: Option<&str>, now: Timestamp) -> Option<Duration> {
    reset::pause(reset_at?, jiff::Timestamp::from_microsecond(now.0).ok()?, &TimeZone::system())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::event::Remedy;

    fn retry(class: RetryClass, reason: &'static str) -> Retry {
        Retry { class, reason: reason.into(), remedy: Remedy::None, reset_at: None }
    }

    fn policy(retries: Retries, also: &[&str]) -> Policy {
        Policy { config: Config::default(), retries, also: also.iter().map(|reason| (*reason).to_owned()).collect() }
    }

    #[test]
    fn pauses_double_up_to_the_cap_and_then_no_retry_is_left() {
        let transient = retry(RetryClass::Transient, "network");
        let delays = |policy: &Policy| -> Vec<u64> {
            let nexts = (1..20).map_while(|attempt| match policy.next(attempt, &transient, Timestamp(0)) {
                Next::Again { delay, .. } => Some(delay.as_secs()),
                _ => None,
            });
            nexts.collect()
        };
        assert_eq!(delays(&policy(Retries::Configured, &[])), [1, 2, 4]);
        assert_eq!(delays(&policy(Retries::Count(7), &[])), [1, 2, 4, 8, 16, 30, 30]);
        assert_eq!(policy(Retries::Configured, &[]).next(4, &transient, Timestamp(0)), Next::Exhausted);
    }

    #[test]
    fn class_and_reason_decide() {
        let (rate, network) = (retry(RetryClass::Transient, RATE_LIMIT), retry(RetryClass::Transient, "network"));
        let (timed_out, unmatched) = (retry(RetryClass::Unknown, "timed_out"), retry(RetryClass::Unknown, "unmatched"));
        for (policy, retry, attempt, max) in [
            (policy(Retries::Configured, &[]), &rate, 5, Some(5)),
            (policy(Retries::Configured, &[]), &network, 3, Some(3)),
            (policy(Retries::Count(2), &[]), &rate, 2, Some(2)),
            (policy(Retries::Configured, &["timed_out"]), &timed_out, 1, Some(3)),
            (policy(Retries::Configured, &[]), &timed_out, 1, None),
            (policy(Retries::Configured, &[]), &unmatched, 1, None),
            (policy(Retries::Configured, &["session"]), &self::retry(RetryClass::Fatal, "session"), 1, None),
            (policy(Retries::Configured, &[]), &self::retry(RetryClass::Permanent, "auth"), 1, None),
            (policy(Retries::None, &[]), &network, 1, None),
            (policy(Retries::Count(0), &[]), &network, 1, None),
        ] {
            let next = policy.next(attempt, retry, Timestamp(0));
            match max {
                Some(max) => assert!(matches!(next, Next::Again { max: got, .. } if got == max), "{retry:?} {next:?}"),
                None => assert_eq!(next, Next::Stop, "{retry:?}"),
            }
        }
    }

    #[test]
    fn a_stated_time_beyond_the_cap_is_not_tried_before_it() {
        let said = |text: &str| Retry { reset_at: Some(text.into()), ..retry(RetryClass::Transient, RATE_LIMIT) };
        let policy = policy(Retries::Count(3), &[]);
        assert_eq!(policy.next(1, &said("3600"), Timestamp(0)), Next::Later(Duration::from_secs(3600)));
        assert!(matches!(policy.next(1, &said("600"), Timestamp(0)), Next::Again { delay, .. } if delay.as_secs() == 600));
        assert_eq!(policy.next(4, &said("3600"), Timestamp(0)), Next::Exhausted);
    }

    #[test]
    fn a_stated_time_is_honoured_whole() {
        let config = Config::default();
        for (said, seconds) in [(Some("20"), 20), (Some("2 hours"), 7200), (Some("0"), 2), (Some("no time"), 2), (None, 2)] {
            assert_eq!(delay(&config, 2, said, Timestamp(0)).as_secs(), seconds, "{said:?}");
        }
    }
}
