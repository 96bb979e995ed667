//! Invariant 6: writers and outputs within one stream are not mixed up.

use std::collections::BTreeSet;

use crate::support::{Rng, scan};

const PYTHON: &[&str] = &["Traceback (most recent call last):", "  File \"a.py\", line 3, in main", "    f()", "ValueError: no"];
const NODE: &[&str] = &["TypeError: x is not a function", "    at f (/srv/app.js:3:7)", "    at main (/srv/app.js:9:1)"];
const JAVA: &[&str] = &[
    "Exception in thread \"main\" java.lang.IllegalStateException: boom",
    "\tat com.acme.App.main(App.java:12)",
    "Caused by: java.io.IOException: gone",
    "\tat com.acme.Io.read(Io.java:3)",
    "\t... 1 more",
];

/// Returns the lines of all writers, each writer's in order, otherwise mixed at random.
fn mixed(rng: &mut Rng, writers: &[(&str, &[&str])]) -> String {
    let mut at = vec![0; writers.len()];
    let mut out = String::new();
    while let Some(open) = Some((0..writers.len()).filter(|&w| at[w] < writers[w].1.len()).collect::<Vec<_>>()).filter(|open| !open.is_empty()) {
        let writer = *rng.pick(&open);
        out.push_str(&format!("{}{}\n", writers[writer].0, writers[writer].1[at[writer]]));
        at[writer] += 1;
    }
    out
}

fn assert_whole(prefixes: [&str; 3]) {
    let writers = [(prefixes[0], PYTHON), (prefixes[1], NODE), (prefixes[2], JAVA)];
    for seed in 0..200 {
        let text = mixed(&mut Rng(seed), &writers);
        let events = scan(&text);
        assert_eq!(events.len(), 3, "seed {seed}\n{text}\n{events:#?}");
        for (prefix, lines) in writers {
            let event = events.iter().find(|event| event.multiline == *lines).unwrap_or_else(|| panic!("seed {seed}: {lines:?}\n{text}\n{events:#?}"));
            let first = text.lines().position(|line| line == format!("{prefix}{}", lines[0])).unwrap();
            assert_eq!(event.line_num, first as u64 + 1, "seed {seed}");
        }
    }
}

#[test]
fn invariant_6_services_of_docker_compose() {
    assert_whole(["web_1    | ", "db_1     | ", "worker-1 | "]);
}

/// Nobody's verdict is about what stands outside of a named writer's tests, and fields of a logger are no cells of a table.
#[test]
fn invariant_6_a_pass_is_about_no_other_writers_error() {
    for (text, line) in [
        (
            "db_1  | [INFO] Running com.till.CartErrorTest\nerror[E0425]: cannot find value `y` in this scope\nPASS tests/a.test.js\n\
             Tests:       1 passed, 1 total\n",
            2,
        ),
        (
            "api     | [ RUN      ] Cart.Adds\nworker  | 2026-11-20 10:00:00.123 | ERROR    | __main__:pay:12 - payment failed: card declined\n\
             api     | [       OK ] Cart.Adds (0 ms)\n",
            2,
        ),
    ] {
        assert_eq!(scan(text).iter().map(|event| event.line_num).collect::<Vec<_>>(), [line], "{text}");
    }
}

#[test]
fn invariant_6_workers() {
    assert_whole(["[worker 1] ", "[worker 2] ", "[worker 3] "]);
}

/// Names that no single line reveals: the head of a trace shows them.
#[test]
fn invariant_6_names_in_brackets() {
    assert_whole(["[web] ", "[db] ", "[api-2] "]);
    assert_whole(["[0] ", "[1] ", "[2] "]);
}

#[test]
fn invariant_6_names_in_brackets_are_keys() {
    let text = "[web] Traceback (most recent call last):\n[db] ready\n[web]   File \"a.py\", line 3, in main\n[db] ready\n[web] ValueError: no\n[web] up\n";
    let events = scan(text);
    assert_eq!(events.len(), 1, "{events:#?}");
    assert_eq!((events[0].line_num, events[0].line_end, events[0].key.as_deref()), (1, 5, Some("web")));
}

#[test]
fn invariant_6_outputs_of_a_container() {
    let (out, err) = ("2026-09-21T10:00:00.000000000Z stdout F ", "2026-09-21T10:00:00.000000000Z stderr F ");
    for seed in 0..200 {
        let text = mixed(&mut Rng(seed), &[(out, PYTHON), (err, NODE)]);
        let events = scan(&text);
        assert_eq!(events.len(), 2, "seed {seed}\n{text}\n{events:#?}");
        for lines in [PYTHON, NODE] {
            assert!(events.iter().any(|event| event.multiline == *lines), "seed {seed}\n{text}\n{events:#?}");
        }
        assert_ne!(events[0].io, events[1].io);
    }
}

