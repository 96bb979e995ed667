//! Who wrote a line, if a transport says so: the key of an interleaved writer, or a syslog header. Used
//! by `prefix`. Conservative: what could also be a table, a source listing or a message is no writer.

use super::level::{level_word, severity};
use super::runner;
use super::scan::{blanks, byte, digits, group, is_blank, is_gap, is_name, rest, run, word};
use crate::core::event::{Io, Level};

/// A writer and where the text after it begins.
#[derive(Clone, Copy, Debug)]
pub struct Writer {
    pub key: (usize, usize),
    pub end: usize,
    pub io: Option<Io>,
    pub level: Option<Level>,
}

impl Writer {
    pub(super) fn new(key: (usize, usize), end: usize) -> Self {
        Self { key, end, io: None, level: None }
    }
}

/// Returns the writer whose key begins at `at`.
pub fn key_at(line: &[u8], at: usize) -> Option<Writer> {
    match byte(line, at) {
        b'[' => worker(line, at).or_else(|| mpi(line, at)).or_else(|| runner::numbered_line(line, at)).or_else(|| runner::local_job(line, at)),
        b'(' => worker(line, at).or_else(|| actor(line, at)),
        b if b.is_ascii_alphabetic() || b == b'@' => named(line, at),
        b if b.is_ascii_digit() => runner::managed(line, at).or_else(|| runner::pod(line, at)).or_else(|| runner::project(line, at)),
        _ => None,
    }
}

/// Returns a writer that begins with its name: the byte after the name tells which it may be.
fn named(line: &[u8], at: usize) -> Option<Writer> {
    let end = run(line, at, is_name);
    match byte(line, end) {
        b' ' | b'\t' => service(line, at)
            .or_else(|| ended_service(line, at))
            .or_else(|| runner::pod(line, at))
            .or_else(|| runner::build_step(line, at).filter(|_| byte(line, at) == b'S'))
            .or_else(|| runner::provisioner(line, at).filter(|_| byte(line, end + 1) == b'(')),
        b':' | b'/' => task(line, at),
        b'@' => task(line, at).or_else(|| runner::swarm(line, at)),
        b'[' | b']' | b'"' => runner::provisioner(line, at),
        _ => None,
    }
}

/// Returns the writer of what Terraform relays, at level debug, from a plugin that
/// crashed: `plugin.terraform-provider-x_v1: panic: …`, and what Go writes about
/// its goroutines below. Everything else that a plugin prints is of that level.
pub fn crashed_plugin(line: &[u8], at: usize) -> Option<Writer> {
    let name = rest(line, at).strip_prefix(b"plugin.").or_else(|| rest(line, at).strip_prefix(b"provider."))?;
    let end = word(line, at);
    if !name.starts_with(b"terraform-provider-") || !line[..end].ends_with(b":") {
        return None;
    }
    let text = rest(line, past_blank(line, end));
    let heads: [&[u8]; 5] = [b"panic: ", b"fatal error: ", b"[signal ", b"goroutine ", b"created by "];
    let call = text.iter().position(|b| *b == b'(').is_some_and(|open| !text[..open].contains(&b' ') && text.ends_with(b")"));
    let known = text.is_empty() || text.starts_with(b"\t") || call || heads.iter().any(|head| text.starts_with(head));
    known.then(|| Writer::new((at, end - 1), past_blank(line, end)))
}

/// Skips one blank: further ones are the text's indentation.
pub fn past_blank(line: &[u8], at: usize) -> usize {
    at + usize::from(is_blank(byte(line, at)))
}

/// `[worker 3] `, `[pid 123] `, `(thread 7) `, `[rank0]: `, `[default0]:`, `[pod/name/container] `
fn worker(line: &[u8], at: usize) -> Option<Writer> {
    let close = group(line, at)?;
    let inner = &line[at + 1..close];
    let pod = inner.starts_with(b"pod/") && word(inner, 0) == inner.len();
    if !pod && !is_numbered_worker(inner) {
        return None;
    }
    let end = close + 1 + usize::from(byte(line, close + 1) == b':');
    let boxed = end > close + 1 && byte(line, end) == b'[';
    // PyTorch's launcher puts no blank between its mark and what a program printed.
    let glued = end > close + 1 && inner.starts_with(b"default");
    let text = if glued { end } else { past_blank(line, end) };
    (boxed || glued || is_gap(byte(line, end))).then(|| Writer::new((at + 1, close), text))
}

