//! stdin as a source, read by a thread of its own, because a terminal or a pipe cannot be asked to wait. What was read and
//! not committed cannot be read again. Compressed input is unpacked, and what is not a log is left out, as `scan` does.

use std::io;
use std::sync::Arc;

use bytes::Bytes;

use super::flow::Flow;
use super::foreign;
use super::input::{self, Watched};
use crate::core::transcript::Mode;

/// Bytes per read.
const READ_BYTES: usize = 64 << 10;

/// Reads stdin into a stream until stdin ends, or the stream was ended. The writer waits while there is no room.
pub fn read(flow: Arc<Flow>, mode: Mode) {
    std::thread::spawn(move || match pass(&flow, mode) {
        Ok(()) => flow.end(),
        Err(why) => flow.fail(&why),
    });
}

/// Passes everything on; the error says why that was not possible.
fn pass(flow: &Arc<Flow>, mode: Mode) -> Result<(), String> {
    let ended_early = |error: io::Error| format!("reading ended early: {error}");
    let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(ended_early)?;
    let mut opened = input::stdin(Watched::default()).map_err(ended_early)?;
    let mut space = vec![0; READ_BYTES];
    let mut is_unseen = true;
    loop {
        let count = input::retried(&mut opened.bytes, &mut space).map_err(ended_early)?;
        if std::mem::take(&mut is_unseen)
            && let Some(why) = foreign::left_out_of_pipe(&space[..count], opened.is_whole(count), mode)
        {
            return Err(why);
        }
        if count == 0 || !runtime.block_on(flow.push(Bytes::copy_from_slice(&space[..count]))) {
            return Ok(());
        }
    }
}
