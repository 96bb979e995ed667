//! The rules that are compiled in. The build has read them already, without their examples, and left them in a form that
//! costs little to read: a scan's first event waits for it.

use super::files::FILES;
use super::load::{RulesFile, parse, read};
use super::spec::FileSpec;

/// What the files of `config/rules/` say, in their order: `postcard` of [`FileSpec`]s, written by `src/build.rs`.
const COMPILED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/rules.bin"));

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

fn compiled() -> Vec<FileSpec> {
    postcard::from_bytes(COMPILED).expect("the build wrote it with the same types")
}

#[cfg(test)]
mod tests {
    use super::*;

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
