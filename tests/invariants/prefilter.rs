//! Invariant 2: the prefilter and the guard pass too much, never too little.

use std::sync::Arc;

use siftd::core::engine::{Engine, Limits};
use siftd::rules::{Examples, RuleSet, builtin_files, parse};

use crate::support::{engine, essences, events, for_documents, same};

#[test]
fn invariant_2_the_prefilter_finds_what_brute_force_finds() {
    let filtered = engine(Limits::default());
    let brute = engine(Limits { two_stage: false, ..Limits::default() });
    for_documents(500, 20_000, |document, _| same(&essences(&events(&filtered, document)), &essences(&events(&brute, document))));
}

#[test]
fn invariant_2_holds_for_rules_that_join_the_built_in_ones() {
    const OWN: &str = "[family]\nid = \"generic\"\ntitle = \"Generic\"\ndepth = \"head\"\n[[rule]]\nid = \"generic.errno-name\"\nliterals = [\"panic: \", \"all good\"]\nregex = '(?:panic: |all good)'\n";
    let of = |mut rules: RuleSet, two_stage| {
        rules.disable(&["python".to_owned(), "generic.error".to_owned()]);
        Arc::new(Engine::new(rules, Limits { two_stage, ..Limits::default() }))
    };
    let own = || parse("own.toml", OWN, true).unwrap();
    // Unchanged entries of the build are not recompiled; the literals of disabled ones lead nowhere.
    let joined = of(RuleSet::compiled_with(vec![own()]), true);
    let brute = of(RuleSet::with_files(builtin_files(Examples::Read).into_iter().chain([own()]).collect()), false);
    for_documents(250, 60_000, |document, _| same(&essences(&events(&joined, document)), &essences(&events(&brute, document))));
}

#[test]
fn invariant_2_holds_for_cut_lines() {
    let limits = Limits { max_line_bytes: 1024, ..Limits::default() };
    let filtered = engine(limits.clone());
    let brute = engine(Limits { two_stage: false, ..limits });
    for_documents(300, 40_000, |document, _| same(&essences(&events(&filtered, document)), &essences(&events(&brute, document))));
}
