//! Which lines of an error's report tell something: not its rules, what a runner prints about any run, or the machinery's part
//! of a stack that is printed as text. It only leaves lines out; what of the rest to show is decided by whoever shows it.

/// The characters that rules are drawn with.
const RULE: [char; 5] = ['-', '=', '_', '─', '━'];
/// Fewest of them that make a rule.
const MIN_RULE: usize = 3;

/// Returns the lines that tell something.
pub fn telling<'a>(lines: impl Iterator<Item = &'a str> + Clone) -> impl Iterator<Item = &'a str> + Clone {
    let mut is_stack = false;
    lines.filter(move |line| {
        let trimmed = line.trim();
        // Rust's: `6: shop::total`, and below it `at ./src/lib.rs:5:85`. The place of the program is the error's own.
        is_stack = trimmed.eq_ignore_ascii_case("stack backtrace:") || (is_stack && is_frame(trimmed));
        !is_stack && !is_about_any_run(trimmed) && title(trimmed).is_none()
    })
}

/// Returns what stands between the dashes of rules: `---- tests::adds stdout ----` may be all that names the test.
pub fn titles<'a>(lines: impl Iterator<Item = &'a str>) -> impl Iterator<Item = &'a str> {
    lines.filter_map(|line| title(line.trim())).filter(|title| title.contains(char::is_alphanumeric))
}

/// Whether a line of a printed stack is a frame: its number and function, or where that is.
fn is_frame(line: &str) -> bool {
    let after_number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    line.starts_with("at ") || (after_number.len() < line.len() && after_number.starts_with(": "))
}

/// Whether a line is printed about any run, or any that failed.
fn is_about_any_run(line: &str) -> bool {
    line.is_empty()
        || (line.starts_with("note: ") && line.contains("RUST_BACKTRACE="))
        || line.starts_with("test result: ")
        || line == "failures:"
        || (line.starts_with("running ") && (line.ends_with(" test") || line.ends_with(" tests")))
}

/// Returns what stands between the dashes of a rule; nothing if that only says which output follows. `None` for any other line.
fn title(line: &str) -> Option<&str> {
    let rest = line.trim_end_matches(RULE);
    if line[rest.len()..].chars().count() < MIN_RULE {
        return None;
    }
    let title = rest.trim_start_matches(RULE);
    let is_output = matches!(title.trim(), "stdout" | "stderr");
    // A line that only ends with dashes may be anything: `git checkout --- `.
    (title.len() < rest.len() || title.is_empty() || is_output).then(|| if is_output { "" } else { title.trim() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machinery_of_a_stack_is_left_out() {
        let report = "thread 't::adds' (7) panicked at src/lib.rs:5:9:\nassertion `left == right` failed\n  left: 3\n right: 4\nstack backtrace:\n   0: __rustc::rust_begin_unwind\n             at /rustc/59807616e1fa/library/std/src/panicking.rs:689:5\n   1: shop::t::adds\n             at ./src/lib.rs:5:9\nnote: Some details are omitted, run with `RUST_BACKTRACE=full` for a verbose backtrace.\n2: a line of its own";
        let told: Vec<&str> = telling(report.lines()).map(str::trim).collect();
        let want = ["thread 't::adds' (7) panicked at src/lib.rs:5:9:", "assertion `left == right` failed", "left: 3", "right: 4", "2: a line of its own"];
        assert_eq!(told, want);
    }

    #[test]
    fn rules_are_left_out_and_their_titles_known() {
        for (line, title) in [
            ("---- t::adds stdout ----", "t::adds stdout"),
            ("_____ test_total _____", "test_total"),
            ("  stdout ───", ""),
            ("----------------------------------------", ""),
            ("======", ""),
        ] {
            assert_eq!(telling(std::iter::once(line)).next(), None, "{line}");
            assert_eq!(titles(std::iter::once(line)).next().unwrap_or_default(), title, "{line}");
        }
        for line in ["--- FAIL: TestAdd (0.00s)", "--- expected", "git checkout ---", "running late"] {
            assert_eq!(telling(std::iter::once(line)).next(), Some(line));
            assert_eq!(titles(std::iter::once(line)).next(), None);
        }
        assert_eq!(telling("test result: FAILED. 0 passed; 1 failed\nrunning 1 test".lines()).next(), None);
    }
}
