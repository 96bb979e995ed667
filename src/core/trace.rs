//! One open trace: the machines that compete for it and the lines that it has taken so far.
//! It walks the rows of its machines and knows no language. It never looks at time, keys or other
//! traces; `assemble` decides which lines are offered to it.

use super::block::{Block, Taken};
use super::decode::Prefix;
use super::event::{Lines, Timestamp};
use super::leadin::LeadIn;
use super::line::{Line, Memory, View};
use super::redact::KeyBlock;
use super::writer::Writer;
use crate::rules::{Entries, Kind, Machine, Shown, Take};

mod announced;
mod bounds;
mod loose;
mod pauses;
mod prefixes;
mod rival;
mod stamp;
use bounds::Gap;
pub use bounds::Room;
pub use pauses::Pauses;
pub use rival::{MAX_SEEN_LINES, lead_in, start_row, starts};
use rival::{NO_ROW, Rival, machine};
use stamp::Stamp;

/// Lines and bytes of a typical trace.
const TYPICAL_LINES: usize = 12;
const TYPICAL_BYTES: usize = 1024;

/// A trace under way.
#[derive(Clone, Debug)]
pub struct OpenTrace {
    /// Lines taken, in order.
    pub lines: Block,
    /// Lines taken beyond the limit.
    pub gap: Gap,
    /// The part of each line that the machines are shown.
    pub view: View,
    /// What precedes the head on its line, and perhaps the further lines on theirs.
    lead_in: LeadIn,
    /// What the head's record begins with, and perhaps those of further lines.
    stamp: Option<Stamp>,
    /// Writer of the head line.
    pub key: Option<Vec<u8>>,
    /// What the head line says before its text.
    pub prefix: Prefix,
    /// Whether it is a one-line error that its stack may follow.
    pub waits: bool,
    /// The one-line error that it took over as its first lines.
    pub adopted: Option<Box<OpenTrace>>,
    /// Whether that error and the head are records with the same stamp. Only a further line with it shows that they belong together.
    pub unproven: bool,
    /// What is known about the head line, as long as the trace may come to nothing.
    pub head: Option<Box<Memory>>,
    /// The time that the head line states.
    pub time: Option<Timestamp>,
    /// What stood around its head.
    pub setting: Setting,
    /// When the head was read.
    pub opened_at: Timestamp,
    /// Whether it ends because too many others are open.
    pub is_cut_off: bool,
    /// Number of the last line of the stream that it took.
    pub last_num: u64,
    /// What pauses have had from it.
    pub pauses: Pauses,
    /// Number of lines at the front that no row took.
    pub lead: usize,
    rivals: Vec<Rival>,
}

/// What stood around the head of a trace when it began.
#[derive(Clone, Debug, Default)]
pub struct Setting {
    /// Context lines before it.
    pub context: Lines,
    /// The file that a line above it names.
    pub heading: Option<Box<str>>,
    /// The block of a private key that it is inside of.
    pub key: Option<KeyBlock>,
    /// Who wrote it.
    pub writer: Writer,
    /// The [service](Line::service) that wrote it.
    pub service: Writer,
    /// Number of open regions that hold lines of that writer.
    pub depth: usize,
    /// Number of claims made before.
    pub claims: u64,
}

/// What a trace has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Entry of the machine that won.
    pub entry: u16,
    /// Lines that belong to the event, as many of them as are kept.
    pub lines: usize,
    /// Lines that belong to the event.
    pub taken: usize,
    /// Number of the last of them in the stream.
    pub last_num: u64,
}

impl OpenTrace {
    /// Opens a trace at `line` for the machines `rivals`, all of which can begin
    /// with it, after the look-back lines `lead`. The head follows `lead_in`.
    #[must_use]
    pub fn new(entries: &Entries, rivals: &[u16], (lead, lead_in): (Block, LeadIn), line: &Line, view: View) -> Self {
        let lead = if lead.is_empty() && !rivals.is_empty() { Block::with_room(TYPICAL_LINES, TYPICAL_BYTES) } else { lead };
        let mut trace = Self {
            gap: Gap::default(),
            view,
            lead_in,
            stamp: Stamp::of(entries, rivals, line, view.of(line)),
            key: line.key().map(<[u8]>::to_vec),
            prefix: Prefix { padded: line.prefix().padded && view != View::Padded, ..line.prefix() },
            waits: false,
            adopted: None,
            unproven: false,
            head: None,
            time: line.place.time.or(line.prefix().time),
            setting: Setting::default(),
            opened_at: line.now(),
            is_cut_off: false,
            last_num: line.place.num,
            pauses: Pauses::new(line.now()),
            lead: lead.len(),
            rivals: rivals.iter().map(|&entry| Rival::new(entry, lead.len())).collect(),
            lines: lead,
        };
        trace.rivals.iter_mut().for_each(|rival| rival.begin(entries, line, view));
        if view == View::AfterWriter {
            trace.name_writer();
        }
        trace.push(entries, line, view.of(line), Room::UNBOUNDED);
        trace
    }

