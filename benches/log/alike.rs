//! Lines that mention errors but are none: code that is shown, names, counts of zero, passing tests, empty fields, warnings, talk.

use std::fmt::Write;

use super::random::{Random, stamp};

/// Writes one line.
pub fn line(out: &mut String, random: &mut Random, clock_ms: u64) {
    match random.below(100) {
        0..=24 => code(out, random),
        25..=44 => empty_field(out, random, clock_ms),
        45..=58 => passed(out, random),
        59..=69 => zero(out, random),
        70..=79 => name(out, random),
        80..=89 => talk(out, random, clock_ms),
        90..=98 => warning(out, random),
        _ if random.percent(98) => history(out, random),
        _ => bundle(out, random),
    }
    out.push('\n');
}

fn code(out: &mut String, random: &mut Random) {
    let (noun, verb) = (random.noun(), random.verb());
    match random.below(4) {
        0 => drop(write!(out, "{:>6}\t", random.within(1, 900))),
        1 => drop(write!(out, "{}.py:{}:", random.path(), random.within(1, 900))),
        2 => out.push_str("+    "),
        _ => out.push_str("-    "),
    }
    let _ = match random.below(12) {
        0 => write!(out, "raise {}Error(f\"no {noun} to {verb}\")", random.title()),
        1 => write!(out, "except (KeyError, TypeError) as error:"),
        2 => write!(out, "throw new Error(`cannot {verb} ${{{noun}.id}}`);"),
        3 => write!(out, "}} catch (error) {{ log.error('{verb} failed', error); }}"),
        4 => write!(out, "if err != nil {{ return fmt.Errorf(\"{verb} {noun}: %w\", err) }}"),
        5 => write!(out, "return Err(Error::{}NotFound {{ {noun} }});", random.title()),
        6 => write!(out, "assert_eq!({noun}.{verb}().unwrap_err().kind(), ErrorKind::TimedOut);"),
        7 => write!(out, "// an error here means that the {noun} was closed"),
        8 => write!(out, "#[error(\"{verb} of {noun} failed: {{0}}\")]"),
        9 => write!(out, "console.error(\"Error: {verb} failed\", {noun});"),
        10 => write!(out, "const handleError = useCallback((error: Error) => on{}({noun}, error), []);", random.title()),
        _ => write!(out, "self.assertRaises(ValueError, {verb}, {noun}=None)"),
    };
}

fn empty_field(out: &mut String, random: &mut Random, clock_ms: u64) {
    let empty = random.pick(&["null", "null", "\"\"", "false", "[]", "0"]);
    let field = random.pick(&["error", "error", "errors", "error_code", "exception", "is_error"]);
    if random.percent(50) {
        let _ =
            write!(out, "{{\"type\":\"tool_result\",\"name\":\"{}\",\"exit_code\":0,\"{field}\":{empty},\"output\":\"", random.pick(&["bash", "read", "edit"]));
        let words = random.within(2, 9);
        random.nouns(out, words);
        out.push_str("\"}");
    } else {
        out.push_str("{\"level\":\"debug\",\"ts\":\"");
        stamp(out, clock_ms, 'T');
        let _ = write!(out, "\",\"msg\":\"{} {}\",\"{field}\":{empty},\"failed\":0}}", random.verb(), random.noun());
    }
}

fn passed(out: &mut String, random: &mut Random) {
    let (noun, verb) = (random.noun(), random.verb());
    let _ = match random.below(5) {
        0 => write!(out, "test {noun}::{verb}_returns_error_on_empty_{} ... ok", random.noun()),
        1 => write!(out, "tests/test_{noun}.py::test_{verb}_raises_type_error PASSED"),
        2 => write!(out, "    ✓ rejects a {noun} that failed to {verb} ({} ms)", random.below(200)),
        3 => write!(out, "--- PASS: Test{}Error (0.{:02}s)", random.title(), random.below(100)),
        _ => write!(out, "ok {} - {verb}s the {noun} after an exception", random.within(1, 400)),
    };
}

fn zero(out: &mut String, random: &mut Random) {
    let noun = random.noun();
    let _ = match random.below(5) {
        0 => write!(out, "{noun}: build finished with 0 errors, 0 warnings"),
        1 => write!(out, "Tests run: {}, Failures: 0, Errors: 0, Skipped: {}", random.within(1, 400), random.below(4)),
        2 => write!(out, "{noun}: {} passed, 0 failed in {}.{:02}s", random.within(1, 400), random.below(60), random.below(100)),
        3 => write!(out, "{noun} summary: ok={} changed={} failed=0 errors=0", random.below(90), random.below(9)),
        _ => write!(out, "Found 0 errors. Watching {}.ts for file changes.", random.path()),
    };
}

fn name(out: &mut String, random: &mut Random) {
    let noun = random.noun();
    let _ = match random.below(5) {
        0 => write!(out, "ERROR_LOG=/var/log/{noun}/current.log"),
        1 => write!(out, "M  {}_error_handler.rs", random.path()),
        2 => write!(out, "   Compiling {noun}-error v0.{}.{}", random.below(9), random.below(30)),
        3 => write!(out, "docs/error-{noun}.md | {} ++--", random.within(1, 60)),
        _ => write!(out, "{}.{}ErrorBoundary mounted", noun, random.title()),
    };
}

fn talk(out: &mut String, random: &mut Random, clock_ms: u64) {
    let (noun, verb) = (random.noun(), random.verb());
    if random.percent(60) {
        stamp(out, clock_ms, 'T');
        let said = random.pick(&[
            "error budget is full",
            "no errors since start",
            "error rate: 0%",
            "failover is armed",
            "exception handlers installed",
            "retry policy for failed jobs loaded",
        ]);
        let _ = write!(out, " INFO  {noun}.{} [job-{}] {verb}: {said}", random.noun(), random.below(9000));
    } else {
        let _ = write!(out, "I fixed the error in the {noun}, so {verb} no longer fails; the tests for it pass now.");
    }
}

fn warning(out: &mut String, random: &mut Random) {
    let noun = random.noun();
    let _ = match random.below(4) {
        0 => write!(out, "{}.c:{}:{}: warning: unused variable '{noun}_error' [-Wunused-variable]", random.path(), random.within(1, 900), random.within(1, 80)),
        1 => write!(out, "npm warn deprecated {noun}@{}.{}.0: it fails silently, use {}", random.below(9), random.below(20), random.noun()),
        2 => write!(out, "{}.py:{}: DeprecationWarning: error_{noun} is deprecated", random.path(), random.within(1, 900)),
        _ => write!(out, "(node:{}) ExperimentalWarning: {noun} is an experimental feature", random.below(60_000)),
    };
}

fn history(out: &mut String, random: &mut Random) {
    random.hex(out, 7);
    let _ = write!(out, " {}: report the error when the {} fails to {}", random.noun(), random.noun(), random.verb());
}

/// Writes a minified bundle: about 16 KiB without a newline.
pub fn bundle(out: &mut String, random: &mut Random) {
    let end = out.len() + (16 << 10);
    while out.len() < end {
        let _ = write!(out, "function {}{}(e,t){{try{{return t.{}(e)}}catch(r){{n.error(r)}}}};", random.verb(), random.below(9000), random.verb());
    }
}
