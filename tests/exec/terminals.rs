//! Commands on a terminal: both outputs stay terminals and separate;
//! keys, size, signals and terminal modes work as without siftd.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::process::Child;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use pty_process::Size;
use pty_process::blocking::{Command, Pty, open};

use crate::{Folder, siftd, until};

/// A terminal with a program running on it.
struct Screen {
    pty: Pty,
    child: Child,
    shown: Arc<Mutex<String>>,
    reader: JoinHandle<()>,
}

impl Screen {
    /// Runs a script in which `$SIFTD` is siftd; for a single command, the command replaces the shell.
    fn new(folder: &Folder, script: &str) -> Self {
        let (pty, pts) = open().unwrap();
        pty.resize(Size::new(31, 97)).unwrap();
        let child = Command::new("sh").args(["-c", script]).env("SIFTD", siftd()).current_dir(folder.path()).spawn(pts).unwrap();
        let shown = Arc::new(Mutex::new(String::new()));
        let (mut screen, text) = (File::from(pty.as_fd().try_clone_to_owned().unwrap()), shown.clone());
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = screen.read(&mut bytes) {
                text.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..count]));
            }
        });
        Self { pty, child, shown, reader }
    }

    fn shown(&self) -> String {
        self.shown.lock().unwrap().clone()
    }

    #[track_caller]
    fn wait_for(&self, text: &str) {
        until(text, || self.shown().contains(text));
    }

    fn press(&mut self, keys: &str) {
        self.pty.write_all(keys.as_bytes()).unwrap();
    }

    #[track_caller]
    fn ended(mut self, code: i32) -> String {
        let mut status = None;
        until("its end", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        assert_eq!(status.unwrap().code(), Some(code), "{}", self.shown());
        // The end of its session hangs the terminal up; what was written before can still be read.
        until("the last output", || self.reader.is_finished());
        self.shown()
    }
}

const TTYS: &str = "test -t 0 && echo in; test -t 1 && echo out; test -t 2 && echo err >&2; stty size; [ \"$(readlink /proc/self/fd/1)\" = \"$(readlink /proc/self/fd/2)\" ] || echo apart; exit 5";

#[test]
fn all_three_are_terminals_of_the_same_size_and_apart() {
    let folder = Folder::new();
    folder.write("t.sh", TTYS);
    let shown = Screen::new(&folder, "exec $SIFTD exec --verdict v.json -- sh t.sh").ended(5);
    for line in ["in\r\n", "out\r\n", "err\r\n", "31 97\r\n", "apart\r\n"] {
        assert!(shown.contains(line), "{line:?} in {shown:?}");
    }
    assert_eq!(folder.records("v.json")[0]["exit_code"], 5);
}

#[test]
fn a_command_that_reads_stdin_says_on_a_terminal_what_is_missing() {
    let folder = Folder::new();
    for (command, said) in [
        ("scan", "nothing to scan: name files or folders, or pipe a log in"),
        ("run", "nothing to follow: name files with --file, sources with --config, or pipe a log in"),
        ("digest", "nothing to sum up: name files or folders, or pipe a log in"),
        ("judge", "nothing to judge: pipe results in, one JSON object a line"),
        ("classify", "nothing to classify: pipe errors in, one JSON object a line"),
        ("filter", "nothing to filter: pipe a log in"),
        ("signature", "nothing to sign: pipe lines in"),
        ("explain", "nothing to explain: name a line of a file as FILE:LINE, or pipe lines in"),
    ] {
        let shown = Screen::new(&folder, &format!("exec $SIFTD {command}")).ended(2);
        assert!(shown.contains(&format!("siftd: {said} (siftd {command} --help)")), "{shown}");
    }
}

