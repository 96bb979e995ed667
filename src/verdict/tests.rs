//! Verdicts: which fact decides, what a finished result says in one line, and how the record is written.

use super::*;
use crate::core::engine::{Engine, Limits};
use crate::core::event::Timestamp;
use crate::core::extract::Origin;
use crate::rules::RuleSet;
use std::sync::{Arc, OnceLock};

fn engine() -> &'static Arc<Engine> {
    static ENGINE: OnceLock<Arc<Engine>> = OnceLock::new();
    ENGINE.get_or_init(|| Arc::new(Engine::new(RuleSet::compiled(), Limits::default())))
}

fn said(stderr: &str, stdout: &str) -> Said {
    let mut said = Said::default();
    for (io, text) in [(Io::Stderr, stderr), (Io::Stdout, stdout)] {
        let [events] = read(engine(), [(Origin::default(), text.as_bytes())], false, Timestamp(0));
        said.add(io, events);
    }
    (said.text, said.only_noise) = filtered(engine(), stderr.as_bytes(), Timestamp(0));
    said
}

fn exited(code: i64) -> Facts {
    Facts { exit_code: Some(code), attempts: 1, ..Facts::default() }
}

fn of(facts: Facts, stderr: &str) -> Verdict {
    judge(facts, &said(stderr, ""))
}

const BANNER: &str =
    "Loading required package: ggpubr\n\nAttaching package: 'survminer'\n\nThe following object is masked from 'package:survival':\n\n    myeloma\n\n";
const TRACE: &str = "Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\nValueError: bad";

#[test]
fn errors_of_passed_tests_are_taken_back_even_if_they_are_only_counted() {
    let [events] = read(engine(), [(Origin::default(), b"KeyError: x\n")], false, Timestamp(0));
    let [certain, on_trial] = [false, true].map(|on_trial| Event { on_trial, ..events[0].clone() });
    let mut said = Said::default();
    said.add(Io::Stderr, vec![on_trial; super::said::MAX_ERRORS + 1]);
    said.add(Io::Stdout, vec![certain]);
    assert_eq!(said.summary.iter().sum::<u64>(), super::said::MAX_ERRORS as u64 + 2);
    said.acquit(Timestamp(0));
    assert_eq!((said.errors.len(), said.summary.iter().sum::<u64>()), (1, 1), "the one that is certain was kept");
}

#[test]
fn exit_code_and_stderr_decide() {
    for (code, stderr, want) in [
        (0, "", Status::Success),
        (0, BANNER, Status::Success),
        (0, "(node:1) [DEP0040] DeprecationWarning: The punycode module is deprecated.", Status::Success),
        (0, TRACE, Status::Failure),
        (1, "", Status::Failure),
        (1, BANNER, Status::Failure),
    ] {
        assert_eq!(of(exited(code), stderr).status, want, "{code} {stderr}");
    }
}

#[test]
fn a_stated_status_wins_over_the_exit_code_but_not_over_a_real_error() {
    for (stated, code, stderr, want) in [
        (Status::Success, 1, "", Status::Success),
        (Status::Success, 1, TRACE, Status::Failure),
        (Status::Success, 0, TRACE, Status::Failure),
        (Status::Failure, 0, "", Status::Failure),
        (Status::Timeout, 0, "", Status::Timeout),
        (Status::TransientExhausted, 0, "", Status::TransientExhausted),
        (Status::Malformed, 0, "", Status::Malformed),
    ] {
        let verdict = of(Facts { run_status: Some(stated), ..exited(code) }, stderr);
        assert_eq!(verdict.status, want, "{stated:?} {code} {stderr}");
    }
    assert_eq!(of(Facts { timed_out: true, run_status: Some(Status::Success), ..exited(0) }, "").status, Status::Timeout);
}

#[test]
fn a_status_in_other_words_is_that_status_and_an_unknown_one_is_no_success() {
    for (word, want) in [
        ("failed", Some(Status::Failure)),
        ("Error", Some(Status::Failure)),
        ("KILLED", Some(Status::Failure)),
        ("timed out", Some(Status::Timeout)),
        ("transient-exhausted", Some(Status::TransientExhausted)),
        ("succeeded", Some(Status::Success)),
        ("running", None),
    ] {
        assert_eq!(Status::parse(word), want, "{word}");
    }
    let unknown = |facts: Facts| of(Facts { unknown_status: Some("running".into()), ..facts }, "");
    let verdict = unknown(exited(0));
    assert_eq!((verdict.status, verdict.facts.exit_code), (Status::Malformed, Some(0)));
    assert!(verdict.error.unwrap().contains("\"running\""));
    assert_eq!(unknown(exited(2)).status, Status::Failure);
    assert!(unknown(exited(2)).error.is_some());
}

