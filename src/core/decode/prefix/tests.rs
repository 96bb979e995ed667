//! Lines as programs print them, and what their prefixes say.

use super::*;

const NOW: Timestamp = Timestamp(1_795_000_000_000_000); // 2026-11-18

/// Line, level, key, body, message; `~` stands for "no time".
pub(super) type Row = (&'static str, Option<Level>, &'static str, &'static str, &'static str);

pub(super) fn check(rows: &[Row]) {
    for (line, level, key, body, message) in rows {
        let timeless = line.starts_with('~');
        let line = line.strip_prefix('~').unwrap_or(line);
        let got = prefix(line.as_bytes(), NOW);
        let found = got.key.map_or("", |(a, b)| &line[a..b]);
        let seen = (got.level, found, &line[got.body..], &line[got.message..], got.time.is_none());
        assert_eq!(seen, (*level, *key, *body, *message, timeless), "{line}");
    }
}

pub(super) const E: Option<Level> = Some(Level::Error);
pub(super) const W: Option<Level> = Some(Level::Warn);
const I: Option<Level> = Some(Level::Info);
const D: Option<Level> = Some(Level::Debug);
const F: Option<Level> = Some(Level::Fatal);

/// Frames of Lua's calls into C, and ESPHome's configuration: `C` is no level there.
#[test]
fn a_c_that_is_no_level() {
    check(&[
        ("~[C]: in function 'error'", None, "", "[C]: in function 'error'", "[C]: in function 'error'"),
        ("~[C][store:012]: till", None, "", "[C][store:012]: till", "[C][store:012]: till"),
    ]);
}

/// Names of loggers and threads before the time, and vSphere's thread with its empty context.
#[test]
fn names_before_a_level() {
    check(&[
        ("(shop.store.Till): 2021-04-27 06:25:32,122 ERROR (User|user) gone", E, "", "ERROR (User|user) gone", "(User|user) gone"),
        ("Images: 139853338433792: 2021-05-19 17:36:35,675 images:769 ERROR gone", E, "", "ERROR gone", "gone"),
        ("~Started: 2021-05-19", None, "", "Started: 2021-05-19", "Started: 2021-05-19"),
        ("2022-06-01T13:43:59.791Z [main [] ERROR  com.acme.Till opId=] gone", E, "", "gone", "gone"),
        ("2022-06-01T13:43:59.791Z [main null ERROR com.acme.Till opId=] gone", E, "", "gone", "gone"),
        ("2022-06-01T13:43:59.791Z [the error handler] gone", None, "", "[the error handler] gone", "[the error handler] gone"),
    ]);
}

/// Mozilla's mach: minutes and seconds in eight columns.
#[test]
fn minutes_since_the_start() {
    check(&[
        ("~ 0:12.34 Error: gone", None, "", "Error: gone", "Error: gone"),
        ("~10:02.11   File", None, "", "  File", "  File"),
        ("~ 0:12.34", None, "", "", ""),
        ("~ 0:12.345 x", None, "", " 0:12.345 x", " 0:12.345 x"),
        ("~  0:12.34 x", None, "", "  0:12.34 x", "  0:12.34 x"),
    ]);
}