#[test]
fn errors_are_found_on_both() {
    let folder = Folder::new();
    Screen::new(&folder, "exec $SIFTD exec --events e.ndjson -- sh -c 'echo bash: foo: command not found; echo TypeError: x is not a function >&2'").ended(0);
    let records = folder.records("e.ndjson");
    for (io, text) in [("stdout", "bash: foo: command not found"), ("stderr", "TypeError: x is not a function")] {
        assert!(records.iter().any(|record| record["source"]["io"] == io && record["text"] == text), "{records:?}");
    }
}

#[test]
fn keys_reach_the_command() {
    let folder = Folder::new();
    let mut screen = Screen::new(&folder, "exec $SIFTD exec -- sh -c 'echo ready; read line; echo got $line'");
    screen.wait_for("ready");
    screen.press("hello\r");
    let shown = screen.ended(0);
    assert_eq!(shown.matches("hello").count(), 2, "echoed once, printed once: {shown:?}");
}

#[test]
fn the_interrupt_key_ends_the_command_and_nothing_is_tried_again() {
    let folder = Folder::new();
    let command = "$SIFTD exec --retries 3 -- sh -c 'echo ready; exec sleep 60'";
    // In a pipeline `cat` is interrupted, too, and the shell reports it.
    for (script, code) in [(format!("{command}; echo code $?"), 0), (format!("{command} | cat"), 130)] {
        let mut screen = Screen::new(&folder, &format!("trap : INT; {script}"));
        screen.wait_for("ready");
        screen.press("\u{3}");
        let shown = screen.ended(code);
        assert!(code == 130 || shown.contains("code 130"), "{shown:?}");
        assert!(!shown.contains("retry 1"), "{shown:?}");
    }
}

/// What the terminal echoes of a key was printed by no program.
#[test]
fn a_key_that_is_shown_is_no_message() {
    for (key, shown, signal) in [("\u{3}", "^C", 2), ("\u{1c}", "^\\", 3)] {
        let folder = Folder::new();
        let flags = "--verdict v.json --digest digest";
        let mut screen = Screen::new(&folder, &format!("trap : INT QUIT; $SIFTD exec {flags} -- sh -c 'ulimit -c 0; echo ready; exec sleep 60'; echo end"));
        screen.wait_for("ready\r\n");
        screen.press(key);
        let all = screen.ended(0);
        assert!(all.contains(shown), "{all:?}");
        assert_eq!(folder.records("v.json")[0]["error_message"], format!("ended by signal {signal}, nothing on stderr"));
        assert!(!folder.read("digest").contains(shown), "{}", folder.read("digest"));
    }
}

/// A person has ended the run: whatever it printed before, it is neither retried nor counted.
#[test]
fn who_presses_a_key_that_ends_a_run_wants_no_other() {
    let line = "curl: (7) Failed to connect to db.example.com port 5432 after 3 ms: Connection refused";
    // Once by the signal itself, and once by a handler that exits.
    for (key, code, handler) in [("\u{3}", 130, ""), ("\u{1c}", 131, ""), ("\u{3}", 4, "trap \"exit 4\" INT;")] {
        let folder = Folder::new();
        let command = format!("{handler} ulimit -c 0; echo run >> runs; echo {line:?} >&2; while :; do sleep 0.02; done");
        let flags = "--retries 3 --base-delay 10ms --breaker b --state-dir state --verdict v.json";
        let mut screen = Screen::new(&folder, &format!("trap : INT QUIT; $SIFTD exec {flags} -- sh -c '{command}'; echo code $?"));
        screen.wait_for("refused\r\n");
        screen.press(key);
        let shown = screen.ended(0);
        assert!(shown.contains(&format!("code {code}\r\n")) && !shown.contains("retry 1"), "{shown:?}");
        assert_eq!((folder.read("runs").as_str(), &folder.records("v.json")[0]["attempts"]), ("run\n", &1.into()));
        let counted = folder.siftd(["breaker", "status", "b", "--state-dir", "state"]).out();
        assert!(!counted.contains("transient errors") && !counted.contains("curl"), "{counted}");
    }
}

