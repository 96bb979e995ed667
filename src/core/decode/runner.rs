//! What CI runners, process managers and log viewers put before each line:
//! `build\tRun tests\t2026-11-20T10:00:00.1Z `, `shop-7d9f8b6c5-x2x9z web `, `0|app  | `, `  12>`.
//! Each shape belongs to one tool, so that no message is taken for a writer. Used by `prefix`.

use super::level::level_word;
use super::scan::{blanks, byte, digits, group, is_blank, is_gap, is_name, rest, run, word};
use super::time::{Style, moment};
use super::writer::{Writer, past_blank};
use crate::core::event::{Io, Level, Timestamp};

/// Longest name of a job, in bytes.
const JOB_BYTES: usize = 160;
/// Letters and digits in the names that Kubernetes generates.
const POD_LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
/// Words after a pod's name that say something about it.
const VERBS: [&[u8]; 12] = [b"is", b"was", b"has", b"had", b"in", b"on", b"not", b"from", b"and", b"failed", b"did", b"to"];
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// `build\tRun tests\t2026-11-20T10:00:00.1Z `: job, step and time (`gh run view --log`). The text begins at the time.
pub fn job(line: &[u8], now: Timestamp) -> Option<Writer> {
    let tab = |from: usize| memchr::memchr(b'\t', rest(line, from).get(..JOB_BYTES).unwrap_or_else(|| rest(line, from))).map(|at| from + at);
    let first = tab(0).filter(|&first| first > 0 && !is_blank(line[0]))?;
    let second = tab(first + 1).filter(|&second| second > first + 1)?;
    let mark = if rest(line, second + 1).starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
    let time = second + 1 + mark;
    let stamped = byte(line, time).is_ascii_digit() && moment(line, time, now).is_some_and(|moment| moment.style == Style::Transport);
    let named = level_word(&line[..first]).is_none() && level_word(&line[first + 1..second]).is_none();
    (stamped && named).then(|| Writer::new((0, first), time))
}

/// `build\t20-Nov-2026 10:00:00\t`: the kind of the line (Bamboo). The text begins at the time.
pub fn bamboo(line: &[u8], now: Timestamp) -> Option<Writer> {
    let end = run(line, 0, |b| b.is_ascii_lowercase());
    if !matches!(&line[..end], b"build" | b"command" | b"simple") || byte(line, end) != b'\t' {
        return None;
    }
    let stamp = moment(line, end + 1, now)?;
    is_gap(byte(line, stamp.end)).then(|| Writer::new((0, end), end + 1))
}

/// `_bk;t=1732096801200␇`: a time in Buildkite's log, without its escape character, and where it ends.
pub fn buildkite(line: &[u8], at: usize) -> Option<(Timestamp, usize)> {
    const HEAD: &[u8] = b"_bk;t=";
    let start = at + HEAD.len();
    let end = digits(line, start);
    if !rest(line, at).starts_with(HEAD) || byte(line, end) != 7 || end - start != 13 {
        return None;
    }
    let millis = line[start..end].iter().fold(0_i64, |n, digit| n * 10 + i64::from(digit - b'0'));
    Some((Timestamp(millis * 1000), end + 1))
}

/// `shop-7d9f8b6c5-x2x9z web `: pod and container (stern). The names that Kubernetes generates use certain letters only.
pub fn pod(line: &[u8], at: usize) -> Option<Writer> {
    let is_label = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    let end = run(line, at, is_label);
    let container = run(line, end + 1, is_label);
    if byte(line, end) != b' ' || container == end + 1 || !is_gap(byte(line, container)) {
        return None;
    }
    let mut parts = line[at..end].rsplit(|b| *b == b'-');
    let made_up = |part: Option<&[u8]>, lengths: std::ops::RangeInclusive<usize>| {
        part.is_some_and(|part| lengths.contains(&part.len()) && part.iter().all(|b| POD_LETTERS.contains(b)))
    };
    let is_pod = made_up(parts.next(), 5..=5) && made_up(parts.next(), 8..=10) && parts.next().is_some_and(|name| !name.is_empty());
    let is_named = !VERBS.contains(&&line[end + 1..container]);
    (is_pod && is_named).then(|| Writer::new((at, container), past_blank(line, container)))
}