/// rsyslog's files: only the host tells a program without a process number from the words of a message.
#[test]
fn programs_without_a_number() {
    check(&[
        ("2026-11-10T08:25:17.123456+00:00 web-1 shopd: gone", None, "shopd", "gone", "gone"),
        ("2026-11-10T08:25:17.123456+00:00 web-1 shopd:   File", None, "shopd", "  File", "  File"),
        ("2026-11-10T08:25:17+01:00 db.acme.com CRON: gone", None, "CRON", "gone", "gone"),
        ("2026-11-10T08:25:17.1+02:00 web kernel: [   12.345678] gone", None, "kernel", "gone", "gone"),
        ("2026-11-10T08:25:17.123456+00:00 web shopd: gone", None, "", "web shopd: gone", "web shopd: gone"),
        ("2026-11-10T08:25:17.123456+00:00 web-1 ValueError: gone", None, "", "web-1 ValueError: gone", "web-1 ValueError: gone"),
        ("2026-11-10T08:25:17.123456+00:00 apt-get failed: gone", None, "", "apt-get failed: gone", "apt-get failed: gone"),
        ("2026-11-10T08:25:17+00:00 --- FAIL: TestTill (0.00s)", None, "", "--- FAIL: TestTill (0.00s)", "--- FAIL: TestTill (0.00s)"),
        ("2026-11-10T08:25:17.123456Z web-1 shopd: gone", None, "", "web-1 shopd: gone", "web-1 shopd: gone"),
        ("2026-11-10 08:25:17.123456+00:00 web-1 shopd: gone", None, "", "web-1 shopd: gone", "web-1 shopd: gone"),
    ]);
}

#[test]
fn times_alone() {
    check(&[
        (
            "2021-05-27T10:46:33.875+0300 [DEBUG] plugin.terraform-provider-x_v1: panic: boom",
            None,
            "plugin.terraform-provider-x_v1",
            "panic: boom",
            "panic: boom",
        ),
        (
            "2021-05-27T10:46:33.875+0300 [DEBUG] provider.terraform-provider-x_v1: \t/srv/x.go:9 +0x1",
            None,
            "provider.terraform-provider-x_v1",
            "\t/srv/x.go:9 +0x1",
            "\t/srv/x.go:9 +0x1",
        ),
        ("2023-09-21T17:21:33.5637201Z Post job", None, "", "Post job", "Post job"),
        ("2023-09-21T17:21:33.5637201Z     at a.b (c.js:1:2)", None, "", "    at a.b (c.js:1:2)", "    at a.b (c.js:1:2)"),
        ("2023-09-21T17:21:33.5637201Z Error in foo(): bar", None, "", "Error in foo(): bar", "Error in foo(): bar"),
        ("2023-09-21T17:21:33.5637201Z ##[error]Process exited", E, "", "##[error]Process exited", "Process exited"),
        ("2023-09-21T17:21:33.5637201Z 2024-01-02 10:00:00 ERROR x", E, "", "ERROR x", "x"),
        ("[2021-05-21T21:58:57.022497Z]", None, "", "", ""),
        ("(2022-06-14  0:31:43): [pam] x", None, "", "[pam] x", "[pam] x"),
        ("\"2026-01-01 10:00:00\" x", None, "", "x", "x"),
        ("1695668091.895450 execve(x)", None, "", "execve(x)", "execve(x)"),
        ("@400000004a3e2ad42a3b1c2d status: x", None, "", "status: x", "status: x"),
        ("2025-04-24 19:52:02 - fraud-detection - Consumed", None, "", "fraud-detection - Consumed", "fraud-detection - Consumed"),
        ("2024-01-01T00:00:00.123456Z 01E   x", None, "", "  x", "  x"),
        ("~[   12.345678] usb 1-1: x", None, "", "usb 1-1: x", "usb 1-1: x"),
        ("~10:00:00 web.1  | x", None, "web.1", "x", "x"),
        ("~[10:00:00] x", None, "", "x", "x"),
        ("~[   18s] ____ test_a ____", None, "", "____ test_a ____", "____ test_a ____"),
        ("~[   18s] make[1]: x", None, "", "make[1]: x", "make[1]: x"),
        ("~85.28 error[E0308]: x", None, "", "error[E0308]: x", "error[E0308]: x"),
        ("~502.7 ", None, "", "", ""),
        ("~0.345    --> a.rs:3:4", None, "", "   --> a.rs:3:4", "   --> a.rs:3:4"),
        ("~85.28 12.40 x", None, "", "85.28 12.40 x", "85.28 12.40 x"),
        ("~185.28 x", None, "", "185.28 x", "185.28 x"),
    ]);
}

