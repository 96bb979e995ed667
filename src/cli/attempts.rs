//! What `siftd check` tries besides the configuration itself: folders and files of sources, the places
//! of records and the state, and the address to listen on. It may run as another user than the daemon,
//! and files may appear later, so its findings are hints, not errors. Nothing is created or changed.

use std::fs::File;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use crate::config::{Config, Listen, SinkKind, SourceConfig, SourceKind};
use crate::core::transcript::Mode;
use crate::sources::content::bytes_at;
use crate::sources::discover::is_packed;
use crate::sources::expand::{Input, base, expand, is_glob};
use crate::sources::foreign;
use crate::words::such_files;

/// Maximum number of files tried per source.
const MAX_FILES: usize = 1000;

/// Returns the hints, one per line.
pub fn hints(config: &Config) -> Vec<String> {
    let files = config.sources.iter().filter(|source| source.kind == SourceKind::File);
    let mut hints: Vec<String> = state(&config.state_dir).into_iter().chain(files.flat_map(source)).collect();
    for sink in config.sinks.iter().filter(|sink| sink.kind == SinkKind::File) {
        let folder = sink.path.as_ref().and_then(|path| std::path::absolute(path).ok()).and_then(|path| path.parent().map(PathBuf::from));
        hints.extend(
            folder.filter(|folder| !may_write(folder)).map(|folder| format!("sink {}: {} may not be written by this user", sink.name, folder.display())),
        );
    }
    if let Some(Listen::Address(address)) = &config.telemetry.listen
        && let Err(error) = TcpListener::bind(address)
    {
        hints.push(format!("`listen` in [telemetry]: {address}: {error}; a siftd that runs has it, or another program"));
    }
    hints
}

fn state(folder: &Path) -> Option<String> {
    let why = if folder.is_dir() { "may not be written by this user" } else { "is not there, and may not be made by this user" };
    let nearest = folder.ancestors().find(|path| path.is_dir()).unwrap_or(Path::new("."));
    (!may_write(nearest)).then(|| format!("`state_dir`: {}: {why}", folder.display()))
}

fn source(source: &SourceConfig) -> Vec<String> {
    let hint = |path: &Path, why: &str| format!("source {}: {}: {why}", source.name, path.display());
    let mut hints = Vec::new();
    for name in source.include.iter().map(PathBuf::from) {
        let folder = if is_glob(&name) { base(&name) } else { name.clone() };
        match std::fs::metadata(&folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => hints.push(hint(&folder, "is not there yet; it is followed when it comes")),
            Err(error) => hints.push(hint(&folder, &format!("{error}; as this user"))),
            Ok(meta) if meta.is_dir() && access(&folder, Access::READ_OK | Access::EXEC_OK).is_err() => {
                hints.push(hint(&folder, "may not be listed by this user"));
            }
            Ok(_) => {}
        }
    }
    let (inputs, _) = expand(&source.include.iter().map(PathBuf::from).collect::<Vec<_>>());
    let paths = inputs.into_iter().filter_map(|input| match input {
        Input::Named(path) | Input::Found(path) => Some(path),
        Input::Stdin => None,
    });
    let files: Vec<PathBuf> = paths.take(MAX_FILES).filter(|path| path.is_file()).collect();
    let closed: Vec<&PathBuf> = files.iter().filter(|path| File::open(path).is_err()).collect();
    let foreign: Vec<(&PathBuf, String)> = files.iter().filter_map(|path| Some((path, left_out(path)?))).collect();
    if let Some((first, why)) = foreign.first() {
        hints.push(hint(first, &format!("{why}{}", such_files(foreign.len()))));
    }
    if let Some(first) = closed.first() {
        hints.push(hint(first, &format!("may not be read by this user{}", such_files(closed.len()))));
    }
    hints
}

/// Returns why an existing file would not be read, if it is no log.
fn left_out(path: &Path) -> Option<String> {
    let file = File::open(path).ok().filter(|_| !is_packed(path))?;
    foreign::left_out(path, &bytes_at(&file, 0, foreign::BLOCK_BYTES).ok()?, Mode::Auto)
}

fn may_write(folder: &Path) -> bool {
    !folder.is_dir() || access(folder, Access::WRITE_OK | Access::EXEC_OK).is_ok()
}
