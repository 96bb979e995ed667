//! What a command line runs, as far as that tells whose output a result is, and whether the exit code speaks for all of
//! it. Knows a shell's grammar in outline (POSIX.1-2024, Shell Command Language, 2.10): lists and pipelines are told
//! apart, quotes, substitutions, heredocs and comments are skipped. What cannot be told counts as part of the command.

use std::borrow::Cow;

use super::phrases::shell;

/// A command line as a shell divides it.
pub struct CommandLine<'a> {
    pipelines: Vec<Pipeline<'a>>,
}

/// Commands of which each reads what the one before it prints.
struct Pipeline<'a> {
    commands: Vec<Command<'a>>,
    end: End,
}

struct Command<'a> {
    text: &'a str,
    /// Whether its output goes into a file.
    is_saved: bool,
}

/// What follows a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// `&&`, or nothing: the line fails with it.
    Tied,
    /// `;` or a new line.
    Loose,
    /// `||`
    Otherwise,
    /// `&`
    Background,
}

impl<'a> CommandLine<'a> {
    /// Divides a command line.
    #[must_use]
    pub fn new(line: &'a str) -> Self {
        let line = script(line);
        let mut reader = Reader { line, at: 0, from: 0, is_saved: false, heredocs: Vec::new(), commands: Vec::new(), pipelines: Vec::new() };
        reader.read();
        Self { pipelines: reader.pipelines }
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

    /// Returns the beginning of `output` in which the command that only shows something speaks for itself:
    /// `cat: nosuch: No such file or directory`, or git's `fatal: bad revision 'nosuch'` and all that follows it.
    #[must_use]
    pub fn own<'o>(&self, output: &'o str) -> &'o str {
        let bare = self.deciding().map(|command| command.bare().into_owned()).unwrap_or_default();
        let name = bare.split(' ').next().unwrap_or_default();
        let begins = |head: &str| output.trim_start().starts_with(head);
        if name == "git" && (begins("fatal: ") || begins("error: ") && !prints_file(&bare)) {
            return output;
        }
        let is_own = |line: &&str| line.trim_end().is_empty() || !name.is_empty() && line.strip_prefix(name).is_some_and(|rest| rest.starts_with(": "));
        &output[..output.split_inclusive('\n').take_while(is_own).map(str::len).sum()]
    }

    /// Whether a command may have failed although the exit code is 0, and no part of the line shows what is written
    /// somewhere: `npm test 2>&1 | tail -20`, `pytest || true`, `make; echo done`, `./serve &`.
    #[must_use]
    pub fn hides_failures(&self) -> bool {
        let (stops, pipes) = self.options();
        let mut hides = false;
        for (at, pipeline) in self.pipelines.iter().enumerate() {
            let command = pipeline.main();
            let bare = command.bare();
            if command.is_saved || shell().is_quiet(&bare) {
                continue;
            }
            if shell().shows(&bare) {
                return false;
            }
            let next = self.pipelines.get(at + 1);
            hides |= !pipes && !std::ptr::eq(command, pipeline.last())
                || match pipeline.end {
                    End::Tied => false,
                    End::Loose => !stops && next.is_some(),
                    End::Otherwise => !next.is_some_and(|next| next.main().bare().starts_with("exit ") && next.main().bare() != "exit 0"),
                    End::Background => true,
                };
        }
        hides
    }

    /// Whether the shell was told to stop at the first failure (`-e`), and to fail with any part of a pipeline (`pipefail`).
    fn options(&self) -> (bool, bool) {
        let set = self.pipelines.iter().map(|pipeline| pipeline.main().bare()).filter(|command| command.starts_with("set "));
        set.fold((false, false), |(stops, pipes), command| {
            let is_short = |word: &str| word.starts_with('-') && !word.starts_with("--") && word.contains('e');
            (stops || command.split(' ').any(is_short), pipes || command.contains("pipefail"))
        })
    }

    /// Returns the last command that says something of its own, else the last one.
    fn deciding(&self) -> Option<&Command<'a>> {
        let speaks = |pipeline: &&Pipeline| !shell().is_quiet(&pipeline.main().bare());
        self.pipelines.iter().rfind(speaks).or(self.pipelines.last()).map(Pipeline::main)
    }
}

