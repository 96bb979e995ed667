//! A reader over successive Zstandard frames (RFC 8878); skippable ones are left out.
//! Memory is bounded by the window that a frame asks for, which the decoder limits.

use std::io::{self, BufRead, Read};

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use super::gz::{expect_padding, uncompressed};

/// An empty block that ends its frame, and a checksum in case the frame has one.
const LAST_BLOCK: [u8; 7] = [1, 0, 0, 0, 0, 0, 0];
/// First bytes of frames, and of skippable frames.
const FIRST: [std::ops::RangeInclusive<u8>; 2] = [0x28..=0x28, 0x50..=0x5f];

/// Decompresses `source`.
pub struct Zst<R> {
    source: R,
    decoder: FrameDecoder,
    in_frame: bool,
    /// Why the frame cannot be read to its end; reported after what was read of it.
    fault: Option<io::Error>,
}

impl<R: BufRead> Zst<R> {
    /// Creates a reader that has read nothing yet.
    pub fn new(source: R) -> Self {
        Self { source, decoder: FrameDecoder::new(), in_frame: false, fault: None }
    }

    /// Goes to the next frame; returns `false` at the end, after which there may be padding.
    fn next_frame(&mut self) -> io::Result<bool> {
        while self.source.fill_buf()?.first().is_some_and(|first| FIRST.iter().any(|all| all.contains(first))) {
            match self.decoder.init(&mut self.source) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::BadMagicNumber(_))) => return Err(uncompressed()),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame { length, .. })) => {
                    io::copy(&mut self.source.by_ref().take(u64::from(length)), &mut io::sink())?;
                }
                Err(error) => return Err(plain(error)),
            }
        }
        expect_padding(&mut self.source)?;
        Ok(false)
    }

    /// Decodes until there is something to return. If a frame breaks off, everything decoded so
    /// far is returned: the decoder keeps it for later blocks, so it is told that there are none.
    fn decode(&mut self) -> io::Result<()> {
        while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
            if let Err(error) = self.decoder.decode_blocks(&mut self.source, BlockDecodingStrategy::UptoBlocks(1)) {
                self.fault = Some(plain(error));
                self.decoder.decode_blocks(&LAST_BLOCK[..], BlockDecodingStrategy::UptoBlocks(1)).map_err(plain)?;
            }
        }
        Ok(())
    }
}

/// Returns an error that a user can understand: the decoder's own messages refer to its code.
fn plain(error: FrameDecoderError) -> io::Error {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return error.raw_os_error().map_or_else(|| error.kind().into(), io::Error::from_raw_os_error);
        }
        cause = error.source();
    }
    io::Error::other(match error {
        FrameDecoderError::WindowSizeTooBig { requested, .. } => format!("it wants {} MiB to be unpacked: zstd --long=31 -dc FILE | siftd", requested >> 20),
        FrameDecoderError::DictNotProvided { .. } => "it was compressed with a dictionary: zstd -D DICTIONARY -dc FILE | siftd".to_owned(),
        _ => "its compressed data are damaged".to_owned(),
    })
}

impl<R: BufRead> Read for Zst<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.in_frame && !self.next_frame()? {
                return Ok(0);
            }
            self.in_frame = true;
            self.decode()?;
            let count = self.decoder.read(buf)?;
            if count > 0 || buf.is_empty() {
                return Ok(count);
            }
            if let Some(fault) = self.fault.take() {
                return Err(fault);
            }
            self.in_frame = false;
        }
    }
}
