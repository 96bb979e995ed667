//! The lines before the current one, read backwards in the buffer that holds them: for context and
//! for traces whose head comes before the line that names them. Bounded in lines and bytes.

use std::borrow::Cow;

use super::block::Block;
use super::envelope::unwrap;
use super::event::Lines;
use super::frame::utf16_bytes;
use super::leadin::{self, LeadIn};
use super::line::{Line, Place, View};
use super::margin::Margin;
use super::record;
use super::redact::KeyBlock;
use super::shown;
use super::text::printable;
use super::visible::visible;
use crate::rules::{Entries, Kind, Pattern};
use crate::words::Level;

/// Maximum number of lines to look back.
pub const MAX_LINES: usize = 48;
/// Room for `40: `.
const NUMBER_BYTES: usize = 12;
/// Parts of words that speak of an error.
const ERRORS: [&[u8]; 3] = [b"rror", b"xception", b"ail"];
/// Maximum number of bytes to look back.
pub const MAX_BYTES: usize = 16 << 10;

/// Bytes that end where the current line begins.
#[derive(Clone, Copy, Default)]
pub struct LookBack<'a> {
    bytes: &'a [u8],
    num: u64,
    offset: u64,
    is_wide: bool,
    margin: Margin,
}

impl<'a> LookBack<'a> {
    /// Creates a look-back. `bytes` end where line `num` begins, at `offset` of
    /// the stream, or where the stream ends. `is_wide`: the stream is UTF-16.
    #[must_use]
    pub fn new(bytes: &'a [u8], num: u64, offset: u64, is_wide: bool) -> Self {
        let from = bytes.len().saturating_sub(MAX_BYTES);
        Self { bytes: &bytes[from..], num, offset, is_wide, margin: Margin::default() }
    }

    /// Returns the same of a stream with this margin.
    #[must_use]
    pub fn within(self, margin: Margin) -> Self {
        Self { margin, ..self }
    }