/// `0|app      | `: number and name (PM2). PM2 puts two blanks or more before its bar; with one, it may be a row of a table.
pub fn managed(line: &[u8], at: usize) -> Option<Writer> {
    let number = digits(line, at);
    let end = run(line, number + 1, is_name);
    let bar = blanks(line, end);
    let known = (1..=3).contains(&(number - at)) && byte(line, number) == b'|' && end > number + 1 && bar > end;
    let text = past_blank(line, bar + 1);
    let is_row = || bar == end + 1 && memchr::memmem::find(rest(line, text), b" | ").is_some();
    (known && byte(line, bar) == b'|' && is_gap(byte(line, bar + 1)) && !is_row()).then(|| Writer::new((at, end), text))
}

/// `  12>`: the project that a parallel build prints about (MSBuild, Visual Studio). What it printed follows at
/// once, or behind two blanks: one blank follows the prompt of a shell (Erlang's `1> `).
pub fn project(line: &[u8], at: usize) -> Option<Writer> {
    let end = digits(line, at);
    let text = end + 1;
    let glued = byte(line, text).is_ascii_graphic() && !matches!(byte(line, text), b'=' | b'>' | b'&');
    let known = (1..=3).contains(&(end - at)) && byte(line, end) == b'>' && (glued || rest(line, text).starts_with(b"  "));
    known.then(|| Writer::new((at, end), text))
}

/// `shop_web.1.abcdefghijkl1234567890abc@node-1    | `: service, task and node (Docker Swarm).
pub fn swarm(line: &[u8], at: usize) -> Option<Writer> {
    const ID_BYTES: usize = 25;
    let task = run(line, at, is_name);
    let end = run(line, task + 1, is_name);
    let bar = blanks(line, end);
    let id = line[at..task].rsplit(|b| *b == b'.').next()?;
    let known = byte(line, task) == b'@' && id.len() == ID_BYTES && id.len() < task - at && end > task + 1 && bar > end;
    (known && byte(line, bar) == b'|' && is_gap(byte(line, bar + 1))).then(|| Writer::new((at, end), past_blank(line, bar + 1)))
}

/// `[CI/build]   | `: workflow and job (act).
pub fn local_job(line: &[u8], at: usize) -> Option<Writer> {
    let close = group(line, at)?;
    let bar = blanks(line, close + 1);
    let known = line[at..close].contains(&b'/') && bar > close + 2 && byte(line, bar) == b'|' && is_gap(byte(line, bar + 1));
    known.then(|| Writer::new((at + 1, close), past_blank(line, bar + 1)))
}

/// `[test:12] `: the step and the number of its line (Drone). The name has no dot: `[main.c:12]` is a place.
pub fn numbered_line(line: &[u8], at: usize) -> Option<Writer> {
    let name = run(line, at + 1, |b| is_name(b) && b != b'.');
    let end = digits(line, name + 1);
    let known = name > at + 1 && byte(line, at + 1).is_ascii_lowercase() && byte(line, name) == b':' && end > name + 1 && byte(line, end) == b']';
    (known && is_gap(byte(line, end + 1))).then(|| Writer::new((at + 1, name), past_blank(line, end + 1)))
}

/// `Step #2 - "test": `, `Step #2: ` (Google's Cloud Build).
pub fn build_step(line: &[u8], at: usize) -> Option<Writer> {
    const HEAD: &[u8] = b"Step #";
    let number = digits(line, at + HEAD.len());
    let quoted = rest(line, number).starts_with(b" - \"");
    let end = if quoted { run(line, number + 4, |b| b != b'"') + 1 } else { number };
    let known = rest(line, at).starts_with(HEAD) && number > at + HEAD.len() && (!quoted || byte(line, end - 1) == b'"');
    (known && byte(line, end) == b':' && is_gap(byte(line, end + 1))).then(|| Writer::new((at, number), past_blank(line, end + 1)))
}

/// `null_resource.web[0] (local-exec): ` (Terraform).
pub fn provisioner(line: &[u8], at: usize) -> Option<Writer> {
    let end = run(line, at, |b| is_name(b) || matches!(b, b'[' | b']' | b'"'));
    let kind = [&b" (local-exec):"[..], b" (remote-exec):"].into_iter().find(|kind| rest(line, end).starts_with(kind))?;
    let close = end + kind.len();
    (line[at..end].contains(&b'.') && is_gap(byte(line, close))).then(|| Writer::new((at, end), past_blank(line, close)))
}