/// Two blanks after a date: what a program printed, unless a logger's fields follow.
#[test]
fn padded_by_two_blanks() {
    check(&[
        ("2026-11-20 10:00:00.123456789  at till", None, "", "at till", "at till"),
        ("2026-11-20 10:00:00.123456789      at till", None, "", "     at till", "     at till"),
        ("Nov 20 10:00:00 AM  Traceback", None, "", "Traceback", "Traceback"),
        ("2026-11-20 10:00:00.123  INFO 7 --- [main] till", I, "", "INFO 7 --- [main] till", "till"),
        ("2026-11-20 10:00:00  [main] ERROR till - gone", E, "", "ERROR till - gone", "gone"),
        ("2026-11-20 10:00:00  src/till.c:3:5: error: gone", None, "", "src/till.c:3:5: error: gone", "src/till.c:3:5: error: gone"),
        ("2026-11-20 10:00:00 till[20261119t095501]    File", None, "till[20261119t095501]", "  File", "  File"),
        ("2026-11-20T10:00:00Z 2026-11-20 10:00:00  Traceback", None, "", "Traceback", "Traceback"),
        ("~[default0]:  File", None, "default0", "  File", "  File"),
    ]);
}

/// No head makes reading deeper, however often it stands there.
#[test]
fn heads_without_end() {
    for head in ["<3.3> ", "<daemon.err> ", "2026-11-20 10:00:00 ", "[worker 3] ", "10:00:00  ", "web-1 | ", "[x: "] {
        let line = "Nov 20 10:00:00 ".to_owned() + &head.repeat(100_000) + "till: gone";
        assert!(prefix(line.as_bytes(), NOW).body > 0, "{head}");
    }
}

#[test]
fn indented() {
    check(&[
        ("      2026-11-02T10:00:00Z [ERROR] x: y", E, "", "[ERROR] x: y", "x: y"),
        ("    2026/11/02 21:07:56 [ERR] http: x", E, "", "[ERR] http: x", "http: x"),
        ("~  17:13:47.808 [error] x", E, "", "[error] x", "x"),
        ("~  17:13:47.808 [till] x", None, "", "  17:13:47.808 [till] x", "  17:13:47.808 [till] x"),
        ("~                2026-11-02T10:00:00Z x", None, "", "                2026-11-02T10:00:00Z x", "                2026-11-02T10:00:00Z x"),
    ]);
}

#[test]
fn syslog() {
    check(&[
        ("Apr 28 04:02:03 host prog[123]:   x: y", None, "prog[123]", "  x: y", "  x: y"),
        ("Apr 28 04:02:03 tstack-centos5 syslogd 1.4.1: restart.", None, "syslogd 1.4.1", "restart.", "restart."),
        ("Jan  4 10:23:26 Tims-Air Setup Assistant[1173]: x", None, "Setup Assistant[1173]", "x", "x"),
        ("Mar  4 19:25:13 UDM-Pro user.warn kernel: [ 1170.826385] x", W, "kernel", "x", "x"),
        ("Feb 28 14:25:54 UDM-Pro daemon.err mcad: failed", E, "mcad", "failed", "failed"),
        ("Apr 28 04:02:03 --- FAIL: TestTill (0.00s)", None, "", "--- FAIL: TestTill (0.00s)", "--- FAIL: TestTill (0.00s)"),
        ("Apr 28 04:02:03 TypeError: foo bar: x", None, "", "TypeError: foo bar: x", "TypeError: foo bar: x"),
        ("<134>Jan 15 10:00:00 web01 nginx[1]: a b c [d] e", I, "nginx[1]", "a b c [d] e", "a b c [d] e"),
        ("<78>1 2017-04-27T08:09:01+02:00 nextcloud CRON 1472 - -  (root) CMD", I, "CRON 1472", " (root) CMD", " (root) CMD"),
        ("<11>1 2017-04-27T08:09:01Z h app - ID1 [a@1 b=\"c\"][d@2] ERROR x", E, "app -", "ERROR x", "x"),
        ("2022-08-27T14:22:01.613Z s.x NSX 3106 - [abc@6876 comp=\"e\" level=\"INFO\" s=\"f\"] m", I, "NSX 3106", "m", "m"),
        ("~<3>[   12.345678] oops", E, "", "oops", "oops"),
        ("2024-01-01T00:00:00.123456+00:00 host prog[7]: ERROR: x", E, "prog[7]", "ERROR: x", "x"),
    ]);
}

