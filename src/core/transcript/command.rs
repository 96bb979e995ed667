//! What a command line runs, as far as that tells whose output a result is, and whether the exit code speaks for all of
//! it. What cannot be told counts as part of the command.

use std::borrow::Cow;

use super::phrases::shell;
use super::shell::{Command, End, Pipeline, divide};

/// A command line as a shell divides it.
pub struct CommandLine<'a> {
    pipelines: Vec<Pipeline<'a>>,
}

impl<'a> CommandLine<'a> {
    /// Divides a command line.
    #[must_use]
    pub fn new(line: &'a str) -> Self {
        Self { pipelines: divide(line) }
    }

    /// Whether the output is what is written somewhere: that of the last command that says something of its own.
    #[must_use]
    pub fn shows(&self) -> bool {
        self.deciding().is_some_and(|command| shell().shows(&command.bare()))
    }

    /// Whether an exit code of 1 is an answer of the last command that says something of its own.
    #[must_use]
    pub fn answers(&self) -> bool {
        self.deciding().is_some_and(|command| shell().answers(&command.bare()))
    }

    /// Whether an exit code of 1 says of the only command that says something of its own that what it compares differs.
    #[must_use]
    pub fn compares(&self) -> bool {
        let mut speaking = self.pipelines.iter().filter(|pipeline| !shell().is_quiet(&main(pipeline).bare()));
        let only = speaking.next().filter(|_| speaking.next().is_none());
        only.is_some_and(|pipeline| pipeline.commands.len() == 1 && shell().compares(&main(pipeline).bare()))
    }

    /// Returns the name of the last command that says something of its own.
    #[must_use]
    pub fn speaker(&self) -> String {
        self.deciding().map(|command| command.bare().split([' ', '\n']).next().unwrap_or_default().to_owned()).unwrap_or_default()
    }

    /// Whether the last command that says something of its own prints the text of a file, which may begin with any word.
    #[must_use]
    pub fn prints_file(&self) -> bool {
        self.deciding().is_some_and(|command| shell().prints_file(&command.bare()))
    }

    /// Whether a command may have failed although the exit code is 0, and no part of the line shows what is written
    /// somewhere: `npm test 2>&1 | tail -20`, `pytest || true`, `make; echo done`, `./serve &`.
    #[must_use]
    pub fn hides_failures(&self) -> bool {
        let (stops, pipes) = self.options();
        let (states, states_pipes) = self.states_its_code();
        let mut hides = false;
        for (at, pipeline) in self.pipelines.iter().enumerate() {
            let command = main(pipeline);
            let bare = command.bare();
            if command.is_saved || shell().is_quiet(&bare) {
                continue;
            }
            if shell().shows(&bare) {
                return false;
            }
            let rest = &self.pipelines[at + 1..];
            let is_last = pipeline.commands.last().is_some_and(|last| std::ptr::eq(last, command));
            hides |= !pipes && !states_pipes && !is_last
                || match pipeline.end {
                    End::Tied => false,
                    End::Loose => !stops && !states && !are_unrun(rest),
                    End::Otherwise => !fail(rest),
                    End::Background => true,
                };
        }
        hides
    }

    /// Whether the line ends with the exit code that it has kept (`exit $rc`), and whether that may be a pipeline's.
    fn states_its_code(&self) -> (bool, bool) {
        let last = self.pipelines.last().map(|last| main(last).bare()).unwrap_or_default();
        let states = last.strip_prefix("exit ").is_some_and(|code| code.trim_start_matches('"').starts_with('$'));
        let names_pipes =
            || self.pipelines.iter().flat_map(|pipeline| &pipeline.commands).any(|command| command.text.to_ascii_uppercase().contains("PIPESTATUS"));
        (states, states && names_pipes())
    }

    /// Whether the shell was told to stop at the first failure (`-e`), and to fail with any part of a pipeline (`pipefail`).
    fn options(&self) -> (bool, bool) {
        let set = self.pipelines.iter().map(|pipeline| main(pipeline).bare()).filter(|command| command.starts_with("set "));
        set.fold((false, false), |(stops, pipes), command| {
            let is_short = |word: &str| word.starts_with('-') && !word.starts_with("--") && word.contains('e');
            (stops || command.split(' ').any(is_short), pipes || command.contains("pipefail"))
        })
    }

