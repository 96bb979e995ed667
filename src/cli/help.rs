//! The help texts in the width of the terminal. clap wraps what it writes itself, but it breaks examples and what follows them
//! at any word; here a description stays in its column, or moves below its command, and prose is filled anew.

use std::os::fd::AsFd;

use clap::Command;

/// Wider text is hard to read.
const MOST: usize = 100;
/// Least width of the column of descriptions; with less, they stand below their commands.
const LEAST_SAID: usize = 32;
/// Indentation of a description below its command, and of the further lines of a long command.
const BELOW: usize = 6;
/// A line that begins this deep goes on with the description above it.
const DEEP: usize = 8;

/// An example, and what it does.
struct Example {
    command: String,
    said: String,
}

/// Returns the command line with its help in the width of the terminal.
pub fn fitted(command: Command) -> Command {
    let room = columns().unwrap_or(MOST).min(MOST);
    within(command.term_width(room), room)
}

/// Returns the columns of the terminal, also if only stderr or stdin is one: the help may go to a pager.
fn columns() -> Option<usize> {
    let of = |stream: &dyn AsFd| rustix::termios::tcgetwinsize(stream.as_fd()).ok().map(|size| usize::from(size.ws_col)).filter(|&columns| columns > 0);
    let terminal = of(&std::io::stdout()).or_else(|| of(&std::io::stderr())).or_else(|| of(&std::io::stdin()));
    terminal.or_else(|| std::env::var("COLUMNS").ok()?.parse().ok().filter(|&columns| columns > 0))
}

fn within(command: Command, room: usize) -> Command {
    let after = command.get_after_help().map(|text| fit(&text.to_string(), room));
    let command = after.into_iter().fold(command, Command::after_help);
    command.mut_subcommands(|below| within(below, room))
}

/// Fits the examples and the prose of a text.
fn fit(text: &str, room: usize) -> String {
    text.split("\n\n").map(|block| fit_block(block, room).join("\n")).collect::<Vec<_>>().join("\n\n")
}

fn fit_block(block: &str, room: usize) -> Vec<String> {
    let (mut out, mut prose, mut examples, mut column) = (Vec::new(), Vec::new(), Vec::<Example>::new(), 0);
    for line in block.lines() {
        let bare = line.trim_start();
        let indent = line.len() - bare.len();
        match examples.last_mut() {
            _ if indent == 0 => prose.push(bare),
            Some(last) if indent >= DEEP => last.said = format!("{} {bare}", last.said).trim_start().to_owned(),
            _ => {
                let (command, said) = bare.split_once("  ").unwrap_or((bare, ""));
                let said = said.trim_start();
                column = if said.is_empty() { column } else { column.max(line.chars().count() - said.chars().count()) };
                examples.push(Example { command: command.to_owned(), said: said.to_owned() });
            }
        }
    }
    // In a block, prose is only a heading, or there are no examples.
    out.extend(filled(&prose.join(" "), room, 0));
    out.extend(examples.iter().flat_map(|example| example.lines(column, room)));
    out
}

impl Example {
    /// Returns its lines; `column`: where descriptions begin.
    fn lines(&self, column: usize, room: usize) -> Vec<String> {
        let is_beside = column + LEAST_SAID <= room;
        let indent = if is_beside { column } else { BELOW };
        let mut lines = filled(&self.command, room.saturating_sub(2), BELOW - 2);
        lines.iter_mut().for_each(|line| line.insert_str(0, "  "));
        let mut said = filled(&self.said, room.saturating_sub(indent), 0).into_iter();
        let last = lines.last_mut().filter(|last| is_beside && last.chars().count() + 2 <= column);
        if let Some((last, first)) = last.and_then(|last| Some((last, said.next()?))) {
            *last = format!("{last:<column$}{first}");
        }
        lines.extend(said.map(|line| format!("{:indent$}{line}", "")));
        lines
    }
}

/// Fills lines of at most `room` characters with words; further lines are indented by `hang`. A longer word has a line of its own.
fn filled(text: &str, room: usize, hang: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= room => {
                line.push(' ');
                line.push_str(word);
            }
            Some(_) => lines.push(format!("{:hang$}{word}", "")),
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::args::Cli;

    fn all(command: &Command, texts: &mut Vec<String>) {
        texts.extend(command.get_after_help().map(ToString::to_string));
        command.get_subcommands().for_each(|below| all(below, texts));
    }

    fn words(text: &str) -> Vec<&str> {
        text.split_whitespace().collect()
    }

    #[test]
    fn no_line_is_wider_and_no_word_is_lost() {
        let (mut before, mut count) = (Vec::new(), 0);
        all(&Cli::command(), &mut before);
        for room in [40, 60, 79, 80, 100] {
            let mut after = Vec::new();
            all(&within(Cli::command(), room), &mut after);
            for (before, after) in before.iter().zip(&after) {
                assert_eq!(words(before), words(after));
                let too_wide = |line: &&str| line.chars().count() > room && line.trim().contains(' ');
                assert_eq!(after.lines().find(too_wide), None, "{room}");
                count += 1;
            }
        }
        assert!(count > 60, "{count}");
    }

    #[test]
    fn a_description_stays_in_its_column_or_moves_below() {
        let text = "Examples:\n  siftd scan a.log           the errors of one log, in colour, as they come\n  siftd scan --much --more b.log\n                             of another\n\nWhat follows is\nprose.";
        let wide = "Examples:\n  siftd scan a.log           the errors of one log, in colour,\n                             as they come\n  siftd scan --much --more b.log\n                             of another\n\nWhat follows is prose.";
        assert_eq!(fit(text, 64), wide);
        let narrow = "Examples:\n  siftd scan a.log\n      the errors of one log, in colour, as\n      they come\n  siftd scan --much --more b.log\n      of another\n\nWhat follows is prose.";
        assert_eq!(fit(text, 42), narrow);
    }
}
