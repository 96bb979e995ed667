//! The errors: single lines, and traces of several languages as their runtimes print them.

use std::fmt::Write;

use super::random::{Random, stamp};

/// Writes an error of one line and returns its kind.
pub fn line(out: &mut String, random: &mut Random, clock_ms: u64) -> &'static str {
    let (noun, verb) = (random.noun(), random.verb());
    let kind = match random.below(17) {
        0..=2 => level(out, random, clock_ms),
        3 => record(out, random, clock_ms),
        4 => logfmt(out, random, clock_ms),
        5 => say(
            out,
            "gcc",
            format_args!(
                "{}.c:{}:{}: error: '{noun}_{verb}' undeclared (first use in this function)",
                random.path(),
                random.within(1, 900),
                random.within(1, 80)
            ),
        ),
        6 => {
            say(out, "tsc", format_args!("{}.ts({},{}): error TS2304: Cannot find name '{noun}'.", random.path(), random.within(1, 900), random.within(1, 80)))
        }
        7 => say(out, "shell", format_args!("./{verb}.sh: line {}: {noun}ctl: command not found", random.within(1, 90))),
        8 => say(out, "curl", format_args!("curl: (6) Could not resolve host: {noun}.example.net")),
        9 => say(out, "git", format_args!("fatal: couldn't find remote ref {verb}-{noun}")),
        10 => say(out, "npm", format_args!("npm error code {}", random.pick(&["E404", "ERESOLVE", "ENOTFOUND"]))),
        11 => say(
            out,
            "oom",
            format_args!(
                "Out of memory: Killed process {} ({noun}) total-vm:{}kB, anon-rss:{}kB",
                random.within(300, 60_000),
                random.below(1 << 24),
                random.below(1 << 22)
            ),
        ),
        12 => say(out, "ssh", format_args!("ssh: connect to host {noun}.example.net port {}: Connection refused", random.within(1024, 60_000))),
        13 => say(out, "pip", format_args!("ERROR: No matching distribution found for {noun}-{verb}=={}.{}", random.below(9), random.below(40))),
        14 => say(out, "docker", format_args!("docker: Error response from daemon: No such container: {noun}-{}", random.below(90))),
        15 => say(out, "sql", format_args!("ERROR:  relation \"{noun}_{verb}\" does not exist at character {}", random.within(10, 90))),
        _ => say(out, "r", format_args!("Error in {verb}_{noun}(x) : object '{}' not found", random.noun())),
    };
    out.push('\n');
    kind
}

fn say(out: &mut String, kind: &'static str, text: std::fmt::Arguments) -> &'static str {
    let _ = out.write_fmt(text);
    kind
}

fn level(out: &mut String, random: &mut Random, clock_ms: u64) -> &'static str {
    stamp(out, clock_ms, 'T');
    let level = random.pick(&["ERROR", "ERROR", "FATAL"]);
    let _ = write!(out, " {level} {}.{} [job-{}] could not {} the {}: ", random.noun(), random.noun(), random.below(9000), random.verb(), random.noun());
    out.push_str(random.pick(&["connection reset by peer", "No such file or directory", "quota exceeded", "checksum mismatch", "deadline exceeded"]));
    "level"
}

fn record(out: &mut String, random: &mut Random, clock_ms: u64) -> &'static str {
    out.push_str("{\"time\":\"");
    stamp(out, clock_ms, 'T');
    let _ = write!(
        out,
        "\",\"level\":\"error\",\"logger\":\"{}\",\"msg\":\"could not {} {}\",\"job\":{}}}",
        random.noun(),
        random.verb(),
        random.noun(),
        random.below(9000)
    );
    "json"
}

fn logfmt(out: &mut String, random: &mut Random, clock_ms: u64) -> &'static str {
    out.push_str("time=");
    stamp(out, clock_ms, 'T');
    let _ = write!(out, " level=error msg=\"{} of {} failed\" job={}", random.verb(), random.noun(), random.below(9000));
    "logfmt"
}

/// Writes an error of several lines and returns its kind.
pub fn trace(out: &mut String, random: &mut Random) -> &'static str {
    match random.below(10) {
        0 | 1 => python(out, random),
        2 => {
            python(out, random);
            out.push_str("\nThe above exception was the direct cause of the following exception:\n\n");
            python(out, random);
            "python-chained"
        }
        3 | 4 => java(out, random),
        5 => node(out, random),
        6 => go(out, random),
        7 => rust(out, random),
        8 => ruby(out, random),
        _ => csharp(out, random),
    }
}

