//! Which keys exist, where their values go, and the bounds of each: the configuration as a list to read. Sits between
//! `reader`, which walks the tree, and `Config`, which holds the values. Pure: it opens none of the files it names.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use globset::GlobBuilder;
use toml::de::{DeTable, DeValue};

use super::pattern::{LiteralCheck, Role};
use super::reader::{Context, MAX_MISTAKES, Table};
use super::telemetry;
use super::value::{self, Fault};
use super::{Breaker, Config, Delivery, ErrorDetection, History, Limits, Retry, Rules, SinkConfig, SinkKind, sink, source};
use crate::core::event::{Category, Severity};
use crate::diag::{Diagnostic, Source};
use crate::words::did_you_mean;

pub(super) const KIB: u64 = 1 << 10;
pub(super) const MIB: u64 = 1 << 20;
pub(super) const GIB: u64 = 1 << 30;

pub(super) const HOUR: Duration = Duration::from_secs(3600);
pub(super) const DAY: Duration = days(1);

pub(super) const fn days(count: u64) -> Duration {
    Duration::from_secs(count * 86_400)
}

const SYNTAX: &str = "strings stand in quotes, lists in [ ], and the name of a section in [ ] on its own line";

/// Reads all layers over `config`. The returned context holds the mistakes and each key asked for.
pub(super) fn read<'s>(config: &mut Config, layers: &'s [Source], literals: &'s LiteralCheck) -> Context<'s> {
    let mut cx = Context::new(literals);
    for source in layers {
        let (tree, errors) = DeTable::parse_recoverable(&source.text);
        // A broken text parses into odd keys, so its syntax errors are reported alone.
        if errors.is_empty() {
            cx.walk(source, tree.get_ref(), |root| top(root, config));
        }
        cx.errors.extend(errors.iter().take(MAX_MISTAKES).map(|e| syntax(source, e)));
    }
    agree(config, &mut cx);
    cx
}

fn syntax(source: &Source, error: &toml::de::Error) -> Diagnostic {
    let problem = error.message().trim_end().replace('\n', ", ");
    let mend = if problem == "duplicate key" { "keep one of the two" } else { SYNTAX };
    source.error(error.span().unwrap_or(0..0), problem).with_mend(mend)
}

/// Reads a table's keys: for each, a method of `Table` fills the field of the same name.
macro_rules! keys {
    ($table:ident, $into:expr, { $($field:ident: $read:ident($($how:expr)?)),+ $(,)? }) => {{
        let into = $into;
        $($table.$read(stringify!($field), &mut into.$field, $($how)?);)+
    }};
}
pub(super) use keys;

fn top(root: &mut Table<'_, '_>, config: &mut Config) {
    keys!(root, &mut *config, { state_dir: text(path) });
    root.section("error_detection", |t| {
        error_detection(t, &mut config.error_detection);
    });
    root.section("rules", |t| rules(t, &mut config.rules));
    root.section("limits", |t| limits(t, &mut config.limits));
    root.section("retry", |t| retry(t, &mut config.retry));
    root.section("breaker", |t| breaker(t, &mut config.breaker));
    root.section("history", |t| history(t, &mut config.history));
    root.section("delivery", |t| delivery(t, &mut config.delivery));
    root.section("telemetry", |t| telemetry::read(t, &mut config.telemetry));
    root.blocks("source", |t, header| {
        let source = source::read(t, &header);
        unique(t, &source.name, config.sources.iter().map(|s| &s.name));
        config.sources.push(source);
    });
    root.blocks("sink", |t, header| {
        let sink = sink::read(t, &header);
        unique(t, &sink.name, config.sinks.iter().map(|s| &s.name));
        own_file(t, &sink, &config.sinks);
        config.sinks.push(sink);
    });
}

/// Reads the keys of `[error_detection]`; `import` uses it for the source systems' files.
pub(super) fn error_detection(t: &mut Table<'_, '_>, d: &mut ErrorDetection) {
    keys!(t, &mut *d, {
        enabled: flag(),
        two_stage: flag(),
        capture_multiline: flag(),
        max_context_lines: count(0..=1000),
        max_stack_depth: count(0..=1000),
        custom_patterns: patterns(Role::Finds),
        custom_false_positives: patterns(Role::Silences),
        noise_patterns: patterns(Role::Silences),
        warnings: flag(),
    });
    t.patterns("error_indicators", &mut d.custom_patterns, Role::Finds);
    severity_overrides(t, &mut d.severity_overrides);
}

