//! Signatures: which pairs of errors must meet, which must not, and what replaces each part of a text.

use super::*;

fn norm(text: &str) -> String {
    let mut out = String::new();
    normalise(text, &mut out);
    assert_eq!(out, normalise_explained(text).0);
    out
}

#[track_caller]
fn table(rows: &[(&str, &str)]) {
    for (text, want) in rows {
        assert_eq!(norm(text), *want, "{text}");
    }
}

#[test]
fn what_is_the_fault_stays() {
    for text in [
        "error[E0308]: mismatched types",
        "error TS2304: Cannot find name",
        "error CS1002: ; expected",
        "npm ERR! code ERESOLVE",
        "[MY-012487] [InnoDB]",
        "ORA-00942: table or view does not exist",
        "SQLSTATE[42P01]: undefined table",
        "make: *** all] Error 2",
        "exit code 137",
        "HTTP 429",
        "status code 500",
        "signal 11",
        "code 404",
        "(os error 2)",
        "429 Too Many Requests",
        "API Error: 529 overloaded_error",
        "[Errno 13] Permission denied",
        "exited with 1",
        "exit status: 101",
        "\"status\":503",
        "exit code: -1073741819",
        "HRESULT: 0x80070005",
        "(node) DEP0040",
        "CVE-2024-12345",
        "utf8 int32 sha256 x86_64",
        "404 Client Error: Not Found",
        "status code was 418",
        "and/or I/O text/html",
        "App\\Models\\User",
        "java.lang.NullPointerException",
        "E501 line too long",
        "SIGSEGV (signal: 11)",
        "errno=13",
    ] {
        assert_eq!(norm(text), text);
    }
}

