//! Structured errors, log texts and runs against the rows of the retry tables, and the pauses that follow.

use super::*;
use crate::core::event::RetryClass::{Fatal, Permanent, Transient, Unknown};

fn judge(error: &StructuredError) -> (bool, bool, RetryClass) {
    let verdict = classify_structured(error, false);
    (verdict.retryable, verdict.fatal, verdict.retry.class)
}

fn named<'a>(name: &'a str, code: &'a str) -> StructuredError<'a> {
    StructuredError { name: Some(name), code: Some(code), ..StructuredError::default() }
}

fn saying(message: &str) -> StructuredError<'_> {
    StructuredError { message: Some(message), ..StructuredError::default() }
}

#[test]
fn structured_by_name_and_pipeline_code() {
    for (name, code, retryable, fatal, class) in [
        ("SessionError", "PIPELINE_SESSION_LOAD_FAILED", false, true, Fatal),
        ("SessionError", "PIPELINE_SESSION_SAVE_FAILED", false, true, Fatal),
        ("SessionError", "PIPELINE_SESSION_NOT_FOUND", true, false, Unknown),
        ("SessionError", "PIPELINE_SESSION_ODD", true, false, Unknown),
        ("TaskError", "PIPELINE_TASK_EXECUTION_FAILED", true, false, Unknown),
        ("TaskError", "PIPELINE_TASK_VALIDATION_FAILED", true, false, Unknown),
        ("TaskError", "PIPELINE_TASK_NOT_FOUND", true, false, Unknown),
        ("AgentError", "PIPELINE_AGENT_LLM_FAILED", true, false, Transient),
        ("AgentError", "PIPELINE_AGENT_TIMEOUT", true, false, Transient),
        ("AgentError", "PIPELINE_AGENT_PARSE_FAILED", false, false, Permanent),
        ("ValidationError", "PIPELINE_VALIDATION_INVALID_INPUT", false, false, Permanent),
        ("ValidationError", "PIPELINE_VALIDATION_MISSING_FIELD", false, false, Permanent),
        ("ValidationError", "PIPELINE_VALIDATION_SCHEMA_FAILED", false, false, Permanent),
        ("ValidationError", "PIPELINE_VALIDATION_CIRCULAR_DEPENDENCY", false, false, Permanent),
        ("PipelineError", "PIPELINE_RESOURCE_LIMIT_EXCEEDED", true, false, Unknown),
        ("EnvironmentError", "PIPELINE_VALIDATION_INVALID_INPUT", false, true, Fatal),
    ] {
        assert_eq!(judge(&named(name, code)), (retryable, fatal, class), "{name} {code}");
    }
}

#[test]
fn invalid_input_is_fatal_only_while_the_prd_is_parsed() {
    let error = StructuredError { operation: Some("parse_prd"), ..named("ValidationError", "PIPELINE_VALIDATION_INVALID_INPUT") };
    assert_eq!(judge(&error), (false, true, Fatal));
    let other = StructuredError { operation: Some("parse_prd"), ..named("ValidationError", "PIPELINE_VALIDATION_MISSING_FIELD") };
    assert_eq!(judge(&other), (false, false, Permanent));
}

#[test]
fn system_codes() {
    for code in "ECONNRESET ECONNREFUSED ETIMEDOUT ENOTFOUND EPIPE EAI_AGAIN EHOSTUNREACH ENETUNREACH ECONNABORTED".split(' ') {
        let error = StructuredError { code: Some(code), ..saying("x") };
        assert_eq!(judge(&error), (true, false, Transient), "{code}");
    }
    assert_eq!(judge(&StructuredError { code: Some("ENOENT"), ..saying("x") }), (false, false, Unknown));
}

#[test]
fn exit_code_or_code_137_is_out_of_memory() {
    assert_eq!(judge(&StructuredError { code: Some("137"), ..saying("killed") }), (true, false, Transient));
    let error = StructuredError { exit_code: Some(137), ..StructuredError::default() };
    assert_eq!(classify_structured(&error, false).retry.reason, "container_oom");
}

#[test]
fn http_statuses_of_a_response() {
    for (statuses, retryable, class) in [(&[408, 429, 500, 502, 503, 504, 529][..], true, Transient), (&[400, 401, 403, 404, 422], false, Permanent)] {
        for &status in statuses {
            assert_eq!(judge(&StructuredError { status: Some(status), ..saying("x") }), (retryable, false, class), "{status}");
        }
    }
}