fn rules(t: &mut Table<'_, '_>, rules: &mut Rules) {
    let earlier = std::mem::take(&mut rules.disable);
    keys!(t, &mut *rules, { files: list(glob), disable: list(name) });
    rules.disable.splice(0..0, earlier);
}

fn limits(t: &mut Table<'_, '_>, limits: &mut Limits) {
    keys!(t, limits, {
        max_line_bytes: size(KIB..=64 * MIB),
        max_event_bytes: size(2 * KIB..=16 * MIB),
        max_trace_lines: count(1..=1_000_000),
        trace_idle: duration(Duration::from_millis(1)..=HOUR),
        max_document_bytes: size(KIB..=16 * GIB),
    });
}

fn retry(t: &mut Table<'_, '_>, retry: &mut Retry) {
    keys!(t, &mut *retry, {
        base_delay: duration(Duration::ZERO..=DAY),
        max_delay: duration(Duration::ZERO..=days(7)),
        max_reset_wait: duration(Duration::ZERO..=days(7)),
        max_retries: count(0..=1000),
        continue_on_error: flag(),
    });
    t.section("api_rate_limit", |t| {
        keys!(t, &mut retry.api_rate_limit, { max_retries: count(0..=1000) });
    });
}

fn breaker(t: &mut Table<'_, '_>, breaker: &mut Breaker) {
    keys!(t, breaker, {
        warn_after: count(1..=1_000_000),
        open_after: count(1..=1_000_000),
        transient_open_after: count(1..=1_000_000),
        cooldown: duration(Duration::ZERO..=days(365)),
        streams: flag(),
        stream_window: duration(Duration::ZERO..=days(30)),
        stream_quiet: duration(Duration::from_secs(1)..=days(365)),
        on_open: list(Ok),
    });
}

fn history(t: &mut Table<'_, '_>, history: &mut History) {
    keys!(t, history, {
        enabled: flag(),
        max_signatures: count(1..=10_000_000),
        max_age: duration(Duration::from_secs(60)..=days(3650)),
        regressed_after: duration(Duration::from_secs(1)..=days(3650)),
    });
}

fn delivery(t: &mut Table<'_, '_>, delivery: &mut Delivery) {
    keys!(t, delivery, {
        outbox_max: size(MIB..=1024 * GIB),
        repeat_window: duration(Duration::ZERO..=days(30)),
        shutdown_grace: duration(Duration::ZERO..=HOUR),
    });
}

pub(super) fn require(t: &mut Table<'_, '_>, key: &'static str, mend: &str, header: &Range<usize>) {
    if t.node(key).is_none() {
        t.fault(key, header.clone(), Fault::new("is missing", mend));
    }
}

pub(super) fn refuse_empty_list(t: &mut Table<'_, '_>, key: &'static str, mend: &str) {
    if let Some(node) = t.node(key).filter(|n| n.get_ref().as_array().is_some_and(|a| a.is_empty())) {
        t.fault(key, node.span(), Fault::new("is empty, so nothing would be read", mend));
    }
}

fn unique<'n>(t: &mut Table<'_, '_>, name: &str, mut others: impl Iterator<Item = &'n String>) {
    let taken = !name.is_empty() && others.any(|other| other == name);
    if let Some(node) = t.node("name").filter(|_| taken) {
        let problem = format!("is taken: another block is called `{name}` already");
        let mend = "give each its own name; positions and metrics go by it";
        t.fault("name", node.span(), Fault::new(problem, mend));
    }
}

/// Refuses a path that another file sink has: two writers would rotate and repair the file under each other.
fn own_file(t: &mut Table<'_, '_>, sink: &SinkConfig, others: &[SinkConfig]) {
    let place = |sink: &SinkConfig| sink.path.as_ref().filter(|_| sink.kind == SinkKind::File).and_then(|path| std::path::absolute(path).ok());
    let Some(path) = place(sink) else { return };
    let Some(other) = others.iter().find(|other| place(other).as_ref() == Some(&path)) else { return };
    if let Some(node) = t.node("path") {
        let problem = format!("is taken: sink `{}` writes this file already", other.name);
        t.fault("path", node.span(), Fault::new(problem, "give each sink its own file"));
    }
}

