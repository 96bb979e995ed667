//! Words and numbers that several commands accept.

use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};

use crate::config::parse_duration;
use crate::words::{Category, Severity};

pub fn severity() -> impl TypedValueParser<Value = Severity> {
    PossibleValuesParser::new(Severity::ALL.iter().map(|s| s.as_str())).try_map(|word| Severity::parse(&word).ok_or("unknown severity"))
}

pub fn duration(text: &str) -> Result<Duration, &'static str> {
    parse_duration(text).ok_or("write a whole number and a unit of ms, s, m, h or d, such as 30s")
}

/// The minimum leaves room for the fence and one line.
pub fn max_chars() -> impl TypedValueParser<Value = usize> {
    clap::value_parser!(u64).range(100..=10_000_000).map(|count| count as usize)
}

pub fn category() -> impl TypedValueParser<Value = Category> {
    PossibleValuesParser::new(Category::ALL.iter().map(|c| c.as_str())).try_map(|word| Category::parse(&word).ok_or("unknown category"))
}
