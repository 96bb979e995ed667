//! What stands before the text of a plain line: times, writers, level and logger fields, nested as real logs nest them.
//! Called on every candidate line, so it reads bytes, looks ahead a bounded way and allocates nothing. It never reads the
//! message, and takes nothing for a prefix that it does not know by shape.

mod boxed;

use self::boxed::uptime_end;
use super::android;
use super::fields::message;
use super::letter::{self, Marked};
use super::level::is_common;
use super::scan::{blanks, byte, digits, is_blank, is_gap, rest, run};
use super::tag::{self, Ground};
use super::time::{Moment, Style, clock_end, moment};
use super::writer::{self, Writer, past_blank};
use crate::core::event::{Io, Level, Timestamp};

/// Times and writers of one line, whatever their nesting.
const MAX_HEADS: usize = 8;
/// Levels with a further time behind them (a service wrapper's line around a logger's).
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
    /// Which output of the writer, where the prefix says so.
    pub io: Option<Io>,
    /// Behind time, host and key, indentation kept; at the level tag, if there is one.
    pub body: usize,
    /// Behind level tag, logger, thread and bracket fields too.
    pub message: usize,
    /// A time, a key or a level was recognised.
    pub shaped: bool,
    /// How many times, a clock's without a date too.
    pub times: u8,
    /// How many levels.
    pub levels: u8,
}

