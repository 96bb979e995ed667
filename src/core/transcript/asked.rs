//! What a call asked for, as far as its result needs it. A result may come much later and after a restart, so this is
//! stored with the stream's facts: what the whole command line tells, and of its text only a beginning without secrets.

use serde::{Deserialize, Serialize};

use super::command::CommandLine;
use super::memory::kept;
use super::phrases;
use crate::core::engine::Engine;
use crate::core::extract::secretless;

/// Most bytes of a command that are looked through for secrets; far fewer are kept.
const MAX_SEARCHED_BYTES: usize = 64 << 10;
/// Most bytes of a command line that are divided.
const MAX_DIVIDED_BYTES: usize = 1 << 20;

/// A call's command or target.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Asked {
    /// Its beginning, without secrets.
    pub text: String,
    /// Number of secrets replaced in it.
    pub redactions: u32,
    /// [`CommandLine::shows`]
    pub shows: bool,
    /// [`CommandLine::answers`]
    pub answers: bool,
    /// [`CommandLine::compares`]
    pub compares: bool,
    /// [`CommandLine::hides_failures`]
    pub hides_failures: bool,
    /// [`CommandLine::speaker`]
    pub speaker: String,
    /// [`CommandLine::prints_file`]
    pub prints_file: bool,
}

impl Asked {
    /// Reads a command line, or whatever else a call names.
    #[must_use]
    pub fn new(engine: &Engine, command: &str) -> Self {
        let mut redactions = 0;
        let text = kept(&secretless(engine, &command[..command.floor_char_boundary(MAX_SEARCHED_BYTES)], &mut redactions));
        let line = CommandLine::new(&command[..command.floor_char_boundary(MAX_DIVIDED_BYTES)]);
        let (shows, answers, compares) = (line.shows(), line.answers(), line.compares());
        let (hides_failures, prints_file) = (line.hides_failures(), line.prints_file());
        Self { text, redactions, shows, answers, compares, hides_failures, speaker: kept(&line.speaker()), prints_file }
    }

    /// Returns the beginning of `output` in which the command that only shows something speaks for itself:
    /// `cat: nosuch: No such file or directory`, or git's `fatal: bad revision 'nosuch'` and all that follows it.
    #[must_use]
    pub fn own<'o>(&self, output: &'o str) -> &'o str {
        let name = self.speaker.as_str();
        if phrases::speaks(name, output.trim_start(), self.prints_file) {
            return output;
        }
        let is_own = |line: &&str| line.trim_end().is_empty() || !name.is_empty() && line.strip_prefix(name).is_some_and(|rest| rest.starts_with(": "));
        &output[..output.split_inclusive('\n').take_while(is_own).map(str::len).sum()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::engine::Limits;
    use crate::rules::RuleSet;

    fn asked(command: &str) -> Asked {
        Asked::new(&Engine::new(RuleSet::compiled(), Limits::default()), command)
    }

    #[test]
    fn what_a_showing_command_says_of_itself_comes_first() {
        let own = |speaker: &str, output| Asked { speaker: speaker.to_owned(), ..Asked::default() }.own(output).len();
        assert_eq!(own("cat", "cat: nosuch: No such file or directory\n"), 39);
        assert_eq!(own("cat", "cat: nosuch: No such file\nERROR: quoted"), 26);
        assert_eq!(own("git", "fatal: bad revision\nUse '--'"), 28);
        assert_eq!(own("cat", "fatal: bad revision"), 0);
        for (speaker, output) in [("", "cat: x"), ("cat", ""), ("cat", "make: *** [all] Error 2"), ("git", "commit 1\nfatal: x")] {
            assert_eq!(own(speaker, output), 0, "{output}");
        }
    }

    #[test]
    fn a_file_that_git_prints_may_begin_with_any_word() {
        for (command, own) in [("git show HEAD:a.log", 0), ("cd x && git show --textconv 'v1:b/a.log'", 0), ("git cat-file -p 1a2b", 0), ("git show -s abc", 8)]
        {
            assert_eq!(asked(command).own("error: x").len(), own, "{command}");
        }
        assert_eq!(asked("git show HEAD:nosuch").own("fatal: path 'nosuch' does not exist").len(), 35);
    }

    /// However long the command is, what it runs decides, and no part of a secret is kept.
    #[test]
    fn a_long_command_is_judged_like_a_short_one() {
        for (command, shows, hides) in [("python a.py", false, false), ("python a.py | tail", false, true), ("cat a.py", true, false)] {
            for body in ["print(1)\n", &"print(1)\n".repeat(1000)] {
                let asked = asked(&format!("cat > a.py <<'EOF'\n{body}EOF\n{command}"));
                assert_eq!((asked.shows, asked.hides_failures), (shows, hides), "{command}");
                assert!(serde_json::to_string(&asked).unwrap().len() < 1000);
            }
        }
        let token = format!("ghp_{}", "a1B2".repeat(9));
        for padding in 400..510 {
            let asked = asked(&format!("curl -d {} -H 'Authorization: {token}' x", "x".repeat(padding)));
            assert!(!asked.text.contains("ghp_"), "{}", asked.text);
            assert_eq!(asked.redactions, 1);
        }
    }
}