    /// Opens a one-line error that may still be followed by lines of its own: no machine competes yet.
    #[must_use]
    pub fn single(entry: u16, line: &Line, view: View) -> Self {
        Self::single_after(entry, Block::with_room(1, line.text.len()), line, view)
    }

    /// The same after the look-back lines `lead`, which belong to it.
    #[must_use]
    pub fn single_after(entry: u16, lead: Block, line: &Line, view: View) -> Self {
        let mut trace = Self::new(&Entries::default(), &[], (lead, LeadIn::of_writer(line, view)), line, view);
        let mut rival = Rival::new(entry, trace.lead + 1);
        rival.alive = false;
        rival.accept(line.place.num);
        trace.rivals.push(rival);
        trace
    }

    /// Whether `line` is not a record of its own next to the head. It has neither time nor level, or
    /// fewer of them than the head, because a collector (`docker logs -t`, the journal, a CI runner) put
    /// its own before every line. A line whose envelope states another level than the head's is a record.
    #[must_use]
    pub fn outranks(&self, line: &Line) -> bool {
        if line.place.level.is_some_and(|level| self.head().place.level != Some(level)) {
            return false;
        }
        let Prefix { times, levels, .. } = line.prefix();
        let own = self.prefix;
        let is_less = times <= own.times && levels <= own.levels && (times, levels) != (own.times, own.levels);
        !line.is_stamped() || (is_less && (levels == 0 || levels < own.levels))
    }

    /// Whether `line` is the next one of its writer, which has printed nothing else in between.
    #[must_use]
    pub fn is_followed_by(&self, line: &Line) -> bool {
        let last = self.lines.get(self.lines.len() - 1).place;
        let is_later = line.place.position() > last.position();
        line.place.num == self.last_num + 1 || (is_later && self.key.is_some() && self.key.as_deref() == line.key())
    }

    /// Takes a further line of a one-line error; `accept`: the line certainly belongs to it.
    pub fn extend_single(&mut self, entries: &Entries, line: &Line, accept: bool, room: Room) {
        for rival in &mut self.rivals {
            rival.take(NO_ROW);
            if accept {
                rival.accept(line.place.num);
            }
        }
        self.push(entries, line, line.body(), room);
    }

    /// Ends its machines: none of them takes a further line.
    pub fn stop(&mut self) {
        self.rivals.iter_mut().for_each(|rival| rival.alive = false);
    }

    /// Whether its last line may still be given back.
    #[must_use]
    pub fn is_on_trial(&self) -> bool {
        self.rivals.iter().any(|rival| rival.seen > rival.accepted)
    }

    /// Whether its last line may still be given back and is not empty.
    #[must_use]
    pub fn is_on_trial_beyond_blanks(&self) -> bool {
        self.is_on_trial() && self.lines.from(self.lines.len().saturating_sub(1)).any(|taken| !taken.part.is_empty())
    }

    /// Whether no machine competes, so that it is a one-line error.
    #[must_use]
    pub fn is_single(&self) -> bool {
        self.rivals.iter().all(|rival| !rival.alive && rival.rows.iter().all(|row| *row == NO_ROW))
    }

