//! Stamps that are one number: epoch seconds in several notations, TAI64N. Part of `time`'s reader.

use super::{BARE_EPOCH_SECONDS, Moment, Reader, Style, TAI64N_HEX};
use crate::core::decode::calendar::{EPOCH_SECONDS, epoch};
use crate::core::decode::scan::{byte, digits, is_blank, is_gap};
use crate::core::event::Timestamp;

impl Reader<'_> {
    /// `1695668091.895450 `, `1695668091895 `: at a line's start.
    pub(super) fn bare_epoch(self) -> Option<Moment> {
        let (time, end) = epoch(self.bytes, self.at)?;
        let dotted = digits(self.bytes, self.at) < end;
        let likely = BARE_EPOCH_SECONDS.contains(&time.0.div_euclid(1_000_000));
        let ends = is_gap(byte(self.bytes, end)) || matches!(byte(self.bytes, end), b']' | b')');
        (ends && (dotted || likely)).then_some(Moment { time, end, style: Style::Logger })
    }

    /// `1.7943048001234E+09` (zap's console): at a line's start, before a blank.
    pub(super) fn scientific_epoch(self) -> Option<Moment> {
        let end = self.at + self.bytes[self.at..].iter().take(24).take_while(|b| !is_blank(**b)).count();
        let text = self.bytes.get(self.at..end).filter(|text| text.ends_with(b"E+09") || text.ends_with(b"e+09"))?;
        let seconds: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
        #[expect(clippy::cast_possible_truncation, reason = "a number with nine digits before the point, in microseconds")]
        let time = Timestamp((seconds * 1e6) as i64);
        BARE_EPOCH_SECONDS.contains(&(time.0 / 1_000_000)).then_some(Moment { time, end, style: Style::Logger })
    }

    /// `@400000005f5e1000…`: TAI64N, eight bytes of seconds since 1970 TAI plus 2^62, four of nanoseconds, in hex.
    pub(super) fn tai64n(self) -> Option<Moment> {
        let from = self.at + 1;
        let (high, low) = self.bytes.get(from..from + TAI64N_HEX)?.split_at(16);
        let seconds = hexadecimal(high)?.checked_sub((1 << 62) + 10)?;
        let time = Timestamp(seconds.checked_mul(1_000_000)?.checked_add(hexadecimal(low)? / 1000)?);
        (EPOCH_SECONDS.contains(&seconds) && is_gap(byte(self.bytes, from + TAI64N_HEX))).then_some(Moment {
            time,
            end: from + TAI64N_HEX,
            style: Style::Transport,
        })
    }
}

/// Returns the value of at most 16 hex digits; `None` for other bytes, including a sign, and for values beyond `i64`.
fn hexadecimal(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0i64, |n, b| n.checked_mul(16)?.checked_add(i64::from(char::from(*b).to_digit(16)?)))
}
