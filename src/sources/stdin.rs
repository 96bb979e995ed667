//! stdin as a source: a thread that reads it, for a terminal or a pipe cannot be asked to wait. What was read and not
//! committed cannot be read again. What is compressed is unpacked, and what is no log is left out, as `scan` does.

use std::io;
use std::sync::Arc;

use bytes::Bytes;

use super::binary;
use super::flow::Flow;
use super::input::{self, Watched};

/// Bytes of one read.
const READ_BYTES: usize = 64 << 10;

/// Reads stdin into a stream until it ends, or until the stream was ended. The writer waits while there is no room.
pub fn read(flow: Arc<Flow>) {
    std::thread::spawn(move || match pass(&flow) {
        Ok(()) => flow.end(),
        Err(why) => flow.fail(&why),
    });
}

/// Passes all of it on; the error says why that was not to be.
fn pass(flow: &Arc<Flow>) -> Result<(), String> {
    let ended_early = |error: io::Error| format!("reading ended early: {error}");
    let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(ended_early)?;
    let mut opened = input::stdin(Watched::default()).map_err(ended_early)?;
    let mut space = vec![0; READ_BYTES];
    let mut is_unseen = true;
    loop {
        let count = input::retried(&mut opened.bytes, &mut space).map_err(ended_early)?;
        let first = std::mem::take(&mut is_unseen).then(|| binary::left_out(&space[..count]));
        if let Some(why) = first.flatten() {
            return Err(why);
        }
        if count == 0 || !runtime.block_on(flow.push(Bytes::copy_from_slice(&space[..count]))) {
            return Ok(());
        }
    }
}