#[test]
fn another_size_reaches_the_command() {
    let folder = Folder::new();
    let screen = Screen::new(&folder, "exec $SIFTD exec -- sh -c 'trap \"stty size; exit 0\" WINCH; echo ready; while :; do sleep 0.02; done'");
    screen.wait_for("ready");
    screen.pty.resize(Size::new(40, 111)).unwrap();
    assert!(screen.ended(0).contains("40 111"));
}

#[test]
fn its_modes_are_what_they_were() {
    let folder = Folder::new();
    let shown = Screen::new(
        &folder,
        "stty -a > before; $SIFTD exec -- sh -c 'stty raw -echo'; stty -a > after; $SIFTD exec --timeout 100ms -- sleep 60; stty -a > late; echo done",
    )
    .ended(0);
    assert!(shown.contains("done"));
    assert_eq!(folder.read("before"), folder.read("after"));
    assert_eq!(folder.read("before"), folder.read("late"));
}

/// At one end of a pipeline, the terminal is shared with other programs, and only what was a terminal is one.
#[test]
fn in_a_pipeline_the_rest_stays_a_terminal() {
    let folder = Folder::new();
    folder.write("t.sh", TTYS);
    let shown = Screen::new(&folder, "$SIFTD exec --strict -- sh t.sh | cat").ended(0);
    assert!(shown.contains("in\r\n") && !shown.contains("out\r\n") && shown.contains("err\r\n"), "{shown:?}");
    let shown = Screen::new(&folder, "echo typed | $SIFTD exec --strict -- sh -c 'test -t 1 && echo out; read line; echo got $line'").ended(0);
    assert!(shown.contains("out\r\n") && shown.contains("got typed\r\n"), "{shown:?}");
}

/// What a command leaves behind on a terminal continues, and its output arrives, as it would without siftd.
#[test]
fn who_is_left_behind_keeps_its_terminal() {
    for before in ["", "echo text |"] {
        let folder = Folder::new();
        let left = "(until [ -e go ]; do sleep 0.02; done; test -t 1 && echo late; echo late-too >&2; echo ended > ended) & echo $! > pid; echo early; exit 3";
        folder.write(
            "around.sh",
            format!("{before} $SIFTD exec --strict -- sh -c '{left}'; echo code $?; touch go; until [ -e ended ]; do sleep 0.02; done; sleep 0.2; echo end"),
        );
        let screen = Screen::new(&folder, "exec sh around.sh");
        screen.wait_for("code 3\r\n");
        screen.wait_for("late\r\n");
        screen.wait_for("late-too\r\n");
        assert!(screen.ended(0).contains("early\r\n"));
        until("its end", || !crate::runs(&folder.read("pid")));
    }
}

/// A script that waits for siftd gets the key's signal, too; a command that survives gets it once.
#[test]
fn an_interrupt_reaches_the_script_around() {
    let folder = Folder::new();
    let command = "trap \"echo told\" INT; echo ready; until [ -e go ]; do sleep 0.02; done; exit 3";
    folder.write("around.sh", format!("trap 'echo around' INT; $SIFTD exec --strict -- sh -c '{command}'; echo code $?"));
    let mut screen = Screen::new(&folder, "exec sh around.sh");
    screen.wait_for("ready\r\n");
    screen.press("\u{3}");
    screen.wait_for("told\r\n");
    folder.write("go", "");
    let shown = screen.ended(0);
    assert!(shown.contains("around\r\n") && shown.contains("code 3\r\n") && shown.matches("told").count() == 1, "{shown:?}");
}