#[test]
fn messages() {
    for message in [
        "Request timeout",
        "network error",
        "temporarily unavailable",
        "Service Unavailable",
        "connection reset by peer",
        "connection refused",
        "rate limit exceeded",
        "too many requests",
    ] {
        assert_eq!(judge(&saying(message)), (true, false, Transient), "{message}");
    }
    for message in ["validation failed", "invalid input", "Unauthorized", "Forbidden", "user not found", "authentication failed", "parse error at 3"] {
        assert_eq!(judge(&saying(message)), (false, false, Permanent), "{message}");
    }
    assert_eq!(judge(&saying("Sandbox start exceeded 30s")), (true, false, Transient));
    assert_eq!(judge(&saying("connect ENOENT /var/run/docker.sock")), (true, false, Transient));
}

/// What tools print for faults that pass, and what only resembles it. (A line is asked more strictly than a message.)
#[test]
fn lines_of_tools() {
    for (line, class, reason) in [
        ("error: RPC failed; curl 56 GnuTLS recv error (-54): Error in the pull function.", Transient, "network"),
        ("error: RPC failed; curl 22 The requested URL returned error: 413", Permanent, "http_client_error"),
        ("fatal: early EOF", Transient, "network"),
        ("fatal: early EOFs", Unknown, "unmatched"),
        ("  [56] Failure when receiving data from the peer (Recv failure)", Transient, "network"),
        ("An error occurred (SlowDown) when calling the PutObject operation: Please reduce your request rate.", Transient, "api_rate_limit"),
        ("E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 77 (apt)", Transient, "busy"),
        ("E: Could not get lock /var/lib/dpkg/lock-frontend - open (13: Permission denied)", Unknown, "unmatched"),
        ("FATAL:  the database system is starting up", Transient, "busy"),
        ("FATAL:  database \"shop\" does not exist", Unknown, "unmatched"),
        ("ERROR:  could not serialize access due to concurrent update", Transient, "busy"),
        ("ERROR:  deadlock detected", Transient, "busy"),
        ("ERROR 1213 (40001): Deadlock found when trying to get lock; try restarting transaction", Transient, "busy"),
        ("fatal error: all goroutines are asleep - deadlock!", Unknown, "unmatched"),
        ("Error: Internal Server Error (500)", Transient, "http_retryable"),
        ("UnixHTTPConnectionPool: Read timed out", Transient, "network"),
        ("the connectionpools test timed out", Unknown, "unmatched"),
    ] {
        let mut hits = Hits::default();
        Table::builtin().hits(line, &mut hits);
        let asked = Asked { texts: [line, "", ""], hits, status: http_status(line), exit_code: None, alone: false };
        assert_eq!(retry(&asked, false), (class, reason), "{line}");
    }
}

#[test]
fn any_other_object_is_one_tasks_failure() {
    let error = StructuredError { name: Some("TypeError"), ..saying("x is not a function") };
    assert_eq!(judge(&error), (true, false, Unknown));
    assert_eq!(judge(&saying("boom")), (true, false, Unknown));
    assert_eq!(judge(&StructuredError::default()), (true, false, Unknown));
}

#[test]
fn implementation_errors_are_never_transient() {
    for name in ["AssertionError", "ImplementationError"] {
        assert_eq!(judge(&StructuredError { name: Some(name), ..saying("expected ETIMEDOUT") }), (false, false, Permanent));
    }
}

#[test]
fn continue_on_error_makes_fatal_permanent() {
    let verdict = classify_structured(&named("SessionError", "PIPELINE_SESSION_LOAD_FAILED"), true);
    assert_eq!((verdict.fatal, verdict.retryable, verdict.retry.class), (false, false, Permanent));
}

#[test]
fn a_run_timed_out_by_its_caller_has_its_own_reason() {
    let verdict = classify_structured(&StructuredError { timed_out: true, ..StructuredError::default() }, false);
    assert_eq!((&*verdict.retry.reason, verdict.cause, verdict.retryable), ("timed_out", Cause::Timeout, false));
}