/// What follows a time: `[Step 1/2] `, `W:\t[Step 1/2] `, `:\t[Step 1/2] ` (TeamCity), `[APP/PROC/WEB/0] ERR ` (Cloud
/// Foundry), `app[4d89ddda] ams [info] ` (Fly), `shop/web/0123…cdef ` (a stream of `aws logs tail`), `ubuntu | ` (Zuul).
pub fn writer_after_time(line: &[u8], at: usize) -> Option<Writer> {
    match byte(line, at) {
        b'[' | b'\t' | b':' | b'i' | b'W' | b'E' | b'F' => step_of(line, at).or_else(|| instance(line, at)),
        _ => None,
    }
    .or_else(|| machine(line, at))
    .or_else(|| stream(line, at))
    .or_else(|| node(line, at))
}

/// `ubuntu | `: the node of a Zuul job, after a time with microseconds and a bar.
fn node(line: &[u8], at: usize) -> Option<Writer> {
    const FRACTION: usize = 6;
    let before = line[..at].strip_suffix(b" | ")?;
    let timed = before.len() > FRACTION && before[before.len() - FRACTION..].iter().all(u8::is_ascii_digit) && before[before.len() - FRACTION - 1] == b'.';
    let end = run(line, at, is_name);
    let named = byte(line, at).is_ascii_lowercase() && level_word(&line[at..end]).is_none();
    (timed && named && rest(line, end).starts_with(b" |") && is_gap(byte(line, end + 2))).then(|| Writer::new((at, end), past_blank(line, end + 2)))
}

fn step_of(line: &[u8], at: usize) -> Option<Writer> {
    let lettered = byte(line, at + 1) == b':' && byte(line, at + 2) == b'\t';
    let plain = byte(line, at) == b':' && byte(line, at + 1) == b'\t';
    let open = blanks(line, at + 2 * usize::from(lettered) + usize::from(plain));
    let close = group(line, open)?;
    let inner = line[open + 1..close].strip_prefix(b"Step ")?;
    let of = digits(inner, 0);
    let known = of > 0 && byte(inner, of) == b'/' && digits(inner, of + 1) == inner.len() && inner.len() > of + 1;
    (known && is_gap(byte(line, close + 1))).then(|| Writer::new((open + 1, close), past_blank(line, close + 1)))
}

fn instance(line: &[u8], at: usize) -> Option<Writer> {
    let close = group(line, at)?;
    let inner = &line[at + 1..close];
    let known = inner.contains(&b'/') && inner.iter().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || matches!(b, b'/' | b'_' | b'-'));
    let io = match rest(line, close + 1).get(..4)? {
        b" OUT" => Io::Stdout,
        b" ERR" => Io::Stderr,
        _ => return None,
    };
    let end = close + 5;
    (known && is_gap(byte(line, end))).then(|| Writer { io: Some(io), ..Writer::new((at + 1, close), past_blank(line, end)) })
}

fn machine(line: &[u8], at: usize) -> Option<Writer> {
    let name = run(line, at, |b| b.is_ascii_lowercase());
    let close = group(line, name).filter(|_| name > at && byte(line, name) == b'[')?;
    let region = run(line, close + 2, |b| b.is_ascii_lowercase());
    let open = region + 1;
    let end = group(line, open).filter(|_| byte(line, close + 1) == b' ' && region == close + 5 && byte(line, region) == b' ' && byte(line, open) == b'[')?;
    let is_id = line[name + 1..close].iter().all(u8::is_ascii_hexdigit) && close > name + 8;
    // Everything that a program prints has level `info`.
    let level = level_word(&line[open + 1..end])?;
    is_id.then(|| Writer { level: Some(level).filter(|level| *level >= Level::Error), ..Writer::new((at, close + 1), past_blank(line, end + 1)) })
}

fn stream(line: &[u8], at: usize) -> Option<Writer> {
    const ID_BYTES: usize = 32;
    let end = word(line, at);
    let id = end.checked_sub(ID_BYTES).filter(|&id| id > at)?;
    let known = line[id..end].iter().all(u8::is_ascii_hexdigit) && matches!(line[id - 1], b'/' | b']') && line[at..id].contains(&b'/');
    (known && is_gap(byte(line, end))).then(|| Writer::new((at, end), past_blank(line, end)))
}

#[cfg(test)]
mod tests {
    use super::super::prefix;
    use super::*;

    const NOW: Timestamp = Timestamp(1_795_000_000_000_000);

    /// Key and text of a line.
    fn read(line: &str) -> (&str, &str) {
        let prefix = prefix(line.as_bytes(), NOW);
        (prefix.key.map_or("", |(from, to)| &line[from..to]), &line[prefix.body..])
    }