#[test]
fn web_servers_and_databases() {
    check(&[
        ("[Thu Jun 27 11:55:44.569531 2013] [core:error] [pid 1:tid 2] x", E, "", "[core:error] [pid 1:tid 2] x", "x"),
        ("[10/Feb/2012:16:41:07 -0500] [error] x", E, "", "[error] x", "x"),
        ("2026/11/10 10:00:00 [error] 123#0: *5 open() failed", E, "", "[error] 123#0: *5 open() failed", "open() failed"),
        ("E [04/Nov/2010:17:37:40 -0400] StartListening: x", E, "", "StartListening: x", "StartListening: x"),
        ("2025-08-16 13:02:58.095 CEST [885178] ERROR:  bad", E, "", "ERROR:  bad", "bad"),
        ("2025-08-16 13:02:58.095 CEST [885178] DETAIL:  Token", I, "", "DETAIL:  Token", "Token"),
        ("2017-09-06 08:40:10 UTC [20]: [1-1] user=,db=,app=,client= LOG:  database", I, "", "LOG:  database", "database"),
        ("2020-03-11 20:40:43 CET::@:[12760]:LOG:  starting", I, "", "LOG:  starting", "starting"),
        ("2020-08-06T14:25:02.835618Z 0 [ERROR] [MY-012487] [InnoDB] x", E, "", "[ERROR] [MY-012487] [InnoDB] x", "x"),
        ("2020-08-06T14:25:02.835618Z 0 [Note] DDL", I, "", "[Note] DDL", "DDL"),
        ("123:M 01 Jan 2024 10:00:00.000 # low", W, "", "low", "low"),
    ]);
}

#[test]
fn chromium() {
    check(&[
        ("~[1:2:1120/131323.1:ERROR:gpu.cc(12)] no GPU", E, "", "no GPU", "no GPU"),
        ("~[7:7:1120/131323.1:INFO:CONSOLE(1)] \"Uncaught TypeError: x\"", I, "", "\"Uncaught TypeError: x\"", "\"Uncaught TypeError: x\""),
    ]);
}

