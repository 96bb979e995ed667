//! The destinations of `run`: turns flags and `[[sink]]` blocks into sinks; stdout if neither names one.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::super::{Failure, out};
use super::{RunArgs, peer};
use crate::config::{Config, Schema, SinkConfig, SinkKind, SourceConfig, WhenFull};
use crate::core::event::Severity;
use crate::core::redact::clean;
use crate::daemon::SinkPlan;
use crate::delivery::Node;
use crate::sinks::choose::Choose;
use crate::sinks::file::Options;

/// Returns the sinks, or what is wrong with each of them.
pub fn sinks(args: &RunArgs, config: &Config) -> Result<Vec<SinkPlan>, Vec<Failure>> {
    let least = args.reading.min_severity.unwrap_or(Severity::Low);
    if let Some(path) = args.output.as_ref().filter(|path| path.as_os_str() != "-") {
        let sink = SinkConfig { min_severity: least, path: Some(path.clone()), ..SinkConfig::new("output", SinkKind::File) };
        return all(&[sink], least, args, config);
    }
    if config.sinks.is_empty() || args.output.is_some() {
        return all(&[SinkConfig::new("stdout", SinkKind::Stdout)], least, args, config);
    }
    all(&config.sinks, least, args, config)
}

fn all(sinks: &[SinkConfig], least: Severity, args: &RunArgs, config: &Config) -> Result<Vec<SinkPlan>, Vec<Failure>> {
    let (mut plans, mut wrong) = (Vec::new(), Vec::new());
    for sink in sinks {
        match plan(sink, least, args, config) {
            Ok(plan) => plans.push(plan),
            Err(why) => wrong.push(why),
        }
    }
    if wrong.is_empty() { Ok(plans) } else { Err(wrong) }
}

/// Returns what the sinks want that drop records when too much waits for them.
pub fn dropping(args: &RunArgs, config: &Config) -> Vec<Choose> {
    let least = args.reading.min_severity.unwrap_or(Severity::Low);
    config.sinks.iter().filter(|sink| sink.when_full == WhenFull::Drop).map(|sink| choose(sink, least)).collect()
}

fn plan(sink: &SinkConfig, least: Severity, args: &RunArgs, config: &Config) -> Result<SinkPlan, Failure> {
    let choose = choose(sink, least);
    let name = sink.name.clone();
    if let Some(open) = peer::open_secret(sink) {
        tracing::warn!("sink {name}: {open}");
    }
    match sink.kind {
        SinkKind::File => file(sink, choose),
        SinkKind::Tcp | SinkKind::Unix => Ok(SinkPlan::Stream { name, options: peer::stream(sink, choose, config)? }),
        SinkKind::Http => {
            let (options, client) = peer::http(sink, choose, args.state_dir.as_ref().unwrap_or(&config.state_dir))?;
            Ok(SinkPlan::Http { name, options, client })
        }
        SinkKind::Stdout => Ok(SinkPlan::Stdout { name, file: out::stdout()?, choose }),
    }
}

fn file(sink: &SinkConfig, choose: Choose) -> Result<SinkPlan, Failure> {
    let name = sink.name.clone();
    let micros = |time: std::time::Duration| i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
    let path = in_folder(sink)?;
    let (rotate_age_us, fsync_us) = (micros(sink.rotate_age), micros(sink.fsync));
    Ok(SinkPlan::File {
        name,
        options: Options { path, choose, rotate_size: sink.rotate_size, rotate_age_us, keep: sink.keep, compress: sink.compress, fsync_us },
    })
}

/// Returns the path of a sink of type file, which must not be a folder; its own folder must exist.
pub fn in_folder(sink: &SinkConfig) -> Result<PathBuf, Failure> {
    let path = std::path::absolute(sink.path.clone().unwrap_or_default())?;
    if path.is_dir() {
        return Err(Failure::new(format!("sink {}: {} is a folder: name a file in it", sink.name, sink.path.as_deref().unwrap_or(&path).display())));
    }
    match path.parent().filter(|folder| !folder.is_dir()) {
        Some(folder) => Err(Failure::new(format!("sink {}: there is no folder {}: make it, or correct the path", sink.name, folder.display()))),
        None => Ok(path),
    }
}

pub fn choose(sink: &SinkConfig, least: Severity) -> Choose {
    Choose {
        name: sink.name.clone(),
        min_severity: sink.min_severity.max(least),
        categories: sink.categories.clone(),
        sources: sink.sources.clone(),
        schema: sink.schema,
    }
}

/// Returns stdout if it is a regular file, which must not be read as a log. It
/// stays open, so its inode is not reused and the birth time does not matter.
pub fn own() -> Option<Node> {
    out::regular_stdout().map(|identity| Node { dev: identity.dev, ino: identity.ino, born: 0 })
}

/// Returns the labels of each source, without secrets.
pub fn labels(config: &Config) -> BTreeMap<String, Vec<(String, String)>> {
    let of = |source: &SourceConfig| source.labels.iter().map(|(name, value)| (clean(name).into_owned(), clean(value).into_owned())).collect();
    config.sources.iter().map(|source| (source.name.clone(), of(source))).collect()
}

/// Describes a sink in one line.
pub fn described(sink: &SinkPlan) -> String {
    match sink {
        SinkPlan::Stdout { name, choose, .. } => format!("sink {name}: stdout{}", wishes(choose)),
        SinkPlan::File { name, options } => format!("sink {name}: {}{}", shown(&options.path), wishes(&options.choose)),
        SinkPlan::Stream { name, options } => format!("sink {name}: {}{}", options.target.shown(), wishes(&options.choose)),
        SinkPlan::Http { name, options, .. } => format!("sink {name}: {}{}", options.place, wishes(&options.choose)),
    }
}

fn shown(path: &std::path::Path) -> String {
    let short = std::env::current_dir().ok().and_then(|folder| path.strip_prefix(folder).ok().map(PathBuf::from));
    short.unwrap_or_else(|| path.to_owned()).display().to_string()
}

fn wishes(choose: &Choose) -> String {
    let mut out = String::new();
    if choose.schema != Schema::Native {
        out += &format!(", schema {}", choose.schema.as_str());
    }
    if choose.min_severity > Severity::Low {
        out += &format!(", severity {} and worse", choose.min_severity);
    }
    if !choose.categories.is_empty() {
        out += &format!(", only {}", choose.categories.iter().map(|category| category.as_str()).collect::<Vec<_>>().join(", "));
    }
    if !choose.sources.is_empty() {
        out += &format!(", only from {}", choose.sources.join(", "));
    }
    out
}
