//! The persistent state of `run`, in one SQLite file: how far each file was read, which events were found, and the records that wait for sinks. Events
//! and marks arrive in order and are committed together; sinks read committed records only. However a run ends, the next start continues from here.
//!
//! `store` is the file, `committer` decides what goes into it, `withhold` what is held back, `outbox` hands committed records to sinks,
//! `queue` is the bounded way in. `leave_out` is for a sink that is too far behind, `renew` for a file found damaged while in use, `loss`
//! for one lost before the start. `ledger` is what each event changes besides itself: the `history` of its error, whose `rows` are in use,
//! and the `breakers`. Other commands change these through `shared`; `holder` knows which process blocks them. `folder` is the state folder.

pub mod breakers;
pub mod committer;
mod counting;
mod damaged;
pub mod folder;
pub mod history;
pub mod holder;
pub mod leave_out;
pub mod ledger;
pub mod lock;
mod loss;
pub mod outbox;
pub mod queue;
mod renew;
mod rows;
pub mod shared;
pub mod store;
mod wire;
pub mod withhold;
