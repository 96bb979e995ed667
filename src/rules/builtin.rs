//! The rules that are compiled in, in the order in which a line is offered to them.

use super::load::{RulesFile, parse};
use super::skim::without_examples;

/// Name and text of each file of `config/rules/`.
pub const FILES: &[(&str, &str)] = &[
    ("python.toml", include_str!("../../config/rules/python.toml")),
    ("java.toml", include_str!("../../config/rules/java.toml")),
    ("csharp.toml", include_str!("../../config/rules/csharp.toml")),
    ("bundlers.toml", include_str!("../../config/rules/bundlers.toml")),
    ("javascript.toml", include_str!("../../config/rules/javascript.toml")),
    ("go.toml", include_str!("../../config/rules/go.toml")),
    ("rust.toml", include_str!("../../config/rules/rust.toml")),
    ("ruby.toml", include_str!("../../config/rules/ruby.toml")),
    ("php.toml", include_str!("../../config/rules/php.toml")),
    ("dart.toml", include_str!("../../config/rules/dart.toml")),
    ("elixir.toml", include_str!("../../config/rules/elixir.toml")),
    ("r.toml", include_str!("../../config/rules/r.toml")),
    ("shell.toml", include_str!("../../config/rules/shell.toml")),
    ("perl.toml", include_str!("../../config/rules/perl.toml")),
    ("lua.toml", include_str!("../../config/rules/lua.toml")),
    ("pytest.toml", include_str!("../../config/rules/pytest.toml")),
    ("unittest.toml", include_str!("../../config/rules/unittest.toml")),
    ("jest.toml", include_str!("../../config/rules/jest.toml")),
    ("jasmine.toml", include_str!("../../config/rules/jasmine.toml")),
    ("ava.toml", include_str!("../../config/rules/ava.toml")),
    ("playwright.toml", include_str!("../../config/rules/playwright.toml")),
    ("vitest.toml", include_str!("../../config/rules/vitest.toml")),
    ("mocha.toml", include_str!("../../config/rules/mocha.toml")),
    ("tap.toml", include_str!("../../config/rules/tap.toml")),
    ("phpunit.toml", include_str!("../../config/rules/phpunit.toml")),
    ("exunit.toml", include_str!("../../config/rules/exunit.toml")),
    ("cpptest.toml", include_str!("../../config/rules/cpptest.toml")),
    ("busted.toml", include_str!("../../config/rules/busted.toml")),
    ("eunit.toml", include_str!("../../config/rules/eunit.toml")),
    ("cucumber.toml", include_str!("../../config/rules/cucumber.toml")),
    ("gotest.toml", include_str!("../../config/rules/gotest.toml")),
    ("cargotest.toml", include_str!("../../config/rules/cargotest.toml")),
    ("testthat.toml", include_str!("../../config/rules/testthat.toml")),
    ("junit.toml", include_str!("../../config/rules/junit.toml")),
    ("rspec.toml", include_str!("../../config/rules/rspec.toml")),
    ("minitest.toml", include_str!("../../config/rules/minitest.toml")),
    ("gtest.toml", include_str!("../../config/rules/gtest.toml")),
    ("automake.toml", include_str!("../../config/rules/automake.toml")),
    ("make.toml", include_str!("../../config/rules/make.toml")),
    ("gcc.toml", include_str!("../../config/rules/gcc.toml")),
    ("native.toml", include_str!("../../config/rules/native.toml")),
    ("crash.toml", include_str!("../../config/rules/crash.toml")),
    ("typescript.toml", include_str!("../../config/rules/typescript.toml")),
    ("languages.toml", include_str!("../../config/rules/languages.toml")),
    ("documented.toml", include_str!("../../config/rules/documented.toml")),
    ("npm.toml", include_str!("../../config/rules/npm.toml")),
    ("findings.toml", include_str!("../../config/rules/findings.toml")),
    ("packages.toml", include_str!("../../config/rules/packages.toml")),
    ("tools.toml", include_str!("../../config/rules/tools.toml")),
    ("ci.toml", include_str!("../../config/rules/ci.toml")),
    ("linters.toml", include_str!("../../config/rules/linters.toml")),
    ("agents.toml", include_str!("../../config/rules/agents.toml")),
    ("levels.toml", include_str!("../../config/rules/levels.toml")),
    ("loggers.toml", include_str!("../../config/rules/loggers.toml")),
    ("pipeline.toml", include_str!("../../config/rules/pipeline.toml")),
    ("generic.toml", include_str!("../../config/rules/generic.toml")),
];
/// Read only where warnings are wanted, after all others.
pub const WARNINGS: (&str, &str) = ("warnings.toml", include_str!("../../config/rules/warnings.toml"));

/// Whether texts to try are read with the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Examples {
    /// For trying and listing them.
    Read,
    /// For reading logs.
    Skipped,
}

/// Parses them all. The tests check them in full; here they only become tables.
#[must_use]
pub fn builtin_files(examples: Examples) -> Vec<RulesFile> {
    builtin_share(examples, 0, 1)
}

/// Parses share `part` of `parts`, which begin with 0: the shares behind each other are all of them. Several threads are done sooner.
#[must_use]
pub fn builtin_share(examples: Examples, part: usize, parts: usize) -> Vec<RulesFile> {
    let read = |(name, text): &(&str, &str)| match examples {
        Examples::Read => parse(name, text, false),
        Examples::Skipped => parse(name, &without_examples(text), false),
    };
    let mut at = 0;
    let bytes: usize = FILES.iter().map(|(_, text)| text.len()).sum();
    // A file belongs to the share that its first byte stands in.
    let share = FILES.iter().filter(|(_, text)| {
        let first = at;
        at += text.len();
        first * parts / bytes == part
    });
    let files = share.filter_map(|file| {
        let read = read(file);
        debug_assert!(read.is_ok(), "{}: {read:?}", file.0);
        read.ok()
    });
    files.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_behind_each_other_are_all_files() {
        let names = |parts: usize| -> Vec<String> {
            let files = (0..parts).flat_map(|part| builtin_share(Examples::Skipped, part, parts));
            files.map(|file| file.family.file).collect()
        };
        let all: Vec<_> = FILES.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!((names(1), names(2), names(7)), (all.clone(), all.clone(), all));
    }
}