    /// Returns the last command that says something of its own, else the last one.
    fn deciding(&self) -> Option<&Command<'a>> {
        let speaks = |pipeline: &&Pipeline| !shell().is_quiet(&main(pipeline).bare());
        self.pipelines.iter().rfind(speaks).or(self.pipelines.last()).map(main)
    }
}

/// Returns the command that decides about the output: the first, assuming that the
/// others only select from it, but not one that only feeds the next, as `echo` does.
fn main<'a, 'b>(pipeline: &'b Pipeline<'a>) -> &'b Command<'a> {
    let feeds = |pair: &&[Command]| shell().feeds(&pair[0].bare()) && !shell().selects(&pair[1].bare());
    &pipeline.commands[pipeline.commands.windows(2).take_while(feeds).count()]
}

/// Whether none of the pipelines follows the one before them: they end its block, or are the other branch of its `if`.
fn are_unrun(mut rest: &[Pipeline]) -> bool {
    while let Some((next, after)) = rest.split_first() {
        rest = match next.commands[0].word() {
            "fi" | "esac" | "}" => after,
            "else" | "elif" => after.iter().position(|next| next.commands[0].word() == "fi").map_or(&[], |at| &after[at..]),
            _ => return false,
        };
    }
    true
}

/// Whether the pipelines after `||` make the line fail: `exit 1`, a bare `exit`, `{ echo failed; exit 1; }`.
fn fail(rest: &[Pipeline]) -> bool {
    let leaves = |pipeline: &Pipeline| {
        let bare = main(pipeline).bare();
        matches!(bare.split(' ').next(), Some("exit" | "return")) && bare != "exit 0" && bare != "return 0"
    };
    match rest.first() {
        Some(first) if first.commands[0].word() == "{" => {
            let group = rest.iter().take_while(|pipeline| pipeline.commands[0].word() != "}");
            group.into_iter().any(|pipeline| leaves(pipeline) && main(pipeline).bare().contains(' '))
        }
        Some(first) => leaves(first),
        None => false,
    }
}

impl Command<'_> {
    /// Returns its first word.
    fn word(&self) -> &str {
        self.text.split([' ', '\n', '\t']).next().unwrap_or_default()
    }

    /// Returns the command without what a shell or another command puts before it: `do`, `A=b`, `sudo`, `timeout 60`.
    fn bare(&self) -> Cow<'_, str> {
        let mut rest = self.text;
        while let Some((word, after)) = rest.split_once([' ', '\n', '\t']) {
            let is_assignment = word.split_once('=').is_some_and(|(name, _)| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'));
            if !is_assignment && !shell().leads(word) {
                break;
            }
            rest = after.trim_start();
            if word == "timeout" {
                rest = rest.trim_start_matches(|c: char| !c.is_whitespace()).trim_start();
            }
        }
        match rest.strip_prefix("git -") {
            Some(options) => Cow::Owned(format!("git {}", subcommand(options))),
            None => Cow::Borrowed(rest),
        }
    }
}