#[test]
fn numbers_lines_and_ids() {
    table(&[
        ("a.py:12: x", "a.py:N: x"),
        ("a.py:12", "a.py:N"),
        ("at line 12, column 3", "at line N, column N"),
        ("0x7ffe12ab", "0xN"),
        ("index -3 of 1,234,567", "index N of N"),
        ("50.5% of 3", "N% of N"),
        ("pid 123 [456] thread-7 goroutine 8", "pid N [N] thread-N goroutine N"),
        ("rdd_3_14 task0", "rdd_N_N taskN"),
        ("commit 9f86d08 ok", "commit N ok"),
        ("sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "sha256:N"),
        ("id 550e8400-e29b-41d4-a716-446655440000.", "id UUID."),
        ("Foo@1a2b3c4d", "Foo@N"),
        ("pod foo-7d9f8b6c5-x2x4z died", "pod foo-POD died"),
        ("req_9aK3bX7qZ2", "req_ID"),
        ("key aB3dE5fG7hI9jK1lM3nO5pQ7", "key B64"),
        ("user=root uid=0", "user=USER uid=N"),
        ("foo@1.2.3 @babel/core@7.1.0-beta.1", "foo@VER @babel/core@VER"),
        ("v1.2 1.2.3 1.2", "VER VER N"),
    ]);
}

#[test]
fn a_date_that_breaks_off() {
    table(&[("closed on Sun", "closed on Sun"), ("closed on Sun ", "closed on Sun"), ("closed Mon J", "closed Mon J"), ("Sat", "Sat")]);
}

#[test]
fn times_sizes_and_durations() {
    table(&[
        ("2026-01-02T03:04:05.123Z x", "DATE x"),
        ("2026/01/02 03:04:05 x", "DATE x"),
        ("Jan  2 15:04:05 x", "DATE x"),
        ("Sun, 06 Nov 1994 08:49:37 GMT", "DATE"),
        ("06/Nov/1994:08:49:37 +0000]", "DATE]"),
        ("at 12:34:56,789 x", "at DATE x"),
        ("20260102T030405Z", "DATE"),
        ("took 12ms, 3.4s or 1m20s", "took DUR, DUR or DUR"),
        ("after 30 seconds", "after DUR"),
        ("lifetime <1 sec", "lifetime DUR"),
        ("in 00:39.", "in DUR."),
        ("88:17 error", "N:N error"),
        ("12 MB 3KiB 95.0 B", "SIZE SIZE SIZE"),
        ("2034 bytes (1.98 KB) sent", "SIZE sent"),
        ("Mon Jan 5 10:00:00 2026 x", "DATE x"),
        ("may 3 fail", "DATE fail"),
        ("maybe 3", "maybe N"),
    ]);
}

#[test]
fn paths_hosts_and_urls() {
    table(&[
        ("open /home/bob/x/data.csv: gone", "open data.csv: gone"),
        ("C:\\Users\\bob\\a.txt", "a.txt"),
        ("C:/a/b.txt", "b.txt"),
        ("\\\\srv\\share\\x.doc", "x.doc"),
        ("src\\main.rs", "main.rs"),
        ("./a/b", "b"),
        ("src/main.rs:3:5", "main.rs:N:N"),
        ("file:///a/b/c.js:12:3", "c.js:N:N"),
        ("(https://api.x.com:80/v1/users?id=1)", "(https://…/users)"),
        ("http://x.com", "http://…"),
        ("'/tmp/xyz123'", "'TMP'"),
        ("/tmp/tmpab12cd9x/foo.py", "foo.py"),
        ("/tmp/pytest-of-bob/pytest-1/x", "x"),
        ("tmpabcd_efg", "TMP"),
        ("127.0.0.1:5432", "IP:N"),
        ("fe80::1 ::1 [::ffff:1]:80", "IP IP [IP]:N"),
        ("db.example.com:5432", "HOST:N"),
        ("web.prod.mycorp:80", "HOST:N"),
        ("getaddrinfo ENOTFOUND db", "getaddrinfo ENOTFOUND HOST"),
        ("to a.b@example.com", "to USER@HOST"),
        ("foo.test.ts:12", "foo.test.ts:N"),
        ("logger.info x", "logger.info x"),
        ("/var/log/", "log"),
    ]);
}

#[test]
fn one_line_without_control_characters() {
    table(&[
        ("a\nb\tc  d ", "a\\nb c d"),
        ("a\u{1b}[K\u{202e}b", "a\\u{1b}[K\\u{202e}b"),
        ("naïve ‘/a/b.R’ café", "naïve ‘b.R’ café"),
        ("", ""),
        ("µ 3µs", "µ DUR"),
        ("\u{85}x", "\\u{85}x"),
    ]);
}

#[test]
fn every_replacement_is_explained() {
    let (text, notes) = normalise_explained("a.py:12 at 10.0.0.1");
    assert_eq!(text, "a.py:N at IP");
    let said: Vec<_> = notes.iter().map(|n| (n.at, n.from.as_str(), n.to.as_str(), n.why)).collect();
    assert_eq!(said, [(5, "12", "N", "number"), (11, "10.0.0.1", "IP", "IPv4 address")]);
    let (_, notes) = normalise_explained(" exit code 3 after 3 s");
    let said: Vec<_> = notes.iter().map(|n| (n.at, n.from.as_str(), n.to.as_str(), n.why)).collect();
    assert_eq!(said, [(11, "3", "3", "the fault itself"), (19, "3 s", "DUR", "duration")]);
}

#[test]
fn pairs_that_must_meet() {
    for (a, b) in [
        ("connect ECONNREFUSED 127.0.0.1:5432", "connect ECONNREFUSED 10.2.3.4:6000"),
        ("getaddrinfo ENOTFOUND db1.example.com", "getaddrinfo ENOTFOUND api.other.org"),
        ("2026-01-02 03:04:05 boom", "2025-12-31 23:59:59 boom"),
        ("open '/home/a/x.csv'", "open '/srv/b/c/x.csv'"),
        ("seed 12345: failed", "seed 99: failed"),
        ("a.py:1: boom", "lib/a.py:999: boom"),
        ("pid 1 died", "pid 31337 died"),
        ("took 12ms", "took 3.4s"),
        ("/tmp/tmpab12cd9x gone", "/tmp/tmpzz99yy88 gone"),
        ("job 550e8400-e29b-41d4-a716-446655440000", "job 123e4567-e89b-12d3-a456-426614174000"),
        ("GET https://a.com/x/y failed", "GET https://b.org:8443/z/y failed"),
        ("C:\\a\\x.txt missing", "/b/x.txt missing"),
        ("listen on port 80", "listen on port 8080"),
    ] {
        assert_eq!(norm(a), norm(b));
    }
}

#[test]
fn pairs_that_must_not_meet() {
    for (a, b) in [
        ("cannot open file", "cannot close file"),
        ("connect ECONNREFUSED 1.2.3.4", "connect ETIMEDOUT 1.2.3.4"),
        ("HTTP 429", "HTTP 500"),
        ("HTTP/1.1 404", "HTTP/1.1 503"),
        ("error[E0308]: x", "error[E0277]: x"),
        ("error TS2304: x", "error TS2345: x"),
        ("exit code 1", "exit code 137"),
        ("exited with 1", "exited with 2"),
        ("make: *** [x] Error 1", "make: *** [x] Error 2"),
        ("signal 11", "signal 6"),
        ("(os error 2)", "(os error 13)"),
        ("open a.csv", "open b.csv"),
        ("ORA-00942", "ORA-00001"),
        ("429 Too Many Requests", "503 Service Unavailable"),
        ("int32 overflow", "int64 overflow"),
        ("SQLSTATE[42P01]", "SQLSTATE[23505]"),
        ("No module named 'a'", "No module named 'b'"),
    ] {
        assert_ne!(norm(a), norm(b));
    }
}

/// Tokens that extend beyond their end (units, groups, dates) in every context: no panic, no control character, idempotent enough.
#[test]
fn any_order_of_odd_parts_is_survived() {
    const PARTS: &[&str] = &[
        "12",
        ",345",
        ":",
        "/",
        "\\",
        ".",
        "-",
        "MB",
        " ",
        "(",
        ")",
        "é",
        "‘",
        "\u{85}",
        "://",
        "a",
        "0x",
        "::",
        "@",
        "Jan",
        "2026-01-02",
        "T03:04:05",
        "%",
        "=",
        "user",
        "tmp",
        "file",
        "Z",
        "\n",
        "1.2.3",
        "<",
        "µs",
        "C:\\",
        "HTTP/",
        "error ",
        "x86_64",
    ];
    let mut state = 7u32;
    for _ in 0..20_000 {
        let mut text = String::new();
        for _ in 0..8 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            text.push_str(PARTS[(state >> 16) as usize % PARTS.len()]);
        }
        assert!(!norm(&text).contains(char::is_control), "{text:?}");
    }
}

