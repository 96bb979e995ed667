//! Invariant 2: the prefilter and the guard pass too much, never too little.

use siftd::core::engine::Limits;

use crate::support::{engine, essences, events, for_documents, same};

#[test]
fn invariant_2_the_prefilter_finds_what_brute_force_finds() {
    let filtered = engine(Limits::default());
    let brute = engine(Limits { two_stage: false, ..Limits::default() });
    for_documents(500, 20_000, |document, _| same(&essences(&events(&filtered, document)), &essences(&events(&brute, document))));
}

#[test]
fn invariant_2_holds_for_cut_lines() {
    let limits = Limits { max_line_bytes: 1024, ..Limits::default() };
    let filtered = engine(limits.clone());
    let brute = engine(Limits { two_stage: false, ..limits });
    for_documents(300, 40_000, |document, _| same(&essences(&events(&filtered, document)), &essences(&events(&brute, document))));
}
