//! Patterns for inputs that are left out. A pattern without a slash is the name of a file or folder at any depth, one with a
//! slash a path; what lies in a folder that matches is left out with it. Looks at names only.

use std::path::Path;

use globset::GlobMatcher;

use super::expand::{bare, matcher};

/// One such pattern.
#[derive(Clone, Debug)]
pub struct Exclude {
    glob: GlobMatcher,
    /// It names a file or folder wherever that is.
    is_name: bool,
}

impl Exclude {
    /// Reads a pattern.
    ///
    /// # Errors
    /// It is not a valid glob.
    pub fn parse(pattern: &str) -> Result<Self, String> {
        // As a shell completes the name of a folder.
        let pattern = pattern.strip_suffix('/').unwrap_or(pattern);
        Ok(Self { glob: matcher(Path::new(pattern))?, is_name: !pattern.contains('/') })
    }

    /// The pattern, if it is matched against whole paths.
    #[must_use]
    pub fn path(&self) -> Option<&str> {
        Some(self.glob.glob().glob()).filter(|_| !self.is_name)
    }

    /// Whether a file, or a folder that it lies in, matches.
    #[must_use]
    pub fn covers(&self, path: &Path) -> bool {
        let is_meant = |part: &Path| match part.file_name() {
            Some(name) if self.is_name => self.glob.is_match(name),
            Some(_) => self.glob.is_match(part),
            None => false,
        };
        bare(path).ancestors().any(is_meant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_counts_at_any_depth_and_a_path_from_the_start() {
        for (pattern, path, want) in [
            ("*.gz", "logs/old/a.log.gz", true),
            ("*.gz", "a.gz.log", false),
            ("node_modules", "/srv/app/node_modules/x/a.log", true),
            ("node_modules/", "./node_modules/a.log", true),
            ("modules", "node_modules/a.log", false),
            ("logs/*.log", "./logs/a.log", true),
            ("logs/*.log", "logs/old/a.log", false),
            ("./logs/old", "logs/old/a.log", true),
            ("logs/**/b.log", "logs/x/y/b.log", true),
            ("old/b.log", "logs/old/b.log", false),
            ("**/old/*.log", "/var/logs/old/b.log", true),
            ("[ab].log", "x/b.log", true),
        ] {
            assert_eq!(Exclude::parse(pattern).unwrap().covers(Path::new(path)), want, "{pattern} {path}");
        }
        assert!(Exclude::parse("a[").is_err());
    }
}
