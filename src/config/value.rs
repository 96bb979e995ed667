//! The small languages of values: durations, sizes and words. `reader` calls these
//! functions for each key. Text in, value or fault out; nothing here knows a file.

use std::fmt::Display;
use std::ops::{Range, RangeInclusive};
use std::time::Duration;

use toml::de::DeValue;

use crate::words::did_you_mean;

/// Why a value does not fit its key; `reader` adds the place and the key.
#[derive(Debug)]
pub(super) struct Fault {
    /// Continues the sentence ``key in `[table]` …``.
    pub problem: String,
    /// Whether the value as written is appended to the sentence.
    pub quotes_value: bool,
    /// How to correct it.
    pub mend: String,
    /// The part of a string that is at fault, in bytes of the string.
    pub within: Option<Range<usize>>,
    /// Whether the line may hold a secret; then only its key is shown.
    pub is_secret: bool,
}

impl Fault {
    pub fn must_be(what: impl Display, mend: impl Into<String>) -> Self {
        let problem = format!("must be {what}, not");
        Self { problem, quotes_value: true, mend: mend.into(), within: None, is_secret: false }
    }

    pub fn new(problem: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { problem: problem.into(), quotes_value: false, mend: mend.into(), within: None, is_secret: false }
    }

    pub fn of_secret(problem: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { is_secret: true, ..Self::new(problem, mend) }
    }
}

pub(super) fn flag(value: &DeValue<'_>) -> Result<bool, Fault> {
    value.as_bool().ok_or_else(|| Fault::must_be("true or false", "write true or false without quotes"))
}

pub(super) fn text(value: &DeValue<'_>) -> Result<String, Fault> {
    value.as_str().map(str::to_owned).ok_or_else(|| Fault::must_be("a string", "write it in quotes"))
}

pub(super) fn count(value: &DeValue<'_>, range: RangeInclusive<u32>) -> Result<u32, Fault> {
    let (low, high) = (range.start(), range.end());
    let integer = value.as_integer().map(|i| u32::from_str_radix(i.as_str(), i.radix()));
    match integer {
        Some(Ok(n)) if range.contains(&n) => Ok(n),
        Some(_) => Err(Fault::must_be(format_args!("between {low} and {high}"), "choose a number within these bounds")),
        None => Err(Fault::must_be("a whole number", "write the number without quotes")),
    }
}

const DURATION_UNITS: [(&str, u64); 5] = [("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];
const SIZE_UNITS: [(&str, u64); 5] = [("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40)];

pub(super) fn duration(value: &DeValue<'_>, range: RangeInclusive<Duration>) -> Result<Duration, Fault> {
    let what = ("a duration", "write a whole number and a unit of ms, s, m, h or d, such as \"30s\"");
    let millis = quantity(value, &DURATION_UNITS, what)?;
    within(Duration::from_millis(millis), &range, |d| spell(u64::try_from(d.as_millis()).unwrap_or(u64::MAX), &DURATION_UNITS))
}

pub(super) fn size(value: &DeValue<'_>, range: RangeInclusive<u64>) -> Result<u64, Fault> {
    let what = ("a size", "write a whole number and a unit of B, KiB, MiB or GiB, such as \"64KiB\"");
    within(quantity(value, &SIZE_UNITS, what)?, &range, |bytes| spell(*bytes, &SIZE_UNITS))
}

/// Parses a duration as written in the configuration and in flags: `500ms`, `30s`, `30m`.
#[must_use]
pub fn parse_duration(text: &str) -> Option<Duration> {
    amount(text, &DURATION_UNITS).map(Duration::from_millis)
}

fn quantity(value: &DeValue<'_>, units: &[(&str, u64)], (name, mend): (&str, &str)) -> Result<u64, Fault> {
    value.as_str().and_then(|text| amount(text, units)).ok_or_else(|| Fault::must_be(name, mend))
}

fn amount(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let (_, factor) = units.iter().find(|(name, _)| *name == unit.trim_start())?;
    number.parse::<u64>().ok()?.checked_mul(*factor)
}

fn within<T: PartialOrd>(value: T, range: &RangeInclusive<T>, spell: impl Fn(&T) -> String) -> Result<T, Fault> {
    if range.contains(&value) {
        return Ok(value);
    }
    let bounds = format!("between {} and {}", spell(range.start()), spell(range.end()));
    Err(Fault::must_be(bounds, "choose a value within these bounds"))
}

/// Writes an amount in the largest unit that needs no fraction.
fn spell(amount: u64, units: &[(&str, u64)]) -> String {
    let fits = units.iter().rev().find(|(_, factor)| amount >= *factor && amount.is_multiple_of(*factor));
    let (unit, factor) = fits.unwrap_or(&units[0]);
    format!("{}{unit}", amount / factor)
}

/// A closed set of words, as `core::event` and `config` declare them.
pub(super) trait Word: Copy + 'static {
    const WORDS: &'static [Self];
    fn word(self) -> &'static str;
}

pub(super) fn word<T: Word>(value: &DeValue<'_>) -> Result<T, Fault> {
    let names: Vec<_> = T::WORDS.iter().map(|w| w.word()).collect();
    let given = value.as_str().unwrap_or_default();
    T::WORDS.iter().copied().find(|w| w.word() == given).ok_or_else(|| {
        let mend = did_you_mean(given, &names).unwrap_or_else(|| "write one of these words in quotes".to_owned());
        Fault::must_be(format_args!("one of {}", names.join(", ")), mend)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn string(text: &str) -> DeValue<'_> {
        DeValue::String(text.into())
    }

    #[test]
    fn durations_and_sizes() {
        let all = Duration::ZERO..=Duration::MAX;
        for (text, millis) in [("500ms", 500), ("30s", 30_000), ("30m", 1_800_000), ("2h", 7_200_000), ("30d", 2_592_000_000), ("0s", 0), ("5 s", 5000)] {
            assert_eq!(duration(&string(text), all.clone()).unwrap(), Duration::from_millis(millis), "{text}");
        }
        for (text, bytes) in [("1000B", 1000), ("64KiB", 65_536), ("1MiB", 1 << 20), ("1GiB", 1 << 30)] {
            assert_eq!(size(&string(text), 0..=u64::MAX).unwrap(), bytes, "{text}");
        }
        for text in ["", "s", "5", "-5s", "1.5s", "5S", "5 parsecs", "99999999999999999999s", "9999999999999999d"] {
            assert!(duration(&string(text), all.clone()).is_err(), "{text}");
        }
        for text in ["1MB", "1kib", "1 K", "99999999999TiB"] {
            assert!(size(&string(text), 0..=u64::MAX).is_err(), "{text}");
        }
        assert_eq!(spell(90_000, &DURATION_UNITS), "90s");
        assert_eq!(spell(0, &SIZE_UNITS), "0B");
    }

    #[test]
    fn nearest_names() {
        let names = ["max_line_bytes", "trace_idle", "name"];
        for (given, near) in [
            ("max_line_byte", Some("max_line_bytes")),
            ("max-line-bytes", Some("max_line_bytes")),
            ("trace_idel", Some("trace_idle")),
            ("Name", Some("name")),
            ("zz", None),
            ("colour", None),
        ] {
            assert_eq!(did_you_mean(given, &names), near.map(|n| format!("did you mean `{n}`?")), "{given}");
        }
    }
}