/// The key that stops a command stops siftd with it, and `fg` continues both; meanwhile the terminal has its original modes.
#[test]
fn a_command_can_be_stopped_and_go_on() {
    if !has("bash") {
        return;
    }
    let folder = Folder::new();
    folder.write("job.sh", "set -m; stty -a > before; $SIFTD exec --strict -- sh -c 'echo $$ > pid; echo ready; read x; echo got $x'; echo code $?; stty -a > between; echo between; fg; echo code $?");
    let mut screen = Screen::new(&folder, "exec bash job.sh");
    screen.wait_for("ready\r\n");
    screen.press("\u{1a}");
    screen.wait_for("between\r\n");
    assert!(screen.shown().contains("code 148\r\n"), "{}", screen.shown());
    assert_eq!(folder.read("before"), folder.read("between"));
    screen.press("typed\r");
    let shown = screen.ended(0);
    assert!(shown.contains("got typed\r\n") && shown.contains("code 0\r\n"), "{shown:?}");
}

/// Programs expect the same terminal on all three streams: they set modes on one and read keys from another.
#[test]
fn keys_are_read_by_the_modes_of_any_stream() {
    const READ: &str = "exec 3<&SET 4<&FROM; old=$(stty -g <&3); stty -icanon -echo <&3; echo ready; key=$(dd bs=1 count=1 <&4 2>/dev/null); stty $old <&3";
    for (set, from) in [(0, 0), (1, 0), (2, 0), (2, 2), (0, 2), (1, 2)] {
        let folder = Folder::new();
        let script = READ.replace("SET", &set.to_string()).replace("FROM", &from.to_string());
        folder.write("pager.sh", format!("{script}; echo key $key; echo next; read line; echo line $line; stty -a > inside"));
        let mut screen = Screen::new(&folder, "stty -a > before; exec $SIFTD exec --strict -- sh pager.sh");
        screen.wait_for("ready\r\n");
        screen.press("q");
        screen.wait_for("next\r\n");
        screen.press("typed\r");
        let shown = screen.ended(0);
        assert!(shown.contains("key q\r\n") && shown.contains("line typed") && shown.matches("typed").count() == 2, "{set} {from}: {shown:?}");
        assert_eq!(folder.read("before"), folder.read("inside"), "{set} {from}");
    }
}

/// If stdin is no terminal, a pager reads keys from its stderr.
#[test]
fn in_a_pipeline_keys_come_to_a_program_that_reads_them_from_stderr() {
    let folder = Folder::new();
    let pager = "old=$(stty -g <&2); stty -icanon -echo <&2; echo ready; key=$(dd bs=1 count=1 <&2 2>/dev/null); stty $old <&2; echo key $key";
    folder.write("pager.sh", pager);
    let mut screen =
        Screen::new(&folder, "stty -a > before; echo text | $SIFTD exec --strict -- sh pager.sh; stty -a > after; echo over; read line; echo line $line");
    screen.wait_for("ready\r\n");
    screen.press("q");
    // Until the next check, keys still go to the program.
    screen.wait_for("over\r\n");
    screen.press("typed\r");
    let shown = screen.ended(0);
    assert!(shown.contains("key q\r\n") && shown.contains("line typed\r\n"), "{shown:?}");
    assert_eq!(folder.read("before"), folder.read("after"));
}

/// `more` waits for stdin and reads stderr.
#[test]
fn pagers_turn_pages() {
    for (pager, page) in [("more", "exec $SIFTD exec --strict -- more long.txt"), ("more", "cat long.txt | $SIFTD exec -- more")] {
        if !has(pager) {
            continue;
        }
        let folder = Folder::new();
        folder.write("long.txt", (1..200).map(|number| format!("line {number}.\n")).collect::<String>());
        let mut screen = Screen::new(&folder, &format!("export TERM=xterm; {page}"));
        screen.wait_for("line 29.\r\n");
        assert!(!screen.shown().contains("line 40."), "{page}");
        screen.press(" ");
        screen.wait_for("line 55.\r\n");
        screen.press("q");
        screen.ended(0);
    }
}

