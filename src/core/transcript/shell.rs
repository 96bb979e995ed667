//! A shell's grammar in outline (POSIX.1-2024, Shell Command Language, 2.10), enough to tell apart the commands of a line:
//! lists and pipelines are divided; quotes, substitutions, heredocs and comments are passed over. Knows no command.

/// Levels of substitutions within quotes within substitutions that are told apart.
const MAX_LEVELS: usize = 8;

/// Commands of which each reads what the one before it prints; at least one.
pub struct Pipeline<'a> {
    /// The commands.
    pub commands: Vec<Command<'a>>,
    /// What follows.
    pub end: End,
}

/// One command with its arguments and redirections.
pub struct Command<'a> {
    /// As it is written.
    pub text: &'a str,
    /// Whether its output goes into a file.
    pub is_saved: bool,
}

/// What follows a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// `&&`, or nothing: the line fails with it.
    Tied,
    /// `;` or a new line.
    Loose,
    /// `||`
    Otherwise,
    /// `&`
    Background,
}

/// Divides a command line. What a group holds is divided like the rest of the line.
#[must_use]
pub fn divide(line: &str) -> Vec<Pipeline<'_>> {
    let mut reader = Reader { line: script(line), at: 0, from: 0, open: 0, is_behind_group: false, is_saved: false, ..Reader::default() };
    reader.read();
    reader.pipelines
}

/// Walks over a command line.
#[derive(Default)]
struct Reader<'a> {
    line: &'a str,
    at: usize,
    /// Where the current command begins.
    from: usize,
    /// Number of open subshells.
    open: usize,
    /// Whether what is read are the redirections of a subshell.
    is_behind_group: bool,
    is_saved: bool,
    /// The delimiters of the heredocs whose bodies begin with the next line.
    heredocs: Vec<&'a str>,
    commands: Vec<Command<'a>>,
    pipelines: Vec<Pipeline<'a>>,
}