/// `(load pid=1234) `, `(load pid=1234, ip=10.0.0.9) ` (Ray), `(EngineCore_0 pid=1234) ` (vLLM), `(raylet) `
fn actor(line: &[u8], at: usize) -> Option<Writer> {
    const NUMBER: &[u8] = b" pid=";
    let close = group(line, at)?;
    let inner = &line[at + 1..close];
    let name = run(inner, 0, |b| is_name(b) || b == b':' || b == b'<' || b == b'>');
    let number = name + NUMBER.len();
    let end = if inner[name..].starts_with(NUMBER) { digits(inner, number) } else { number };
    let numbered = end > number && (end == inner.len() || inner[end..].starts_with(b", ip="));
    (name > 0 && (numbered || inner == b"raylet") && is_gap(byte(line, close + 1))).then(|| Writer::new((at + 1, close), past_blank(line, close + 1)))
}

fn is_numbered_worker(inner: &[u8]) -> bool {
    const WORDS: [&[u8]; 8] = [b"worker", b"thread", b"pid", b"process", b"proc", b"rank", b"shard", b"default"];
    let letters = run(inner, 0, |b| b.is_ascii_alphabetic());
    let number = letters + usize::from(matches!(byte(inner, letters), b' ' | b'-' | b'_' | b'#' | b':' | b'='));
    let end = digits(inner, number);
    end > number && end == inner.len() && WORDS.iter().any(|w| w.eq_ignore_ascii_case(&inner[..letters]))
}

/// `[1,0]<stderr>: ` (Open MPI)
fn mpi(line: &[u8], at: usize) -> Option<Writer> {
    let close = group(line, at)?;
    let (io, end) = match rest(line, close + 1) {
        tail if tail.starts_with(b"<stdout>:") => (Io::Stdout, close + 10),
        tail if tail.starts_with(b"<stderr>:") => (Io::Stderr, close + 10),
        _ => return None,
    };
    // Version 5 names the host and puts a blank after the colon; before that version, a blank is the text's own indentation.
    let parted = byte(line, end) == b' ' && (line[at..close].contains(&b'@') || !is_blank(byte(line, end + 1)));
    Some(Writer { io: Some(io), ..Writer::new((at + 1, close), end + usize::from(parted)) })
}

/// `service-1  | `, `web.1 | ` (docker compose, foreman). A name without a number needs
/// the two spaces of its padding; the last words of a diffstat or a table do not count.
fn service(line: &[u8], at: usize) -> Option<Writer> {
    let end = run(line, at, is_name);
    let bar = blanks(line, end);
    if bar == end || byte(line, bar) != b'|' || !is_gap(byte(line, bar + 1)) {
        return None;
    }
    let name = &line[at..end];
    let number = name.iter().rev().take_while(|b| b.is_ascii_digit()).count();
    let numbered = number > 0 && matches!(name[..name.len() - number].last(), Some(b'-' | b'_' | b'.'));
    let text = past_blank(line, bar + 1);
    let padded = bar - end >= 2 && !is_row(rest(line, text));
    // The name of a file has a dot, and a diffstat's number alone is 0.
    let is_counted = numbered && !name.contains(&b'.') && rest(line, text).trim_ascii() != b"0";
    if level_word(name).is_some() || is_diffstat(rest(line, text), is_counted) || !(numbered || padded) {
        return None;
    }
    Some(Writer::new((at, end), text))
}

/// `db-1 exited with code 1`: what docker compose says of a container between the lines of others. All of it is the text.
fn ended_service(line: &[u8], at: usize) -> Option<Writer> {
    let end = run(line, at, is_name);
    let name = &line[at..end];
    let number = name.iter().rev().take_while(|b| b.is_ascii_digit()).count();
    let code = rest(line, end).strip_prefix(b" exited with code ")?;
    let is_numbered = number > 0 && name[..name.len() - number].ends_with(b"-");
    (at == 0 && is_numbered && digits(code, 0) > 0).then(|| Writer::new((at, end), at))
}