    #[test]
    fn lines_of_runners() {
        for (line, key, text) in [
            ("build\tRun tests\t2026-11-20T10:00:00.1234567Z   x", "build", "  x"),
            ("test (3.11) / unit\tUNKNOWN STEP\t\u{feff}2026-11-20T10:00:00.1234567Z ##[error]x", "test (3.11) / unit", "##[error]x"),
            ("_bk;t=1732096801200\u{7}x", "", "x"),
            ("shop-7d9f8b6c5-x2x9z web     at x", "shop-7d9f8b6c5-x2x9z web", "    at x"),
            ("0|app      | x", "0|app", "x"),
            ("0|app  | 2026-11-20T10:00:00: x", "0|app", "x"),
            ("0|app  | till:6 | x", "0|app", "till:6 | x"),
            ("0|app  |   |   File", "0|app", "  |   File"),
            ("1>src/till.c(3): x", "1", "src/till.c(3): x"),
            ("    12>  x", "12", "  x"),
            ("2026-11-20T10:00:00.1234567Z      1>src/till.c(3): x", "1", "src/till.c(3): x"),
            ("shop_web.1.abcdefghijkl1234567890abc@node-1    |   x", "shop_web.1.abcdefghijkl1234567890abc@node-1", "  x"),
            ("[CI/build]   | x", "CI/build", "x"),
            ("Step #2 - \"test\": x", "Step #2", "x"),
            ("Step #2: x", "Step #2", "x"),
            ("null_resource.web[0] (local-exec): x", "null_resource.web[0]", "x"),
            ("[10:00:00]\t[Step 1/2] x", "Step 1/2", "x"),
            ("[10:00:00]W:\t[Step 1/2] x", "Step 1/2", "x"),
            ("[10:00:00] :\t [Step 1/2]   x", "Step 1/2", "  x"),
            ("build\t20-Nov-2026 10:00:00\t  x", "build", "  x"),
            ("   2026-11-20T10:00:00.12+0000 [APP/PROC/WEB/0] ERR x", "APP/PROC/WEB/0", "x"),
            ("2026-11-20T10:00:00Z app[4d89ddda] ams [info]x", "app[4d89ddda]", "x"),
            ("2026-11-20T10:00:00.123 app[4d89ddda12] ams [info] x", "app[4d89ddda12]", "x"),
            ("2026-11-20T10:00:00.123456+00:00 shop/web/0123456789abcdef0123456789abcdef x", "shop/web/0123456789abcdef0123456789abcdef", "x"),
            ("2026-11-20 10:00:00.123456 | ubuntu-noble |   x", "ubuntu-noble", "  x"),
            ("2026-11-20 10:00:00.123456 | ubuntu-noble | ", "ubuntu-noble", ""),
            ("[10:00:00]     - x", "", "    - x"),
            ("web   | 2 |     let x", "web", "2 |     let x"),
            ("web   |   |     ^^^", "web", "  |     ^^^"),
        ] {
            assert_eq!(read(line), (key, text), "{line}");
        }
        assert_eq!(prefix(b"_bk;t=1732096801200\x07x", NOW).time, Some(Timestamp(1_732_096_801_200_000)));
        let stderr = prefix(b"   2026-11-20T10:00:00.12+0000 [APP/PROC/WEB/0] ERR x", NOW);
        assert_eq!((stderr.io, stderr.level), (Some(Io::Stderr), None));
    }

    #[test]
    fn lines_of_their_own() {
        for line in [
            "shop-7d9f8b6c5-x2x9z is not ready",
            "shop-7d9f8b6c5-x2x9z   0/1     Error     3     2m",
            "release-candidate-linux web",
            "a\tb\tc",
            "a\tb\t2026",
            "1|foo | bar | x",
            "1|foo|bar",
            "1> x",
            "1>=2",
            "1>",
            "2>&1",
            "1234>x",
            "  1 >x",
            "Step #x: y",
            "[a b]   | x",
            "alice@example.com    | x",
            "name   | value | x",
            "resource (local-exec): x",
        ] {
            assert_eq!(read(line), ("", line), "{line}");
        }
        assert_eq!(read("ERROR\tmain\t2026-11-20T10:00:00.1Z x"), ("", "x"));
        let caused = "Nov 20 10:00:04 Caused by: java.lang.NullPointerException: name";
        assert_eq!(read(caused), ("", "Caused by: java.lang.NullPointerException: name"));
    }
}
