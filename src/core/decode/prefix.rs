//! What precedes the text of a plain line: times, writers, level and logger fields, nested as real
//! logs nest them. Called on every candidate line, so it reads bytes, has a bounded look-ahead and
//! allocates nothing. It never reads the message, and recognises only prefixes whose shape it knows.

mod behind;
mod boxed;
mod clocks;
mod lettered;
#[cfg(test)]
mod tests;

use self::boxed::uptime_end;
use super::fields::message;
use super::letter;
use super::level::{is_common, level_word};
use super::runner;
use super::scan::{blanks, byte, digits, rest, run};
use super::tag::{self, Ground, Tag};
use super::time::{Moment, Style, moment};
use super::writer::{self, Writer};
use crate::core::event::{Io, Level, Timestamp};

/// Maximum number of times and writers of one line, however nested.
const MAX_HEADS: usize = 8;
/// Maximum number of blanks before a head.
const MAX_INDENT: usize = 12;
/// Maximum number of levels with a further time after them (a service wrapper's line around a logger's).
const MAX_ROUNDS: usize = 3;

/// What a line says before its text. Ranges and offsets are in bytes of the line; `body <= message <= line.len()`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prefix {
    /// The innermost time.
    pub time: Option<Timestamp>,
    /// The innermost level.
    pub level: Option<Level>,
    /// The name of the writer: container, service, worker, rank, or syslog program with its number.
    pub key: Option<(usize, usize)>,
    /// The output of the writer, if the prefix names it.
    pub io: Option<Io>,
    /// After time, host and key, indentation kept; at the level tag, if there is one.
    pub body: usize,
    /// After level tag, logger, thread and bracket fields as well.
    pub message: usize,
    /// Whether a time, a key or a level was recognised.
    pub shaped: bool,
    /// Number of times, including clocks without a date.
    pub times: u8,
    /// Number of levels.
    pub levels: u8,
    /// Whether the body follows a time and two blanks, of which the second may be the body's own.
    pub padded: bool,
}

impl Prefix {
    /// Whether the line has a time stamp or a level of its own, and so begins a log record.
    #[must_use]
    pub fn is_stamped(&self) -> bool {
        self.shaped && (self.time.is_some() || self.level.is_some() || self.key.is_none())
    }
}

/// Reads the prefix of a line (without its line end). `now` supplies the year for a stamp without one.
#[must_use]
pub fn prefix(line: &[u8], now: Timestamp) -> Prefix {
    let mut scan = Scan::new(line, now);
    scan.indentation();
    scan.out.shaped = scan.writer(runner::job(line, now).or_else(|| runner::bamboo(line, now)));
    for _ in 0..MAX_ROUNDS {
        while scan.heads < MAX_HEADS && !scan.tagged {
            // What follows a further head is parted from that.
            let padded = std::mem::take(&mut scan.out.padded);
            if !scan.head() {
                scan.out.padded = padded;
                break;
            }
            scan.heads += 1;
            scan.out.shaped = true;
        }
        if !scan.tag() || !scan.time_follows() {
            break;
        }
    }
    scan.out.body = scan.out.body.min(line.len());
    scan.out.message = scan.out.message.clamp(scan.out.body, line.len());
    scan.out
}

/// Whether what stands before a message names who wrote it: a word besides times, levels, and an output.
#[must_use]
pub fn has_name(before: &[u8]) -> bool {
    /// Days, months and zones of times; outputs; Bamboo's kinds of lines.
    const OTHERS: [&[u8]; 33] = [
        b"mon", b"tue", b"wed", b"thu", b"fri", b"sat", b"sun", b"jan", b"feb", b"mar", b"apr", b"may", b"jun", b"jul", b"aug", b"sep", b"oct", b"nov", b"dec",
        b"utc", b"gmt", b"cet", b"cest", b"est", b"edt", b"pst", b"pdt", b"stdout", b"stderr", b"std", b"build", b"simple", b"command",
    ];
    let is_other = |word: &[u8]| word.len() < 3 || level_word(word).is_some() || OTHERS.iter().any(|other| other.eq_ignore_ascii_case(word));
    before.split(|byte| !byte.is_ascii_alphabetic()).any(|word| !is_other(word))
}

/// The syslog header that should follow a time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Header {
    None,
    Rfc3164,
    Rfc5424,
}

struct Scan<'a> {
    line: &'a [u8],
    now: Timestamp,
    at: usize,
    heads: usize,
    ground: Ground,
    /// The syslog header that a `<PRI>` announced.
    header: Header,
    /// Whether a head brought its level with it.
    tagged: bool,
    /// The tag that a logger has put behind a time, and the place where it was looked for.
    known: Option<(usize, Option<Tag>)>,
    out: Prefix,
}

impl<'a> Scan<'a> {
    fn new(line: &'a [u8], now: Timestamp) -> Self {
        let out = Prefix::default();
        Self { line, now, at: 0, heads: 0, ground: Ground::Bare, header: Header::None, tagged: false, known: None, out }
    }