/// Whether further cells of a table follow. A listing's number and bar do not count (`2 |     let x`, `  |     ^`), nor do the fields of
/// a logger behind its time and level (`2026-11-20 10:00:00.123 | ERROR    | `).
fn is_row(text: &[u8]) -> bool {
    let bar = |text: &[u8]| memchr::memmem::find(text, b" | ");
    let Some(first) = bar(text) else { return false };
    let level = &text[first + 3..];
    let is_level = level_word(&level[..run(level, 0, |b| b.is_ascii_uppercase())]).is_some();
    if is_level && text.first().is_some_and(u8::is_ascii_digit) {
        return false;
    }
    let is_listed = text[..first].iter().all(|b| *b == b' ' || b.is_ascii_digit());
    !is_listed || bar(&text[first + 2..]).is_some()
}

/// Whether this is the end of a diffstat's line: `12 ++--`, `Bin 0 -> 1 bytes`; unless `printed`, a number alone, too.
fn is_diffstat(text: &[u8], printed: bool) -> bool {
    let start = blanks(text, 0);
    let end = digits(text, start);
    // Behind the number of a source line, there is code after the sign, too.
    let graph = rest(text, end + 1).trim_ascii_end();
    let is_graph = !graph.is_empty() && graph.iter().all(|b| matches!(b, b'+' | b'-'));
    rest(text, start).starts_with(b"Bin ") || (end > start && (is_graph || (end == text.len() && !printed)))
}

/// `#12 3.456 `: a step of BuildKit's plain progress, and the seconds since it began.
pub fn step(line: &[u8], at: usize) -> Option<Writer> {
    let number = digits(line, at + 1);
    let point = digits(line, number + 1);
    let end = digits(line, point + 1);
    let numbered = byte(line, at) == b'#' && number > at + 1 && byte(line, number) == b' ';
    let timed = point > number + 1 && byte(line, point) == b'.' && (2..=4).contains(&(end - point)) && is_gap(byte(line, end));
    (numbered && timed).then(|| Writer::new((at, number), past_blank(line, end)))
}

/// `web:build: `, `@scope/pkg:test: ` (turbo), `@scope/pkg: ` (Lerna), `packages/web build: ` (pnpm)
fn task(line: &[u8], at: usize) -> Option<Writer> {
    const TASKS: [&[u8]; 10] = [b"build", b"test", b"dev", b"lint", b"start", b"typecheck", b"type-check", b"check", b"compile", b"e2e"];
    let package = run(line, at, |b| is_name(b) || matches!(b, b'@' | b'/'));
    let name = &line[at..package];
    let is_deep = name.contains(&b'/');
    let parted = match byte(line, package) {
        b':' => level_word(name).is_none(),
        b' ' => is_deep,
        _ => false,
    };
    if !parted {
        return None;
    }
    if is_deep && name[0] == b'@' && is_gap(byte(line, package + 1)) {
        return Some(Writer::new((at, package), past_blank(line, package + 1)));
    }
    let end = run(line, package + 1, is_name);
    let task = &line[package + 1..end];
    let ends = byte(line, end) == b':' && is_gap(byte(line, end + 1));
    (ends && TASKS.contains(&task)).then(|| Writer::new((at, end), past_blank(line, end + 1)))
}

/// Returns the program after a syslog time: `host prog[123]: `, `host daemon.err prog: `,
/// `daemon.err prog[123]: ` (OpenWrt), `Er(3) prog[123]: ` (ESX). After any other time
/// (`hosted` false), the process number is required. The key is the program with its number.
pub fn program(line: &[u8], at: usize, hosted: bool) -> Option<Writer> {
    if rest(line, at).starts_with(b"Caused by: ") {
        return None;
    }
    match angled_level(line, at).filter(|_| hosted) {
        Some((level, next)) => named_program(line, next, true).map(|writer| Writer { level: Some(level), ..writer }),
        None => named_program(line, at, hosted),
    }
}

/// Returns the program without a process number after a host and a time in rsyslog's own form: `web-1 shop: `.
/// Any two words may begin a message, so the host must look like one, or the program be one that is on each host.
pub fn relayed(line: &[u8], at: usize) -> Option<Writer> {
    let host = run(line, at, is_name);
    let start = host + 1;
    let end = run(line, start, |b| is_name(b) || b == b'/');
    let (name, program) = (&line[at..host], line.get(start..end)?);
    if byte(line, host) != b' ' || byte(line, end) != b':' || !is_gap(byte(line, end + 1)) || level_word(name).is_some() {
        return None;
    }
    let is_numbered = byte(line, at).is_ascii_alphanumeric() && name.iter().any(|b| b.is_ascii_digit() || matches!(b, b'-' | b'.'));
    let is_system = program == b"kernel" || program.starts_with(b"systemd");
    (is_system || is_numbered && !says_error(program)).then(|| Writer::new((start, end), past_blank(line, end + 1)))
}