/// Pieces of one output do not absorb lines of the other.
#[test]
fn invariant_6_pieces_of_split_lines() {
    let text = "2026-09-21T10:00:00Z stdout P TypeError: x is \n2026-09-21T10:00:00Z stderr F ready\n2026-09-21T10:00:00Z stdout F not a function\n2026-09-21T10:00:00Z stdout F     at f (/srv/app.js:3:7)\n";
    let events = scan(text);
    assert_eq!(events.len(), 1, "{events:#?}");
    assert_eq!(events[0].multiline, ["TypeError: x is not a function", "    at f (/srv/app.js:3:7)"]);
    assert_eq!((events[0].line_num, events[0].line_end), (1, 4));
}

/// Docker's pieces are full; a shipper that strips line ends must not join all lines into one.
#[test]
fn invariant_6_docker_lines_without_line_ends() {
    let line = |text: &str| format!("{{\"log\":\"{text}\",\"stream\":\"stdout\",\"time\":\"2026-09-21T10:00:00Z\"}}\n");
    let found = scan(format!("{}{}{}", line("ready"), line("bash: jq: command not found"), line("ready")));
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!((found[0].line_num, found[0].text.as_str()), (2, "bash: jq: command not found"));
    let long = scan(format!("{}{}", line(&"z".repeat(16 << 10)), line(": TypeError: boom\\n")));
    assert_eq!((long.len(), long[0].line_num), (1, 1), "{long:#?}");
}

/// What precedes an error belongs to it only if the same writer wrote it.
#[test]
fn invariant_6_look_back_keeps_to_the_writer() {
    let node = ["/srv/app.js:3", "    throw new TypeError('no')", "    ^", "", "TypeError: no", "    at f (/srv/app.js:3:7)"];
    let other = ["/opt/other.js:9", "    ^", "", "starting", "ready"];
    for seed in 0..200 {
        let text = mixed(&mut Rng(seed), &[("web_1  | ", &node), ("db_1   | ", &other)]);
        let events = scan(&text);
        assert_eq!(events.len(), 1, "seed {seed}\n{text}\n{events:#?}");
        assert!(events[0].multiline.iter().all(|line| node.contains(&line)), "seed {seed}\n{text}\n{:#?}", events[0].multiline);
        assert!(events[0].context.iter().all(|line| !line.contains("db_1")), "seed {seed}\n{text}\n{:#?}", events[0].context);
    }
}

#[test]
fn invariant_6_an_open_trace_claims_before_a_key_does() {
    let text = "error[E0583]: file not found for module `b`\n --> src/main.rs:3:1\n  |\n3 | mod b;\n  | ^^^^^^\n  |\n  = help: to create the module `b`, create file \"src/b.rs\"\n\nready\n";
    let events = scan(text);
    assert_eq!(events.len(), 1, "{events:#?}");
    assert_eq!((events[0].line_num, events[0].line_end, events[0].key.as_deref()), (1, 7, None));
}

/// Returns first and last line of each event.
fn ranges(text: &str) -> Vec<(u64, u64)> {
    scan(text).iter().map(|event| (event.line_num, event.line_end)).collect()
}

/// A cause with a different message continues the trace; the same head again starts a new one.
#[test]
fn an_error_that_comes_twice_is_two() {
    const RUBY: &str = "/srv/a.rb:3:in 'find': no till (RuntimeError)\n\tfrom /srv/a.rb:9:in '<main>'\n";
    assert_eq!(ranges(&RUBY.repeat(2)), [(1, 2), (3, 4)]);
    let caused = RUBY.to_owned() + &RUBY.replace("no till", "no shop");
    assert_eq!(ranges(&caused), [(1, 4)]);
    let java = JAVA.join("\n") + "\n";
    assert_eq!(ranges(&java.repeat(2)), [(1, 5), (6, 10)]);
    let python = PYTHON.join("\n") + "\n";
    let chained = python.clone() + "\nDuring handling of the above exception, another exception occurred:\n\n" + &python;
    assert_eq!(ranges(&chained), [(1, 11)]);
}