/// Returns what follows the options of `git`, the first of which is given without its hyphen.
fn subcommand(options: &str) -> &str {
    let mut words = options.split_inclusive(' ');
    let mut at = 0;
    while let Some(word) = words.next() {
        let option = word.trim_end().trim_start_matches('-');
        at += word.len();
        if matches!(option, "C" | "c") {
            at += words.next().map_or(0, str::len);
        }
        if !options[at..].starts_with('-') {
            break;
        }
    }
    &options[at..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_shows_is_known_by_the_last_command_that_says_something() {
        for line in [
            "cat a.log",
            "cd /x && cat a.log | head -3",
            "git diff HEAD~1",
            "ls",
            "git -C /x --no-pager log -3",
            "sudo cat /var/log/syslog",
            "for f in *.log; do cat $f; done",
            "make > build.log 2>&1; tail -3 build.log",
            "npm test 2>&1 | tee t.log >/dev/null; grep FAIL t.log; echo done",
            "docker logs web 2>&1 | tail -50",
            "(cd x; cat a.log)",
            "/bin/zsh -lc \"cat a.log\"",
            "bash -c ls",
        ] {
            assert!(CommandLine::new(line).shows(), "{line}");
        }
        for line in [
            "cat a.log && make",
            "catalog build",
            "git push",
            "python a.py | tail -3",
            "cargo build 2>&1; echo \"EXIT: $?\"",
            "make || echo failed",
            "echo 'selec 1;' | sqlite3 a.db",
            "python3 -c \"import x; cat(1)\"",
            "python3 - <<'P'\nimport x\ncat = 1\nP",
            "cat q.sql | psql shop",
            "(cd x && make)",
        ] {
            assert!(!CommandLine::new(line).shows(), "{line}");
        }
        for line in ["diff -u a b", "cd /x && diff <(sort a) <(sort b) && echo same", "git -C x diff --no-index a b", "cmp a b; echo $?"] {
            assert!(CommandLine::new(line).compares(), "{line}");
        }
        for line in ["make && diff a b", "diff a b | grep x", "differ a b", "diff a b; make"] {
            assert!(!CommandLine::new(line).compares(), "{line}");
        }
        assert!(CommandLine::new("cd /x && grep -rn foo src").answers() && !CommandLine::new("grepper x").answers());
    }

    #[test]
    fn an_exit_code_may_hide_failures() {
        for line in [
            "npm test 2>&1 | tail -20",
            "pytest || true",
            "make; echo \"rc=$?\"",
            "make\nmake install",
            "./serve &",
            "cd /x && cargo test 2>&1 | grep -E 'FAIL|error'",
            "timeout 60 make | tail",
            "CI=1 npm test | cat",
            "(make; true)",
            "cat > a.py <<'EOF'\nprint(1)\nEOF\npython a.py | head",
            "echo 'selec 1;' | sqlite3 a.db | head",
            "if ! make; then echo bad; fi",
            "bash -lc 'npm test 2>&1 | tail -3'",
            "bash -lc 'npm test | tail -3' 2>&1",
            "make || exit 0",
            "make || { echo failed; true; }",
            "make || { echo failed; exit; }",
            "npm test | tail; exit $?",
            "if [ -f x ]; then npm test; fi; echo done",
            "for f in *.js; do node $f; done",
            "(npm test; true) 2>&1",
        ] {
            assert!(CommandLine::new(line).hides_failures(), "{line}");
        }
        for line in [
            "npm test",
            "cd /x && make",
            "set -o pipefail; npm test | tail",
            "set -euo pipefail\nmake | tail\nmake install",
            "cat build.log | tail",
            "npm test | tail; cat build.log",
            "make || exit 1",
            "echo 'a|b; c' && make",
            "make # | tail",
            "make > build.log 2>&1; true",
            "",
            "echo '1 + 1' | bc",
            "python3 - <<'P'\na; b | c\nP",
            "python3 -c 'a = 1; print(a) | 2'",
            "echo $(cat x | wc -l) && make",
            "(cd app && npm test) 2>&1",
            "git commit -m \"$(cat <<'EOF'\na; \"b\" | c\nEOF\n)\"",
            "make || exit",
            "make || { echo failed; exit 1; }",
            "if [ -f x ]; then npm test; fi",
            "if [ -f x ]; then npm test; else echo none; fi 2>&1",
            "npm test | tail; exit ${PIPESTATUS[0]}",
            "make; rc=$?; echo rc=$rc; exit $rc",
        ] {
            assert!(!CommandLine::new(line).hides_failures(), "{line}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_line_can_be_divided(line in "[a|&;<>(){}'\"`$#\\\\ \n=Eé-]{0,40}") {
            let command = CommandLine::new(&line);
            let _ = (command.shows(), command.answers(), command.hides_failures());
            proptest::prop_assert!(line.contains(&command.speaker()));
        }
    }
}
