//! The phrases of `config/transcripts.toml`: refusals, faults of the API, tools that only show something.

use std::sync::OnceLock;

use serde::Deserialize;

const BUILTIN: &str = include_str!("../../../config/transcripts.toml");
/// A refusal's own words stand within this many bytes; after them the user may have written anything.
const MAX_SAID_BYTES: usize = 400;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Phrases {
    flavour: Vec<Flavour>,
    fault: Vec<Fault>,
    retrying: Words,
    failing: Words,
    showing: Showing,
    speaking: Vec<Speaking>,
    shell: ShellWords,
    answering: Answering,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Flavour {
    name: String,
    #[serde(flatten)]
    words: Words,
}

#[derive(Deserialize)]
struct Words {
    begins: Vec<String>,
    #[serde(default)]
    within: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fault {
    words: Vec<String>,
    status: u16,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Showing {
    tools: Vec<String>,
    commands: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Speaking {
    command: String,
    begins: Vec<String>,
    maybe: Vec<String>,
    printing: Vec<String>,
    printing_place: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ShellWords {
    tools: Vec<String>,
    quiet: Vec<String>,
    leading: Vec<String>,
    feeding: Vec<String>,
    selecting: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Answering {
    commands: Vec<String>,
    comparing: Vec<String>,
    begins: Vec<String>,
    within: Vec<String>,
}

fn phrases() -> &'static Phrases {
    static PHRASES: OnceLock<Phrases> = OnceLock::new();
    PHRASES.get_or_init(|| toml::from_str(BUILTIN).expect("the phrases compiled in are parsed by a test"))
}

impl Words {
    fn matches(&self, said: &str) -> bool {
        let head = &said[..said.floor_char_boundary(MAX_SAID_BYTES)];
        self.begins.iter().any(|words| head.starts_with(words.as_str())) || self.within.iter().any(|words| head.contains(words.as_str()))
    }
}

/// Returns how a result says that no program failed: `refused`,
/// `not_permitted`, `cancelled`. Not meant for the output of a command.
pub fn flavour(said: &str) -> Option<&'static str> {
    let said = untagged(said);
    phrases().flavour.iter().find(|flavour| flavour.words.matches(said)).map(|flavour| flavour.name.as_str())
}

/// Removes the tag and the `Error: ` before what a tool says about itself.
pub fn untagged(said: &str) -> &str {
    let said = said.trim();
    let said = said.strip_prefix("<tool_use_error>").map_or(said, |inner| inner.strip_suffix("</tool_use_error>").unwrap_or(inner));
    said.strip_prefix("Error: ").unwrap_or(said).trim()
}

/// Removes the tag, and the exit code before or after a command's output.
pub fn output(said: &str) -> &str {
    let said = untagged(said);
    let said = match said.rsplit_once("Command exited with code ") {
        Some((before, code)) if before.ends_with("\n\n") && code.bytes().all(|byte| byte.is_ascii_digit()) => before.trim_end(),
        _ => said,
    };
    match said.strip_prefix("Exit code ").map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit())) {
        Some(rest) if rest.is_empty() || rest.starts_with(['\n', '\r']) => rest.trim_start(),
        _ => said,
    }
}

/// Returns the HTTP status that a word of the API stands for.
pub fn status(word: &str) -> Option<u16> {
    phrases().fault.iter().find(|fault| fault.words.iter().any(|known| known == word)).map(|fault| fault.status)
}

/// Whether a fault says that it will be retried.
pub fn is_retrying(said: &str) -> bool {
    phrases().retrying.matches(said)
}

/// Whether a result without a flag says that the call failed.
pub fn is_failing(said: &str) -> bool {
    phrases().failing.matches(said)
}

/// Whether the output of a comparison shows a difference, rather than why nothing was compared.
pub fn differs(said: &str) -> bool {
    let Answering { begins, within, .. } = &phrases().answering;
    let first = said.lines().next().unwrap_or_default();
    begins.iter().any(|words| first.starts_with(words.as_str())) || within.iter().any(|words| first.contains(words.as_str())) || is_edit(first)
}

/// Whether the line is what diff writes before the lines that differ: `3c3`, `5,7d4` (POSIX.1-2024, diff, default output format).
fn is_edit(line: &str) -> bool {
    let is_range =
        |text: &str| text.split(',').count() <= 2 && text.split(',').all(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()));
    line.split_once(['a', 'c', 'd']).is_some_and(|(from, to)| is_range(from) && is_range(to))
}

/// Whether `output` begins with words by which the command `name` speaks of itself. `prints_file`: what it shows may begin with any word.
pub fn speaks(name: &str, output: &str, prints_file: bool) -> bool {
    let begins = |words: &[String]| words.iter().any(|word| output.starts_with(word.as_str()));
    let mut known = phrases().speaking.iter().filter(|known| known.command == name);
    known.any(|known| begins(&known.begins) || !prints_file && begins(&known.maybe))
}

/// Whether the tool only shows what is written somewhere.
pub fn shows(tool: &str) -> bool {
    phrases().showing.tools.iter().any(|known| known == tool)
}

/// Whether the tool runs command lines.
pub fn is_shell(tool: &str) -> bool {
    phrases().shell.tools.iter().any(|known| known == tool)
}

/// Returns what is known about the commands of a shell.
pub fn shell() -> Shell<'static> {
    Shell(phrases())
}

