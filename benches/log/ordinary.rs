//! Lines that are not errors and contain no words of errors: services, requests, builds, agents at work.

use std::fmt::Write;

use super::random::{Random, stamp};

/// Writes one line.
pub fn line(out: &mut String, random: &mut Random, clock_ms: u64) {
    match random.below(100) {
        0..=27 => service(out, random, clock_ms),
        28..=41 => record(out, random, clock_ms),
        42..=51 => request(out, random, clock_ms),
        52..=62 => build(out, random),
        63..=72 => agent(out, random),
        73..=82 => listing(out, random),
        83..=90 => prose(out, random),
        91..=94 => progress(out, random),
        _ => klog(out, random, clock_ms),
    }
    out.push('\n');
}

fn service(out: &mut String, random: &mut Random, clock_ms: u64) {
    let between = if random.percent(50) { 'T' } else { ' ' };
    stamp(out, clock_ms, between);
    let level = random.pick(&["INFO", "INFO", "INFO", "DEBUG", "TRACE"]);
    let _ = write!(out, " {level:5} {}.{} [job-{}] {} ", random.noun(), random.noun(), random.below(9000), random.verb());
    let words = random.within(2, 7);
    random.nouns(out, words);
    let _ = write!(out, " in {} ms, {} of {}", random.below(2400), random.below(90), random.within(90, 400));
}

fn record(out: &mut String, random: &mut Random, clock_ms: u64) {
    out.push_str("{\"time\":\"");
    stamp(out, clock_ms, 'T');
    let _ = write!(out, "\",\"level\":\"info\",\"logger\":\"{}\",\"msg\":\"{} ", random.noun(), random.verb());
    let words = random.within(2, 6);
    random.nouns(out, words);
    let _ = write!(out, "\",\"span\":\"");
    random.hex(out, 16);
    let _ = write!(out, "\",\"took_ms\":{},\"rows\":{}}}", random.below(900), random.below(5000));
}

fn request(out: &mut String, random: &mut Random, clock_ms: u64) {
    let (second, bytes) = (clock_ms / 1000, random.below(80_000));
    let _ = write!(
        out,
        "192.0.2.{} - - [02/Mar/2026:{:02}:{:02}:{:02} +0000] \"{} /{}/{}/{} HTTP/2.0\" {} {bytes} \"-\" \"carrier/{}.{}\"",
        random.below(256),
        second / 3600 % 24,
        second / 60 % 60,
        second % 60,
        random.pick(&["GET", "GET", "PUT", "POST"]),
        random.noun(),
        random.noun(),
        random.below(60_000),
        random.pick(&["200", "200", "201", "204", "304"]),
        random.below(9),
        random.below(30)
    );
}

fn build(out: &mut String, random: &mut Random) {
    let (noun, other) = (random.noun(), random.noun());
    let _ = match random.below(5) {
        0 => write!(out, "   Compiling {noun}-{other} v{}.{}.{}", random.below(4), random.below(20), random.below(9)),
        1 => write!(out, "[{}/{}] Building CXX object {}/CMakeFiles/{noun}.dir/{other}.cc.o", random.within(1, 300), 300, random.path()),
        2 => write!(
            out,
            "Collecting {noun}=={}.{}.{} (from -r requirements.txt (line {}))",
            random.below(4),
            random.below(20),
            random.below(9),
            random.within(1, 60)
        ),
        3 => write!(out, "test {noun}::{other}::{}_{}s ... ok", random.verb(), random.noun()),
        _ => write!(out, "ok  \texample.net/{noun}/{other}\t{}.{:03}s", random.below(9), random.below(1000)),
    };
}

fn agent(out: &mut String, random: &mut Random) {
    let _ = match random.below(3) {
        0 => write!(
            out,
            "{{\"type\":\"tool_use\",\"name\":\"{}\",\"input\":{{\"path\":\"{}.rs\",\"limit\":{}}}}}",
            random.pick(&["read", "edit", "search"]),
            random.path(),
            random.below(400)
        ),
        1 => write!(out, "\x1b[36m●\x1b[0m \x1b[1m{}\x1b[0m({}.py)", random.pick(&["Read", "Edit", "Search"]), random.path()),
        _ => write!(out, "> {} the {} of {}.go, then {} it", random.verb(), random.noun(), random.path(), random.verb()),
    };
}

fn listing(out: &mut String, random: &mut Random) {
    let _ = match random.below(3) {
        0 => write!(out, "-rw-r--r-- 1 build build {:>8} Mar  2 09:{:02} {}.rs", random.below(9_000_000), random.below(60), random.path()),
        1 => write!(out, "+    let {} = self.{}(&{}, {});", random.noun(), random.verb(), random.noun(), random.below(64)),
        _ => write!(out, "{}.rs:{}: pub fn {}_{}(&self) -> usize {{", random.path(), random.within(1, 900), random.verb(), random.noun()),
    };
}

fn prose(out: &mut String, random: &mut Random) {
    let _ = write!(out, "The {} {}s each {} and hands it to the {}: ", random.noun(), random.verb(), random.noun(), random.noun());
    let words = random.within(4, 18);
    random.nouns(out, words);
    out.push('.');
}

fn progress(out: &mut String, random: &mut Random) {
    let done = random.below(101);
    let _ = write!(
        out,
        "{} {done:3}%|{:30}| {}/100 [00:{:02}<00:{:02}]",
        random.noun(),
        "█".repeat(done as usize * 30 / 100),
        done,
        random.below(60),
        random.below(60)
    );
}

fn klog(out: &mut String, random: &mut Random, clock_ms: u64) {
    let second = clock_ms / 1000;
    let (hour, minute) = (second / 3600 % 24, second / 60 % 60);
    let _ = write!(
        out,
        "I0302 {hour:02}:{minute:02}:{:02}.{:06}       1 {}.go:{}] {} ",
        second % 60,
        clock_ms % 1000 * 1000,
        random.noun(),
        random.within(20, 900),
        random.title()
    );
    let words = random.within(2, 6);
    random.nouns(out, words);
}