#[test]
fn loggers() {
    check(&[
        ("2026-01-01 10:00:00,123 ERROR [main] c.a.Foo - msg", E, "", "ERROR [main] c.a.Foo - msg", "msg"),
        ("2026-01-01 10:00:00,123 [main] ERROR c.a.Foo - msg", E, "", "ERROR c.a.Foo - msg", "msg"),
        ("2026-01-01 10:00:00 ERROR java.lang.Foo$BarException: x", E, "", "ERROR java.lang.Foo$BarException: x", "java.lang.Foo$BarException: x"),
        (
            "2025-01-23T03:42:36.681-0800  INFO 125873 --- [myapp] [      main] o.s.Foo    : msg",
            I,
            "",
            "INFO 125873 --- [myapp] [      main] o.s.Foo    : msg",
            "msg",
        ),
        ("~ERROR:root:msg", E, "", "ERROR:root:msg", "msg"),
        ("2026-01-01 10:00:00 - name - ERROR - msg", E, "", "ERROR - msg", "msg"),
        ("[2022-06-02T10:45:15.969Z tomcat--188     ERROR com.x.Y] msg", E, "", "msg", "msg"),
        ("[2026-01-01T00:00:00Z ERROR mod::x] msg", E, "", "msg", "msg"),
        ("2026-01-01T00:00:00.123456Z ERROR mod::x: msg", E, "", "ERROR mod::x: msg", "msg"),
        ("E, [2024-06-26T17:00:04.497736 #126554] ERROR -- : msg", E, "", "ERROR -- : msg", "msg"),
        ("E, [2024-06-26T17:00:04.497736 #126554] ERROR -- prog: msg", E, "", "ERROR -- prog: msg", "msg"),
        ("E0517 15:04:22.619632 1234 file.cc:253] msg", E, "", "msg", "msg"),
        ("04-23 09:17:27.871  123  456 E Tag: \tat a.b", E, "123  456", "\tat a.b", "\tat a.b"),
        ("~E/Tag( 123): msg", E, "Tag( 123)", "msg", "msg"),
        ("2022-06-02T11:58:12.193Z error vpxd[45715] [Originator@6876 sub=x] msg", E, "", "error vpxd[45715] [Originator@6876 sub=x] msg", "msg"),
        ("2014-01-17T04:55:50.347Z [7F03ECE76700 verbose 'Default' opID=2] [Vpx] Invoke", D, "", "[Vpx] Invoke", "Invoke"),
        ("2015-04-01T22:22:35.038Z cpu22:44012977)ALERT: This", F, "", "ALERT: This", "This"),
        ("2014-10-28 10:42:22.772 23623 INFO neutron.wsgi [req-4 None] 10.1", I, "", "INFO neutron.wsgi [req-4 None] 10.1", "10.1"),
        (
            "2023-07-18T20:10:41.345-0700 | DEBUG    | opId-2 | cls-4 | Impl     | Invalidated 0",
            D,
            "",
            "DEBUG    | opId-2 | cls-4 | Impl     | Invalidated 0",
            "Invalidated 0",
        ),
        ("INFO   | jvm 1    | 2015/04/28 18:40:00 | 2015-04-28 18:40:00,077 [W-8] ERROR com.x.Y - queue", E, "", "ERROR com.x.Y - queue", "queue"),
        ("2012-07-02 10:22:40,672:DEBUG:foo bar", D, "", "DEBUG:foo bar", "foo bar"),
        ("2022-06-01T13:23:25.515 [2376]DEBUG:vmware.x.y:method", D, "", "DEBUG:vmware.x.y:method", "method"),
        (
            "2025-04-24T22:09:20.856Z\terror\tinternal/q.go:128\tExporting failed.\t{}",
            E,
            "",
            "error\tinternal/q.go:128\tExporting failed.\t{}",
            "Exporting failed.\t{}",
        ),
        ("2025-04-24T22:09:20.854Z\tinfo\tMetrics\t{\"a\": 1}", I, "", "info\tMetrics\t{\"a\": 1}", "Metrics\t{\"a\": 1}"),
        ("2024-04-23 09:24:31,484 [myid:] - INFO  [W[myid=3]:o.a.x] - Note", I, "", "INFO  [W[myid=3]:o.a.x] - Note", "Note"),
        ("17/06/09 20:10:52 INFO executor.Backend: Got", I, "", "INFO executor.Backend: Got", "Got"),
        ("2024-01-01T10:00:00.123Z error: boom", E, "", "error: boom", "boom"),
        ("20260327 11:34:21.908 - INFO - + START", I, "", "INFO - + START", "+ START"),
        // What a command printed, in mozharness' log; what a test runner draws, after Jenkins' clock.
        ("~10:11:12     INFO -      import nope", None, "", "    import nope", "    import nope"),
        ("~10:11:12     INFO - # TBPL FAILURE #", I, "", "INFO - # TBPL FAILURE #", "# TBPL FAILURE #"),
        ("~10:11:12  ____ ERROR collecting a.py ____", None, "", "____ ERROR collecting a.py ____", "____ ERROR collecting a.py ____"),
        (
            "2026-03-04T10:11:03.1234567Z make[3]: *** No rule to make target 'x'.  Stop.",
            None,
            "",
            "make[3]: *** No rule to make target 'x'.  Stop.",
            "make[3]: *** No rule to make target 'x'.  Stop.",
        ),
        ("~10:11:12  - hook id: flake8", None, "", "- hook id: flake8", "- hook id: flake8"),
        ("~[00:01:12] src/a.c:5:5: note: each", None, "", "src/a.c:5:5: note: each", "src/a.c:5:5: note: each"),
        ("[2026-03-04T10:11:02.123Z] ::error file=a.js::gone", None, "", "::error file=a.js::gone", "::error file=a.js::gone"),
        ("~[00:01:12] - hook id: flake8", None, "", "- hook id: flake8", "- hook id: flake8"),
        ("[2026-03-04T10:11:02.123Z] | FAIL F1000", None, "", "| FAIL F1000", "| FAIL F1000"),
        ("~10:11:12  ERROR store - boom", E, "", "ERROR store - boom", "boom"),
        ("~10:11:12  # ERROR: 0", None, "", "# ERROR: 0", "# ERROR: 0"),
        ("2026-01-01 10:00:00.123 | ERROR    | __main__:main:12 - boom", E, "", "ERROR    | __main__:main:12 - boom", "boom"),
        ("~[10:00:00 ERR] boom", E, "", "boom", "boom"),
        ("[2024-01-01 10:00:00 +0000] [12] [ERROR] boom", E, "", "[ERROR] boom", "boom"),
    ]);
}