#[test]
fn causes() {
    for (stderr, want) in [
        ("Error in library(zzz) : there is no package called 'zzz'", Cause::EnvironmentError),
        ("Error in library(zzz) : there is no package called ‘zzz’", Cause::EnvironmentError),
        ("Error: there is no package called zzz", Cause::EnvironmentError),
        ("app: error while loading shared libraries: libx.so: cannot open shared object file", Cause::EnvironmentError),
        ("Error in dyn.load(file) : unable to load shared object '/usr/lib/R/x.so'", Cause::EnvironmentError),
        ("bash: foo: command not found", Cause::EnvironmentError),
        ("Error in file(file, \"rt\") : cannot open the connection to '/data/x.csv'", Cause::DataPathError),
        ("Error in file(f) : cannot open connection to '/data/x.csv'", Cause::DataPathError),
        ("cannot open file '/data/x.csv': No such file or directory", Cause::DataPathError),
        ("cat: /data/x: no such file or directory", Cause::DataPathError),
        ("Error in solve.default(t(x) %*% x) : system is computationally singular", Cause::StatisticalError),
        ("Error in fit(x) : matrix is singular", Cause::StatisticalError),
        ("Error in glm(y ~ x) : algorithm did not converge", Cause::StatisticalError),
        ("Error in optim(p, f) : no convergence", Cause::StatisticalError),
        ("Error in chol.default(m) : the leading minor is not positive definite", Cause::StatisticalError),
        ("Error in svd(x) : infinite or missing values in 'x'", Cause::StatisticalError),
        ("Error in lm.fit(x, y) : NA/NaN/Inf in 'x'", Cause::StatisticalError),
        ("Error in f() : object 'x' not found", Cause::CodeBug),
        ("Error in f() : object ‘x’ not found", Cause::CodeBug),
        ("Error: object x not found", Cause::CodeBug),
        ("Error in g(1) : could not find function \"g\"", Cause::CodeBug),
        ("Error: unexpected symbol in \"x y\"", Cause::CodeBug),
        ("Error: unexpected string constant in \"x 'y'\"", Cause::CodeBug),
        ("Error: unexpected '}' in \"}\"", Cause::CodeBug),
        ("Error in x[[3]] : subscript out of bounds", Cause::CodeBug),
        ("Error in 1 + \"a\" : non-numeric argument to binary operator", Cause::CodeBug),
        ("Error in `$<-.data.frame`(x) : replacement has 2 rows, data has 3", Cause::CodeBug),
        ("Error in data.frame(a, b) : arguments imply differing number of rows: 2, 3", Cause::CodeBug),
        ("Error in hclust(d) : NA/NaN/Inf in foreign function call (arg 10)", Cause::CodeBug),
        ("Error in foo() : bar", Cause::CodeBug),
        (TRACE, Cause::CodeBug),
        ("Error: API Error: 401 unauthorized", Cause::EnvironmentError),
        ("Error: connect ECONNREFUSED 127.0.0.1:5432", Cause::Unknown),
        (BANNER, Cause::Unknown),
        ("", Cause::Unknown),
    ] {
        assert_eq!(of(exited(1), stderr).cause, want, "{stderr}");
    }
    assert_eq!(of(exited(0), "").cause, Cause::Unknown);
    assert_eq!(of(exited(1), &format!("{BANNER}Error in readRDS(con) : unknown input format\n")).cause, Cause::CodeBug);
    let verdict = of(Facts { timed_out: true, ..exited(1) }, TRACE);
    assert_eq!((verdict.status, verdict.cause, &*verdict.retry.reason), (Status::Timeout, Cause::Timeout, TIMED_OUT));
    // The word alone is no evidence: only the flag is.
    assert_ne!(of(exited(1), "Error: request timed out").cause, Cause::Timeout);
}

/// A run is transient when one of its errors is and none is permanent or fatal.
#[test]
fn the_run_takes_its_retry_from_its_errors() {
    let transient = "Error: connect ETIMEDOUT 10.1.2.3:443\n";
    for (facts, stderr, class, reason) in [
        (exited(1), transient.to_owned(), RetryClass::Transient, "network_timeout"),
        (exited(1), format!("{transient}\nTypeError: x is not a function\n"), RetryClass::Transient, "network_timeout"),
        (exited(1), format!("{transient}\nAssertionError: 1 != 2\n"), RetryClass::Permanent, "implementation"),
        (exited(1), format!("{transient}\nSessionError: PIPELINE_SESSION_LOAD_FAILED: gone\n"), RetryClass::Fatal, "session"),
        (exited(1), String::new(), RetryClass::Unknown, UNMATCHED),
        (exited(137), String::new(), RetryClass::Transient, "container_oom"),
        (Facts { signal: Some(9), attempts: 1, ..Facts::default() }, String::new(), RetryClass::Transient, "container_oom"),
        (Facts { signal: Some(9), signal_was_ours: true, ..Facts::default() }, String::new(), RetryClass::Unknown, UNMATCHED),
        (Facts { signal: Some(15), ..Facts::default() }, String::new(), RetryClass::Unknown, UNMATCHED),
        (exited(137), "AssertionError: no".to_owned(), RetryClass::Permanent, "implementation"),
    ] {
        let verdict = of(facts.clone(), &stderr);
        assert_eq!((verdict.retry.class, &*verdict.retry.reason), (class, reason), "{facts:?} {stderr}");
    }
}