    /// Shows `part` of the line to every machine that is still in; returns `false` if none goes on. `plain`:
    /// nothing begins with it. Once a machine has come to its end, those without an event
    /// by then are out: what they would take on trial comes after an error that is over.
    pub fn offer(&mut self, entries: &Entries, line: &Line, part: &[u8], plain: bool) -> bool {
        let seen = |rivals: &[Rival]| rivals.iter().map(|rival| rival.seen).max();
        let before = seen(&self.rivals);
        let (text, repeats) = (Shown::new(part, line.signs()), part == self.head().part);
        let (mut any, mut refused, mut is_over) = (false, 0_u8, false);
        for (at, rival) in self.rivals.iter_mut().enumerate() {
            if rival.alive {
                rival.alive = rival.advance(entries, text, line.place.num, plain, repeats);
                any |= rival.alive;
                refused |= u8::from(!rival.alive) << at;
            }
            is_over |= !rival.alive && rival.makes_an_event(entries);
        }
        if !any && seen(&self.rivals) == before {
            // A line that none of them takes says nothing about them if it is another writer's.
            self.rivals.iter_mut().enumerate().for_each(|(at, rival)| rival.alive |= refused & (1 << at) != 0);
            return false;
        }
        self.rivals.iter_mut().for_each(|rival| rival.alive &= !is_over || rival.makes_an_event(entries));
        self.rivals.iter().any(|rival| rival.alive)
    }

    /// Whether it has frames of an error that is yet to be named: the line that names it comes last.
    #[must_use]
    pub fn is_unnamed(&self) -> bool {
        self.rivals.iter().any(|rival| rival.alive && rival.is_unnamed)
    }

    /// Returns the offset of the first line that it took itself: look-back lines can be found again.
    #[must_use]
    pub fn anchor(&self) -> u64 {
        match &self.adopted {
            Some(single) => single.anchor(),
            None => self.head().place.offset,
        }
    }

    /// Returns the first line that it took itself.
    fn head(&self) -> Taken<'_> {
        self.lines.get(self.lead.min(self.lines.len() - 1))
    }

    /// Returns the outcome of the machine that took the most lines, among
    /// those that make an event. What only a single line quotes is no event.
    #[must_use]
    pub fn outcome(&self, entries: &Entries) -> Option<Outcome> {
        if self.may_be_quoted() {
            return None;
        }
        let mut best: Option<&Rival> = None;
        for rival in &self.rivals {
            if !rival.makes_an_event(entries) {
                continue;
            }
            if best.is_none_or(|best| rival.accepted > best.accepted) {
                best = Some(rival);
            }
        }
        best.map(|rival| Outcome { entry: rival.entry, lines: self.gap.kept(rival.accepted), taken: rival.accepted, last_num: rival.accepted_num })
    }

    /// Whether one of its lines shows that what `outcome` came to is no error of its own.
    #[must_use]
    pub fn is_void(&self, outcome: Outcome) -> bool {
        self.rivals.iter().any(|rival| rival.entry == outcome.entry && rival.is_void)
    }

    /// Whether a further line may still show that.
    #[must_use]
    pub fn may_turn_void(&self, entries: &Entries) -> bool {
        let has_void = |rival: &Rival| machine(entries, rival.entry).is_some_and(|machine| machine.rows.iter().any(|row| row.void));
        self.rivals.iter().any(|rival| rival.alive && (rival.is_void || has_void(rival)))
    }

    /// Notes what stands above it: whatever one of the machines `voided` comes to is no error.
    pub fn make_void(&mut self, voided: impl Fn(u16) -> bool) {
        self.rivals.iter_mut().for_each(|rival| rival.is_void |= voided(rival.entry));
    }

    /// Whether a pause has published its head by itself, without a record above it.
    #[must_use]
    pub fn has_told_head(&self) -> bool {
        self.pauses.published && self.adopted.is_none()
    }

    /// Whether it began as a weak trace of a region.
    #[must_use]
    pub fn is_weak(&self, entries: &Entries) -> bool {
        self.rivals.iter().any(|rival| machine(entries, rival.entry).is_some_and(|machine| machine.weak))
    }

    /// Returns the entries of the machines that compete for it.
    pub fn rivals(&self) -> impl Iterator<Item = u16> {
        self.rivals.iter().map(|rival| rival.entry)
    }

    /// Returns the entries of those that have taken every line so far.
    pub fn still_competing(&self) -> impl Iterator<Item = u16> {
        self.rivals.iter().filter(|rival| rival.alive).map(|rival| rival.entry)
    }

    /// Returns the row that took each line of the event.
    #[must_use]
    pub fn rows(&self, entry: u16) -> &[u16] {
        self.rivals.iter().find(|rival| rival.entry == entry).map_or(&[], |rival| &rival.rows)
    }

    /// Returns the machine of `entry`, if it has one.
    #[must_use]
    pub fn machine<'e>(&self, entries: &'e Entries, entry: u16) -> Option<&'e Machine> {
        machine(entries, entry)
    }
}