    /// Skips blanks before a full date or a clock with its level (a log within another output), a few before seconds (tracing), one
    /// before a level in columns (Consola, pretty_env_logger), those before a project's number. Anything else that is indented is no head.
    fn indentation(&mut self) {
        let blank = self.line.iter().take(MAX_INDENT + 1).take_while(|b| **b == b' ').count();
        if blank > MAX_INDENT {
            self.at = rich_column(self.line);
        }
        // Behind more than two blanks, each of these heads begins with a digit.
        if blank == 0 || blank > MAX_INDENT || (blank > 2 && !byte(self.line, blank).is_ascii_digit()) {
            return;
        }
        let dated = matches!(rest(self.line, blank), [b'1' | b'2', _, _, _, b'-' | b'/', ..]) && moment(self.line, blank, self.now).is_some();
        let clocked = byte(self.line, blank).is_ascii_digit() && self.leveled_clock(blank);
        let seconds = byte(self.line, blank).is_ascii_digit() && (2..5).contains(&blank);
        let level = run(self.line, 1, |b| b.is_ascii_uppercase());
        let tagged = blank == 1 && byte(self.line, level) == b' ' && is_common(&self.line[1..level]);
        let name = run(self.line, blank, |b| b.is_ascii_alphanumeric());
        let named = blank == 2 && tag::dated(self.line, name).is_some();
        let project = runner::project(self.line, blank).is_some();
        if dated || clocked || tagged || named || project {
            self.at = blank;
        } else if seconds {
            self.at = blank;
            self.at = if self.seconds() { self.at } else { 0 };
        }
    }

    fn time(&mut self, time: Timestamp) {
        self.out.time = Some(time);
        self.out.times += 1;
    }

    fn level(&mut self, level: Level) {
        self.out.level = Some(level);
        self.out.levels += 1;
    }

    /// Takes one time or writer at the current position.
    fn head(&mut self) -> bool {
        match byte(self.line, self.at) {
            b'<' => self.priority() || self.enclosed_time() || self.boxed_letter(),
            b'#' => self.weblogic() || self.writer(writer::step(self.line, self.at)),
            b'0'..=b'9' => {
                self.bare_time()
                    || self.marked(letter::redis(self.line, self.at, self.now))
                    || self.clock()
                    || self.seconds()
                    || self.counted()
                    || self.elapsed()
                    || self.minutes()
                    || self.key()
            }
            b'@' => self.bare_time() || self.key(),
            b'[' | b'(' => self.enclosed(),
            b'"' | b'\'' => self.enclosed_time(),
            b'_' => self.buildkite(),
            // A runner's stamp, and the column in which MSBuild numbers its projects.
            b' ' => self.writer(runner::project(self.line, blanks(self.line, self.at))) || self.minutes(),
            b if b.is_ascii_alphabetic() => self.lettered() || self.bare_time() || self.key() || self.file_name() || self.names(),
            _ => false,
        }
    }

    fn bare_time(&mut self) -> bool {
        let Some(moment) = moment(self.line, self.at, self.now) else {
            return false;
        };
        self.take_time(moment, moment.end);
        true
    }

    /// Sets the time, moves to what follows it at `end`, and takes what can only follow a time.
    fn take_time(&mut self, moment: Moment, end: usize) {
        let start = self.at;
        self.time(moment.time);
        self.ground = if moment.style == Style::Transport { Ground::Bare } else { Ground::Logger };
        let sign = self.step_over(end);
        if self.ground == Ground::Logger {
            self.ground = if sign == Some(b'|') { self.either() } else { self.unless_said() };
        }
        let hosted = self.header == Header::Rfc3164 || moment.style == Style::Syslog;
        let _ = self.runner_stream()
            || self.writer(runner::writer_after_time(self.line, self.at))
            || self.writer(writer::header(self.line, self.at, self.header == Header::Rfc5424))
            || self.writer(writer::program(self.line, self.at, hosted))
            || (is_rsyslogs(self.line, start, end) && self.writer(writer::relayed(self.line, self.at)))
            || self.logcat()
            || self.padding(start, end);
    }

    fn writer(&mut self, found: Option<Writer>) -> bool {
        let Some(writer) = found else {
            return false;
        };
        self.out.key = Some(writer.key);
        self.out.io = writer.io.or(self.out.io);
        if let Some(level) = writer.level {
            self.level(level);
        }
        self.at = writer.end;
        self.ground = Ground::Bare;
        true
    }

    fn key(&mut self) -> bool {
        // After a logger's time, a bracketed thread is a field: the lines of its trace do not repeat it.
        if self.ground == Ground::Logger && matches!(byte(self.line, self.at), b'[' | b'(') {
            return false;
        }
        // Keys in a row name one writer together: two containers may both have a worker 3.
        let outer = self.out.key.filter(|_| self.out.time.is_none());
        let found = self.writer(writer::key_at(self.line, self.at));
        if let (true, Some(outer), Some(inner)) = (found, outer, self.out.key) {
            self.out.key = Some((outer.0, inner.1));
        }
        found
    }

