//! siftd finds the real errors in what agents, builds and services print.
//!
//! The path of a byte, which is also the reading order:
//! `sources` hand blocks to a [`core::pipeline::Stream`]: frame → prefilter → guard → decode →
//! confirm → assemble → redact → classify → signature; its events become records in `sinks`.
//! In `run`, [`state`] sits between them: what it has committed is written exactly once, whatever happens.
//! `exec` runs a command and reads what it prints; [`verdict`] says how such a run went, and [`digest`] sums a log up.
//! [`rules`] and [`config`] are the data that the core walks; [`words`] the closed sets they share; [`json`] writes what leaves siftd.
//!
//! Dependencies point one way: `cli → daemon, exec → digest, memory → verdict, sources, state, sinks → delivery, json → core → rules → words`. The core is sync and
//! cannot fail: no I/O, no clock, no logger; bad input is data.

#![forbid(unsafe_code)]

pub mod config;
pub mod delivery;
pub mod diag;
pub mod rules;
pub mod words;
pub mod core {
    //! The sync heart: bytes and `now` in, events out.
    pub mod assemble;
    pub mod block;
    pub mod breaker;
    pub mod classify;
    pub mod confirm;
    pub mod decode;
    pub mod engine;
    pub mod envelope;
    pub mod event;
    pub mod extract;
    pub mod frame;
    pub mod frames;
    mod gate;
    pub mod keywords;
    mod leadin;
    pub mod line;
    pub mod lookback;
    pub mod margin;
    pub mod noise;
    pub mod notes;
    pub mod patience;
    pub mod pipeline;
    pub mod prefilter;
    pub mod record;
    pub mod redact;
    pub mod retry;
    pub mod shown;
    pub mod signature;
    pub mod simd;
    mod structured;
    mod table;
    pub mod text;
    pub mod trace;
    pub mod transcript;
    pub mod visible;
    pub mod word_gate;
    pub mod writer;
}
pub mod cli;
pub mod daemon;
pub mod digest;
pub mod examples;
pub mod exec;
pub mod hook;
pub mod json;
pub mod locks;
pub mod memory;
pub mod pem;
pub mod sinks;
pub mod socket_file;
pub mod sources;
pub mod state;
pub mod telemetry;
pub mod verdict;