impl<'a> Pipeline<'a> {
    /// Returns the command that decides about the output: the first, assuming that the
    /// others only select from it, but not one that only feeds the next, as `echo` does.
    fn main(&self) -> &Command<'a> {
        let feeds = |pair: &&[Command]| shell().feeds(&pair[0].bare()) && !shell().selects(&pair[1].bare());
        &self.commands[self.commands.windows(2).take_while(feeds).count()]
    }

    fn last(&self) -> &Command<'a> {
        &self.commands[self.commands.len() - 1]
    }
}

impl Command<'_> {
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

/// Whether git prints the text of a file, which may begin with any word. If it cannot, its own word is `fatal`.
fn prints_file(command: &str) -> bool {
    let mut words = command.split_ascii_whitespace().skip(1);
    match words.next() {
        Some("cat-file") => true,
        Some("show") => words.any(|word| !word.starts_with('-') && word.contains(':')),
        _ => false,
    }
}

/// Walks over a command line.
struct Reader<'a> {
    line: &'a str,
    at: usize,
    /// Where the current command begins.
    from: usize,
    is_saved: bool,
    /// The delimiters of the heredocs whose bodies begin with the next line.
    heredocs: Vec<&'a str>,
    commands: Vec<Command<'a>>,
    pipelines: Vec<Pipeline<'a>>,
}

impl<'a> Reader<'a> {
    fn read(&mut self) {
        while let Some(&byte) = self.line.as_bytes().get(self.at) {
            match byte {
                b'\\' => self.at += 2,
                b'\'' | b'"' | b'`' => self.at = quoted(self.line, self.at),
                b'$' if self.next_is("$(") => self.at = substituted(self.line, self.at + 1),
                b'#' if self.begins_word() => self.skip_to_newline(),
                b'<' if self.next_is("<<<") => self.at += 3,
                b'<' if self.next_is("<<") => self.heredoc(),
                b'>' => self.redirect(),
                b'\n' => self.end_line(),
                b';' => self.end_pipeline(End::Loose, 1),
                b'|' if self.next_is("||") => self.end_pipeline(End::Otherwise, 2),
                b'|' => self.end_command(1 + usize::from(self.next_is("|&"))),
                b'&' if self.next_is("&&") => self.end_pipeline(End::Tied, 2),
                b'&' if self.next_is("&>") => self.at += 1,
                b'&' => self.end_pipeline(End::Background, 1),
                b'(' | b')' => self.parenthesis(),
                _ => self.at += 1,
            }
        }
        self.at = self.line.len();
        self.end_pipeline(End::Tied, 0);
    }

    fn next_is(&self, sign: &str) -> bool {
        self.line.as_bytes()[self.at..].starts_with(sign.as_bytes())
    }

    fn begins_word(&self) -> bool {
        self.at == 0 || self.line.as_bytes()[self.at - 1].is_ascii_whitespace()
    }

    fn skip_to_newline(&mut self) {
        self.at = memchr::memchr(b'\n', &self.line.as_bytes()[self.at..]).map_or(self.line.len(), |length| self.at + length);
    }

    /// Notes a heredoc's delimiter.
    fn heredoc(&mut self) {
        let rest = self.line[self.at..].trim_start_matches(['<', '-', ' ']);
        let rest = rest.trim_start_matches(['\'', '"', '\\']);
        let length = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        self.heredocs.push(&rest[..length]);
        self.at = self.line.len() - rest[length..].trim_start_matches(['\'', '"']).len();
    }

    /// Passes `>` and its relatives: `2>&1` and `2>file` leave the output alone.
    fn redirect(&mut self) {
        let before = self.line.as_bytes()[..self.at].last();
        let rest = &self.line[self.at..].trim_start_matches('>');
        self.is_saved |= before != Some(&b'2') && !rest.starts_with('&');
        self.at = self.line.len() - rest.len() + usize::from(rest.starts_with('&'));
    }

    /// A parenthesis of a subshell divides, unless it stands inside a word.
    fn parenthesis(&mut self) {
        if self.line[self.from..self.at].trim().is_empty() {
            self.from = self.at + 1;
        } else if self.next_is(")") {
            self.end_command_here();
            self.from = self.at + 1;
        }
        self.at += 1;
    }