#[test]
fn levels_at_the_start() {
    check(&[
        ("~[ERROR] x", E, "", "[ERROR] x", "x"),
        ("~[debug] this is", D, "", "[debug] this is", "this is"),
        ("~ERROR: x", E, "", "ERROR: x", "x"),
        ("~ERROR: [Errno 2] x", E, "", "ERROR: [Errno 2] x", "[Errno 2] x"),
        ("~Warning: x", W, "", "Warning: x", "x"),
        ("~critical: x", F, "", "critical: x", "x"),
        ("~ERROR x", E, "", "ERROR x", "x"),
        ("~ERROR foo.c: No such file", E, "", "ERROR foo.c: No such file", "foo.c: No such file"),
        ("~<error> x", E, "", "<error> x", "x"),
        ("~|ERROR| x", E, "", "|ERROR| x", "x"),
        ("~(ERROR) x", E, "", "(ERROR) x", "x"),
        ("~level=error x", E, "", "level=error x", "x"),
        ("~[INFO:choose_repo] x", I, "", "[INFO:choose_repo] x", "x"),
    ]);
    for line in [
        "",
        "Error: foo",
        "error: foo",
        "fatal: not a git repository",
        "panic: x",
        "Error in foo",
        "ERROR_LOG=x",
        "ERROR = 3",
        "error foo",
        "Note that",
        "[error](http://x)",
        "<error>x</error>",
        "#[error]",
        "INFO://x",
        "errors: 0",
        "  ERROR: 3,",
    ] {
        let got = prefix(line.as_bytes(), NOW);
        assert_eq!(got, Prefix::default(), "{line}");
    }
}

#[test]
fn names_before_a_message() {
    for before in ["2026-11-20 09:24:31,484 - shop.flags - INFO - ", "2026-11-20T09:24:31Z [main] INFO ", "Nov 20 09:24:31 host app[1]: ERROR "] {
        assert!(has_name(before.as_bytes()), "{before}");
    }
    for before in ["", "2026-11-20T09:24:31.1234567Z [INFO] [stdout] ", "Fri, 20 Nov 2026 09:24:31 UTC ERROR ", "build\t20-Nov-2026 09:24:31\t[ERROR] "] {
        assert!(!has_name(before.as_bytes()), "{before}");
    }
}

