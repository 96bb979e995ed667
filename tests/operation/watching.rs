//! The dashboard and the alerts: they use existing metrics, and Prometheus accepts them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use regex::Regex;
use siftd::telemetry::families::{FAMILIES, Kind, page};
use siftd::telemetry::metrics;

fn file(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("config").join(name)).unwrap()
}

/// Returns the names of metrics in a text.
fn named(text: &str) -> BTreeSet<String> {
    Regex::new(r"\bsiftd_[a-z_]+").unwrap().find_iter(text).map(|name| name.as_str().to_owned()).collect()
}

#[test]
fn dashboard_and_alerts_name_metrics_that_there_are() {
    let known = |name: &str| {
        FAMILIES.iter().any(|family| {
            name == family.name || family.kind == Kind::Histogram && ["_bucket", "_sum", "_count"].iter().any(|end| name.strip_suffix(end) == Some(family.name))
        })
    };
    let dashboard = file("grafana/siftd.json");
    let parsed: serde_json::Value = serde_json::from_str(&dashboard).unwrap();
    assert!(parsed["panels"].as_array().unwrap().len() >= 12 && named(&dashboard).len() >= 12);
    for text in [dashboard, file("prometheus/siftd-alerts.yml"), file("prometheus/siftd-alerts.test.yml")] {
        let unknown: Vec<String> = named(&text).into_iter().filter(|name| !known(name)).collect();
        assert!(unknown.is_empty(), "no such metrics: {unknown:?}");
    }
}

#[test]
fn prometheus_understands_the_alerts_and_the_page() {
    use std::io::Write;
    let promtool = || Command::new("promtool");
    if promtool().arg("--version").output().is_err() {
        crate::skip::skipped("promtool");
        return;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/prometheus");
    for arguments in [["check", "rules", "siftd-alerts.yml"], ["test", "rules", "siftd-alerts.test.yml"]] {
        let done = promtool().args(arguments).current_dir(&folder).output().unwrap();
        assert!(done.status.success(), "{arguments:?}: {}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    }
    metrics().sources.of("a \"b\"\\").bytes.add(1);
    let mut check = promtool().args(["check", "metrics"]).stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).spawn().unwrap();
    check.stdin.take().unwrap().write_all(page(metrics()).as_bytes()).unwrap();
    let said = check.wait_with_output().unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stdout));
}