    /// Ends the line, and skips the bodies of its heredocs.
    fn end_line(&mut self) {
        self.end_pipeline(End::Loose, 1);
        for delimiter in std::mem::take(&mut self.heredocs) {
            let mut body = self.line[self.at..].split_inclusive('\n');
            self.at += body.by_ref().take_while(|line| line.trim() != delimiter).map(str::len).sum::<usize>();
            self.skip_to_newline();
            self.at = self.line.len().min(self.at + 1);
        }
        self.from = self.at;
    }

    fn end_command_here(&mut self) {
        let text = self.line[self.from..self.at.min(self.line.len())].trim();
        if !text.is_empty() {
            self.commands.push(Command { text, is_saved: self.is_saved });
        }
        self.is_saved = false;
    }

    fn end_command(&mut self, sign: usize) {
        self.end_command_here();
        self.at += sign;
        self.from = self.at;
    }

    fn end_pipeline(&mut self, end: End, sign: usize) {
        self.end_command(sign);
        let commands = std::mem::take(&mut self.commands);
        if !commands.is_empty() {
            self.pipelines.push(Pipeline { commands, end });
        }
    }
}

/// Returns the script of `bash -lc 'SCRIPT'`, else the line itself.
fn script(line: &str) -> &str {
    let words = line.split_once(' ').and_then(|(shell, rest)| Some((shell, rest.split_once(' ')?)));
    match words {
        Some((shell, (flag, script))) if shell.ends_with("sh") && flag.starts_with('-') && flag.ends_with('c') => {
            let script = script.trim();
            let inner = ['\'', '"'].into_iter().find_map(|mark| script.strip_prefix(mark)?.strip_suffix(mark));
            inner.unwrap_or(script)
        }
        _ => line,
    }
}

/// Returns the end of the quotation that begins at `at`.
fn quoted(line: &str, at: usize) -> usize {
    let bytes = line.as_bytes();
    let mark = bytes[at];
    let mut end = at + 1;
    while end < bytes.len() && bytes[end] != mark {
        end += 1 + usize::from(mark != b'\'' && bytes[end] == b'\\');
    }
    (end + 1).min(bytes.len())
}

/// Returns the end of the substitution whose parenthesis stands at `at`.
fn substituted(line: &str, at: usize) -> usize {
    let bytes = line.as_bytes();
    let (mut end, mut depth) = (at, 0_usize);
    while end < bytes.len() {
        match bytes[end] {
            b'(' => depth += 1,
            b')' if depth == 1 => return end + 1,
            b')' => depth -= 1,
            b'\'' | b'"' => {
                end = quoted(line, end);
                continue;
            }
            _ => {}
        }
        end += 1;
    }
    bytes.len()
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
        ] {
            assert!(!CommandLine::new(line).hides_failures(), "{line}");
        }
    }

    #[test]
    fn what_a_showing_command_says_of_itself_comes_first() {
        let own = |line, output| CommandLine::new(line).own(output);
        assert_eq!(own("cd /x && cat nosuch", "cat: nosuch: No such file or directory\n"), "cat: nosuch: No such file or directory\n");
        assert_eq!(own("cat nosuch a.log", "cat: nosuch: No such file\nERROR: quoted"), "cat: nosuch: No such file\n");
        assert_eq!(own("git show nosuch", "fatal: bad revision\nUse '--'"), "fatal: bad revision\nUse '--'");
        assert_eq!(own("git show HEAD:nosuch", "fatal: path 'nosuch' does not exist"), "fatal: path 'nosuch' does not exist");
        assert_eq!(own("git show -s abc", "error: bad object abc"), "error: bad object abc");
        for (line, output) in
            [("git show HEAD:a.log", "error: x"), ("cd x && git -C y show --textconv 'v1:b/a.log'", "error: x"), ("git cat-file -p 1a2b", "error: x")]
        {
            assert_eq!(own(line, output), "", "{line}");
        }
        for (line, output) in [("", "cat: x"), ("cat a", ""), ("cat build.log", "make: *** [all] Error 2"), ("git log", "commit 1\nfatal: x")] {
            assert_eq!(own(line, output), "", "{line}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_line_can_be_divided(line in "[a|&;<>()'\"`$#\\\\ \n=Eé-]{0,40}", output in "[a: \n]{0,12}") {
            let command = CommandLine::new(&line);
            let _ = (command.shows(), command.answers(), command.hides_failures());
            proptest::prop_assert!(output.starts_with(command.own(&output)));
        }
    }
}
