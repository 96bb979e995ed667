//! A real service manager: systemd, booted in namespaces of its own, installs the service, starts and
//! reloads it, and restarts it when it hangs or is killed. Needs root, and leaves nothing behind.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use super::files::{is_there, version};
use super::wait::wait;

/// The watchdog's timeout in this test.
const WATCHDOG: &str = "5s";

const CONFIGURATION: &str = r#"
[[source]]
name = "agents"
type = "file"
include = ["/var/log/agents/*.log"]
start_at = "beginning"
[[sink]]
name = "events"
type = "file"
path = "/var/log/siftd/events.ndjson"
"#;

/// Returns what this machine lacks for the test.
fn lacks() -> Option<&'static str> {
    if !rustix::process::geteuid().is_root() {
        return Some("root");
    }
    if !Path::new("/lib/systemd/systemd").exists() || !is_there("unshare") || !is_there("nsenter") {
        return Some("systemd and util-linux");
    }
    let may = Command::new("unshare").args(["--mount", "--pid", "--fork", "--cgroup", "--net", "true"]).output();
    if !may.is_ok_and(|done| done.status.success()) {
        return Some("the right to make namespaces");
    }
    let groups = Command::new("findmnt").args(["-n", "-t", "cgroup2"]).output();
    (!groups.is_ok_and(|done| !done.stdout.is_empty())).then_some("a cgroup2 file system")
}

/// A booted systemd.
struct Machine {
    folder: tempfile::TempDir,
    boot: Child,
    first: u32,
}

impl Machine {
    fn boot() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("bash");
        command.arg(script()).arg("outer").arg(folder.path()).arg(env!("CARGO_BIN_EXE_siftd"));
        let boot = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(std::fs::File::create(folder.path().join("said.txt")).unwrap()).spawn().unwrap();
        let mut machine = Self { folder, boot, first: 0 };
        let children = format!("/proc/{0}/task/{0}/children", machine.boot.id());
        machine.first = wait("the first process", || {
            assert_eq!(machine.boot.try_wait().unwrap(), None, "{}", machine.said());
            let child = std::fs::read_to_string(&children).ok()?.split_whitespace().next()?.parse().ok()?;
            // Before that, the process is still the script.
            std::fs::read_to_string(format!("/proc/{child}/comm")).is_ok_and(|name| name.trim() == "systemd").then_some(child)
        });
        wait("the service manager", || machine.enter("systemctl is-system-running").0.contains("running").then_some(()));
        machine
    }

    fn said(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("said.txt")).unwrap_or_default()
    }

    /// Runs a shell command on the machine; returns its output, and whether it succeeded.
    fn enter(&self, script: &str) -> (String, bool) {
        let done: Output =
            Command::new("timeout").args(["100", "nsenter", "-t", &self.first.to_string(), "-a", "bash", "-c", script]).stdin(Stdio::null()).output().unwrap();
        (format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr)), done.status.success())
    }

    #[track_caller]
    fn run(&self, script: &str) -> String {
        let (said, is_well) = self.enter(script);
        assert!(is_well, "{script}: {said}{}", self.enter("systemctl status siftd; journalctl --no-pager -n 20").0);
        said.trim().to_owned()
    }

    fn property(&self, name: &str) -> String {
        self.run(&format!("systemctl show siftd -p {name} --value"))
    }

    /// Writes an error to the log, and waits for its record.
    #[track_caller]
    fn feed(&self, text: &str) {
        self.run(&format!("echo '2026-09-21T10:00:00Z ERROR {text}' >> /var/log/agents/a.log"));
        self.finds(text);
    }

    #[track_caller]
    fn finds(&self, text: &str) {
        wait(text, || self.texts().contains(&text.to_owned()).then_some(()));
    }

    fn texts(&self) -> Vec<String> {
        let all = self.run("cat /var/log/siftd/events.ndjson");
        let text = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["text"].as_str().unwrap().trim_start_matches("ERROR ").to_owned();
        all.lines().map(text).collect()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // The end of its first process ends all others.
        let _ = self.boot.kill();
        let _ = self.boot.wait();
        let _ = Command::new("bash").arg(script()).arg("clean").arg(self.folder.path()).status();
    }
}

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/service/boot.sh")
}