#[test]
fn writers() {
    check(&[
        ("~service-1  |     at x", None, "service-1", "    at x", "    at x"),
        ("~service_1 | ERROR: x", E, "service_1", "ERROR: x", "x"),
        ("~caddy  | {\"a\":1}", None, "caddy", "{\"a\":1}", "{\"a\":1}"),
        ("~web-1  |", None, "web-1", "", ""),
        ("~web-1  | 1 + 2", None, "web-1", "1 + 2", "1 + 2"),
        ("~web-1  | 6 - x", None, "web-1", "6 - x", "6 - x"),
        ("~web-1  |     1", None, "web-1", "    1", "    1"),
        ("~[worker 3] x", None, "worker 3", "x", "x"),
        ("~(thread 7) x", None, "thread 7", "x", "x"),
        ("~[rank0]: Traceback", None, "rank0", "Traceback", "Traceback"),
        ("~[pod/a-1/b] [worker 3] x", None, "pod/a-1/b] [worker 3", "x", "x"),
        ("~web:build: error TS1", None, "web:build", "error TS1", "error TS1"),
        ("~@acme/web: error TS1", None, "@acme/web", "error TS1", "error TS1"),
        ("~packages/web build: error TS1", None, "packages/web build", "error TS1", "error TS1"),
        ("~@acme/web build: error TS1", None, "@acme/web build", "error TS1", "error TS1"),
        ("~packages/web is: done", None, "", "packages/web is: done", "packages/web is: done"),
        ("~@acme/web is: done", None, "", "@acme/web is: done", "@acme/web is: done"),
        ("~#12 3.456   at x", None, "#12", "  at x", "  at x"),
        ("~#12 ERROR: x", None, "", "#12 ERROR: x", "#12 ERROR: x"),
        ("~#0  main (a.dart:3:5)", None, "", "#0  main (a.dart:3:5)", "#0  main (a.dart:3:5)"),
        ("2024-01-01 10:00:00,123 [Thread-4] ERROR a.b.C - x", E, "", "ERROR a.b.C - x", "x"),
        ("2024-01-01T10:00:00.1234567Z [worker 3] x", None, "worker 3", "x", "x"),
        ("2024-01-01T10:00:00.1234567Z web-1  | 2024-01-01 10:00:01 x", None, "web-1", "x", "x"),
    ]);
    let mpi = prefix(b"[1,0]<stderr>: x", NOW);
    assert_eq!((mpi.io, mpi.key, mpi.body), (Some(Io::Stderr), Some((1, 4)), 15));
    let rest = |line: &'static [u8]| &line[prefix(line, NOW).body..];
    assert_eq!(rest(b"[1,0]<stderr>:  File \"a.py\""), b"  File \"a.py\"", "before version 5 no blank follows the colon");
    assert_eq!(rest(b"[1,0]<stderr>:\tat a"), b"\tat a");
    assert_eq!(rest(b"[node@1,0]<stderr>:   x"), b"  x");
    assert_eq!(rest(b"10:00:00  x"), b"x", "Jenkins");
    assert_eq!(rest(b"10:00:00      at x"), b"    at x");
    assert_eq!(rest(b"[test:12]   x"), b"  x", "Drone");
    assert_eq!(rest(b"[main.c:12] x"), b"[main.c:12] x", "a place");
    assert_eq!(rest(b"(load pid=12)"), b"", "the blank was cut off");
    assert_eq!(rest(b"2026-11-22T09:14:01.123456Z 01O"), b"", "the blank was cut off");
    for line in [
        "3 | mod b;",
        "  | ExceptionGroup",
        "LL | mod b;",
        "| a | b |",
        "Name  | Type | Text",
        "src/a.rs  | 12 ++--",
        "a.rs  | 12 +",
        "till.1 | 12",
        "till-1 | 0",
        "[1/10] x",
        "[ 10%] x",
        "[0] x",
        "java.lang:foo: x",
        "Table | x",
        "INFO  | x | y",
    ] {
        assert_eq!(prefix(line.as_bytes(), NOW).key, None, "{line}");
    }
}
