//! What siftd says to people: tips, names, numbers and colours.

use super::{Done, Folder, error};

#[test]
fn a_flag_of_another_command_or_tool_gets_the_tip_that_helps() {
    let folder = Folder::new();
    for (args, code, tip) in [
        (&["exec", "--retry", "3", "--", "true"][..], 125, "the flag is --retries"),
        (&["scan", "--follow", "a.log"], 2, "to follow a file that grows: siftd run --file FILE"),
        (&["scan", "--recursive", "logs"], 2, "folders are read at any depth: name the folder"),
        (&["digest", "-r", "logs"], 2, "folders are read at any depth: name the folder"),
        (&["scan", "--context", "-1", "a.log"], 2, "-1 is not in 0..=65535"),
        (&["scan", "-q", "a.log"], 2, "scan --fail-on low … > /dev/null"),
        (&["scan", "--verbose", "a.log"], 2, "--context 10"),
        (&["exec", "-v", "true"], 125, "--digest -"),
        (&["digest", "-v", "a.log"], 2, "siftd digest --help"),
        (&["exec", "--cwd", "src", "--", "true"], 125, "cd FOLDER && siftd exec"),
        (&["exec", "--", "echo hi"], 127, "siftd exec -- sh -c 'echo hi'"),
        (&["run", "--follow", "a.log"], 2, "siftd run --file FILE"),
        (&["filter", "-"], 2, "it reads stdin anyway: siftd filter"),
        (&["history", "--state-dir", "past", "resolve", "c8e9"], 2, "siftd history resolve …"),
        (&["run", "--format", "pretty"], 2, "records are always NDJSON"),
        (&["explain", "a.log", "53"], 2, "siftd explain a.log:53"),
        (&["man", "scan"], 2, "siftd scan --help"),
        (&["rules", "list", "nope"], 2, "no rule or family \"nope\""),
    ] {
        let said = folder.siftd(args).ended(code).err();
        assert!(said.contains(tip), "{args:?}: {said}");
    }
}

#[test]
fn a_range_is_in_the_help() {
    let folder = Folder::new();
    for (args, range) in [
        (&["digest", "--help"][..], "100 to 10,000,000"),
        (&["exec", "--help"], "100 to 10,000,000"),
        (&["history", "list", "--help"], "1 to 100,000"),
        (&["history", "trend", "--help"], "1 to 90"),
        (&["scan", "--help"], "0 to 65,535"),
    ] {
        assert!(folder.siftd(args).ended(0).out().contains(range), "{args:?}");
    }
}

#[test]
fn one_is_singular_and_none_is_said() {
    let folder = Folder::new();
    let breaker = |args: &[&str]| folder.siftd([&["breaker"], args, &["--state-dir", "state"]].concat()).ended(0);
    breaker(&["record", "op", "--success"]);
    breaker(&["record", "other", "--failure", "--error", "boom"]);
    let shown = breaker(&["status", "other"]).out();
    assert!(shown.contains("\n    1 run  "), "{shown}");
    breaker(&["record", "other", "--failure", "--error", "boom"]);
    let shown = breaker(&["status", "other"]).out();
    assert!(shown.contains("\n    2 runs  "), "{shown}");
    folder.write("a.log", error("boom"));
    let record = &folder.siftd(["scan", "--format", "ndjson", "--state-dir", "more", "a.log"]).ended(0).records()[0];
    let shown = folder.siftd(["history", "show", record["signature"].as_str().unwrap(), "--state-dir", "more"]).ended(0).out();
    assert!(shown.contains("1 time, first "), "{shown}");
    let none = folder.siftd(["breaker", "status", "--state-dir", "more"]).ended(0);
    assert!(none.out().is_empty() && none.err().contains("no breaker in more"), "{}{}", none.out(), none.err());
}

#[test]
fn a_command_that_took_too_long_is_named() {
    let folder = Folder::new();
    let said = folder.siftd(["exec", "--timeout", "100ms", "--", "sleep", "60"]).ended(124).err();
    assert!(said.contains("siftd: sleep was ended after 100 ms (--timeout)"), "{said}");
}

#[test]
fn a_dumb_terminal_gets_no_colours() {
    let folder = Folder::new();
    folder.write("a.log", error("boom"));
    let on = |term: &str| {
        let scan = format!("{} scan a.log", crate::folder::siftd().display());
        let mut command = folder.run("script", ["-qec", &scan, "/dev/null"]);
        command.env("TERM", term).output().ok().filter(|output| output.status.success())
    };
    let Some(xterm) = on("xterm") else { return crate::skip::skipped("script(1)") };
    assert!(xterm.stdout.contains(&0x1b));
    assert!(!on("dumb").unwrap().stdout.contains(&0x1b));
}

#[test]
fn no_error_in_what_was_not_read_is_no_clean_scan() {
    let folder = Folder::new();
    folder.write("a.log", "all is well\n");
    let scan = |file: &str, code| folder.siftd(["scan", "--format", "pretty", file]).ended(code).out();
    folder.write("cut.log", "all is well\n".repeat(20_000));
    assert!(folder.run("gzip", ["cut.log"]).status().unwrap().success());
    let whole = std::fs::read(folder.at("cut.log.gz")).unwrap();
    folder.write("cut.log.gz", &whole[..whole.len() / 2]);
    assert!(scan("nosuch", 2).ends_with(" s · 1 not read\n"));
    assert!(scan("cut.log.gz", 2).ends_with(" s · 1 not read in full\n"));
    assert!(!scan("a.log", 0).contains("not read"));
}