/// Reads the prefix of a line (without its line end). `now` gives the year where a stamp has none.
#[must_use]
pub fn prefix(line: &[u8], now: Timestamp) -> Prefix {
    let mut scan = Scan::new(line, now);
    scan.indentation();
    for _ in 0..MAX_ROUNDS {
        while scan.heads < MAX_HEADS && !scan.tagged && scan.head() {
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

/// The syslog header that is to follow a time.
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
    /// A head brought its level with it.
    tagged: bool,
    out: Prefix,
}

impl<'a> Scan<'a> {
    fn new(line: &'a [u8], now: Timestamp) -> Self {
        let out = Prefix::default();
        Self { line, now, at: 0, heads: 0, ground: Ground::Bare, header: Header::None, tagged: false, out }
    }

    /// Few blanks before a full date or seconds (tracing) or one before a level in columns (Consola, pretty_env_logger);
    /// anything else that is indented is no head.
    fn indentation(&mut self) {
        let blank = self.line.iter().take(5).take_while(|b| **b == b' ').count();
        let dated = matches!(rest(self.line, blank), [b'1' | b'2', _, _, _, b'-', ..]) && blank <= 2 && moment(self.line, blank, self.now).is_some();
        let seconds = byte(self.line, blank).is_ascii_digit() && (2..5).contains(&blank);
        let level = run(self.line, 1, |b| b.is_ascii_uppercase());
        let tagged = blank == 1 && byte(self.line, level) == b' ' && is_common(&self.line[1..level]);
        if blank > 0 && (dated || tagged) {
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

    /// Takes one time or writer at the current place.
    fn head(&mut self) -> bool {
        match byte(self.line, self.at) {
            b'<' => self.priority() || self.enclosed_time(),
            b'#' => self.weblogic() || self.writer(writer::step(self.line, self.at)),
            b'0'..=b'9' => self.bare_time() || self.marked(letter::redis(self.line, self.at, self.now)) || self.clock() || self.seconds() || self.counted(),
            b'@' => self.bare_time() || self.key(),
            b'[' | b'(' => self.enclosed(),
            b'"' | b'\'' => self.enclosed_time(),
            b if b.is_ascii_alphabetic() => self.lettered() || self.bare_time() || self.key() || self.file_name(),
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

    /// Sets the time, goes on to what follows it at `end`, and takes what only stands behind a time.
    fn take_time(&mut self, moment: Moment, end: usize) {
        self.time(moment.time);
        self.ground = if moment.style == Style::Transport { Ground::Bare } else { Ground::Logger };
        self.step_over(end);
        let hosted = self.header == Header::Rfc3164 || moment.style == Style::Syslog;
        let _ = self.runner_stream()
            || self.writer(writer::header(self.line, self.at, self.header == Header::Rfc5424))
            || self.writer(writer::program(self.line, self.at, hosted))
            || self.logcat();
    }

    /// Over the end of a time: a colon, one blank, and behind a logger's time a dash or a bar.
    fn step_over(&mut self, end: usize) {
        let colon = byte(self.line, end) == b':' && is_gap(byte(self.line, end + 1));
        self.at = past_blank(self.line, end + usize::from(colon));
        let sign = blanks(self.line, self.at);
        if self.ground == Ground::Logger && matches!(byte(self.line, sign), b'-' | b'|') && is_blank(byte(self.line, sign + 1)) {
            self.at = past_blank(self.line, sign + 1);
        }
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
        // Behind a logger's time a bracketed thread is a field: the lines of its trace do not repeat it.
        if self.ground == Ground::Logger && matches!(byte(self.line, self.at), b'[' | b'(') {
            return false;
        }
        // Keys that follow one another name one writer together: two containers may both have a worker 3.
        let outer = self.out.key.filter(|_| self.out.time.is_none());
        let found = self.writer(writer::key_at(self.line, self.at));
        if let (true, Some(outer), Some(inner)) = (found, outer, self.out.key) {
            self.out.key = Some((outer.0, inner.1));
        }
        found
    }

    /// `10:00:00 `, and strace's `123 10:00:00.123456 `: a shape without a date, so no time.
    fn clock(&mut self) -> bool {
        let number = digits(self.line, self.at);
        let start = if byte(self.line, number) == b' ' { number + 1 } else { self.at };
        let Some(end) = clock_end(self.line, start).filter(|&end| is_stamp_end(self.line, end)).or_else(|| zulu_end(self.line, start)) else {
            return false;
        };
        let text = &self.line[start..end];
        let seconds = text.iter().filter(|b| **b == b':').count() == 2;
        if !seconds && !text.ends_with(b"M") {
            return false;
        }
        self.ground = Ground::Logger;
        self.out.times += 1;
        self.step_over(end);
        true
    }

    /// `<134>` before a time, a version, the kernel's uptime, a program, or any text (what a service prints for the journal).
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

    /// GitLab's runner puts stream number and output behind its time: `00O `, `01E+`.
    fn runner_stream(&mut self) -> bool {
        let [a, b, output @ (b'O' | b'E'), b' ' | b'+', ..] = rest(self.line, self.at) else {
            return false;
        };
        if !a.is_ascii_hexdigit() || !b.is_ascii_hexdigit() {
            return false;
        }
        self.out.io = Some(if *output == b'E' { Io::Stderr } else { Io::Stdout });
        self.ground = Ground::Bare;
        self.at += 4;
        true
    }

    fn logcat(&mut self) -> bool {
        self.android(android::stamped(self.line, self.at))
    }

    fn android(&mut self, found: Option<android::Entry>) -> bool {
        let Some(entry) = found else { return false };
        self.take_letter(entry.level, entry.key, entry.end);
        true
    }

    fn take_letter(&mut self, level: Level, key: (usize, usize), end: usize) {
        self.level(level);
        self.out.key = Some(key);
        self.tagged = true;
        self.ground = Ground::Bare;
        self.at = past_blank(self.line, end);
    }

    /// The shapes that begin with a one-letter level.
    fn lettered(&mut self) -> bool {
        let (line, at) = (self.line, self.at);
        match byte(line, at + 1) {
            b'0'..=b'9' => self.marked(letter::logged(line, at, self.now)),
            b'/' | b'(' => self.android(android::brief(line, at)),
            b',' => self.before_time(at + 3),
            b'[' => self.before_time(at + 1),
            b' ' if byte(line, at + 2) == b'(' => self.marked(letter::ticks(line, at)),
            b' ' => self.before_time(at + 2) || self.before_date(at + 2) || self.marked(letter::named(line, at)),
            _ => false,
        }
    }

    /// Takes a level that is the whole tag.
    fn marked(&mut self, found: Option<Marked>) -> bool {
        let Some(marked) = found else { return false };
        if let Some(moment) = marked.moment {
            self.time(moment.time);
        }
        self.level(marked.level);
        self.tagged = true;
        self.at = past_blank(self.line, marked.end);
        true
    }

    /// Takes a letter before a time in brackets; a level word may still follow.
    fn before_time(&mut self, open: usize) -> bool {
        let Some(marked) = letter::before_time(self.line, self.at, open, self.now) else { return false };
        if let Some(moment) = marked.moment {
            self.take_time(moment, marked.end);
        }
        self.level(marked.level);
        true
    }

    /// Takes a letter before a full date without brackets; a level word may still follow.
    fn before_date(&mut self, date: usize) -> bool {
        let level = letter::alone(byte(self.line, self.at)).filter(|_| digits(self.line, date) == date + 4);
        let (Some(level), Some(moment)) = (level, moment(self.line, date, self.now)) else { return false };
        self.take_time(moment, moment.end);
        self.level(level);
        true
    }

    /// Takes the level tag at or behind the current place, and settles body and message. Whether a tag was taken.
    fn tag(&mut self) -> bool {
        self.out.body = self.at;
        self.out.message = self.at;
        if self.tagged {
            return false;
        }
        // Behind a first level and a second time a lower-case word begins the message.
        let ground = if self.out.level.is_some() && self.ground == Ground::Logger { Ground::Fields } else { self.ground };
        let Some(tag) = tag::find(self.line, self.at, ground) else {
            return false;
        };
        self.level(tag.level);
        self.out.shaped = true;
        self.out.body = tag.start;
        self.out.message = message(self.line, tag.end, ground);
        true
    }

    /// A further time stands where the message would begin: goes there.
    fn time_follows(&mut self) -> bool {
        let bracket = matches!(byte(self.line, self.out.message), b'[' | b'(');
        let follows = moment(self.line, self.out.message + usize::from(bracket), self.now).is_some();
        if follows {
            self.at = self.out.message;
        }
        follows
    }
}

/// A gap follows, or a colon and a gap.
fn is_stamp_end(line: &[u8], end: usize) -> bool {
    is_gap(byte(line, end)) || (byte(line, end) == b':' && is_gap(byte(line, end + 1)))
}

/// End of `10:00:00.123Z` at `at`.
fn zulu_end(line: &[u8], at: usize) -> Option<usize> {
    let end = run(line, at, |b| b.is_ascii_digit() || matches!(b, b':' | b'.'));
    let zulu = byte(line, end) == b'Z' && is_gap(byte(line, end + 1)) && clock_end(&line[..end], at) == Some(end);
    zulu.then_some(end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_795_000_000_000_000); // 2026-11-18

    /// Line, level, key, body, message; `~` stands for "no time".
    type Row = (&'static str, Option<Level>, &'static str, &'static str, &'static str);

    fn check(rows: &[Row]) {
        for (line, level, key, body, message) in rows {
            let timeless = line.starts_with('~');
            let line = line.strip_prefix('~').unwrap_or(line);
            let got = prefix(line.as_bytes(), NOW);
            let found = got.key.map_or("", |(a, b)| &line[a..b]);
            let seen = (got.level, found, &line[got.body..], &line[got.message..], got.time.is_none());
            assert_eq!(seen, (*level, *key, *body, *message, timeless), "{line}");
        }
    }

    const E: Option<Level> = Some(Level::Error);
    const W: Option<Level> = Some(Level::Warn);
    const I: Option<Level> = Some(Level::Info);
    const D: Option<Level> = Some(Level::Debug);
    const F: Option<Level> = Some(Level::Fatal);

    #[test]
    fn times_alone() {
        check(&[
            ("2023-09-21T17:21:33.5637201Z Post job", None, "", "Post job", "Post job"),
            ("2023-09-21T17:21:33.5637201Z     at a.b (c.js:1:2)", None, "", "    at a.b (c.js:1:2)", "    at a.b (c.js:1:2)"),
            ("2023-09-21T17:21:33.5637201Z Error in foo(): bar", None, "", "Error in foo(): bar", "Error in foo(): bar"),
            ("2023-09-21T17:21:33.5637201Z ##[error]Process exited", E, "", "##[error]Process exited", "Process exited"),
            ("2023-09-21T17:21:33.5637201Z 2024-01-02 10:00:00 ERROR x", E, "", "ERROR x", "x"),
            ("[2021-05-21T21:58:57.022497Z]", None, "", "", ""),
            ("(2022-06-14  0:31:43): [pam] x", None, "", "[pam] x", "[pam] x"),
            ("\"2026-01-01 10:00:00\" x", None, "", "x", "x"),
            ("1695668091.895450 execve(x)", None, "", "execve(x)", "execve(x)"),
            ("@400000004a3e2ad42a3b1c2d status: x", None, "", "status: x", "status: x"),
            ("2025-04-24 19:52:02 - fraud-detection - Consumed", None, "", "fraud-detection - Consumed", "fraud-detection - Consumed"),
            ("2024-01-01T00:00:00.123456Z 01E   x", None, "", "  x", "  x"),
            ("~[   12.345678] usb 1-1: x", None, "", "usb 1-1: x", "usb 1-1: x"),
            ("~10:00:00 web.1  | x", None, "web.1", "x", "x"),
            ("~[10:00:00] x", None, "", "x", "x"),
        ]);
    }

    #[test]
    fn syslog() {
        check(&[
            ("Apr 28 04:02:03 host prog[123]:   x: y", None, "prog[123]", "  x: y", "  x: y"),
            ("Apr 28 04:02:03 tstack-centos5 syslogd 1.4.1: restart.", None, "syslogd 1.4.1", "restart.", "restart."),
            ("Jan  4 10:23:26 Tims-Air Setup Assistant[1173]: x", None, "Setup Assistant[1173]", "x", "x"),
            ("Mar  4 19:25:13 UDM-Pro user.warn kernel: [ 1170.826385] x", W, "kernel", "x", "x"),
            ("Feb 28 14:25:54 UDM-Pro daemon.err mcad: failed", E, "mcad", "failed", "failed"),
            ("Apr 28 04:02:03 TypeError: foo bar: x", None, "", "TypeError: foo bar: x", "TypeError: foo bar: x"),
            ("<134>Jan 15 10:00:00 web01 nginx[1]: a b c [d] e", I, "nginx[1]", "a b c [d] e", "a b c [d] e"),
            ("<78>1 2017-04-27T08:09:01+02:00 nextcloud CRON 1472 - -  (root) CMD", I, "CRON 1472", " (root) CMD", " (root) CMD"),
            ("<11>1 2017-04-27T08:09:01Z h app - ID1 [a@1 b=\"c\"][d@2] ERROR x", E, "app -", "ERROR x", "x"),
            ("2022-08-27T14:22:01.613Z s.x NSX 3106 - [abc@6876 comp=\"e\" level=\"INFO\" s=\"f\"] m", I, "NSX 3106", "m", "m"),
            ("~<3>[   12.345678] oops", E, "", "oops", "oops"),
            ("2024-01-01T00:00:00.123456+00:00 host prog[7]: ERROR: x", E, "prog[7]", "ERROR: x", "x"),
        ]);
    }

    #[test]
    fn web_servers_and_databases() {
        check(&[
            ("[Thu Jun 27 11:55:44.569531 2013] [core:error] [pid 1:tid 2] x", E, "", "[core:error] [pid 1:tid 2] x", "x"),
            ("[10/Feb/2012:16:41:07 -0500] [error] x", E, "", "[error] x", "x"),
            ("2026/11/10 10:00:00 [error] 123#0: *5 open() failed", E, "", "[error] 123#0: *5 open() failed", "open() failed"),
            ("E [04/Nov/2010:17:37:40 -0400] StartListening: x", E, "", "StartListening: x", "StartListening: x"),
            ("2025-08-16 13:02:58.095 CEST [885178] ERROR:  bad", E, "", "ERROR:  bad", "bad"),
            ("2025-08-16 13:02:58.095 CEST [885178] DETAIL:  Token", I, "", "DETAIL:  Token", "Token"),
            ("2017-09-06 08:40:10 UTC [20]: [1-1] user=,db=,app=,client= LOG:  database", I, "", "LOG:  database", "database"),
            ("2020-03-11 20:40:43 CET::@:[12760]:LOG:  starting", I, "", "LOG:  starting", "starting"),
            ("2020-08-06T14:25:02.835618Z 0 [ERROR] [MY-012487] [InnoDB] x", E, "", "[ERROR] [MY-012487] [InnoDB] x", "x"),
            ("2020-08-06T14:25:02.835618Z 0 [Note] DDL", I, "", "[Note] DDL", "DDL"),
            ("123:M 01 Jan 2024 10:00:00.000 # low", W, "", "low", "low"),
        ]);
    }

    #[test]
    fn chromium() {
        check(&[
            ("~[1:2:1120/131323.1:ERROR:gpu.cc(12)] no GPU", E, "", "no GPU", "no GPU"),
            ("~[7:7:1120/131323.1:INFO:CONSOLE(1)] \"Uncaught TypeError: x\"", I, "", "\"Uncaught TypeError: x\"", "\"Uncaught TypeError: x\""),
        ]);
    }

    #[test]
    fn loggers() {
        check(&[
            ("2026-01-01 10:00:00,123 ERROR [main] c.a.Foo - msg", E, "", "ERROR [main] c.a.Foo - msg", "msg"),
            ("2026-01-01 10:00:00,123 [main] ERROR c.a.Foo - msg", E, "", "ERROR c.a.Foo - msg", "msg"),
            ("2026-01-01 10:00:00 ERROR java.lang.Foo$BarException: x", E, "", "ERROR java.lang.Foo$BarException: x", "java.lang.Foo$BarException: x"),
            (
                "2025-01-23T03:42:36.681-0800  INFO 125873 --- [myapp] [      main] o.s.Foo    : msg",
                I,
                "",
                "INFO 125873 --- [myapp] [      main] o.s.Foo    : msg",
                "msg",
            ),
            ("~ERROR:root:msg", E, "", "ERROR:root:msg", "msg"),
            ("2026-01-01 10:00:00 - name - ERROR - msg", E, "", "ERROR - msg", "msg"),
            ("[2022-06-02T10:45:15.969Z tomcat--188     ERROR com.x.Y] msg", E, "", "msg", "msg"),
            ("[2026-01-01T00:00:00Z ERROR mod::x] msg", E, "", "msg", "msg"),
            ("2026-01-01T00:00:00.123456Z ERROR mod::x: msg", E, "", "ERROR mod::x: msg", "msg"),
            ("E, [2024-06-26T17:00:04.497736 #126554] ERROR -- : msg", E, "", "ERROR -- : msg", "msg"),
            ("E, [2024-06-26T17:00:04.497736 #126554] ERROR -- prog: msg", E, "", "ERROR -- prog: msg", "msg"),
            ("E0517 15:04:22.619632 1234 file.cc:253] msg", E, "", "msg", "msg"),
            ("04-23 09:17:27.871  123  456 E Tag: \tat a.b", E, "123  456", "\tat a.b", "\tat a.b"),
            ("~E/Tag( 123): msg", E, "Tag( 123)", "msg", "msg"),
            ("2022-06-02T11:58:12.193Z error vpxd[45715] [Originator@6876 sub=x] msg", E, "", "error vpxd[45715] [Originator@6876 sub=x] msg", "msg"),
            ("2014-01-17T04:55:50.347Z [7F03ECE76700 verbose 'Default' opID=2] [Vpx] Invoke", D, "", "[Vpx] Invoke", "Invoke"),
            ("2015-04-01T22:22:35.038Z cpu22:44012977)ALERT: This", F, "", "ALERT: This", "This"),
            ("2014-10-28 10:42:22.772 23623 INFO neutron.wsgi [req-4 None] 10.1", I, "", "INFO neutron.wsgi [req-4 None] 10.1", "10.1"),
            (
                "2023-07-18T20:10:41.345-0700 | DEBUG    | opId-2 | cls-4 | Impl     | Invalidated 0",
                D,
                "",
                "DEBUG    | opId-2 | cls-4 | Impl     | Invalidated 0",
                "Invalidated 0",
            ),
            ("INFO   | jvm 1    | 2015/04/28 18:40:00 | 2015-04-28 18:40:00,077 [W-8] ERROR com.x.Y - queue", E, "", "ERROR com.x.Y - queue", "queue"),
            ("2012-07-02 10:22:40,672:DEBUG:foo bar", D, "", "DEBUG:foo bar", "foo bar"),
            ("2022-06-01T13:23:25.515 [2376]DEBUG:vmware.x.y:method", D, "", "DEBUG:vmware.x.y:method", "method"),
            (
                "2025-04-24T22:09:20.856Z\terror\tinternal/q.go:128\tExporting failed.\t{}",
                E,
                "",
                "error\tinternal/q.go:128\tExporting failed.\t{}",
                "Exporting failed.\t{}",
            ),
            ("2025-04-24T22:09:20.854Z\tinfo\tMetrics\t{\"a\": 1}", I, "", "info\tMetrics\t{\"a\": 1}", "Metrics\t{\"a\": 1}"),
            ("2024-04-23 09:24:31,484 [myid:] - INFO  [W[myid=3]:o.a.x] - Note", I, "", "INFO  [W[myid=3]:o.a.x] - Note", "Note"),
            ("17/06/09 20:10:52 INFO executor.Backend: Got", I, "", "INFO executor.Backend: Got", "Got"),
            ("2024-01-01T10:00:00.123Z error: boom", E, "", "error: boom", "boom"),
            ("20260327 11:34:21.908 - INFO - + START", I, "", "INFO - + START", "+ START"),
            ("2026-01-01 10:00:00.123 | ERROR    | __main__:main:12 - boom", E, "", "ERROR    | __main__:main:12 - boom", "boom"),
            ("~[10:00:00 ERR] boom", E, "", "boom", "boom"),
            ("[2024-01-01 10:00:00 +0000] [12] [ERROR] boom", E, "", "[ERROR] boom", "boom"),
        ]);
    }

    #[test]
    fn levels_at_the_start() {
        check(&[
            ("~[ERROR] x", E, "", "[ERROR] x", "x"),
            ("~[debug] this is", D, "", "[debug] this is", "this is"),
            ("~ERROR: x", E, "", "ERROR: x", "x"),
            ("~ERROR: [Errno 2] x", E, "", "ERROR: [Errno 2] x", "[Errno 2] x"),
            ("~Warning: x", W, "", "Warning: x", "x"),
            ("~critical: x", F, "", "critical: x", "x"),
            ("~ERROR x", E, "", "ERROR x", "x"),
            ("~ERROR foo.c: No such file", E, "", "ERROR foo.c: No such file", "foo.c: No such file"),
            ("~<error> x", E, "", "<error> x", "x"),
            ("~|ERROR| x", E, "", "|ERROR| x", "x"),
            ("~(ERROR) x", E, "", "(ERROR) x", "x"),
            ("~level=error x", E, "", "level=error x", "x"),
            ("~[INFO:choose_repo] x", I, "", "[INFO:choose_repo] x", "x"),
        ]);
        for line in [
            "",
            "Error: foo",
            "error: foo",
            "fatal: not a git repository",
            "panic: x",
            "Error in foo",
            "ERROR_LOG=x",
            "ERROR = 3",
            "error foo",
            "Note that",
            "[error](http://x)",
            "<error>x</error>",
            "#[error]",
            "INFO://x",
            "errors: 0",
            "  ERROR: 3,",
        ] {
            let got = prefix(line.as_bytes(), NOW);
            assert_eq!(got, Prefix::default(), "{line}");
        }
    }

    #[test]
    fn writers() {
        check(&[
            ("~service-1  |     at x", None, "service-1", "    at x", "    at x"),
            ("~service_1 | ERROR: x", E, "service_1", "ERROR: x", "x"),
            ("~caddy  | {\"a\":1}", None, "caddy", "{\"a\":1}", "{\"a\":1}"),
            ("~web-1  |", None, "web-1", "", ""),
            ("~[worker 3] x", None, "worker 3", "x", "x"),
            ("~(thread 7) x", None, "thread 7", "x", "x"),
            ("~[rank0]: Traceback", None, "rank0", "Traceback", "Traceback"),
            ("~[pod/a-1/b] [worker 3] x", None, "pod/a-1/b] [worker 3", "x", "x"),
            ("~web:build: error TS1", None, "web:build", "error TS1", "error TS1"),
            ("~@acme/web: error TS1", None, "@acme/web", "error TS1", "error TS1"),
            ("~packages/web build: error TS1", None, "packages/web build", "error TS1", "error TS1"),
            ("~packages/web is: done", None, "", "packages/web is: done", "packages/web is: done"),
            ("~#12 3.456   at x", None, "#12", "  at x", "  at x"),
            ("~#12 ERROR: x", None, "", "#12 ERROR: x", "#12 ERROR: x"),
            ("~#0  main (a.dart:3:5)", None, "", "#0  main (a.dart:3:5)", "#0  main (a.dart:3:5)"),
            ("2024-01-01 10:00:00,123 [Thread-4] ERROR a.b.C - x", E, "", "ERROR a.b.C - x", "x"),
            ("2024-01-01T10:00:00.1234567Z [worker 3] x", None, "worker 3", "x", "x"),
            ("2024-01-01T10:00:00.1234567Z web-1  | 2024-01-01 10:00:01 x", None, "web-1", "x", "x"),
        ]);
        let mpi = prefix(b"[1,0]<stderr>: x", NOW);
        assert_eq!((mpi.io, mpi.key, mpi.body), (Some(Io::Stderr), Some((1, 4)), 15));
        for line in [
            "3 | mod b;",
            "  | ExceptionGroup",
            "LL | mod b;",
            "| a | b |",
            "Name  | Type | Text",
            "src/a.rs  | 12 ++--",
            "a.rs  | 12 +",
            "[1/10] x",
            "[ 10%] x",
            "[0] x",
            "java.lang:foo: x",
            "Table | x",
            "INFO  | x | y",
        ] {
            assert_eq!(prefix(line.as_bytes(), NOW).key, None, "{line}");
        }
    }
}