impl Reader<'_> {
    fn read(&mut self) {
        while let Some(&byte) = self.line.as_bytes().get(self.at) {
            match byte {
                b'\\' => self.at += 2,
                b'\'' | b'"' | b'`' => self.at = quoted(self.line, self.at, MAX_LEVELS),
                b'$' if self.next_is("$(") => self.at = substituted(self.line, self.at + 1, MAX_LEVELS),
                b'#' if self.begins_word() => self.at = line_end(self.line, self.at),
                b'<' | b'>' if self.next_is("<(") || self.next_is(">(") => self.at = substituted(self.line, self.at + 1, MAX_LEVELS),
                b'<' if self.next_is("<<<") => self.at += 3,
                b'<' if self.next_is("<<") => {
                    let (delimiter, end) = heredoc(self.line, self.at);
                    self.heredocs.push(delimiter);
                    self.at = end;
                }
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

    /// Passes `>` and its relatives: `2>&1` and `2>file` leave the output alone.
    fn redirect(&mut self) {
        let before = self.line.as_bytes()[..self.at].last();
        let rest = self.line[self.at..].trim_start_matches('>');
        self.is_saved |= before != Some(&b'2') && !rest.starts_with('&');
        self.at = self.line.len() - rest.len() + usize::from(rest.starts_with('&'));
    }

    /// A parenthesis divides where it opens or ends a subshell, or ends a pattern of `case`.
    fn parenthesis(&mut self) {
        if self.next_is(")") && self.open == 0 {
            return self.end_pipeline(End::Tied, 1);
        }
        if self.next_is(")") {
            self.end_command_here();
            self.from = self.at + 1;
            self.is_behind_group = true;
            self.open -= 1;
        } else if self.line[self.from..self.at].trim().is_empty() {
            self.open += 1;
            self.from = self.at + 1;
        }
        self.at += 1;
    }

    /// Ends the line, and passes over the bodies of its heredocs.
    fn end_line(&mut self) {
        self.end_pipeline(End::Loose, 1);
        self.at = after_bodies(self.line, self.at, &std::mem::take(&mut self.heredocs));
        self.from = self.at;
    }

    fn end_command_here(&mut self) {
        let text = self.line[self.from..self.at.min(self.line.len())].trim();
        if self.is_behind_group {
            if let Some(last) = self.commands.last_mut() {
                last.is_saved |= self.is_saved;
            }
        } else if !text.is_empty() {
            self.commands.push(Command { text, is_saved: self.is_saved });
        }
        (self.is_saved, self.is_behind_group) = (false, false);
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

/// Returns the script of `bash -lc 'SCRIPT' 2>&1`, else the line itself.
fn script(line: &str) -> &str {
    let words = line.split_once(' ').and_then(|(shell, rest)| Some((shell, rest.split_once(' ')?)));
    let Some((_, (_, script))) = words.filter(|(shell, (flag, _))| shell.ends_with("sh") && flag.starts_with('-') && flag.ends_with('c')) else { return line };
    let script = script.trim();
    if !script.starts_with(['\'', '"']) {
        return script;
    }
    let end = quoted(script, 0, MAX_LEVELS);
    let rest = script[end..].trim();
    let is_redirected = rest.starts_with(['>', '&', '2']) && rest.contains('>') && !rest.contains(['|', ';', '\n']) && !rest.contains("&&");
    if rest.is_empty() || is_redirected { &script[1..(end - 1).max(1)] } else { line }
}

/// Returns where the line of `at` ends.
fn line_end(line: &str, at: usize) -> usize {
    memchr::memchr(b'\n', &line.as_bytes()[at..]).map_or(line.len(), |length| at + length)
}

/// Returns the delimiter of the heredoc whose `<<` stands at `at`, and where it ends.
fn heredoc(line: &str, at: usize) -> (&str, usize) {
    let rest = line[at..].trim_start_matches(['<', '-', ' ']);
    let rest = rest.trim_start_matches(['\'', '"', '\\']);
    let length = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    (&rest[..length], line.len() - rest[length..].trim_start_matches(['\'', '"']).len())
}

/// Returns the end of the bodies of heredocs that begin at `at`.
fn after_bodies(line: &str, mut at: usize, delimiters: &[&str]) -> usize {
    for delimiter in delimiters {
        let body = line[at..].split_inclusive('\n');
        at += body.take_while(|line| line.trim() != *delimiter).map(str::len).sum::<usize>();
        at = line.len().min(line_end(line, at) + 1);
    }
    at
}

/// Returns the end of the quotation that begins at `at`.
fn quoted(line: &str, at: usize, levels: usize) -> usize {
    let bytes = line.as_bytes();
    let mark = bytes[at];
    let mut end = at + 1;
    while end < bytes.len() && bytes[end] != mark {
        match bytes[end] {
            b'\\' if mark != b'\'' => end += 2,
            b'$' if mark == b'"' && bytes.get(end + 1) == Some(&b'(') && levels > 0 => end = substituted(line, end + 1, levels - 1),
            _ => end += 1,
        }
    }
    (end + 1).min(bytes.len())
}

/// Returns the end of the substitution whose parenthesis stands at `at`.
fn substituted(line: &str, at: usize, levels: usize) -> usize {
    let bytes = line.as_bytes();
    let (mut end, mut depth, mut heredocs) = (at, 0_usize, Vec::new());
    while end < bytes.len() {
        match bytes[end] {
            b'(' => depth += 1,
            b')' if depth == 1 => return end + 1,
            b')' => depth -= 1,
            b'\\' => end += 1,
            b'\'' | b'"' => {
                end = quoted(line, end, levels);
                continue;
            }
            b'<' if bytes[end..].starts_with(b"<<<") => end += 2,
            b'<' if bytes[end..].starts_with(b"<<") => {
                let (delimiter, after) = heredoc(line, end);
                heredocs.push(delimiter);
                end = after;
                continue;
            }
            b'\n' => {
                end = after_bodies(line, end + 1, &std::mem::take(&mut heredocs));
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

    /// Writes the commands of a line apart: `|` within a pipeline, then the sign after it.
    fn divided(line: &str) -> String {
        let command = |command: &Command| format!("{}{}", command.text, if command.is_saved { ">" } else { "" });
        let pipeline = |pipeline: &Pipeline| {
            let sign = match pipeline.end {
                End::Tied => "",
                End::Loose => ";",
                End::Otherwise => "||",
                End::Background => "&",
            };
            pipeline.commands.iter().map(command).collect::<Vec<_>>().join(" | ") + sign
        };
        divide(line).iter().map(pipeline).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_line_is_divided() {
        for (line, want) in [
            ("a && b | c; d &", "a b | c; d&"),
            ("a || b\nc", "a|| b; c"),
            ("a 2>&1 >f", "a 2>&1 >f>"),
            ("echo 'a;b' \"c|d\" `e;f` \\; g", "echo 'a;b' \"c|d\" `e;f` \\; g"),
            ("a $(b; c | d) e", "a $(b; c | d) e"),
            ("a # b; c", "a # b; c"),
            ("diff <(b; c) <(d | e) && f", "diff <(b; c) <(d | e) f"),
            ("(cd a && b) 2>&1", "cd a b"),
            ("(a; b) > f && c", "a; b> c"),
            ("case $x in a) b;; esac", "case $x in a b; esac"),
            ("cat > f <<'E'\na; b\nE\nc", "cat > f <<'E'>; c"),
            ("a <<< 'b;c'", "a <<< 'b;c'"),
            ("git commit -m \"$(cat <<'EOF'\na; \"b\" don't | c\nEOF\n)\" && d", "git commit -m \"$(cat <<'EOF'\na; \"b\" don't | c\nEOF\n)\" d"),
            ("git commit -m \"a $(date \"+%F; %T\")\"; d", "git commit -m \"a $(date \"+%F; %T\")\"; d"),
            ("bash -lc 'a | b'", "a | b"),
            ("bash -lc 'a | b' 2>&1", "a | b"),
            ("sh -c \"a\" && b", "sh -c \"a\" b"),
            ("bash -lc a", "a"),
            ("bash -c '", ""),
        ] {
            assert_eq!(divided(line), want, "{line}");
        }
    }

    #[test]
    fn nesting_is_bounded() {
        for unit in ["\"$(", "$(", "(", "'", "<<"] {
            assert!(divide(&unit.repeat(100_000)).len() < 2);
        }
    }
}