/// A shell on the inside has jobs of its own; the key that stops one is not meant for siftd.
#[test]
fn a_shell_inside_controls_its_jobs() {
    if !has("bash") {
        return;
    }
    let folder = Folder::new();
    let mut screen = Screen::new(&folder, "exec bash -c 'set -m; $SIFTD exec -- env PS1=ready: bash --norc --noediting -i; echo code $?'");
    screen.wait_for("ready:");
    screen.press("sh -c 'echo be\"\"gun; exec sleep 60'\r");
    screen.wait_for("begun\r\n");
    screen.press("\u{1a}");
    screen.wait_for("Stopped");
    screen.press("kill -9 %1; exec sh -c \"exit 7\"\r");
    let shown = screen.ended(0);
    assert!(shown.contains("code 7\r\n") && !shown.contains("no job control"), "{shown:?}");
}

/// The inner shell has left the group of its session, but still gets the signal that tells siftd to end.
#[test]
fn a_shell_inside_is_hung_up() {
    if !has("bash") {
        return;
    }
    let folder = Folder::new();
    let screen = Screen::new(&folder, "echo $$ > pid; exec $SIFTD exec -- env PS1=ready: bash --norc --noediting -i");
    screen.wait_for("ready:");
    folder.shell("kill -HUP $(cat pid)").ended(0);
    screen.ended(129);
}

/// The keys that pause a terminal's output pause both outputs.
#[test]
fn output_can_be_held() {
    let folder = Folder::new();
    let mut screen = Screen::new(&folder, "exec $SIFTD exec -- sh -c 'echo ready; read x; echo out; echo err >&2; echo done > done; read x'");
    screen.wait_for("ready\r\n");
    screen.press("\u{13}");
    screen.press("\r");
    // A paused output blocks its writer.
    let held = !folder.path().join("done").exists() && !screen.shown().contains("out\r\n");
    screen.press("\u{11}");
    screen.wait_for("out\r\n");
    screen.wait_for("err\r\n");
    screen.press("\r");
    assert!(held, "{}", screen.ended(0));
}

fn has(program: &str) -> bool {
    let is_there = std::process::Command::new("sh").args(["-c", &format!("command -v {program}")]).output().is_ok_and(|found| found.status.success());
    if !is_there {
        crate::skip::skipped(format_args!("{program}"));
    }
    is_there
}

#[test]
fn a_program_that_draws_the_screen_works() {
    let folder = Folder::new();
    let script = "import curses\ns = curses.initscr()\ncurses.noecho()\ns.addstr(3, 4, 'HELLO')\ns.refresh()\nkey = s.getch()\ncurses.endwin()\nprint('key', key, curses.LINES, curses.COLS)\n";
    folder.write("draw.py", script);
    if std::process::Command::new("python3").args(["-c", "import curses"]).status().is_ok_and(|status| status.success()) {
        let mut screen = Screen::new(&folder, "TERM=xterm exec $SIFTD exec -- python3 draw.py");
        screen.wait_for("HELLO");
        screen.press("q");
        assert!(screen.ended(0).contains("key 113 31 97"));
    } else {
        crate::skip::skipped("python3 with curses");
    }
}

/// Whatever prints a table or a long text knows how wide the terminal is.
#[test]
fn tables_and_helps_fit_a_narrow_terminal() {
    let folder = Folder::new();
    folder.write("log", "KeyError: 'price'\nall is well\n");
    let long = "n".repeat(90);
    let script = format!(
        "stty cols 60; export NO_COLOR=1; $SIFTD scan --state-dir st log >/dev/null; $SIFTD breaker record --state-dir st {long} --failure --signature 0123456789abcdef0123456789abcdef >/dev/null; for command in 'rules list python go' 'breaker status --state-dir st' 'history --state-dir st' 'state list --state-dir st' 'scan --help' --help; do $SIFTD $command; done"
    );
    let shown = Screen::new(&folder, &script).ended(0);
    let widest = shown.lines().max_by_key(|line| line.trim_end().chars().count()).unwrap();
    assert!(widest.trim_end().chars().count() <= 60, "{widest}\n{shown}");
    for part in ["RULE", "NAME", "SIGNATURE", "IDENTITY", "nnn…", "--fail-on"] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
}
