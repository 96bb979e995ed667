//! What the parsers of TOML and of regexes say of a mistake, in words for whoever wrote the rules file.

use regex_syntax::Error as SyntaxError;

use super::load::Problem;
use crate::words::did_you_mean;

/// Where the format is told.
const CHAPTER: &str = "the chapter \"Your own rules\" of the README has all keys and their types";

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
