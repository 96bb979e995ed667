//! The rules that are compiled in, in the order in which a line is offered to them.

use super::load::{RulesFile, parse};

/// Name and text of each file of `config/rules/`.
pub const FILES: &[(&str, &str)] = &[
    ("levels.toml", include_str!("../../config/rules/levels.toml")),
];

/// Parses them all. The tests check them in full; here they only become tables.
pub fn parse_all() -> Vec<RulesFile> {
    FILES
        .iter()
        .filter_map(|(name, text)| {
            let file = parse(name, text, false);
            debug_assert!(file.is_ok(), "{name}: {file:?}");
            file.ok()
        })
        .collect()
}
