//! stdin as a source: a thread that reads it, for a terminal or a pipe cannot be asked to wait. What was read and not
//! committed cannot be read again.

use std::io::{self, Read};
use std::sync::Arc;

use bytes::Bytes;

use super::flow::Flow;

/// Bytes of one read.
const READ_BYTES: usize = 64 << 10;

/// Reads stdin into a stream until it ends, or until the stream was ended. The writer waits while there is no room.
pub fn read(flow: Arc<Flow>) {
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let Ok(runtime) = runtime.inspect_err(|error| tracing::error!("stdin: {error}")) else { return flow.end() };
        let mut space = vec![0; READ_BYTES];
        loop {
            let count = match io::stdin().read(&mut space) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    tracing::warn!("stdin: {error}");
                    0
                }
                Ok(count) => count,
            };
            if count == 0 || !runtime.block_on(flow.push(Bytes::copy_from_slice(&space[..count]))) {
                break;
            }
        }
        flow.end();
    });
}
