//! Which lines of a text are noise: never an error, whatever else they say. Used by code that passes text on without noise
//! (`siftd filter`, verdicts). It sees one line after the other and remembers the block under way; it changes no text.

use super::engine::Engine;
use super::event::Timestamp;
use super::line::{Line, Place};
use super::visible::visible;
use crate::rules::{Kind, Pattern, Signs};

/// Which lines are noise. What only later lines decide is none.
pub struct Noise<'a> {
    engine: &'a Engine,
    /// The block under way, and how many more lines it may take.
    block: Option<(u16, u32)>,
}

impl<'a> Noise<'a> {
    /// Starts before the first line.
    #[must_use]
    pub fn new(engine: &'a Engine) -> Self {
        Self { engine, block: None }
    }

    /// Returns the engine whose rules decide.
    #[must_use]
    pub fn engine(&self) -> &'a Engine {
        self.engine
    }

    /// Whether a line, without its newline, is noise.
    pub fn is(&mut self, raw: &[u8], now: Timestamp) -> bool {
        let text = visible(raw, None);
        let line = Line::new(Place::default(), &text, now);
        if self.goes_on(&line) {
            return true;
        }
        let maybe = self.engine.maybe(&line, Signs::of(&text));
        let is_noise = self.engine.is_settled_noise(&line, &maybe);
        self.block = if is_noise { self.engine.noise_block(&line, &maybe) } else { None };
        is_noise
    }

    fn goes_on(&mut self, line: &Line) -> bool {
        let Some((entry, left)) = self.block.take() else { return false };
        let Kind::Noise { block: Some((regex, _)), .. } = &self.engine.rules.entries[usize::from(entry)].kind else { return false };
        let goes_on = left > 0 && continues(regex, line);
        self.block = goes_on.then(|| (entry, left - 1));
        goes_on
    }
}

/// Whether `line` is one of the further lines of a block, which `regex` describes: without time stamp and writer,
/// or a pattern for any text would take the next record, too.
#[must_use]
pub fn continues(regex: &Pattern, line: &Line) -> bool {
    regex.is_match(if line.prefix().shaped { line.body() } else { line.text })
}
