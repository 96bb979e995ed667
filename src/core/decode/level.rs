//! The words that name a level, and where each of them is a tag. Used by every decoder.
//! Never judges a sentence, except in [`loose_level`], which its caller asks last.

use super::scan::{blanks, word};
use crate::core::event::Level;

/// Length of the longest level word.
const WORD_BYTES: usize = 13;
/// Number of words of a line that `loose_level` reads.
const LOOSE_WORDS: usize = 6;

/// Returns the level that a word names, in any case; `None` for any other word.
#[must_use]
pub fn level_word(word: &[u8]) -> Option<Level> {
    let mut lower = [0; WORD_BYTES];
    let lower = lower.get_mut(..word.len())?;
    lower.copy_from_slice(word);
    lower.make_ascii_lowercase();
    Some(match &*lower {
        b"trace" | b"trc" | b"trce" | b"trac" | b"finest" | b"finer" => Level::Trace,
        b"debug" | b"debu" | b"debg" | b"dbg" | b"dbug" | b"verbose" | b"vrb" | b"fine" => Level::Debug,
        b"info" | b"inf" | b"information" | b"informational" | b"notice" | b"note" => Level::Info,
        b"warn" | b"warning" | b"wrn" => Level::Warn,
        b"error" | b"err" | b"erro" | b"eror" | b"severe" => Level::Error,
        b"crit" | b"crt" | b"critical" | b"alert" | b"emerg" | b"emergency" | b"emer" => Level::Fatal,
        b"fatal" | b"fata" | b"fatl" | b"ftl" | b"panic" | b"pani" | b"pnc" | b"dpanic" => Level::Fatal,
        _ => return None,
    })
}

/// Returns the level named by an upper-case word that stands alone among the first six words of a sentence.
#[must_use]
pub fn loose_level(line: &[u8]) -> Option<Level> {
    let mut at = blanks(line, 0);
    for _ in 0..LOOSE_WORDS {
        let end = word(line, at);
        if let Some(level) = level_word(&line[at..end]).filter(|_| is_common(&line[at..end])) {
            return Some(level);
        }
        at = blanks(line, end);
    }
    None
}

/// Whether an upper-case word is a level even without a time before it. `NOTE`, `FINE`,
/// `ALERT`, `PANIC`, `ERR` and `VERBOSE` also begin sentences and other tools' messages.
pub fn is_common(word: &[u8]) -> bool {
    matches!(word, b"TRACE" | b"DEBUG" | b"INFO" | b"WARN" | b"WARNING" | b"ERROR" | b"SEVERE" | b"FATAL" | b"CRITICAL" | b"NOTICE")
        || matches!(word, b"DEBU" | b"ERRO" | b"EROR" | b"FATA" | b"FATL" | b"PANI")
}

/// Whether a word is a tag before a colon although it is not in upper case. `error:`, `fatal:` and
/// `panic:` are not: they begin the message itself (compilers, git, Go), as does `Trace:` (Node).
pub fn is_soft(word: &[u8]) -> bool {
    const SOFT: [&[u8]; 9] = [b"trce", b"dbug", b"debug", b"info", b"notice", b"note", b"warn", b"warning", b"critical"];
    SOFT.iter().any(|soft| soft.eq_ignore_ascii_case(word))
}

/// Returns the level of a one-letter tag of glog, logcat, Ruby or CUPS; `None` for any other letter.
pub fn letter(byte: u8) -> Option<Level> {
    Some(match byte {
        b'V' | b'T' => Level::Trace,
        b'D' | b'd' => Level::Debug,
        b'I' | b'N' => Level::Info,
        b'W' => Level::Warn,
        b'E' => Level::Error,
        b'F' | b'C' | b'A' | b'X' => Level::Fatal,
        _ => return None,
    })
}

/// Returns the level of an RFC 5424 severity: 0 emergency to 7 debug; anything above counts as debug.
pub fn severity(number: i64) -> Level {
    match number {
        ..=2 => Level::Fatal,
        3 => Level::Error,
        4 => Level::Warn,
        5 | 6 => Level::Info,
        _ => Level::Debug,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_levels() {
        let table = [
            ("trace", Some(Level::Trace)),
            ("Verbose", Some(Level::Debug)),
            ("inFO", Some(Level::Info)),
            ("Note", Some(Level::Info)),
            ("NOTICE", Some(Level::Info)),
            ("warning", Some(Level::Warn)),
            ("ERR", Some(Level::Error)),
            ("SEVERE", Some(Level::Error)),
            ("emerg", Some(Level::Fatal)),
            ("dpanic", Some(Level::Fatal)),
            ("Critical", Some(Level::Fatal)),
            ("fail", None),
            ("errors", None),
            ("", None),
            ("informationalistic", None),
            ("\u{0}", None),
        ];
        for (text, want) in table {
            assert_eq!(level_word(text.as_bytes()), want, "{text}");
        }
    }

    #[test]
    fn finds_a_level_that_stands_alone() {
        let table = [
            ("this is a DEBUG message", Some(Level::Debug)),
            ("  then ERROR", Some(Level::Error)),
            ("this is a debug message", None),
            ("one two three four five six ERROR", None),
            ("LOG_ERROR is set", None),
            ("(ERROR) x", None),
        ];
        for (text, want) in table {
            assert_eq!(loose_level(text.as_bytes()), want, "{text}");
        }
    }
}