/// Each of these once took quadratic time: a text of this size would take minutes.
#[test]
fn the_time_is_linear_in_the_text() {
    for part in [".", "1.", "1:", "a:", "a.1", "1,234", "Sun ", "12 ", "::", "aaaaaaaa-", "0x", "é.", "(", "/"] {
        for end in ["", "É", "X", "..."] {
            let text = part.repeat((100 << 10) / part.len()) + end;
            assert!(norm(&text).len() <= text.len() * 4);
            assert_eq!(sign(None, &text, &[], "", &[]).0.as_str().len(), 32);
        }
    }
}

/// Tests that fail with the same words are different faults; seen loosely, they are one.
#[test]
fn the_name_of_a_test_counts() {
    let of = |test| signature(&Fault { test, message: "expect(received).toBe(expected)", ..Fault::default() }, &[], &Frames::default());
    let (one, other, run_again) = (of(Some("adds up")), of(Some("parses dates")), of(Some("adds up")));
    assert!(one.0 != other.0 && one.1 == other.1 && one == run_again);
    assert_eq!(of(Some("takes row 17")), of(Some("takes row 18")));
    assert_eq!(of(None).1, one.1);
}

fn frame<'a>(function: &'a str, file: &'a str, line: u32, in_app: bool) -> Frame<'a> {
    Frame { function, file, line, column: 1, in_app }
}

fn sign(language: Option<&str>, kind: &str, chain: &[Link], message: &str, frames: &[Frame]) -> (Hex, Hex) {
    signature(&Fault { language, test: None, kind, message }, chain, &frames.iter().copied().collect())
}

fn link(kind: &str, message: &str) -> Link {
    Link { kind: kind.into(), message: message.into() }
}

