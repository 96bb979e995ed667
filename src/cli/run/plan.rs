//! What `run` reads: flags and `[[source]]` blocks → specs of files, and whether stdin is read.

use std::path::Path;
use std::time::Duration;

use super::{Failure, RunArgs, stdin_is_given};
use crate::config::{Config, SourceConfig, SourceKind, StartAt};
use crate::sources::discover::{Spec, Start};

/// How long a rotated file of `--file` is still read.
const ROTATE_WAIT: Duration = Duration::from_secs(5);

/// Sources.
pub struct Plan {
    /// Files.
    pub specs: Vec<Spec>,
    /// Name of the source that is stdin.
    pub stdin: Option<String>,
}

impl Plan {
    pub fn new(args: &RunArgs, config: &Config) -> Result<Self, Failure> {
        check_sources(config)?;
        let mut plan = Self { specs: Vec::new(), stdin: None };
        plan.flags(args)?;
        for source in &config.sources {
            match source.kind {
                SourceKind::File => plan.specs.push(spec(source)?),
                _ => plan.stdin = Some(source.name.clone()),
            }
        }
        if plan.specs.is_empty() && plan.stdin.is_none() {
            if !stdin_is_given() {
                return Err(Failure::new("nothing to follow: name files with --file, sources with --config, or pipe a log in (siftd run --help)"));
            }
            plan.stdin = Some("stdin".to_owned());
        }
        Ok(plan)
    }

    fn flags(&mut self, args: &RunArgs) -> Result<(), Failure> {
        let (stdin, files): (Vec<_>, Vec<_>) = args.file.iter().partition(|name| name.as_os_str() == "-");
        if !stdin.is_empty() {
            self.stdin = Some("stdin".to_owned());
        }
        if files.is_empty() {
            return Ok(());
        }
        let mut spec = Spec::new("run", Start::Beginning, ROTATE_WAIT).map_err(Failure)?;
        for name in files {
            spec.include(name).map_err(|why| Failure::new(format!("--file {}: {why}", name.display())))?;
        }
        self.specs.push(spec);
        Ok(())
    }
}

fn spec(source: &SourceConfig) -> Result<Spec, Failure> {
    let start = match source.start_at {
        StartAt::Beginning => Start::Beginning,
        StartAt::End => Start::End,
    };
    let fault = |why: String| Failure::new(format!("source {:?}: {why}", source.name));
    let mut spec = Spec::new(&source.name, start, source.rotate_wait).map_err(fault)?;
    for name in &source.include {
        spec.include(Path::new(name)).map_err(fault)?;
    }
    for name in &source.exclude {
        spec.exclude(Path::new(name)).map_err(fault)?;
    }
    for folder in &source.follow_links_into {
        spec.follow_links_into(folder);
    }
    Ok(spec)
}

/// Sources that this version cannot read are refused, not ignored.
fn check_sources(config: &Config) -> Result<(), Failure> {
    let known = |source: &&SourceConfig| matches!(source.kind, SourceKind::File | SourceKind::Stdin);
    match config.sources.iter().find(|source| !known(source)) {
        Some(source) => Err(Failure::new(format!("source {:?}: this version reads file and stdin, not {}", source.name, source.kind.as_str()))),
        None => Ok(()),
    }
}