/// Reads the overrides. A rule id may be written as a dotted key, which TOML reads as nested tables.
fn severity_overrides(t: &mut Table<'_, '_>, out: &mut BTreeMap<String, Severity>) {
    const KEY: &str = "severity_overrides";
    let Some(node) = t.node(KEY) else { return };
    let Some(table) = node.get_ref().as_table() else {
        return t.fault(KEY, node.span(), Fault::must_be("a table", "write { network_error = \"high\" }"));
    };
    overrides_below(t, "", table, out);
}

fn overrides_below(t: &mut Table<'_, '_>, above: &str, table: &DeTable<'_>, out: &mut BTreeMap<String, Severity>) {
    for (key, node) in table {
        let name = format!("{above}{}", key.get_ref());
        if let DeValue::Table(inner) = node.get_ref() {
            overrides_below(t, &format!("{name}."), inner, out);
        } else if !name.contains('.') && Category::parse(&name).is_none() {
            t.fault("severity_overrides", key.span(), no_category(&name));
        } else {
            match value::word(node.get_ref()) {
                Ok(severity) => drop(out.insert(name, severity)),
                Err(fault) => t.fault(&format!("severity_overrides.{name}"), node.span(), fault),
            }
        }
    }
}

fn no_category(name: &str) -> Fault {
    let names: Vec<_> = Category::ALL.iter().map(|c| c.as_str()).collect();
    let mend = did_you_mean(name, &names).unwrap_or_else(|| format!("the categories are {}", names.join(", ")));
    Fault::new(format!("names `{name}`, which is neither a category nor a rule id such as \"javascript.error\""), mend)
}

pub(super) fn name(text: String) -> Result<String, Fault> {
    if text.trim().is_empty() || text.chars().any(char::is_control) {
        return Err(Fault::must_be("a name", "give it some letters, without control characters"));
    }
    Ok(text)
}

pub(super) fn category(text: String) -> Result<Category, Fault> {
    Category::parse(&text).ok_or_else(|| {
        let names: Vec<_> = Category::ALL.iter().map(|c| c.as_str()).collect();
        let mend = did_you_mean(&text, &names).unwrap_or_else(|| format!("the categories are {}", names.join(", ")));
        Fault::must_be("a category", mend)
    })
}

pub(super) fn path(text: String) -> Result<PathBuf, Fault> {
    if text.is_empty() || text.contains('\0') {
        return Err(Fault::must_be("a path", "name a file or folder, such as \"/var/lib/siftd\""));
    }
    if text == "~" || text.starts_with("~/") {
        return Err(Fault::new("begins with `~`, which only a shell reads as a home folder", "write the folder out, such as \"/home/me/logs\""));
    }
    Ok(PathBuf::from(text))
}

pub(super) fn glob(text: String) -> Result<String, Fault> {
    path(text.clone())?;
    match GlobBuilder::new(&text).literal_separator(true).build() {
        Ok(_) => Ok(text),
        Err(e) => {
            let mend = "`*` is any name part, `**` any folders; put a literal sign in brackets: `[{]`";
            Err(Fault::new(format!("is no valid glob: {}", e.kind()), mend))
        }
    }
}

/// Checks keys that must agree with each other, once all layers are read.
fn agree(config: &Config, cx: &mut Context<'_>) {
    let (breaker, retry) = (&config.breaker, &config.retry);
    if breaker.warn_after > breaker.open_after {
        let (warn, open) = (breaker.warn_after, breaker.open_after);
        let problem = format!("`warn_after` in [breaker] is {warn}, above `open_after` with {open}: no warning would come first");
        cx.conflict(["breaker.warn_after", "breaker.open_after"], &problem, "let warn_after be at most open_after");
    }
    for sink in &config.sinks {
        let unknown = sink.sources.iter().find(|name| !config.sources.iter().any(|source| source.name == **name));
        if let Some(name) = unknown {
            let problem = format!("`sources` of sink `{}` names `{name}`, and no source is called that: nothing would come", sink.name);
            cx.conflict(["sink.sources", "sink.sources"], &problem, "give it the `name` of a [[source]]");
        }
    }
    if retry.base_delay > retry.max_delay {
        let (base, max) = (retry.base_delay, retry.max_delay);
        let problem = format!("`base_delay` in [retry] is {base:?}, above `max_delay` with {max:?}");
        cx.conflict(["retry.base_delay", "retry.max_delay"], &problem, "let base_delay be at most max_delay");
    }
}