#[test]
fn a_history_is_no_wider_than_the_terminal() {
    let folder = Folder::new();
    folder.write("a.log", error(&"boom ".repeat(60)));
    folder.siftd(["scan", "--state-dir", "st", "a.log"]).ended(0);
    for command in ["history", "history diff --since 1d"] {
        for columns in [60, 200] {
            let show = format!("stty cols {columns}; {} {command} --state-dir st", crate::folder::siftd().display());
            let done = folder.run("script", ["-qec", &show, "/dev/null"]).output();
            let Some(done) = done.ok().filter(|done| done.status.success()) else { return crate::skip::skipped("script(1)") };
            let text = String::from_utf8_lossy(&done.stdout).into_owned();
            assert_eq!(text.lines().map(|line| line.trim_end().chars().count()).max(), Some(columns), "{text}");
        }
    }
}

#[test]
fn a_trend_is_no_wider_than_the_terminal() {
    let folder = Folder::new();
    folder.write("a.log", error("boom"));
    folder.siftd(["scan", "--state-dir", "st", "a.log"]).ended(0);
    let show = format!("stty cols 45; {} history trend --state-dir st", crate::folder::siftd().display());
    let Some(done) = folder.run("script", ["-qec", &show, "/dev/null"]).output().ok().filter(|done| done.status.success()) else {
        return crate::skip::skipped("script(1)");
    };
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    let last = text.lines().last().unwrap().trim_end();
    assert!(last.ends_with("1  1 new") && last.chars().count() == 45, "{text}");
}

/// What clap wraps, and what follows it.
#[test]
fn help_is_no_wider_than_the_terminal() {
    let folder = Folder::new();
    for command in ["", "scan", "run", "exec", "history", "breaker", "judge", "status"] {
        for columns in [60, 80] {
            let args = [command, "--help"].into_iter().filter(|arg| !arg.is_empty());
            let help = Done::of(folder.command(args).env("COLUMNS", columns.to_string()).spawn().unwrap()).ended(0).out();
            let too_wide = help.lines().find(|line| line.chars().count() > columns && !line.starts_with("Usage: "));
            assert_eq!(too_wide, None, "{command} {columns}");
        }
    }
    let exec = folder.command(["exec", "--help"]).env("COLUMNS", "60").output().unwrap();
    let text = String::from_utf8(exec.stdout).unwrap();
    assert!(text.contains("\n  siftd exec --digest digest.txt -- make test\n      what went wrong, in 500 characters\n"), "{text}");
}

#[test]
fn a_line_for_an_editor_is_no_longer_than_one_for_github() {
    let folder = Folder::new();
    folder.write("a.log", error(&"x".repeat(200_000)));
    for format in ["unix", "github"] {
        let out = folder.siftd(["scan", "--format", format, "a.log"]).ended(0).out();
        assert!(out.lines().count() == 1 && out.len() < 5000 && out.len() > 4000, "{format}: {}", out.len());
    }
}

#[test]
fn a_wait_too_long_for_any_clock_is_not_the_shortest() {
    let folder = Folder::new();
    for said in ["99999999999999999999", "99999999999999999999999s", "1e300"] {
        let object = format!("{{\"message\":\"x\",\"response\":{{\"status\":429,\"headers\":{{\"retry-after\":\"{said}\"}}}}}}\n");
        let answer = &folder.piped(["classify"], object).ended(0).records()[0];
        assert_eq!(answer["delay_ms"], 366_u64 * 86_400_000, "{answer}");
    }
}

/// A regex is refused for what is wrong with it: here only for the case of its letters.
#[test]
fn a_regex_in_any_letter_case_is_told_why_it_is_refused() {
    let folder = Folder::new();
    let refused = |literal: &str, key: &str, regex: &str| {
        let head = "[family]\nid = \"x\"\ntitle = \"X\"\ndepth = \"head\"\n[[rule]]\nid = \"x.y\"\n";
        folder.write("x.toml", format!("{head}literals = [\"{literal}\"]\n{key}regex = '{regex}'\nexamples = {{ match = [\"node lost contact\"] }}\n"));
        let done = folder.siftd(["rules", "check", "x.toml"]);
        if done.code() == Some(0) { String::new() } else { done.err() + &done.out() }
    };
    let any = refused("node lost", "ignore_case = true\n", "(?i)node lost contact");
    assert!(any.contains("only lower, Capitalised and UPPER are searched for") && any.contains("drop `(?i)`"), "{any}");
    let other = refused("node lost", "", "(?i)node lost contact");
    assert!(other.contains("in another letter case") && other.contains("set `ignore_case = true`"), "{other}");
    let unlike = refused("node gone", "ignore_case = true\n", "(?i)node lost contact");
    assert!(unlike.contains("none of the literals"), "{unlike}");
    assert_eq!(refused("node lost", "ignore_case = true\n", "node lost contact"), "");
}