/// Whether the word before a colon speaks of an error: an exception's name, a level, what has failed.
fn says_error(word: &[u8]) -> bool {
    const ENDS: [&[u8]; 6] = [b"error", b"exception", b"failed", b"failure", b"fault", b"warning"];
    let ends_with = |end: &&[u8]| word.len().checked_sub(end.len()).is_some_and(|from| word[from..].eq_ignore_ascii_case(end));
    word.is_empty() || level_word(word).is_some() || ENDS.iter().any(ends_with)
}

/// Returns the program that is named at `at`, perhaps behind a host and a level.
fn named_program(line: &[u8], at: usize, hosted: bool) -> Option<Writer> {
    if let Some(writer) = program_tag(line, at, false).or_else(|| process(line, at)).or_else(|| version(line, at)) {
        return Some(writer);
    }
    let host = word(line, at);
    if let Some(level) = facility_level(&line[at..host]).or_else(|| esx_level(&line[at..host])) {
        return program_tag(line, blanks(line, host), true).map(|writer| Writer { level: Some(level), ..writer });
    }
    // The name of a host begins with a letter or digit, `--- FAIL: TestX` does not.
    let is_host = byte(line, at).is_ascii_alphanumeric() || byte(line, at) == b'_';
    if !is_host || line[host - 1] == b':' || level_word(&line[at..host]).is_some() {
        return None;
    }
    let mut next = blanks(line, host);
    let level = facility_level(&line[next..word(line, next)]);
    if level.is_some() {
        next = blanks(line, word(line, next));
    }
    program_tag(line, next, hosted).map(|writer| Writer { level, ..writer })
}

/// `default[20261120t100000]  ` (Google App Engine: service and version, after a time)
fn version(line: &[u8], at: usize) -> Option<Writer> {
    let end = run(line, at, is_name);
    let close = group(line, end).filter(|_| byte(line, end) == b'[' && end > at)?;
    let inner = &line[end + 1..close];
    let dated = inner.len() == 15 && inner[8] == b't' && digits(inner, 0) == 8 && digits(inner, 9) == inner.len();
    let behind = rest(line, close + 1);
    (dated && (behind.is_empty() || behind.starts_with(b"  "))).then(|| Writer::new((at, close + 1), (close + 3).min(line.len())))
}

/// `prog[1234:5678] ` (Apple's NSLog: process and thread)
fn process(line: &[u8], at: usize) -> Option<Writer> {
    let end = run(line, at, is_name);
    let thread = digits(line, end + 1);
    let close = run(line, thread + 1, |b| b.is_ascii_hexdigit());
    let known = end > at && byte(line, end) == b'[' && thread > end + 1 && byte(line, thread) == b':' && close > thread + 1;
    (known && byte(line, close) == b']' && is_blank(byte(line, close + 1))).then(|| Writer::new((at, close + 1), past_blank(line, close + 1)))
}

/// Returns the level of a facility and severity, and where they end: `<daemon.err> `, `<3.3> ` (FreeBSD with `-v`).
fn angled_level(line: &[u8], at: usize) -> Option<(Level, usize)> {
    let close = group(line, at).filter(|_| byte(line, at) == b'<')?;
    let inner = &line[at + 1..close];
    let dot = digits(inner, 0);
    let numbers = dot > 0 && inner.len() == dot + 2 && byte(inner, dot) == b'.' && byte(inner, dot + 1).is_ascii_digit();
    let level = if numbers { Some(severity(i64::from(inner[dot + 1] - b'0'))) } else { facility_level(inner) }?;
    is_blank(byte(line, close + 1)).then_some((level, close + 2))
}

