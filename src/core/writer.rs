//! Which of several programs wrote a line of a stream that they share: `web-1  | `, `[web] `, `host ci[12]: `.

use serde::{Deserialize, Serialize};

use super::notes::hash;

/// A writer within a stream, by the hash of its name: log content is not kept longer than needed. The default is
/// a line that names none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Writer(u64);

impl Writer {
    /// Returns the writer called `name`. Processes of one service are one writer: `ci[12]` and `ci[13]`,
    /// and so are the parts of a program, which a tab separates from its name: a job's steps, the tests of a package.
    #[must_use]
    pub fn named(name: &[u8]) -> Self {
        let program = name.split(|byte| *byte == b'\t').next().unwrap_or_default();
        Self(hash(without_process(program)))
    }

    /// Whether both may be the same: a line without a name may be anybody's.
    #[must_use]
    pub fn may_be(self, other: Self) -> bool {
        self == other || self.is_unnamed() || other.is_unnamed()
    }

    /// Whether it has no name.
    #[must_use]
    pub fn is_unnamed(&self) -> bool {
        *self == Self::default()
    }
}

fn without_process(name: &[u8]) -> &[u8] {
    let number = |name: &[u8]| Some(name.strip_suffix(b"]")?.iter().rev().take_while(|byte| byte.is_ascii_digit()).count());
    let Some(digits) = number(name).filter(|digits| *digits > 0) else { return name };
    name[..name.len() - digits - 1].strip_suffix(b"[").filter(|name| !name.is_empty()).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writers_are_told_apart_by_name() {
        let (web, api) = (Writer::named(b"web"), Writer::named(b"api"));
        assert!(!web.may_be(api) && web.may_be(Writer::named(b"web")));
        assert!(web.may_be(Writer::default()) && Writer::default().may_be(web));
        assert!(Writer::default().is_unnamed() && !web.is_unnamed());
        assert_eq!(Writer::named(b"ci[12]"), Writer::named(b"ci[13]"));
        assert_eq!(Writer::named(b"build\tRun tests"), Writer::named(b"build\tUpload"));
        for name in ["[12]", "ci[x]", "ci[]", "12]", "]"] {
            assert_eq!(without_process(name.as_bytes()), name.as_bytes());
        }
    }
}