    /// Returns the lines before line `before`, nearest first: number, offset, bytes.
    /// `before` may be older than the current line. The oldest line may be cut.
    fn lines(self, before: u64) -> impl Iterator<Item = (u64, u64, &'a [u8])> {
        let mut rest = self.bytes;
        let (mut num, mut end) = (self.num, self.offset);
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            // Only the last line of a stream may lack its newline.
            let line = rest.strip_suffix(b"\n").unwrap_or(rest);
            let from = memchr::memrchr(b'\n', line).map_or(0, |at| at + 1);
            end -= if self.is_wide { utf16_bytes(&rest[from..]) } else { (rest.len() - from) as u64 };
            num = num.checked_sub(1)?;
            let text = &line[from..];
            rest = &rest[..from];
            Some((num, end, self.margin.cut(text.strip_suffix(b"\r").unwrap_or(text))))
        })
        .skip_while(move |(num, ..)| *num >= before)
        .take(MAX_LINES)
    }

    /// Returns the lines before `line`, nearest first. If `line` came in an envelope, they are
    /// taken out of theirs, and lines without one or of another output or test are left out.
    fn shown_to(self, line: &Line) -> impl Iterator<Item = (u64, u64, Cow<'a, [u8]>)> {
        let is_wrapped = line.place.io.is_some() || line.place.key.is_some();
        self.lines(line.place.num).filter_map(move |(num, offset, raw)| {
            let mut place = Place::default();
            match is_wrapped.then(|| unwrap(raw, line.now(), &mut place)) {
                Some(Some((text, _))) if place.io == line.place.io && place.key == line.place.key => {
                    Some((num, offset, Cow::Owned(visible(&text, None).into_owned())))
                }
                Some(_) => None,
                None => Some((num, offset, visible(raw, None))),
            }
        })
    }

    /// Whether `wanted` holds for every line after line `num` and before `line`; `false` if they are not all within reach.
    #[must_use]
    pub fn all_between(self, num: u64, line: &Line, wanted: impl Fn(&Line) -> bool) -> bool {
        let mut next = line.place.num.saturating_sub(1);
        for (at, offset, raw) in self.lines(line.place.num).take_while(|(at, ..)| *at > num) {
            let place = Place { num: at, offset, ..Place::default() };
            if at != next || !wanted(&Line::new(place, &visible(raw, None), line.now())) {
                return false;
            }
            next -= 1;
        }
        next <= num
    }

    /// Returns up to `count` lines before line `first` from the writer of `line`, oldest first.
    #[must_use]
    pub fn context(self, count: usize, first: u64, line: &Line) -> Lines {
        if count == 0 {
            return Lines::default();
        }
        let mut lines = self.by_writer_of(line, first);
        let mut found: Vec<(u64, Cow<[u8]>)> = Vec::with_capacity(count);
        found.extend(lines.by_ref().take(count));
        // What a context without the block's first line cannot tell.
        let mut key = KeyBlock::around(found.iter().rev().map(|(_, text)| &**text), lines.map(|(_, text)| text));
        let mut context = Lines::default().with_room(found.iter().map(|(_, text)| text.len() + NUMBER_BYTES).sum());
        for (num, text) in found.iter().rev() {
            let is_secret = key.is_open() && key.takes(&printable(text));
            context.push_numbered(*num, if is_secret { KeyBlock::TOKEN.as_bytes() } else { text });
        }
        context
    }

    /// Returns the block of a private key that `line` is inside of, one of those of which a logger makes a record for each line.
    #[must_use]
    pub fn key_around(self, line: &Line) -> Option<KeyBlock> {
        KeyBlock::of_body(&printable(line.text), || self.by_writer_of(line, line.place.num).map(|(_, text)| text))
    }

    /// Returns the lines before line `first` from the writer of `line`, nearest first, with their numbers.
    fn by_writer_of(self, line: &Line, first: u64) -> impl Iterator<Item = (u64, Cow<'a, [u8]>)> {
        let lines = self.lines(first).map(|(num, _, raw)| (num, visible(raw, None)));
        lines.filter(|(_, text)| is_by_writer_of(line, &LeadIn::default(), text))
    }

    /// Returns the number of the nearest prompt of a shell above `line` by its service, or 0: what precedes it is another command's. A job's
    /// own words (`of_job`) are about all of its commands, which it shows after a bare sign; only a prompt that names a host counts.
    #[must_use]
    pub fn prompt_above(self, line: &Line, of_job: bool) -> u64 {
        let is_prompt = |raw: &[u8]| {
            if memchr::memchr3(b'$', b'#', b'%', raw).or_else(|| memchr::memchr(b'>', raw)).is_none() {
                return false;
            }
            let text = visible(raw, None);
            let other = Line::new(Place::default(), &text, line.now());
            let is_meant = || other.service().may_be(line.service());
            shown::may_be_prompt(&text) && is_meant() && if of_job { shown::is_of_host(other.body()) } else { shown::is_prompt(other.body()) }
        };
        self.lines(line.place.num).find(|(.., raw)| is_prompt(raw)).map_or(0, |(num, ..)| num)
    }

    /// Returns the level of the logger's record that `line`, which has none of its own, stands below, and whether the
    /// record speaks of an error. Further lines of the record may be in between: they are indented and have no stamp.
    #[must_use]
    pub fn level_above(self, line: &Line) -> Option<(Level, bool)> {
        let own = line.prefix();
        if own.levels > 0 || line.place.level.is_some() {
            return None;
        }
        let has = |text: &[u8], word: &[u8]| memchr::memmem::find(text, word).is_some();
        let mut names_error = false;
        for (.., text) in self.shown_to(line).filter(|(.., text)| is_by_writer_of(line, &LeadIn::default(), text)) {
            names_error |= ERRORS.iter().any(|word| has(&text, word));
            let other = Line::new(Place::default(), &text, line.now());
            if let Some(level) = record::level(&other) {
                return (own.times <= other.prefix().times).then_some((level, names_error));
            }
            let is_part = other.body().first().is_some_and(|byte| matches!(byte, b' ' | b'\t')) && !other.is_blank() && other.prefix().times <= own.times;
            if !is_part {
                return None;
            }
            // Any class with a message may be an exception's.
            names_error |= has(&text, b": ");
        }
        None
    }

    /// Returns the file that is named by the nearest line above
    /// `line` that matches `wanted`, if no empty line is in between.
    #[must_use]
    pub fn file_above(self, wanted: &Pattern, line: &Line, view: View) -> Option<Box<str>> {
        let lead_in = LeadIn::of_writer(line, view);
        for (.., text) in self.shown_to(line).filter(|(.., text)| is_by_writer_of(line, &lead_in, text)) {
            let other = Line::new(Place::default(), &text, line.now());
            let part = lead_in.cut(if line.prefix().shaped { other.body() } else { other.text });
            if part.trim_ascii().is_empty() {
                break;
            }
            if let Some(groups) = wanted.groups(part) {
                return groups.name("file").map(|file| printable(file).as_ref().into());
            }
        }
        None
    }

    /// Returns the look-back lines with which the trace or status line `entry` begins before `line`,
    /// oldest first; the first of them is not blank. `line` follows `lead_in` and may be one that
    /// was given back, so not the newest. The result is empty unless all required lines are there and
    /// none belongs to an earlier event. Lines that may be skipped end where those after them begin.
    #[must_use]
    pub fn lead(self, entries: &Entries, entry: u16, line: &Line, lead_in: &LeadIn, claimed_to: u64) -> Block {
        let (wanted, is_trace) = match &entries[usize::from(entry)].kind {
            Kind::Trace(machine) => (&machine.before, true),
            Kind::Note(note) => (&note.before, false),
            _ => return Block::default(),
        };
        if wanted.is_empty() {
            return Block::default();
        }
        let before = self.shown_to(line).take_while(|(num, ..)| *num > claimed_to);
        let before = before.filter(|(.., text)| is_by_writer_of(line, lead_in, text));
        let mut lines = before.take_while(|(.., text)| !(is_trace && is_other_record(line, text))).peekable();
        let mut lead = Block::default();
        let head = (line, lead_in);
        for (index, before) in wanted.iter().enumerate() {
            let mut count = 0;
            let next = wanted.get(index + 1).filter(|_| before.may_be_skipped());
            while count < before.max {
                let Some(seen) = lines.peek() else { break };
                if next.is_some_and(|next| look(seen, head, &next.regex, None)) || !look(seen, head, &before.regex, Some(&mut lead)) {
                    break;
                }
                lines.next();
                count += 1;
            }
            if count == 0 && !before.optional {
                return Block::default();
            }
        }
        // Blank lines between an error and the text before it are not part of the error.
        while !lead.is_empty() && lead.get(lead.len() - 1).part.trim_ascii().is_empty() {
            lead.remove(lead.len() - 1);
        }
        lead.reverse();
        lead
    }
}