#[test]
fn status_needs_words_around_the_number() {
    for (text, status) in [
        ("HTTP/1.1 429", Some(429)),
        ("Request failed with status code 500", Some(500)),
        ("429 Too Many Requests", Some(429)),
        ("API Error: 529 overloaded_error", Some(529)),
        (r#"{"status":503}"#, Some(503)),
        (r#""GET /x HTTP/1.1" 404 12"#, Some(404)),
        ("HTTP Error 404: Not Found", Some(404)),
        ("server responded with a status of 502", Some(502)),
        ("curl: (22) The requested URL returned error: 403", Some(403)),
        ("Error: Internal Server Error (500)", Some(500)),
        ("merge conflict (500 lines)", None),
        ("Internal Server Errors (500)", None),
        ("processed 429 rows", None),
        ("line 404", None),
        ("exit status 1", None),
        ("port 5000", None),
        ("HTTP/1.1 200 OK", None),
        ("took 500ms", None),
        ("a-404-b", None),
        ("status code 4040", None),
        ("450 tests failed", None),
    ] {
        assert_eq!(http_status(text), status, "{text}");
    }
}

#[test]
fn reset_times_as_the_text_says_them() {
    for (text, want) in [
        ("You've hit your limit · resets at 3pm (Europe/Berlin)", Some("3pm (Europe/Berlin)")),
        ("limit reached, resets 10:30am.", Some("10:30am")),
        ("5-hour limit reached ∙ resets 3pm", Some("3pm")),
        ("You've hit your limit · resets Nov 29, 7:06pm (UTC)", Some("Nov 29, 7:06pm (UTC)")),
        ("limit reached, resets Oct 6, 1pm", Some("Oct 6, 1pm")),
        ("limit reached, resets Nov 29, 2026, 7:06 PM (UTC)", Some("Nov 29, 2026, 7:06 PM (UTC)")),
        ("limit reached, resets Nov 29, 7 tries left", Some("Nov 29")),
        ("Claude AI usage limit reached|1795540000", Some("1795540000")),
        ("You've hit your usage limit. Upgrade or try again in 2 hours 5 minutes.", Some("2 hours 5 minutes")),
        ("Rate limited. Please try again at 2026-01-02T03:04:05Z.", Some("2026-01-02T03:04:05Z")),
        ("Retry-After: 30", Some("30")),
        ("429: retry after 12s, sorry", Some("12s")),
        ("Please try again in 20 seconds. Visit us", Some("20 seconds")),
        ("resets at noon or so", None),
        ("rate limit, retry after Fri, 02 Jan 2026 03:04:05 GMT", Some("Fri, 02 Jan 2026 03:04:05 GMT")),
        ("connection resets often", None),
        ("429 Too Many Requests (retry after 2 hours)", Some("2 hours")),
        ("API Error: 529 (try again in 30s).", Some("30s")),
        (r#"{"retry_after": 1.5}"#, Some("1.5")),
    ] {
        let mut hits = Hits::default();
        Table::builtin().hits(text, &mut hits);
        let got = hits.reset.and_then(|end| reset_at(text, end));
        assert_eq!(got.as_deref(), want, "{text}");
    }
}

#[test]
fn backoff_doubles_up_to_its_cap() {
    let delays: Vec<u64> = (1..=7).map(|attempt| backoff_ms(attempt, 1000, 30_000)).collect();
    assert_eq!(delays, [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
    assert_eq!(backoff_ms(u32::MAX, 1000, 30_000), 30_000);
    assert_eq!(backoff_ms(0, 1000, 30_000), 1000);
}

#[test]
fn remedy_is_asked_in_its_order() {
    for (class, cause, want) in [
        (Fatal, Cause::CodeBug, Remedy::Operator),
        (Transient, Cause::CodeBug, Remedy::Rerun),
        (Permanent, Cause::CodeBug, Remedy::Fix),
        (Unknown, Cause::DataPathError, Remedy::Fix),
        (Unknown, Cause::EnvironmentError, Remedy::Operator),
        (Permanent, Cause::StatisticalError, Remedy::Operator),
        (Unknown, Cause::Unknown, Remedy::None),
        (Unknown, Cause::Timeout, Remedy::None),
    ] {
        assert_eq!(remedy(class, cause), want);
    }
    assert!(is_transient(Transient) && is_fatal(Fatal) && !is_transient(Unknown));
}
