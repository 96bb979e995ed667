//! Turns the names a user gives into the files they mean: paths, globs that the shell
//! left alone, folders. Runs before any reading; looks at names and metadata only.

use std::path::{Path, PathBuf};

use globset::{Glob, GlobBuilder, GlobMatcher};
use walkdir::{DirEntry, WalkDir};

/// One input to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// `-`
    Stdin,
    /// A file named by the user.
    Named(PathBuf),
    /// A file that a folder or glob led to.
    Found(PathBuf),
}

impl Input {
    /// The path of a file.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Stdin => None,
            Self::Named(path) | Self::Found(path) => Some(path),
        }
    }
}

/// An input that cannot be read, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// The path as the user named it, or as the walk met it.
    pub path: String,
    /// The reason.
    pub why: String,
}

impl Trouble {
    /// Creates one about a path.
    #[must_use]
    pub fn new(path: &Path, why: impl ToString) -> Self {
        let why = why.to_string();
        // The number in an I/O error's text helps nobody.
        let words = why.split(" (os error").next().unwrap_or_default();
        Self { path: path.display().to_string(), why: words.to_owned() }
    }
}

/// Returns the inputs for `names`, in their order; those from a folder or glob are sorted by name.
#[must_use]
pub fn expand(names: &[PathBuf]) -> (Vec<Input>, Vec<Trouble>) {
    let mut found = (Vec::new(), Vec::new());
    for name in names {
        if name.as_os_str() == "-" {
            found.0.push(Input::Stdin);
        } else if name.is_dir() {
            let known = (found.0.len(), found.1.len());
            walk(name, None, |entry, _| entry.file_type().is_file(), &mut found);
            // As with a glob: a wrong name must not look like logs without an error.
            if (found.0.len(), found.1.len()) == known {
                found.1.push(Trouble::new(name, "no file to read in it"));
            }
        } else if is_glob(name) && !name.exists() {
            expand_glob(name, &mut found);
        } else {
            found.0.push(Input::Named(name.clone()));
        }
    }
    found
}

/// Whether the name has a character that is special in globs.
#[must_use]
pub fn is_glob(name: &Path) -> bool {
    name.as_os_str().as_encoded_bytes().iter().any(|b| b"*?[{".contains(b))
}

/// Returns the folder that all matches of a glob lie in: its parts before the first special character.
#[must_use]
pub fn base(glob: &Path) -> PathBuf {
    let base: PathBuf = glob.components().take_while(|part| !is_glob(Path::new(part.as_os_str()))).collect();
    match base.as_os_str().is_empty() {
        true => PathBuf::from("."),
        false => base,
    }
}

/// Removes a leading `./`.
#[must_use]
pub fn bare(path: &Path) -> &Path {
    path.strip_prefix(".").unwrap_or(path)
}

/// Compiles a glob whose `*` stays within a name and whose `**` matches any folders; it takes [`bare`] paths.
///
/// # Errors
/// It is not a valid glob.
pub fn matcher(glob: &Path) -> Result<GlobMatcher, String> {
    parsed(glob).map(|glob| glob.compile_matcher())
}

fn parsed(glob: &Path) -> Result<Glob, String> {
    let built = GlobBuilder::new(&bare(glob).to_string_lossy()).literal_separator(true).build();
    built.map_err(|error| error.kind().to_string())
}

/// Returns how many levels below its base a match can lie; `None` if `**` allows any.
#[must_use]
pub fn depth(glob: &Path) -> Option<usize> {
    let parts = bare(glob).components().count() - bare(&base(glob)).components().count();
    let any = glob.components().any(|part| part.as_os_str().as_encoded_bytes().windows(2).any(|two| two == b"**"));
    (!any).then_some(parts)
}

/// Whether a glob names hidden files: a part of it, below its base, begins with a dot.
#[must_use]
pub fn names_hidden(glob: &Path) -> bool {
    is_hidden(bare(glob), bare(&base(glob)))
}

/// Whether a path is hidden below `base`, as files are that a program is still
/// copying. As in a shell, a glob matches such a file only if it writes the dot.
#[must_use]
pub fn is_hidden(path: &Path, base: &Path) -> bool {
    let below = path.strip_prefix(base).unwrap_or(path);
    below.components().any(|part| part.as_os_str().as_encoded_bytes().starts_with(b"."))
}

fn expand_glob(glob: &Path, found: &mut (Vec<Input>, Vec<Trouble>)) {
    let parsed = match parsed(glob) {
        Ok(parsed) => parsed,
        Err(why) => return found.1.push(Trouble::new(glob, format!("there is no such file, and read as a pattern it is wrong: {why}"))),
    };
    let known = found.0.len();
    let base = base(glob);
    if base.exists() {
        // Compiling takes a third of a millisecond, too much at each start for the rule folders that hardly anybody has.
        let matcher = parsed.compile_matcher();
        // A link that the pattern names is read, as one that is named in full is.
        let is_file = |entry: &DirEntry| entry.file_type().is_file() || entry.path_is_symlink() && entry.path().is_file();
        let is_named = |path: &Path| matcher.is_match(path) && (names_hidden(glob) || !is_hidden(path, bare(&base)));
        let is_meant = |entry: &DirEntry, path: &Path| is_named(path) && is_file(entry);
        walk(&base, depth(glob), is_meant, found);
    }
    if found.0.len() == known {
        found.1.push(Trouble::new(glob, "no file matches"));
    }
}

fn walk(folder: &Path, depth: Option<usize>, wanted: impl Fn(&DirEntry, &Path) -> bool, found: &mut (Vec<Input>, Vec<Trouble>)) {
    for entry in entries(folder, depth) {
        match entry {
            Ok(entry) => {
                let path = if folder == Path::new(".") { bare(entry.path()) } else { entry.path() };
                if wanted(&entry, bare(path)) {
                    found.0.push(Input::Found(path.to_owned()));
                }
            }
            Err(error) => found.1.push(trouble(folder, &error)),
        }
    }
}

/// Walks a folder and its subfolders by name. Links are not followed, and `.git` is left out: its content is compressed and not a log.
pub fn entries(folder: &Path, depth: Option<usize>) -> impl Iterator<Item = walkdir::Result<DirEntry>> {
    let is_repository = |entry: &DirEntry| entry.depth() > 0 && entry.file_name() == ".git";
    let walk = WalkDir::new(folder).max_depth(depth.unwrap_or(usize::MAX)).sort_by_file_name();
    walk.into_iter().filter_entry(move |entry| !is_repository(entry))
}

fn trouble(folder: &Path, error: &walkdir::Error) -> Trouble {
    let why = error.io_error().map_or_else(|| error.to_string(), ToString::to_string);
    Trouble::new(error.path().unwrap_or(folder), why)
}
