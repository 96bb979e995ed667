//! The rules that are compiled in. The build (`src/build.rs`) has read them already and found what the start would wait
//! for, and left it in forms that cost little to read.

use std::sync::OnceLock;

use serde::de::DeserializeOwned;

use super::files::FILES;
use super::literal::Literals;
use super::load::{RulesFile, parse, read};
use super::prove::QuietWords;
use super::spec::FileSpec;

/// What the files of `config/rules/` say without their examples, in their order: [`FileSpec`]s.
const COMPILED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/rules.bin"));
/// Their [`Literals`].
const LITERALS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/literals.bin"));
/// Their [`QuietWords`].
const QUIET_WORDS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/quiet.bin"));

/// Whether texts to try are read with the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Examples {
    /// For trying and listing them.
    Read,
    /// For reading logs.
    Skipped,
}

/// All of them. The tests check them in full; here they only become tables.
#[must_use]
pub fn builtin_files(examples: Examples) -> Vec<RulesFile> {
    let files: Vec<_> = match examples {
        Examples::Read => FILES.iter().map(|(name, text)| parse(name, text, false)).collect(),
        Examples::Skipped => FILES.iter().zip(compiled()).map(|((name, _), spec)| read(name, spec, false, &|_| 0)).collect(),
    };
    debug_assert!(files.iter().all(Result::is_ok), "{files:?}");
    files.into_iter().flatten().collect()
}

/// What the build wrote with the same types.
fn left<T: DeserializeOwned>(bytes: &'static [u8]) -> T {
    postcard::from_bytes(bytes).expect("the build wrote it with the same types")
}

fn compiled() -> Vec<FileSpec> {
    left(COMPILED)
}

/// The literals of the built-in rules, read at the first call.
pub fn literals() -> &'static Literals {
    static READ: OnceLock<Literals> = OnceLock::new();
    READ.get_or_init(|| left(LITERALS))
}

/// Those of the built-in rules.
pub(super) fn quiet_words() -> QuietWords {
    left(QUIET_WORDS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::RuleSet;

    #[test]
    fn the_build_found_what_the_files_hold() {
        let (whole, compiled) = (RuleSet::builtin(), RuleSet::compiled());
        assert!(compiled.is_compiled() && !whole.is_compiled());
        let ids = |set: &RuleSet| set.entries.iter().map(|entry| entry.id.clone()).collect::<Vec<_>>();
        assert_eq!((ids(&whole), &whole.noise), (ids(&compiled), &compiled.noise));
        assert!(whole.literals() == compiled.literals());
        assert_eq!(whole.quiet_words(), compiled.quiet_words());
    }

    #[test]
    fn what_the_build_read_is_what_the_files_say() {
        let (whole, compiled) = (builtin_files(Examples::Read), builtin_files(Examples::Skipped));
        assert_eq!((whole.len(), compiled.len()), (FILES.len(), FILES.len()));
        for (mut whole, compiled) in whole.into_iter().zip(compiled) {
            whole.entries.iter_mut().for_each(|entry| entry.examples = Default::default());
            whole.cancels.iter_mut().for_each(|cancel| cancel.examples = Default::default());
            assert_eq!(format!("{whole:?}"), format!("{compiled:?}"), "{}", whole.family.file);
        }
    }
}