/// Jenkins writes two spaces after the time, other tools one.
#[test]
fn a_clock_has_as_many_blanks_in_each_line() {
    for clock in ["09:14:01 ", "09:14:01  "] {
        for lines in [PYTHON, JAVA, NODE] {
            let text: String = lines.iter().map(|line| format!("{clock}{line}\n")).collect();
            assert_eq!(ranges(&format!("{text}{clock}done\n")), [(1, lines.len() as u64)], "{text}");
        }
    }
}

/// What Node prints of an error without a stack is no level.
#[test]
fn an_error_in_brackets_is_no_level() {
    let text = "2026-11-20T10:00:00.0Z [Error: ENOENT: no such file or directory, open '/srv/till'] {\n2026-11-20T10:00:00.0Z   errno: -2,\n2026-11-20T10:00:00.0Z   code: 'ENOENT'\n2026-11-20T10:00:00.0Z }\n2026-11-20T10:00:00.0Z done\n";
    assert_eq!(ranges(text), [(1, 4)]);
}

/// A message that reads like the output of a test runner hides no errors of the service that logged it.
#[test]
fn what_a_service_logs_is_no_report_of_a_test_runner() {
    let events = |before: &str, of_error: &str| scan(format!("{before}Feature: dark mode\n{of_error}cannot open cart.db: Permission denied\n")).len();
    for (before, of_error) in [
        ("2026-11-20 09:24:31,484 - INFO  [main:Flags@1] - ", "2026-11-20 09:24:31,500 - ERROR [main:Store@2] - "),
        ("2026-11-20T09:24:31Z [main] INFO com.acme.Flags - ", "2026-11-20T09:24:31Z [main] ERROR com.acme.Store - "),
        ("2026-11-20 09:24:31,484 - shop.flags - INFO - ", "2026-11-20 09:24:31,500 - shop.store - ERROR - "),
    ] {
        assert_eq!(events(before, of_error), 1, "{before}");
        assert_eq!(events(before, before), 0, "{before}");
    }
    for before in ["", "2026-11-20T09:24:31.1234567Z ", "2026-11-20T09:24:31.1234567Z [INFO] ", "2026-11-20T09:24:31.1234567Z [INFO] [stdout] "] {
        assert_eq!(events(before, before), 0, "{before}");
    }
}

/// An example that an agent quotes is none of its errors, also where a logger writes each line.
#[test]
fn what_stands_between_fences_is_shown_behind_a_loggers_name_too() {
    let lines = ["```python", "Traceback (most recent call last):", "  File \"a.py\", line 3, in main", "ValueError: no", "```"];
    for before in ["", "2026-11-20T09:24:31Z [main] INFO com.acme.Agent - ", "2026-11-20 09:24:31,484 - agent - INFO - "] {
        let text: String = lines.iter().map(|line| format!("{before}{line}\n")).collect();
        assert_eq!(scan(&text).len(), 0, "{before}");
    }
}

/// A stamp that a collector puts before every line makes no record of a bare
/// error: what its program prints next belongs to it no more than without the stamp.
#[test]
fn lines_of_a_program_do_not_join_its_error_behind_a_uniform_stamp() {
    const RUBY: &[&str] = &["/srv/till.rb:3:in `open': no till (RuntimeError)", "\tfrom /srv/till.rb:9:in `<main>'"];
    for stamp in ["", "Mar  4 05:06:07 till-1 tilld[2211]: ", "2026-03-04T05:06:07.100000Z ", "web_1    | ", "[web] "] {
        for error in [PYTHON, NODE, JAVA, RUBY] {
            let next = ["GET /cart 200 12ms", "level=info msg=\"tick\"", "GET /cart 200 12ms"];
            let text: String = error.iter().chain(&next).map(|line| format!("{stamp}{line}\n")).collect();
            assert_eq!(ranges(&text), [(1, error.len() as u64)], "{text}");
        }
    }
    // The log of the program, with stamps of its own, goes on after all lines of a record; and a CI runner says when it ended.
    let stamp = "2026-03-04T05:06:07.100000Z ";
    let of_a_record = [PYTHON[0], PYTHON[1], PYTHON[2], "TillError: no till", "ask Ann"].join("\n");
    let in_a_step: String = of_a_record.lines().chain(["##[error]Process completed with exit code 1."]).map(|line| format!("{stamp}{line}\n")).collect();
    assert_eq!(ranges(&format!("{stamp}{of_a_record}\n{stamp}INFO tick\n")), [(1, 5)]);
    assert_eq!(ranges(&in_a_step)[0], (1, 5));
}