#[test]
fn the_counter_rises_for_genuine_failures_only() {
    for (facts, stderr, want) in [
        (exited(0), "", 0),
        (exited(1), "Error: connect ETIMEDOUT 10.1.2.3:443", 0),
        (exited(1), TRACE, 1),
        (Facts { run_status: Some(Status::TransientExhausted), ..exited(1) }, "Error: connect ETIMEDOUT 10.1.2.3:443", 1),
    ] {
        assert_eq!(of(facts, stderr).failures, want, "{stderr}");
    }
}

#[test]
fn the_message_holds_the_most_telling_line() {
    let filler = "a line about nothing in particular\n".repeat(40);
    for (facts, stderr, want) in [
        (exited(1), format!("{filler}{TRACE}\n{filler}"), "ValueError: bad"),
        (exited(1), "one\ntwo\n".to_owned(), "one\ntwo"),
        (exited(1), BANNER.to_owned(), "exited with 1, nothing but noise on stderr"),
        (exited(3), String::new(), "exited with 3, nothing on stderr"),
        (Facts { signal: Some(11), ..Facts::default() }, String::new(), "ended by signal 11"),
        (Facts { signal: Some(2), ..Facts::default() }, "^C".to_owned(), "ended by signal 2, nothing on stderr"),
        (Facts { signal: Some(3), ..Facts::default() }, "^C^C\r\n^\\".to_owned(), "ended by signal 3, nothing on stderr"),
        (Facts { signal: Some(2), ..Facts::default() }, "cut short\n^C\r\n".to_owned(), "cut short"),
        (exited(1), format!("{BANNER}^C\n"), "exited with 1, nothing but noise on stderr"),
        (exited(1), "x = ^C".to_owned(), "x = ^C"),
        (Facts { timed_out: true, ..exited(1) }, "still waiting".to_owned(), "timed out; stderr: still waiting"),
        (exited(1), format!("{}TypeError: x is not a function", "é".repeat(900)), ""),
        (exited(1), "\u{1b}[31mError: token ghp_0123456789abcdefghijABCDEFGHIJ012345 refused\u{1b}[0m".to_owned(), "Error: token [redacted:"),
    ] {
        let message = of(facts, &stderr).error_message.unwrap();
        assert!(message.contains(want) && message.chars().count() <= MAX_MESSAGE_CHARS, "{want}: {message}");
    }
    assert_eq!(of(exited(0), "").error_message, None);
}

#[test]
fn stdout_decides_nothing() {
    let quiet = said("", TRACE);
    assert_eq!(judge(exited(0), &quiet).status, Status::Success);
    assert_eq!(quiet.summary.iter().sum::<u64>(), 1);
    let failed = judge(exited(1), &quiet);
    assert_eq!(failed.cause, Cause::Unknown);
    assert!(failed.error_message.unwrap().contains("stdout says: ValueError: bad"));
}

#[test]
fn on_the_wire_its_keys_have_their_order_and_zeros_are_written() {
    let facts = Facts { task: Some("t".into()), operation: Some("o".into()), duration_ms: Some(5), ..exited(2) };
    let verdict = of(facts, "");
    let mut out = Vec::new();
    write(&mut out, &verdict, b"", &Summary::default());
    let expected = r#"{"success":false,"status":"failure","error_message":"exited with 2, nothing on stderr","errors":[],"summary":{"total":0,"blocking":0,"high":0,"medium":0,"low":0},"cause":"unknown","retry":{"class":"unknown","reason":"unmatched","retryable":false,"remedy":"none"},"exit_code":2,"timed_out":false,"duration_ms":5,"attempts":1,"failures":1,"task":"t","operation":"o"}"#;
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

/// Tests print on stdout, and make says on stderr only that something failed.
#[test]
fn a_status_line_on_stderr_does_not_hide_what_stdout_says() {
    const MAKE: &str = "make: *** [Makefile:2: test] Error 1";
    let failed = |name: &str| said(MAKE, &format!("Traceback (most recent call last):\n  File \"till.py\", line 4, in <module>\nKeyError: '{name}'\n"));
    let (first, second) = (failed("total"), failed("tax"));
    let verdict = judge(exited(2), &first);
    let message = verdict.error_message.as_deref().unwrap();
    assert!(message.starts_with(MAKE) && message.contains("KeyError: 'total'"), "{message}");
    let counted = |said: &Said| counts::of_run(&judge(exited(2), said), said, false).unwrap().signatures;
    assert_ne!(counted(&first), counted(&second));
    assert_eq!(counted(&said(MAKE, "")).len(), 1);
}