/// Whether a look-back line comes from the writer of `line`, as far as the lines name their writers.
fn is_by_writer_of(line: &Line, lead_in: &LeadIn, text: &[u8]) -> bool {
    let key = line.key();
    let other = Line::new(Place::default(), text, line.now());
    if lead_in.len() > 0 {
        return !lead_in.is_other(if line.prefix().shaped { other.body() } else { other.text });
    }
    (key.is_none() || line.place.key.is_some() || other.key() == key) && !leadin::names_differ(line.text, text)
}

/// Whether a look-back line is a logger's record of another level than `line`: no trace begins with one.
fn is_other_record(line: &Line, text: &[u8]) -> bool {
    let one = line.prefix();
    let is_other = || {
        let other = Line::new(Place::default(), text, line.now()).prefix();
        other.times > 0 && other.level.is_some() && one.level != other.level
    };
    one.times > 0 && one.level.is_some() && is_other()
}

/// Whether a look-back line is the wanted one; if so, it is added to `lead`.
fn look((num, offset, text): &(u64, u64, Cow<[u8]>), (head, lead_in): (&Line, &LeadIn), wanted: &Pattern, lead: Option<&mut Block>) -> bool {
    let place = Place { num: *num, offset: *offset, inner: 0, truncated: false, ..head.place.clone() };
    let line = Line::new(place, text, head.now());
    let view = if head.prefix().shaped { View::Body } else { View::Text };
    let part = lead_in.cut(view.of(&line));
    let fits = wanted.is_match(part);
    if let (true, Some(lead)) = (fits, lead) {
        lead.push(&line, part);
    }
    fits
}