/// What one writer says of its tests, its noise, or a step of its own is nothing to another's errors.
#[test]
fn invariant_6_what_one_writer_says_hides_no_error_of_another() {
    for (lines, wanted) in [
        // A pass ends no trace of another, nor takes back its status lines.
        (
            &[
                ("web", "=== RUN   TestA"),
                ("api", "Traceback (most recent call last):"),
                ("web", "--- PASS: TestA (0.00s)"),
                ("api", "  File \"a.py\", line 3, in f"),
                ("api", "    x()"),
                ("api", "shop.Declined: no card"),
            ][..],
            &[2][..],
        ),
        (&[("web", "=== RUN   TestA"), ("api", "make: *** [Makefile:2: all] Error 3"), ("web", "--- PASS: TestA (0.00s)")], &[2]),
        // Noise that a line of one announces is not the other's.
        (
            &[
                ("api", "stderr | vt/pass.test.mjs > cart > throws error"),
                ("web", "src/a.c:3:5: error: expected ';' before '}' token"),
                ("api", "some text"),
                ("web", "Traceback (most recent call last):"),
                ("web", "  File \"a.py\", line 3, in f"),
                ("web", "KeyError: 'x'"),
            ],
            &[2, 4],
        ),
        // A head that takes any line takes none of another's.
        (
            &[
                ("web", "Traceback (most recent call last):"),
                ("api", "ERROR RuntimeError: teardown"),
                ("web", "  File \"a.py\", line 1, in f"),
                ("web", "    x()"),
                ("web", "shop.Declined: no card"),
            ],
            &[1, 2],
        ),
        // An error below a status line does not explain it.
        (
            &[
                ("web", "make: *** [Makefile:3: check] Segmentation fault"),
                ("api", "starting"),
                ("api", "TypeError: x is not a function"),
                ("api", "    at f (/srv/x.js:1:2)"),
                ("api", "ok"),
            ],
            &[1, 3],
        ),
    ] {
        for dress in [|name: &str| format!("{name}-1  | "), |name: &str| format!("[{name}] ")] {
            let text: String = lines.iter().map(|(name, line)| format!("{}{line}\n", dress(name))).collect();
            let mut found: Vec<u64> = scan(&text).iter().map(|event| event.line_num).collect();
            found.sort_unstable();
            assert_eq!(found, *wanted, "{text}");
        }
    }
}

/// One writer's error explains no other one's exit, and nobody's but its own is taken for a repetition.
#[test]
fn invariant_6_status_lines_are_about_their_own_writer() {
    let heads = |text: &str| scan(text).iter().map(|event| event.line_num).collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>();
    let error = "[web] TypeError: x is not a function\n[web]     at a (/srv/a.js:1:1)\n";
    assert_eq!(heads(&format!("{error}[web] node a.js exited with code 1\n")), [1]);
    assert_eq!(heads(&format!("{error}[api] python app.py exited with code 3\n")), [1, 3]);
    let twice = "web-1  | --- FAIL: TestPay (0.01s)\nweb-1  |     pay_test.go:9: no\napi-1  | --- FAIL: TestPay (0.01s)\napi-1  |     pay_test.go:7: no\n";
    assert_eq!(heads(twice), [1, 3]);
    // A supervisor reports what another program did.
    let unit = "Nov 20 10:00:00 ci app[12]: TypeError: x is not a function\nNov 20 10:00:00 ci app[12]:     at a (/srv/a.js:1:1)\n\
        Nov 20 10:00:01 ci cron[1]: app exited with code 1\n";
    assert_eq!(heads(unit), [1]);
}

/// So many packages test at once that not all of their runs can stay open: the oldest end.
#[test]
fn invariant_6_runs_of_many_packages_pass() {
    let run = ["> jest", "TypeError: x is not a function", "    at a (/srv/a.js:1:1)", "PASS src/a.test.js", "Tests:       5 passed, 5 total"];
    let log: String = (0..100).flat_map(|n| run.map(|line| format!("pkg{n}:test: {line}\n"))).collect();
    assert!(scan(&log).is_empty());
}

/// A trace that ends because too many are open says so.
#[test]
fn invariant_6_traces_of_very_many_writers_are_cut_visibly() {
    let log = |writers: usize| -> String { (0..4).flat_map(|line| (0..writers).map(move |n| format!("web_{n} | {}\n", PYTHON[line]))).collect() };
    let most = scan(log(32));
    assert!(most.len() == 32 && most.iter().all(|event| event.multiline == *PYTHON && !event.truncated));
    assert!(scan(log(40)).iter().any(|event| event.truncated));
}