#[test]
fn traces_meet_on_another_host_path_and_line() {
    let a = sign(Some("python"), "ValueError", &[], "bad 3", &[frame("f", "/a/x.py", 1, true), frame("g", "/usr/lib/y.py", 2, false)]);
    let b = sign(Some("python"), "ValueError", &[], "bad 77", &[frame("g", "/opt/lib/y.py", 9, false), frame("f", "C:\\b\\x.py", 5, true)]);
    assert_eq!(a, b);
    assert_eq!((a.0.len(), a.1.len()), (32, 32));
}

#[test]
fn traces_differ_by_language_type_word_root_and_function() {
    let frames = [frame("f", "x.py", 1, true)];
    let base = sign(Some("python"), "ValueError", &[], "bad", &frames);
    let chain = [link("ValueError", "bad"), link("OSError", "root")];
    for (other, same_loose) in [
        (sign(Some("ruby"), "ValueError", &[], "bad", &frames), true),
        (sign(Some("python"), "KeyError", &[], "bad", &frames), false),
        (sign(Some("python"), "ValueError", &[], "worse", &frames), false),
        (sign(Some("python"), "ValueError", &chain, "bad", &frames), true),
        (sign(Some("python"), "ValueError", &[], "bad", &[frame("g", "x.py", 1, true)]), true),
        (sign(Some("python"), "ValueError", &[], "bad", &[frame("f", "y.py", 1, true)]), true),
    ] {
        assert_ne!(base.0, other.0);
        assert_eq!(base.1 == other.1, same_loose);
    }
}

#[test]
fn generated_names_and_recursion_do_not_count() {
    for (a, b) in [
        ("core::f::h0123456789abcdef", "core::f::hfedcba9876543210"),
        ("lambda$run$3", "lambda$run$14"),
        ("Outer$1.call", "Outer$2.call"),
        ("main.(*T).f(0xc000012345, 0x1)", "main.(*T).f(0xc000099999, 0x2)"),
        ("main.main.func1", "main.main.func2"),
        ("shop::Cart::total(int, Row const&) const", "shop::Cart::total"),
        ("(anonymous namespace)::walk(std::function<void (int)>)", "(anonymous namespace)::walk"),
    ] {
        let of = |name| sign(None, "E", &[], "m", &[frame(name, "x", 1, true)]).0;
        assert_eq!(of(a), of(b), "{a}");
    }
    let deep = |depth| sign(None, "E", &[], "m", &vec![frame("f", "x", 1, true); depth]).0;
    assert_eq!(deep(3), deep(17));
}

#[test]
fn a_plain_line_is_a_message_without_a_type() {
    assert_eq!(sign(None, "", &[], "boom 1", &[]), sign(None, "", &[], "boom 2", &[]));
}

#[test]
fn a_plain_file_is_its_own_normal_form() {
    let stems = ["main", "user_service", "_x", "e", "deadbeefdeadbee", "deadbeefdeadbeef", "App", "tmpabcdefgh", "pytest", "mon", "a-b", "x2", ""];
    let ends = [".rs", ".py", ".java", ".com", ".dev", ".tsx", ".local", ".R", ".", "", ".mod.rs", ".tar_gz", ".so2"];
    let mut plain = 0;
    for name in stems.iter().flat_map(|stem| ends.iter().map(move |end| format!("{stem}{end}"))) {
        for folder in ["", "/srv/app/", "C:\\app\\", "https://h/a.js?from=/", "/srv/what?/"] {
            let path = folder.to_owned() + &name;
            if let Some(found) = plain_name(&path) {
                plain += 1;
                assert_eq!((found, norm(found)), (file_name(&path), found.to_owned()), "{path}");
            }
        }
    }
    assert!(plain > 30, "{plain}");
}

#[test]
fn file_names_of_paths_and_urls() {
    for (path, name) in [
        ("/srv/app/x.py", "x.py"),
        ("C:\\app\\x.cs", "x.cs"),
        ("x.py", "x.py"),
        ("/srv/app/", "app"),
        ("//", "//"),
        ("", ""),
        ("https://h/a.js?v=1#x", "a.js"),
        ("a.js?v=1", "a.js?v=1"),
    ] {
        assert_eq!(file_name(path), name, "{path}");
    }
}