/// `prog[123]: `; with `loose` also `prog: `, `syslogd 1.4.1: ` and `Setup Assistant[1173]: `.
fn program_tag(line: &[u8], at: usize, loose: bool) -> Option<Writer> {
    let mut start = at;
    for words in 0..3 {
        let end = run(line, start, |b| is_name(b) || matches!(b, b'/' | b'@'));
        if end == start {
            return None;
        }
        match byte(line, end) {
            b'[' => {
                let (open, close) = (end, group(line, end)?);
                // rustc's `error[E0308]: ` is no program.
                let level = level_word(&line[start..end]).is_some() || level_word(&line[end + 1..close]).is_some();
                let end = close + 1;
                // `lowmem_reserve[]:` names no process. Nor does make, whose number is its
                // recursion depth. What dyld prints is about the program that it loads.
                let depth = (close - open < 4 && line[start..open].ends_with(b"make")) || &line[start..open] == b"dyld";
                let text = !level && !depth && close > open + 1 && byte(line, end) == b':' && is_gap(byte(line, end + 1));
                return text.then(|| Writer::new((at, end), past_blank(line, end + 1)));
            }
            b':' if loose && is_gap(byte(line, end + 1)) && (words == 0 || byte(line, start).is_ascii_digit()) => {
                return Some(Writer::new((at, end), past_blank(line, end + 1)));
            }
            b' ' if loose => start = end + 1,
            _ => return None,
        }
    }
    None
}

/// Returns the level of VMware ESX: `Er(3)`, `In(182)`.
fn esx_level(text: &[u8]) -> Option<Level> {
    let number = text.strip_suffix(b")")?.get(3..)?;
    if text[2] != b'(' || number.is_empty() || !number.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(severity(match &text[..2] {
        b"Em" => 0,
        b"Al" => 1,
        b"Cr" => 2,
        b"Er" => 3,
        b"Wa" => 4,
        b"No" => 5,
        b"In" => 6,
        b"Db" => 7,
        _ => return None,
    }))
}

/// Returns the severity in `daemon.err`, and in AIX' `daemon:err|error`.
fn facility_level(text: &[u8]) -> Option<Level> {
    const FACILITIES: [&[u8]; 12] = [b"kern", b"user", b"mail", b"daemon", b"auth", b"syslog", b"lpr", b"news", b"uucp", b"cron", b"authpriv", b"ftp"];
    let dot = memchr::memchr2(b'.', b':', text)?;
    let facility = &text[..dot];
    let name = text[dot + 1..].split(|b| *b == b'|').next()?;
    (FACILITIES.contains(&facility) || facility.starts_with(b"local")).then(|| level_word(name))?
}

/// Returns the rest of an RFC 5424 header after its time: `host app procid msgid [structured data] `.
/// Without a `<PRI>` before it (`sure` false), it must have a process number and no message id.
pub fn header(line: &[u8], at: usize, sure: bool) -> Option<Writer> {
    let mut ends = [at; 4];
    let mut starts = [at; 4];
    let mut next = at;
    for i in 0..4 {
        (starts[i], ends[i]) = (next, word(line, next));
        let known = match i {
            _ if sure => true,
            2 => digits(line, next) == ends[i],
            3 => line[next..ends[i]] == *b"-",
            _ => true,
        };
        if ends[i] == next || byte(line, ends[i]) != b' ' || !known {
            return None;
        }
        next = ends[i] + 1;
    }
    let data = next;
    next += usize::from(byte(line, next) == b'-');
    while byte(line, next) == b'[' && (next == data || byte(line, next - 1) == b']') {
        next = group(line, next)? + 1;
    }
    if next == data || !is_gap(byte(line, next)) {
        return None;
    }
    let bom = if rest(line, next + 1).starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    let writer = Writer::new((starts[1], ends[2]), past_blank(line, next) + bom);
    Some(Writer { level: data_level(&line[data..next]), ..writer })
}

/// Returns the `level="…"` of structured data.
fn data_level(data: &[u8]) -> Option<Level> {
    const FIELD: &[u8] = b" level=\"";
    let start = memchr::memmem::find(data, FIELD)? + FIELD.len();
    level_word(&data[start..run(data, start, |b| b.is_ascii_alphabetic())])
}

/// Returns the level and end of a `<PRI>` at `at`.
pub fn priority(line: &[u8], at: usize) -> Option<(Level, usize)> {
    let end = digits(line, at + 1);
    let number = line.get(at + 1..end).filter(|n| (1..=3).contains(&n.len()))?;
    let value = number.iter().fold(0, |n, d| n * 10 + i64::from(d - b'0'));
    let plain = number.len() == 1 || number[0] != b'0';
    (byte(line, end) == b'>' && plain && value < 192).then(|| (severity(value % 8), end + 1))
}
