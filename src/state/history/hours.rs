//! How often an error was seen, hour by hour, for two weeks: a few bytes for each hour in which it was seen.

use crate::core::event::Timestamp;

/// Microseconds per hour.
pub const HOUR_US: i64 = 3_600_000_000;
/// Hours to keep.
const KEPT: i64 = 14 * 24;

/// Counts per hour, oldest first; hours without events are absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hours(Vec<(i64, u64)>);

impl Hours {
    /// Counts an event. Events more than two weeks older than the newest are not counted here.
    pub fn add(&mut self, at: Timestamp) {
        self.add_many(at.0.div_euclid(HOUR_US), 1);
    }

    fn add_many(&mut self, hour: i64, count: u64) {
        match self.0.binary_search_by_key(&hour, |entry| entry.0) {
            Ok(found) => self.0[found].1 += count,
            Err(place) => self.0.insert(place, (hour, count)),
        }
        let newest = self.0.last().map_or(hour, |entry| entry.0);
        self.0.retain(|(hour, _)| newest - hour < KEPT);
    }

    /// Adds all counts of another.
    pub fn join(&mut self, other: &Self) {
        other.0.iter().for_each(|(hour, count)| self.add_many(*hour, *count));
    }

    /// Iterates over hours since 1970 and their counts.
    pub fn iter(&self) -> impl Iterator<Item = (i64, u64)> {
        self.0.iter().copied()
    }

    /// Returns the counts of the last `count` spans of `hours` hours each, oldest first; the last span contains `now`.
    #[must_use]
    pub fn spans(&self, now: Timestamp, hours: i64, count: usize) -> Vec<u64> {
        spans(self.iter(), now, hours, count)
    }

    /// Encodes the differences between hours and the counts, seven bits per byte.
    #[must_use]
    pub fn pack(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.0.len() * 3 + 4);
        let mut before = 0;
        for (hour, count) in &self.0 {
            push_number(&mut out, hour.wrapping_sub(before) as u64);
            push_number(&mut out, *count);
            before = *hour;
        }
        out
    }

    /// Decodes what [`pack`](Self::pack) made; stops at bytes that are not valid.
    #[must_use]
    pub fn unpack(mut bytes: &[u8]) -> Self {
        let (mut hours, mut before) = (Vec::new(), 0_i64);
        while let Some(step) = take_number(&mut bytes) {
            let Some(count) = take_number(&mut bytes) else { break };
            before = before.wrapping_add(step as i64);
            hours.push((before, count));
        }
        Self(hours)
    }
}

/// Sums hourly counts over spans; see [`Hours::spans`].
pub fn spans(all: impl Iterator<Item = (i64, u64)>, now: Timestamp, hours: i64, count: usize) -> Vec<u64> {
    let mut sums = vec![0; count];
    let last = now.0.div_euclid(HOUR_US).div_euclid(hours);
    for (hour, number) in all {
        let back = last - hour.div_euclid(hours);
        if let Some(sum) = usize::try_from(back).ok().and_then(|back| count.checked_sub(back + 1)).and_then(|at| sums.get_mut(at)) {
            *sum += number;
        }
    }
    sums
}

/// Appends a number, seven bits per byte, lowest first.
pub(super) fn push_number(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value as u8) | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Takes a number that [`push_number`] wrote.
pub(super) fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_come_back_as_they_were_packed() {
        let mut hours = Hours::default();
        for hour in [490_000, 490_000, 490_001, 490_200, 490_199] {
            hours.add(Timestamp(hour * HOUR_US + 7));
        }
        assert_eq!(hours.iter().collect::<Vec<_>>(), [(490_000, 2), (490_001, 1), (490_199, 1), (490_200, 1)]);
        assert_eq!(Hours::unpack(&hours.pack()), hours);
        assert!(hours.pack().len() <= 12);
        assert_eq!(Hours::unpack(&[0xff; 30]), Hours::default());
        assert_eq!(Hours::unpack(&hours.pack()[..5]).iter().count(), 1);
    }

    #[test]
    fn two_weeks_are_kept() {
        let mut hours = Hours::default();
        (0..1000).for_each(|hour| hours.add(Timestamp(hour * HOUR_US)));
        hours.add(Timestamp(0));
        assert_eq!((hours.iter().count(), hours.iter().next()), (336, Some((664, 1))));
        assert!(hours.pack().len() < 1000);
    }

    #[test]
    fn spans_end_with_now() {
        let mut hours = Hours::default();
        for hour in [0, 23, 24, 47, 48] {
            hours.add(Timestamp(hour * HOUR_US));
        }
        assert_eq!(hours.spans(Timestamp(49 * HOUR_US), 24, 3), [2, 2, 1]);
        assert_eq!(hours.spans(Timestamp(49 * HOUR_US), 1, 3), [1, 1, 0]);
    }
}
