//! A mistake in a rules file, and what the parsers of TOML and of regexes say of one, in words for whoever wrote it.

use std::ops::Range;

use regex_syntax::Error as SyntaxError;

use crate::words::did_you_mean;

/// Where the format is told.
const CHAPTER: &str = "the chapter \"Your own rules\" of the README has all keys and their types";

/// A mistake in a rules file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where in the text, in bytes.
    pub span: Range<usize>,
    /// The key it is about.
    pub key: String,
    /// What is wrong.
    pub problem: String,
    /// What to do.
    pub mend: String,
}

/// A mistake of form, or a key that is none.
pub fn toml_problem(error: &toml::de::Error) -> Problem {
    let message = error.message().trim_end();
    let (problem, mend) = unknown_key(message).unwrap_or_else(|| (message.to_owned(), CHAPTER.to_owned()));
    Problem { span: error.span().unwrap_or_default(), key: String::new(), problem, mend }
}

/// The parser's message on a key that is none, which names all that are: the nearest of them is more help.
fn unknown_key(message: &str) -> Option<(String, String)> {
    let mut quoted = message.strip_prefix("unknown field ")?.split('`').skip(1).step_by(2);
    let key = quoted.next()?;
    let mend = did_you_mean(key, &quoted.collect::<Vec<_>>()).unwrap_or_else(|| CHAPTER.to_owned());
    Some((format!("unknown key `{key}`"), mend))
}

/// The last line of the message: the others draw the regex.
pub fn syntax_message(error: &SyntaxError) -> String {
    error.to_string().lines().last().unwrap_or("the regex does not parse").trim().to_owned()
}