fn python(out: &mut String, random: &mut Random) -> &'static str {
    out.push_str("Traceback (most recent call last):\n");
    for _ in 0..random.within(1, 7) {
        let _ = writeln!(out, "  File \"/srv/{}.py\", line {}, in {}", random.path(), random.within(1, 900), random.verb());
        let _ = writeln!(out, "    {} = self.{}({})", random.noun(), random.verb(), random.noun());
    }
    let kind = random.pick(&["ValueError", "KeyError", "TypeError", "RuntimeError", "ledger.store.StoreError"]);
    let _ = writeln!(out, "{kind}: no {} for {} {}", random.noun(), random.noun(), random.below(9000));
    "python"
}

fn java(out: &mut String, random: &mut Random) -> &'static str {
    let kind = random.pick(&["IllegalStateException", "NullPointerException", "UnsupportedOperationException"]);
    let _ = writeln!(out, "Exception in thread \"{}-{}\" java.lang.{kind}: {} is closed", random.noun(), random.below(16), random.noun());
    java_frames(out, random, 8);
    if random.percent(50) {
        let _ = writeln!(out, "Caused by: java.io.IOException: {} {}", random.noun(), random.pick(&["refused", "closed early", "is gone"]));
        java_frames(out, random, 4);
        let _ = writeln!(out, "\t... {} more", random.within(2, 30));
    }
    "java"
}

fn java_frames(out: &mut String, random: &mut Random, most: u64) {
    for _ in 0..random.within(1, most) {
        let class = random.title();
        let _ = writeln!(out, "\tat net.example.{}.{class}.{}({class}.java:{})", random.noun(), random.verb(), random.within(1, 900));
    }
}

fn node(out: &mut String, random: &mut Random) -> &'static str {
    let kind = random.pick(&["TypeError", "RangeError", "Error"]);
    let _ = writeln!(out, "{kind}: {} has no {}", random.noun(), random.noun());
    for _ in 0..random.within(2, 8) {
        let _ = writeln!(out, "    at {}.{} (/srv/{}.js:{}:{})", random.title(), random.verb(), random.path(), random.within(1, 900), random.within(1, 80));
    }
    "node"
}

fn go(out: &mut String, random: &mut Random) -> &'static str {
    out.push_str("panic: runtime error: index out of range [4] with length 3\n\ngoroutine 1 [running]:\n");
    for _ in 0..random.within(1, 6) {
        let _ = writeln!(out, "main.{}(0xc00001{:04x}, 0x{:x})", random.verb(), random.below(1 << 16), random.within(1, 200));
        let _ = writeln!(out, "\t/srv/{}.go:{} +0x{:x}", random.path(), random.within(1, 900), random.within(16, 4000));
    }
    out.push_str("exit status 2\n");
    "go"
}

fn rust(out: &mut String, random: &mut Random) -> &'static str {
    let _ = writeln!(out, "thread '{}' panicked at {}.rs:{}:{}:", random.pick(&["main", "worker"]), random.path(), random.within(1, 900), random.within(1, 80));
    let _ = writeln!(out, "no {} in {}", random.noun(), random.noun());
    out.push_str("stack backtrace:\n");
    for at in 0..random.within(2, 9) {
        let _ = writeln!(out, "{at:>4}: {}::{}::{}", random.noun(), random.noun(), random.verb());
        let _ = writeln!(out, "             at ./{}.rs:{}:{}", random.path(), random.within(1, 900), random.within(1, 80));
    }
    "rust"
}

fn ruby(out: &mut String, random: &mut Random) -> &'static str {
    let _ = writeln!(
        out,
        "/srv/{}.rb:{}:in `{}': undefined method `{}' for nil (NoMethodError)",
        random.path(),
        random.within(1, 900),
        random.verb(),
        random.noun()
    );
    for _ in 0..random.within(1, 7) {
        let _ = writeln!(out, "\tfrom /srv/{}.rb:{}:in `{}'", random.path(), random.within(1, 900), random.verb());
    }
    "ruby"
}

fn csharp(out: &mut String, random: &mut Random) -> &'static str {
    let _ = writeln!(out, "Unhandled exception. System.InvalidOperationException: {} has no {}", random.noun(), random.noun());
    for _ in 0..random.within(1, 7) {
        let _ = writeln!(out, "   at Example.{}.{}() in /srv/{}.cs:line {}", random.title(), random.title(), random.path(), random.within(1, 900));
    }
    "csharp"
}
