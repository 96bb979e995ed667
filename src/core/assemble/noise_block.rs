//! A block of noise: its first line says that those after it, as far as they look alike, are no errors.

use super::{Assembler, Context};
use crate::core::line::Line;
use crate::core::noise;
use crate::core::writer::Writer;
use crate::rules::Kind;

/// A noise block under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OpenNoise {
    pub(super) entry: u16,
    /// How many more lines the block may take.
    pub(super) left: u32,
    /// Number of the last line that the block is known to have taken.
    pub(super) last_num: u64,
    /// Who writes it. Lines of others stand between its own.
    pub(super) writer: Writer,
}

impl Assembler {
    /// Whether the line continues the noise block under way. The lines in between had no hit and are judged only now.
    pub(super) fn in_noise_block(&mut self, cx: &Context, line: &Line, is_hit: bool) -> bool {
        let Some(open) = self.noise.filter(|open| open.writer.may_be(line.writer())) else { return false };
        let Kind::Noise { block: Some((regex, _)), .. } = &cx.engine.rules.entries[usize::from(open.entry)].kind else { return false };
        // A line that was given back may precede the block.
        let Some(lines) = line.place.num.checked_sub(open.last_num) else { return false };
        let continues = |line: &Line| noise::continues(regex, line);
        let may_stand = |line: &Line| !open.writer.may_be(line.writer()) || continues(line);
        let inside = lines <= u64::from(open.left) && continues(line) && cx.back.all_between(open.last_num, line, may_stand);
        // Only a hit advances the block, so that skipping the other lines gives the same result.
        if is_hit {
            self.noise = inside.then(|| OpenNoise { left: open.left - lines as u32, last_num: line.place.num, ..open });
        }
        inside
    }
}