    /// Takes `<134>` before a time, a version, the kernel's uptime, a
    /// program, or any text (what a service prints for the journal).
    fn priority(&mut self) -> bool {
        let Some((level, end)) = writer::priority(self.line, self.at) else {
            return false;
        };
        let (line, now) = (self.line, self.now);
        let stamped = |at: usize| moment(line, at, now).is_some();
        let version = rest(self.line, end).starts_with(b"1 ") && (stamped(end + 2) || rest(self.line, end).starts_with(b"1 - "));
        let spaced = byte(self.line, end) == b' ' && stamped(end + 1);
        let text = byte(self.line, end);
        let known = version || spaced || stamped(end) || uptime_end(self.line, end).is_some();
        if !known && !(self.at == 0 && (text.is_ascii_alphanumeric() || matches!(text, b'/' | b'['))) {
            return false;
        }
        self.level(level);
        self.header = if version { Header::Rfc5424 } else { Header::Rfc3164 };
        self.at = end + if version { 2 } else { usize::from(spaced) };
        if version && !stamped(self.at) {
            let _ = self.writer(writer::header(self.line, self.at + 2, true));
        } else if !known {
            let _ = self.writer(writer::program(self.line, self.at, false));
        }
        true
    }

    fn buildkite(&mut self) -> bool {
        let Some((time, end)) = runner::buildkite(self.line, self.at) else {
            return false;
        };
        self.time(time);
        self.at = end;
        true
    }

    /// Takes the stream number and output that GitLab's runner puts after its time: `00O `, `01E+`.
    fn runner_stream(&mut self) -> bool {
        let [a, b, output @ (b'O' | b'E'), tail @ ..] = rest(self.line, self.at) else {
            return false;
        };
        // The blank at the end of an empty line may have been cut off.
        if !a.is_ascii_hexdigit() || !b.is_ascii_hexdigit() || !matches!(tail.first(), None | Some(b' ' | b'+')) {
            return false;
        }
        self.out.io = Some(if *output == b'E' { Io::Stderr } else { Io::Stdout });
        self.ground = Ground::Bare;
        self.at = (self.at + 4).min(self.line.len());
        true
    }

    /// Takes the level tag at or after the current position, and sets body and message. Returns whether a tag was taken.
    fn tag(&mut self) -> bool {
        self.out.body = self.at;
        self.out.message = self.at;
        if self.tagged {
            return false;
        }
        // After a first level and a second time, a lower-case word begins the message.
        let ground = if self.out.level.is_some() && self.ground == Ground::Logger { Ground::Fields } else { self.ground };
        let Some(tag) = self.tag_on(ground) else {
            return false;
        };
        self.level(tag.level);
        self.out.shaped = true;
        self.out.body = tag.start;
        self.out.message = message(self.line, tag.end, ground);
        if tag.level == Level::Debug
            && let Some(plugin) = writer::crashed_plugin(self.line, blanks(self.line, tag.end))
        {
            self.out.key = Some(plugin.key);
            (self.out.level, self.out.levels) = (None, 0);
            (self.out.body, self.out.message) = (plugin.end, plugin.end);
            return false;
        }
        true
    }

    /// Moves to a further time where the message would begin; returns whether there is one.
    fn time_follows(&mut self) -> bool {
        let bracket = matches!(byte(self.line, self.out.message), b'[' | b'(');
        let follows = moment(self.line, self.out.message + usize::from(bracket), self.now).is_some();
        if follows {
            self.at = self.out.message;
        }
        follows
    }
}

/// Returns where the level of rich's handler stands, after a time that is not
/// repeated: eight columns, with the place at the line's end; 0 if there is none.
fn rich_column(line: &[u8]) -> usize {
    const COLUMNS: usize = 9;
    let at = blanks(line, 0);
    let end = run(line, at, |b| b.is_ascii_uppercase());
    let placed = || {
        let place = line.trim_ascii_end().rsplit(|b| *b == b' ').next().unwrap_or_default();
        memchr::memmem::rfind(place, b".py:").is_some_and(|dot| digits(place, dot + 4) == place.len())
    };
    let known = is_common(&line[at..end]) && blanks(line, end) == at + COLUMNS && placed();
    if known { at } else { 0 }
}

/// Whether a stamp at the start of the line has the form of rsyslog's files: `2026-11-20T10:00:00.123456+00:00`.
fn is_rsyslogs(line: &[u8], start: usize, end: usize) -> bool {
    const ZONE_BYTES: usize = 6;
    let zone = end.checked_sub(ZONE_BYTES).map_or(&[][..], |at| &line[at..end]);
    start == 0 && byte(line, 10) == b'T' && matches!(zone, [b'+' | b'-', _, _, b':', _, _])
}
