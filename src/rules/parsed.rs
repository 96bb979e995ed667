//! A mistake in a rules file, and the messages of the TOML and regex parsers in words for the file's author.

use std::ops::Range;

use regex_syntax::Error as SyntaxError;

use crate::words::did_you_mean;

/// Points to the description of the format.
const CHAPTER: &str = "the page \"Your own rules\" (config/rules/README.md) has all keys and their types";

/// A mistake in a rules file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Byte range in the text.
    pub span: Range<usize>,
    /// The key that the mistake is about.
    pub key: String,
    /// What is wrong.
    pub problem: String,
    /// How to correct it.
    pub mend: String,
}

/// Tables of the configuration; what `rules import` makes of noise lists is one.
const CONFIG_TABLES: [&str; 10] = ["error_detection", "source", "sink", "rules", "limits", "retry", "breaker", "history", "delivery", "telemetry"];
const CONFIG_ADVICE: &str = "this is a table of the configuration: give the file to --config, and check it with `siftd check --config FILE`";

/// Describes a TOML syntax error, an unknown key or a value that its key does not take.
pub fn toml_problem(error: &toml::de::Error) -> Problem {
    let message = error.message().trim_end();
    let known = unknown_key(message).or_else(|| unknown_word(message)).or_else(|| wrong_type(message));
    let (problem, mend) = known.unwrap_or_else(|| (message.to_owned(), CHAPTER.to_owned()));
    Problem { span: error.span().unwrap_or_default(), key: String::new(), problem, mend }
}

/// Shortens the parser's message about an unknown key: it lists all known keys, but the nearest one helps more.
fn unknown_key(message: &str) -> Option<(String, String)> {
    let mut quoted = message.strip_prefix("unknown field ")?.split('`').skip(1).step_by(2);
    let key = quoted.next()?;
    if CONFIG_TABLES.contains(&key) {
        return Some((format!("unknown key `{key}`"), CONFIG_ADVICE.to_owned()));
    }
    let mend = did_you_mean(key, &quoted.collect::<Vec<_>>()).unwrap_or_else(|| CHAPTER.to_owned());
    Some((format!("unknown key `{key}`"), mend))
}

/// Says which words a key takes, in place of the parser's message about a "variant".
fn unknown_word(message: &str) -> Option<(String, String)> {
    let mut quoted = message.strip_prefix("unknown variant ")?.split('`').skip(1).step_by(2);
    let (word, words) = (quoted.next()?, quoted.collect::<Vec<_>>());
    let mend = did_you_mean(word, &words).unwrap_or_else(|| CHAPTER.to_owned());
    Some((format!("must be one of {}, not \"{word}\"", words.join(", ")), mend))
}

/// Says what a key takes in the words of TOML, not in those of the parser's language.
fn wrong_type(message: &str) -> Option<(String, String)> {
    const WORDS: [(&str, &str, &str); 5] = [
        ("a sequence", "a list", "put the values in brackets: [\"…\", \"…\"]"),
        ("a string", "a text", "put the text in quotes"),
        ("a boolean", "true or false", "write true or false, without quotes"),
        ("u32", "a whole number", "write a number without quotes"),
        ("a map", "a table", CHAPTER),
    ];
    let (given, expected) = message.strip_prefix("invalid type: ")?.split_once(", expected ")?;
    let (_, name, mend) = WORDS.iter().find(|(word, ..)| expected == *word)?;
    let named = WORDS.iter().find(|(word, ..)| word.strip_prefix("a ") == Some(given)).map(|(_, name, _)| *name);
    let given = named.or_else(|| given.strip_prefix("string ")).unwrap_or(given);
    Some((format!("must be {name}, not {given}"), (*mend).to_owned()))
}

/// Returns the last line of the message: the other lines draw the regex.
pub fn syntax_message(error: &SyntaxError) -> String {
    error.to_string().lines().last().unwrap_or("the regex does not parse").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_a_key_does_not_take() {
        let told = |text: &str| toml_problem(&toml::from_str::<crate::rules::spec::EntrySpec>(&format!("id = \"a.b\"\n{text}")).unwrap_err());
        let (word, list) = (told("severity = \"hgh\""), told("literals = \"till\""));
        assert_eq!(word.problem, "must be one of low, medium, high, blocking, not \"hgh\"");
        assert_eq!(word.mend, "did you mean `high`?");
        assert_eq!((list.problem.as_str(), list.mend.as_str()), ("must be a list, not \"till\"", "put the values in brackets: [\"…\", \"…\"]"));
        assert_eq!(told("waits = \"yes\"").problem, "must be true or false, not \"yes\"");
        assert_eq!(told("max_lines = \"5\"").problem, "must be a whole number, not \"5\"");
    }

    #[test]
    fn a_table_of_the_configuration_is_called_one() {
        let shipped: toml::Table = toml::from_str(include_str!("../../config/siftd.toml")).unwrap();
        let tables: Vec<&str> = shipped.iter().filter(|(_, value)| value.is_table()).map(|(key, _)| key.as_str()).collect();
        assert!(tables.len() > 4, "{tables:?}");
        for table in tables.into_iter().chain(["source", "sink"]) {
            let told = unknown_key(&format!("unknown field `{table}`, expected one of `rule`, `trace`"));
            assert_eq!(told, Some((format!("unknown key `{table}`"), CONFIG_ADVICE.to_owned())));
        }
    }
}
