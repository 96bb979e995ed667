//! The configurations for log shippers: they can be parsed and name the same paths as
//! our annotated configuration, and a real rsyslog passes every record on unchanged.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use saphyr_parser::{Event, Parser};

use super::killing::{Daemon, until};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/config/shippers");

/// Returns every string in a YAML file, including keys; fails if it is no YAML.
fn yaml(text: &str) -> Vec<String> {
    let value = |event| match event {
        Event::Scalar(text, ..) => Some(text.into_owned()),
        _ => None,
    };
    Parser::new_from_str(text).filter_map(|event| value(event.unwrap().0)).collect()
}

fn toml_texts(value: &toml::Value, out: &mut Vec<String>) {
    match value {
        toml::Value::String(text) => out.push(text.clone()),
        toml::Value::Array(all) => all.iter().for_each(|value| toml_texts(value, out)),
        toml::Value::Table(all) => all.iter().for_each(|(key, value)| {
            out.push(key.clone());
            toml_texts(value, out);
        }),
        _ => {}
    }
}

#[test]
fn each_configuration_can_be_read_and_names_our_places() {
    let ours = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/config/siftd.toml")).unwrap();
    let (_, sinks) = ours.split_once("[[sink]]").unwrap();
    let place = |key: &str| sinks.lines().find_map(|line| line.strip_prefix(&format!("#{key} = \""))?.strip_suffix('"')).unwrap();
    let (path, address) = (place("path"), place("address"));
    let port = address.rsplit(':').next().unwrap();
    let mut count = 0;
    for file in fs::read_dir(FOLDER).unwrap() {
        let file = file.unwrap().path();
        let text = fs::read_to_string(&file).unwrap();
        let words = match file.extension().and_then(|end| end.to_str()).unwrap() {
            "yaml" | "yml" => yaml(&text),
            "toml" => {
                let mut words = Vec::new();
                toml_texts(&toml::Value::Table(text.parse().unwrap()), &mut words);
                words
            }
            // rsyslog itself reads this file in a test below.
            _ => text.split('"').map(str::to_owned).collect(),
        };
        assert!(words.iter().any(|word| word == path), "{}: {path}", file.display());
        assert!(words.iter().any(|word| word == address || word == port), "{}: {address}", file.display());
        count += 1;
    }
    assert_eq!(count, 5);
}

struct Rsyslog(Child);

impl Drop for Rsyslog {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Returns our configuration with paths of the test.
fn configuration(folder: &Path, port: u16) -> String {
    let text = fs::read_to_string(Path::new(FOLDER).join("rsyslog.conf")).unwrap();
    let at = |name: &str| folder.join(name).display().to_string();
    let text = text.replace("/var/log/siftd/events.ndjson", &at("out.ndjson")).replace("/var/log/siftd-forwarded.ndjson", &at("forwarded.ndjson"));
    format!("global(workDirectory=\"{}\")\n{}", at("spool"), text.replace("\"5170\"", &format!("\"{port}\"")))
}

#[test]
fn rsyslog_passes_every_record_on_unchanged_from_the_file_and_from_tcp() {
    let Some(rsyslogd) = ["/usr/sbin/rsyslogd", "/usr/bin/rsyslogd", "/sbin/rsyslogd"].into_iter().find(|path| Path::new(path).exists()) else {
        crate::skip::skipped("rsyslogd");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::create_dir(folder.join("spool")).unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    fs::write(folder.join("rsyslog.conf"), configuration(folder, port)).unwrap();
    let mut daemon = Daemon::new(folder, &format!("[[sink]]\nname = \"lines\"\ntype = \"tcp\"\naddress = \"127.0.0.1:{port}\"\nmax_delay = \"200ms\"\n"));
    let (conf, pid) = (folder.join("rsyslog.conf"), folder.join("pid"));
    let mut command = Command::new(rsyslogd);
    let command = command.arg("-n").arg("-f").arg(&conf).arg("-i").arg(&pid).stdin(Stdio::null()).stdout(Stdio::null());
    let mut rsyslog = Rsyslog(command.stderr(fs::File::create(folder.join("rsyslog.err")).unwrap()).spawn().unwrap());
    daemon.start();
    let mut log = OpenOptions::new().append(true).create(true).open(daemon.log("a.log")).unwrap();
    for n in 0..300 {
        let text = match n % 5 {
            0 => format!("ERROR job-{n} caf\u{e9} \u{1f600} \u{1b}[31mred\u{1b}[0m tab\there"),
            1 => format!("ERROR job-{n} {}", "long ".repeat(4000)),
            2 => format!("ERROR job-{n} \"quoted\" \\ %msg% $now {{}}"),
            3 => format!("ERROR job-{n}\nTraceback (most recent call last):\n  File \"a.py\", line {n}, in f\nValueError: job-{n} gone"),
            _ => format!("ERROR job-{n} 34 <13>1 - - -"),
        };
        writeln!(log, "2026-09-21T10:00:00Z {text}").unwrap();
    }
    let wanted = || fs::read_to_string(folder.join("out.ndjson")).unwrap_or_default();
    let forwarded = || fs::read_to_string(folder.join("forwarded.ndjson")).unwrap_or_default();
    until(&format!("the daemon does not write all\n{}", daemon.stderr()), || wanted().contains("job-299"));
    let said = || fs::read_to_string(folder.join("rsyslog.err")).unwrap_or_default();
    until(&format!("rsyslog does not pass all on: {}{}", said(), daemon.stderr()), || {
        assert_eq!(rsyslog.0.try_wait().unwrap(), None, "rsyslog ended: {}", said());
        forwarded().lines().count() >= 2 * wanted().lines().count()
    });
    daemon.stop();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    forwarded().lines().for_each(|line| *counts.entry(line.to_owned()).or_default() += 1);
    let wanted = wanted();
    assert!(wanted.lines().any(|line| line.len() > 16_000), "one is longer than a line of syslog");
    for line in wanted.lines() {
        // Once from the file, and once from the socket.
        assert_eq!(counts.remove(line), Some(2), "{line}");
    }
    assert_eq!(counts, BTreeMap::new(), "nothing else comes out");
}