/// `siftd.socket`: systemd holds the socket, whether the service runs or not.
fn the_socket_starts_it_and_keeps_what_is_sent(machine: &Machine) {
    machine.run("printf '[[source]]\\nname = \"socket\"\\ntype = \"unix\"\\npath = \"/run/siftd.sock\"\\n' > /etc/siftd/conf.d/socket.toml");
    machine.run("systemctl enable --now siftd.socket");
    assert_eq!(machine.run("stat -c '%U %G %a' /run/siftd.sock"), "siftd siftd 660");
    assert_eq!(machine.property("ActiveState"), "inactive");
    let send = |text: &str| machine.run(&format!("logger --socket /run/siftd.sock --tag shop -p user.err '{text}'"));
    send("nobody listens yet");
    machine.finds("nobody listens yet");
    wait("the service", || (machine.property("ActiveState") == "active").then_some(()));
    // A restart closes nothing: what arrives in between waits.
    let node = machine.run("stat -c %i /run/siftd.sock");
    machine.run("systemctl kill --kill-who=main --signal=SIGKILL siftd");
    send("right after the kill");
    machine.finds("right after the kill");
    assert_eq!(machine.run("stat -c %i /run/siftd.sock"), node, "it is the same socket");
    machine.run("systemctl disable --now siftd.socket; systemctl stop siftd");
}

#[test]
fn systemd_installs_starts_reloads_and_restarts_it_and_no_event_is_lost() {
    if let Some(what) = lacks() {
        crate::skip::skipped(format_args!("{what}"));
        return;
    }
    let machine = Machine::boot();
    machine.run("/siftd-under-test service install");
    machine.run("mkdir -p /var/log/agents /etc/systemd/system/siftd.service.d");
    machine.run(&format!("cat > /etc/siftd/siftd.toml <<'END'\n{CONFIGURATION}\nEND"));
    // Shorter times than an operator would set.
    machine.run(&format!("printf '[Service]\\nWatchdogSec={WATCHDOG}\\n' > /etc/systemd/system/siftd.service.d/test.conf; systemctl daemon-reload"));

    machine.run("systemctl start siftd");
    machine.feed("first");
    // The drop-in is for systemd 254 and newer: its settings are in force there, and it is absent elsewhere.
    let is_newer = version().is_some_and(|version| version >= 254);
    assert_eq!(machine.property("Type"), if is_newer { "notify-reload" } else { "notify" });
    assert_eq!(machine.enter("test -e /etc/systemd/system/siftd.service.d/newer.conf").1, is_newer);
    let main = machine.property("MainPID");
    assert_eq!(machine.run(&format!("stat -c %U /proc/{main}; grep NoNewPrivs /proc/{main}/status | cut -f 2")), "siftd\n1");
    wait("the status text", || machine.property("StatusText").contains("1 errors found").then_some(()));
    assert!(machine.run("siftd status").contains(": ready for "));

    // A reload, one that is refused, and a good one again.
    machine.run("printf '[error_detection]\\ncustom_patterns = [\"RECONCILE MISMATCH\"]\\n' > /etc/siftd/conf.d/more.toml; systemctl reload siftd");
    machine.run("echo 'RECONCILE MISMATCH in 3 rows' >> /var/log/agents/a.log");
    machine.finds("RECONCILE MISMATCH in 3 rows");
    machine.run("echo 'x = 1' > /etc/siftd/conf.d/wrong.toml; systemctl reload siftd");
    machine.feed("with the old configuration");
    wait("the message", || machine.run("journalctl -u siftd -p err --no-pager").contains("the old one goes on").then_some(()));
    machine.run("rm /etc/siftd/conf.d/wrong.toml; systemctl reload siftd");
    assert_eq!((machine.property("MainPID"), machine.property("NRestarts")), (main.clone(), "0".to_owned()));

    // The daemon hangs: the watchdog restarts it.
    machine.run(&format!("kill -STOP {main}; echo '2026-09-21T10:00:00Z ERROR while it stood still' >> /var/log/agents/a.log"));
    wait("the restart", || (machine.property("NRestarts") == "1" && machine.property("ActiveState") == "active").then_some(()));
    machine.finds("while it stood still");

    // The daemon is killed.
    machine.run("systemctl kill --kill-who=main --signal=SIGKILL siftd");
    wait("the restart", || (machine.property("NRestarts") == "2" && machine.property("ActiveState") == "active").then_some(()));
    machine.feed("after the kill");

    machine.run("systemctl stop siftd");
    assert_eq!(machine.property("Result"), "success");
    let expected = ["first", "RECONCILE MISMATCH in 3 rows", "with the old configuration", "while it stood still", "after the kill"];
    assert_eq!(machine.texts(), expected, "each once, in order");
    assert_eq!(machine.run("stat -c '%U %a' /var/lib/siftd /var/lib/siftd/siftd.db"), "siftd 750\nsiftd 640");

    the_socket_starts_it_and_keeps_what_is_sent(&machine);

    machine.run("/siftd-under-test service uninstall");
    assert!(!machine.enter("systemctl cat siftd").1 && !machine.enter("test -e /usr/local/bin/siftd").1);
    assert_eq!(machine.texts().len(), expected.len() + 2, "what it found stays");
    machine.run("test -e /var/lib/siftd/siftd.db");
}
