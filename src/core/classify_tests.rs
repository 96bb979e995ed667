//! Category, severity and cause: the rows of both tables, in their own words, and the order that they are asked in.

use super::*;
use crate::core::event::{Remedy, RetryClass};

fn of(text: &str) -> Verdict {
    classify(&Subject { text, whole: text, ..Subject::default() })
}

#[track_caller]
fn category(text: &str, want: &str, severity: &str) {
    let got = of(text);
    assert_eq!((got.category.as_str(), got.severity.as_str()), (want, severity), "{text}");
}

/// The SCAN table of the source systems: text (its last line), category, severity, cause, class; empty: not asked.
#[test]
fn facts_of_the_source_systems() {
    for (text, category, severity, cause, class) in [
        ("error: something broke", "", "medium", "", ""),
        ("Error: something broke", "", "medium", "", ""),
        ("ERROR: something broke", "", "medium", "", ""),
        ("AssertionError: expected 1 to be 2", "test_failure", "high", "code_bug", "permanent"),
        ("assertion failed: x > 0", "test_failure", "high", "", ""),
        ("not ok 2 - adds numbers", "test_failure", "high", "", ""),
        ("FAIL: test_login (tests.LoginTest)", "test_failure", "high", "", ""),
        ("SyntaxError: Unexpected token '}'", "syntax_error", "blocking", "", ""),
        ("bash: line 3: syntax error near unexpected token `fi'", "syntax_error", "blocking", "", ""),
        ("TypeError: undefined is not a function", "type_error", "high", "code_bug", ""),
        ("ReferenceError: foo is not defined", "reference_error", "high", "code_bug", ""),
        ("Error: ENOENT: no such file or directory, open '/srv/data/a.csv'", "filesystem_error", "high", "data_path_error", ""),
        ("cat: spec/fixtures/a.txt: No such file or directory", "filesystem_error", "medium", "", ""),
        ("cat: latest/specific.txt: No such file or directory", "filesystem_error", "high", "", ""),
        ("rm: cannot remove '/etc/x': Permission denied", "filesystem_error", "high", "", ""),
        ("Error: connect ECONNREFUSED 127.0.0.1:5432", "network_error", "medium", "", "transient"),
        ("Build failed with 3 errors", "build_error", "blocking", "", ""),
        ("[INFO] BUILD FAILURE", "build_error", "blocking", "", ""),
        ("src/main.rs:3:5: error: expected `;`", "build_error", "blocking", "", ""),
        ("bash: foo: command not found", "dependency_error", "", "environment_error", ""),
        ("Segmentation fault (core dumped)", "runtime_error", "high", "", ""),
        ("make: *** [Makefile:12: all] Error 2", "build_error", "blocking", "", ""),
        ("java.lang.NullPointerException: null pointer", "runtime_error", "high", "", ""),
        ("JsonMappingException: Unexpected end-of-input", "runtime_error", "high", "", ""),
        ("npm ERR! code ERESOLVE", "dependency_error", "blocking", "", ""),
        (r#"{"error": null, "msg": "TypeError: x is not a function"}"#, "type_error", "", "", ""),
        ("Error in eval(expr, envir, enclos) : object 'nonexistent_var' not found", "reference_error", "", "code_bug", ""),
        ("Error: object x not found", "", "", "code_bug", ""),
        ("Error in library(nonexistent) : could not find function 'foo'", "", "", "code_bug", ""),
        ("Error: unexpected symbol in \"x y\"", "syntax_error", "", "code_bug", ""),
        ("Error in foo() : bar", "", "", "code_bug", ""),
        ("Error in library(nonexistent) : there is no package called 'nonexistent'", "dependency_error", "", "environment_error", ""),
        ("Error in file(file, \"rt\") : cannot open the connection to '/data/missing.csv'", "", "", "data_path_error", ""),
        ("Error in solve.default(t(x) %*% x) : system is computationally singular", "", "", "statistical_error", ""),
        ("Error in readRDS(con) : unknown input format", "", "", "code_bug", ""),
        ("Error: connect ETIMEDOUT 10.1.2.3:443", "network_error", "medium", "", "transient"),
        ("Error: read ECONNRESET", "", "", "", "transient"),
        ("Error: connect ENOENT /var/run/docker.sock", "", "", "", "transient"),
        ("Error: Sandbox start exceeded timeout of 30s", "", "", "", "transient"),
        ("GraphQL: Could not resolve to a Repository with the name 'acme/till'. (repository)", "unknown_error", "medium", "", "unknown"),
        ("curl: (6) Could not resolve host: till.example", "network_error", "medium", "", "transient"),
        ("Temporary failure resolving 'deb.example.org'", "network_error", "medium", "", "transient"),
        ("TypeError: fetch failed", "network_error", "medium", "", "unknown"),
        ("mount: /mnt: /dev/null is not a block device.", "unknown_error", "medium", "", "unknown"),
        ("Failed to connect to till-1:6379", "network_error", "medium", "", "transient"),
        ("Failed to connect to till-1: authentication failed", "auth_error", "high", "", "permanent"),
        ("upload failed: (SlowDown) when calling PutObject: Please reduce your request rate.", "rate_limit", "medium", "", "transient"),
        ("API Error: 429 Too Many Requests", "rate_limit", "", "", "transient"),
        ("API Error: 529 overloaded_error", "rate_limit", "", "", "transient"),
        ("AssertionError: expected ETIMEDOUT to equal ECONNRESET", "test_failure", "", "", "permanent"),
    ] {
        let got = of(text);
        let words = [got.category.as_str(), got.severity.as_str(), got.cause.as_str(), got.retry.class.as_str()];
        for (word, want) in words.into_iter().zip([category, severity, cause, class]) {
            assert!(want.is_empty() || word == want, "{text}: want {want}, got {words:?}");
        }
    }
}

#[test]
fn test_failure_row() {
    for text in [
        "FAIL src/a.test.js",
        "FAILED tests/test_a.py::test_b - assert 1 == 2",
        "=== FAILURES ===",
        "not ok 3 - x",
        "AssertionError",
        "assertion failed: left == right",
        "test result: FAILED. 1 passed; 2 failed",
        "--- FAIL: TestX (0.00s)",
        "3 failed, 2 passed",
        "E   assert 1 == 2",
    ] {
        category(text, "test_failure", "high");
    }
    for text in ["BUILD FAILED", "[INFO] BUILD FAILURE", "FAILURE: Build failed with an exception.", "FAILED: obj/a.o"] {
        category(text, "build_error", "blocking");
    }
    assert_ne!(of("it failed").category, Category::TestFailure);
    assert_ne!(of("12 passed, 0 failed").category, Category::TestFailure);
}

#[test]
fn syntax_type_and_reference_rows() {
    for text in [
        "SyntaxError: invalid syntax",
        "syntax error",
        "parse error",
        "Unexpected token <",
        "unexpected symbol in x",
        "unexpected string constant",
        "unexpected '}' in x",
    ] {
        category(text, "syntax_error", "blocking");
    }
    for text in ["TypeError: x", "type error: x", "undefined is not an object", "null is not an object"] {
        category(text, "type_error", "high");
    }
    for text in [
        "ReferenceError: x",
        "x is not defined",
        "undefined variable $x",
        "NameError: name 'x'",
        "object 'x' not found",
        "object x not found",
        "Error: object ‘x’ not found",
        "could not find function \"f\"",
    ] {
        category(text, "reference_error", "high");
    }
}

#[test]
fn filesystem_row_and_its_lower_severity() {
    for text in [
        "No such file: a",
        "ENOENT",
        "file not found",
        "Permission denied",
        "EACCES",
        "EROFS",
        "ENOSPC",
        "No space left on device",
        "disk full",
        "cannot open the connection",
        "cannot open connection",
        "cannot open file 'x'",
    ] {
        category(text, "filesystem_error", "high");
    }
    for text in ["ENOENT: test/a", "ENOENT: a/foo.spec.js", "ENOENT: src/__mocks__/x", "ENOENT: test_foo.py", "ENOENT: C:\\spec\\x"] {
        category(text, "filesystem_error", "medium");
    }
    for text in ["ENOENT: latest/a", "ENOENT: specific.txt", "running the test: ENOENT"] {
        category(text, "filesystem_error", "high");
    }
}

#[test]
fn network_and_build_rows() {
    for text in [
        "ECONNREFUSED",
        "ETIMEDOUT",
        "EAI_AGAIN",
        "timeout",
        "timed out",
        "connection refused",
        "network error",
        "DNS lookup failed",
        "TLS handshake error",
        "TimeoutError: x",
    ] {
        category(text, "network_error", "medium");
    }
    for text in [
        "Build failed",
        "BUILD FAILURE",
        "Compilation error",
        "linker error",
        "undefined reference to `x'",
        "error[E0308]: mismatched types",
        "a.ts(1,2): error TS2304: x",
        "a.c:1:2: error: x",
        "make: *** x",
        "make[2]: *** [x] Error 1",
    ] {
        category(text, "build_error", "blocking");
    }
}

#[test]
fn rows_that_split_the_unknown() {
    for text in ["OOMKilled", "JavaScript heap out of memory", "exited with code 137", "ENOMEM", "EMFILE: too many open files", "quota exceeded"] {
        category(text, "resource_error", "high");
    }
    for text in ["HTTP/1.1 401", "status code 403", "unauthorized", "Forbidden", "authentication failed", "invalid API key"] {
        category(text, "auth_error", "high");
    }
    for text in ["429 Too Many Requests", "HTTP 529", "rate limit exceeded", "too many requests", "overloaded_error"] {
        category(text, "rate_limit", "medium");
    }
    for text in [
        "ModuleNotFoundError: No module named 'x'",
        "Cannot find module 'x'",
        "there is no package called ‘x’",
        "No matching distribution found for x",
        "ERESOLVE",
        "foo: command not found",
    ] {
        category(text, "dependency_error", "blocking");
    }
    assert_eq!(of("401 rows, 429 columns").category, Category::UnknownError);
    let killed = classify(&Subject { text: "x", exit_code: Some(137), ..Subject::default() });
    assert_eq!((killed.category, &*killed.retry.reason), (Category::ResourceError, "container_oom"));
}

#[test]
fn a_type_is_a_runtime_error_and_a_bare_word_is_none() {
    for text in ["ValueError: x", "com.acme.OddException: x", "thread 'main' panicked at src/a.rs:1:2:", "panic: x", "SIGSEGV", "OddFailure"] {
        category(text, "runtime_error", "high");
    }
    for text in ["Error: boom", "Exception: boom", "Fatal: boom", "fatal error: boom", "something bad"] {
        category(text, "unknown_error", "medium");
    }
    for (kind, want) in [
        ("Error", Category::UnknownError),
        ("java.lang.Exception", Category::UnknownError),
        ("KeyError", Category::RuntimeError),
        ("Odd::Thing", Category::RuntimeError),
    ] {
        assert_eq!(classify(&Subject { text: "boom", kind: Some(kind), ..Subject::default() }).category, want, "{kind}");
    }
}

#[test]
fn a_rules_category_wins_and_type_and_message_are_asked_too() {
    let named = Subject { text: "SyntaxError: x", rule_category: Some(Category::BuildError), ..Subject::default() };
    assert_eq!(classify(&named).category, Category::BuildError);
    let by_kind = Subject { text: "boom", kind: Some("TypeError"), ..Subject::default() };
    assert_eq!(classify(&by_kind).category, Category::TypeError);
    let by_message = Subject { text: "boom", message: Some("connect ECONNREFUSED ::1:80"), ..Subject::default() };
    assert_eq!(classify(&by_message).category, Category::NetworkError);
    let frames = Subject { text: "ValueError: x", whole: "at syntax error\nTypeError.js\nValueError: x", ..Subject::default() };
    assert_eq!(classify(&frames).category, Category::RuntimeError);
}

#[test]
fn a_cause_speaks_where_the_error_says_nothing_of_its_own() {
    let link = |(kind, message): &(&str, &str)| Link { kind: (*kind).to_owned(), message: (*message).to_owned() };
    let of = |links: &[(&str, &str)]| {
        let links: Vec<Link> = links.iter().map(link).collect();
        let text = format!("{}: {}", links[0].kind, links[0].message);
        let subject =
            Subject { text: &text, kind: Some(&links[0].kind), message: Some(&links[0].message), causes: &links[1..], has_frames: true, ..Subject::default() };
        let got = classify(&subject);
        (got.category.as_str(), got.severity.as_str(), got.cause.as_str(), got.retry.class.as_str())
    };
    let heap = ("java.lang.OutOfMemoryError", "Java heap space");
    assert_eq!(of(&[("java.lang.RuntimeException", "report failed"), heap]), ("resource_error", "high", "unknown", "unknown"));
    assert_eq!(
        of(&[("Error", "no sync"), ("", "store is away"), ("", "Connection refused (os error 111)")]),
        ("network_error", "medium", "unknown", "transient")
    );
    // The innermost one that says anything.
    let path = ("FileNotFoundError", "No such file: '/srv/test/a.csv'");
    assert_eq!(of(&[("StoreFault", "no store"), path, ("KeyError", "'a'")]), ("filesystem_error", "medium", "data_path_error", "unknown"));
    // What the error itself says comes first, unless it is only that it crashed.
    assert_eq!(of(&[("java.net.SocketTimeoutException", "Read timed out"), heap]).0, "network_error");
    assert_eq!(of(&[("System.Exception", "Unhandled exception"), heap]).0, "resource_error");
    assert_eq!(of(&[("StoreFault", "no store"), ("KeyError", "'a'")]).0, "runtime_error");
}

#[test]
fn causes_in_row_order() {
    let r = |text| classify(&Subject { text, whole: text, language: Some("r"), ..Subject::default() }).cause;
    for (text, want) in [
        ("Error in f() : NA/NaN/Inf in foreign function call (arg 1)", Cause::CodeBug),
        ("Error in f() : NA/NaN/Inf in 'x'", Cause::StatisticalError),
        ("Error in f() : infinite or missing values in 'x'", Cause::StatisticalError),
        ("Error: did not converge", Cause::StatisticalError),
        ("Error: matrix is not positive definite", Cause::StatisticalError),
        ("Error in x[[5]] : subscript out of bounds", Cause::CodeBug),
        ("Error in 1 + \"a\" : non-numeric argument to binary operator", Cause::CodeBug),
        ("Error in `$<-` : replacement has 2 rows, data has 3", Cause::CodeBug),
        ("Error: arguments imply differing number of rows: 2, 3", Cause::CodeBug),
        ("Error in dyn.load(file) : unable to load shared object 'x.so'", Cause::EnvironmentError),
        ("Warning: odd", Cause::Unknown),
    ] {
        assert_eq!(r(text), want, "{text}");
    }
    assert_eq!(of("python: error while loading: cannot open shared object file: No such file or directory").cause, Cause::EnvironmentError);
    assert_eq!(of("open x: no such file or directory").cause, Cause::DataPathError);
    let python = Subject { text: "LinAlgError: singular matrix", whole: "LinAlgError: singular matrix", language: Some("python"), ..Subject::default() };
    assert_eq!(classify(&python).cause, Cause::CodeBug);
}

#[test]
fn cause_is_asked_of_the_whole_text_and_timeout_only_of_the_field() {
    let whole = "Error in f() :\n  system is computationally singular\nExecution halted";
    let subject = Subject { text: "Error in f() :", whole, ..Subject::default() };
    assert_eq!(classify(&subject).cause, Cause::StatisticalError);
    assert_eq!(of("operation timed out").cause, Cause::Unknown);
    let timed_out = classify(&Subject { timed_out: true, ..subject });
    assert_eq!((timed_out.cause, &*timed_out.retry.reason), (Cause::Timeout, "timed_out"));
}

#[test]
fn retry_rows_in_order() {
    for (text, reason, class) in [
        ("ImplementationError: expected ETIMEDOUT", "implementation", RetryClass::Permanent),
        ("connect ENOENT /var/run/docker.sock", "docker_socket_unavailable", RetryClass::Transient),
        ("getaddrinfo ENOTFOUND x", "network_timeout", RetryClass::Transient),
        ("getaddrinfo EAI_AGAIN x", "network", RetryClass::Transient),
        ("container exited with code 137", "container_oom", RetryClass::Transient),
        ("Sandbox start exceeded", "sandbox_start_timeout", RetryClass::Transient),
        ("HTTP/1.1 429", "api_rate_limit", RetryClass::Transient),
        ("status code 408", "http_retryable", RetryClass::Transient),
        ("503 Service Unavailable", "http_retryable", RetryClass::Transient),
        ("API Error: 529", "http_retryable", RetryClass::Transient),
        ("404 Not Found", "http_client_error", RetryClass::Permanent),
        ("validation failed", "validation", RetryClass::Permanent),
        ("Unauthorized", "auth", RetryClass::Permanent),
        ("user not found", "not_found", RetryClass::Permanent),
        ("rate limit exceeded", "api_rate_limit", RetryClass::Transient),
        ("You've hit your limit · resets 3pm (Europe/Berlin)", "api_rate_limit", RetryClass::Transient),
        ("Claude usage limit reached.", "api_rate_limit", RetryClass::Transient),
        ("5-hour limit reached ∙ resets 3pm", "api_rate_limit", RetryClass::Transient),
        ("the connection limit reached its maximum", "unmatched", RetryClass::Unknown),
        ("Credit balance is too low", "auth", RetryClass::Permanent),
        ("connection reset by peer", "network", RetryClass::Transient),
        ("curl: (7) Failed to connect to x.y port 443 after 0 ms: Couldn't connect to server", "network", RetryClass::Transient),
        ("fatal: unable to access 'https://x.y/z.git/': Could not resolve host: x.y", "network", RetryClass::Transient),
        ("wget: unable to resolve host address 'x.y'", "network", RetryClass::Transient),
        ("ssh: connect to host x.y port 22: No route to host", "network", RetryClass::Transient),
        ("dial tcp: lookup x.y: no such host", "network", RetryClass::Transient),
        ("Temporary failure in name resolution", "network", RetryClass::Transient),
        ("could not resolve dependencies for x", "unmatched", RetryClass::Unknown),
        ("timeout of 30s exceeded", "unmatched", RetryClass::Unknown),
        ("request timeout of 30s exceeded", "network", RetryClass::Transient),
        ("timeout at https://x.y", "network", RetryClass::Transient),
        ("processed 429 rows", "unmatched", RetryClass::Unknown),
        ("enotfound", "unmatched", RetryClass::Unknown),
    ] {
        let got = of(text).retry;
        assert_eq!((&*got.reason, got.class), (reason, class), "{text}");
    }
    let test = classify(&Subject { text: "connect ETIMEDOUT", is_test_rule: true, ..Subject::default() });
    assert_eq!((test.category, test.retry.class), (Category::TestFailure, RetryClass::Permanent));
}

#[test]
fn a_line_with_a_pipeline_code_shows_its_class() {
    let got = of("SessionError: [PIPELINE_SESSION_LOAD_FAILED] cannot load").retry;
    assert_eq!((got.class, got.remedy), (RetryClass::Fatal, Remedy::Operator));
    assert_eq!(of("EnvironmentError: PIPELINE_VALIDATION_INVALID_INPUT").retry.class, RetryClass::Fatal);
    assert_eq!(of("ValidationError: PIPELINE_VALIDATION_INVALID_INPUT").retry.class, RetryClass::Permanent);
}

#[test]
fn reset_time_comes_with_the_advice() {
    assert_eq!(of("API Error: 429, retry after 12s").retry.reset_at.as_deref(), Some("12s"));
}