/// What is known about commands, which are given without anything before them.
pub struct Shell<'a>(&'a Phrases);

impl Shell<'_> {
    /// Whether the command only shows what is written somewhere.
    pub fn shows(&self, command: &str) -> bool {
        is_one_of(command, &self.0.showing.commands)
    }

    /// Whether the command prints the text of a file, though it speaks of itself in words of its own.
    pub fn prints_file(&self, command: &str) -> bool {
        let names_place = || command.split_ascii_whitespace().any(|word| !word.starts_with('-') && word.contains(':'));
        self.0.speaking.iter().any(|known| is_one_of(command, &known.printing) || is_one_of(command, &known.printing_place) && names_place())
    }

    /// Whether an exit code of 1 is an answer of the command.
    pub fn answers(&self, command: &str) -> bool {
        is_one_of(command, &self.0.answering.commands)
    }

    /// Whether the command compares, and says with an exit code of 1 that there is a difference.
    pub fn compares(&self, command: &str) -> bool {
        is_one_of(command, &self.0.answering.comparing)
    }

    /// Whether the command says nothing about what the line is for.
    pub fn is_quiet(&self, command: &str) -> bool {
        is_one_of(command, &self.0.shell.quiet)
    }

    /// Whether the command prints what the next one of a pipeline works on.
    pub fn feeds(&self, command: &str) -> bool {
        is_one_of(command, &self.0.shell.feeding)
    }

    /// Whether the command only selects from what the one before it prints.
    pub fn selects(&self, command: &str) -> bool {
        is_one_of(command, &self.0.shell.selecting)
    }

    /// Whether the word stands before a command that it does not change.
    pub fn leads(&self, word: &str) -> bool {
        self.0.shell.leading.iter().any(|known| known == word)
    }
}

/// Whether the command is one of these.
fn is_one_of(command: &str, known: &[String]) -> bool {
    known.iter().any(|name| command.strip_prefix(name.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\n', '\t'])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flavours_are_known_by_their_beginning() {
        let table = [
            ("The user doesn't want to proceed with this tool use. The tool use was rejected", Some("refused")),
            ("<tool_use_error>Sibling tool call errored</tool_use_error>", Some("cancelled")),
            ("Claude requested permissions to write to /a, but you haven't granted it yet.", Some("not_permitted")),
            ("cd in '/etc' was blocked. For security, Claude Code may only change directories", Some("not_permitted")),
            ("<tool_use_error>File does not exist.</tool_use_error>", None),
            ("sh: 1: cannot open x: Permission denied", None),
            ("make: *** [all] Error 2\nThe user doesn't want to proceed with this tool use", None),
        ];
        for (said, want) in table {
            assert_eq!(flavour(said), want, "{said}");
        }
    }

    #[test]
    fn differences_are_known_by_their_first_line() {
        for said in ["1c1\n< a\n---\n> b", "5,7d4\n< a", "--- a\n+++ b", "diff --git a/a b/a", "Only in b: y", "a b differ: byte 1, line 1", "> a"] {
            assert!(differs(said), "{said}");
        }
        for said in ["", "diff: a: No such file or directory", "sh: 1: cd: can't cd to x", "c", "1c", "1,2,3c4", "add"] {
            assert!(!differs(said), "{said}");
        }
    }

    #[test]
    fn what_clients_write_is_known() {
        assert_eq!(output("row 5 has no price\n\nCommand exited with code 3"), "row 5 has no price");
        assert_eq!((status("overloaded_error"), status("nonsense")), (Some(529), None));
        assert!(is_retrying("stream error: it broke; retrying 2/5 in 400ms"));
    }
}
