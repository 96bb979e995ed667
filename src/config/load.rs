//! Finds and reads the configuration files: the only part of `config` that touches the file system.
//! Order: `siftd.toml`, then `conf.d/*.toml` beside it, by name; or only the file that was asked for.

use std::ffi::OsString;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::{Config, LiteralCheck};
use crate::diag::{Diagnostic, Diagnostics, Source};

const FOLDER: &str = "/etc/siftd";

/// The user who runs siftd, as far as it determines the state folder.
#[derive(Clone, Debug, Default)]
pub struct User {
    /// Whether the effective user id is 0.
    pub root: bool,
    /// `$XDG_STATE_HOME`
    pub state_home: Option<OsString>,
    /// `$HOME`
    pub home: Option<OsString>,
}

impl User {
    /// Returns the user of this process.
    #[must_use]
    pub fn current() -> Self {
        // The owner of /proc/self is the effective user; reading it needs no unsafe call.
        let root = fs::metadata("/proc/self").is_ok_and(|m| m.uid() == 0);
        Self { root, state_home: std::env::var_os("XDG_STATE_HOME"), home: std::env::var_os("HOME") }
    }

    /// Whether the state of a user who is not root is kept where root's is, as nothing names a place of theirs.
    #[must_use]
    pub fn is_homeless(&self) -> bool {
        !self.root && self.state_dir() == Config::default().state_dir
    }

    /// Returns the default state folder. A relative `$XDG_STATE_HOME` is ignored, as the XDG specification demands.
    #[must_use]
    pub fn state_dir(&self) -> PathBuf {
        let absolute = |path: &Option<OsString>| path.as_ref().map(PathBuf::from).filter(|p| p.is_absolute());
        let base = absolute(&self.state_home).or_else(|| absolute(&self.home).map(|h| h.join(".local/state")));
        match base {
            Some(base) if !self.root => base.join("siftd"),
            _ => Config::default().state_dir,
        }
    }
}

impl Config {
    /// Reads only `path`, or without it `/etc/siftd/siftd.toml` and `conf.d/*.toml`, as far as
    /// they exist. A user other than root gets a state folder of their own, unless a file is
    /// named or names one. `literals` judges custom regexes; `fixed_literal` is the plain form.
    ///
    /// # Errors
    /// Every mistake in the files; a file that exists or was named but cannot be read.
    pub fn load(path: Option<&Path>, user: &User, literals: &LiteralCheck) -> Result<Self, Diagnostics> {
        match path {
            Some(path) => Self::default().overlay(&[open(path)?], literals),
            None => Self::load_folder(Path::new(FOLDER), user, literals),
        }
    }

    /// Returns `true` if there is a configuration file that is read when none is named.
    #[must_use]
    pub fn is_written() -> bool {
        let folder = Path::new(FOLDER);
        // A folder that cannot be listed counts as not empty; reading it then reports why.
        is_there(&folder.join("siftd.toml")) || toml_files(&folder.join("conf.d")).map_or(true, |files| !files.is_empty())
    }

    pub(super) fn load_folder(folder: &Path, user: &User, literals: &LiteralCheck) -> Result<Self, Diagnostics> {
        let base = Self { state_dir: user.state_dir(), ..Self::default() };
        base.overlay(&layers(folder)?, literals)
    }
}

fn layers(folder: &Path) -> Result<Vec<Source>, Diagnostics> {
    let main = folder.join("siftd.toml");
    let mut files = if is_there(&main) { vec![main] } else { Vec::new() };
    let drop_ins = folder.join("conf.d");
    files.extend(toml_files(&drop_ins).map_err(|e| unreadable(&drop_ins, &e.to_string()))?);
    files.iter().map(|file| open(file)).collect()
}

/// Whether there is such a name. A link that leads nowhere counts: reading it says so, while the defaults would hide a mistake.
fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// Lists the TOML files of a folder, except hidden ones: editors and package managers keep theirs under such names.
fn toml_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry?;
        let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        if !hidden && entry.path().extension().is_some_and(|e| e == "toml") {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}

fn open(path: &Path) -> Result<Source, Diagnostics> {
    let bytes = fs::read(path).map_err(|e| unreadable(path, &e.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|e| {
        let line = e.as_bytes()[..e.utf8_error().valid_up_to()].iter().filter(|&&b| b == b'\n').count() + 1;
        unreadable(path, &format!("line {line} is not UTF-8"))
    })?;
    Ok(Source::new(path.display().to_string(), &text))
}

fn unreadable(path: &Path, why: &str) -> Diagnostics {
    let mend = "check that it exists, is UTF-8 text, and may be read by the user that runs siftd";
    Diagnostic::whole_file(path.display().to_string(), format!("cannot be read: {why}")).with_mend(mend).into()
}
