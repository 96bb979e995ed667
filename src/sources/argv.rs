//! A command line as records show it: without secrets, and bounded.

use std::ffi::OsString;

use crate::core::redact::Redactor;

/// Maximum number of words.
const MAX_WORDS: usize = 64;
/// Maximum characters of a word.
const MAX_CHARS: usize = 400;

/// Returns the words of `argv`, safe to be written down.
#[must_use]
pub fn shown(argv: &[OsString]) -> Vec<String> {
    let redactor = Redactor::builtin();
    let mut words: Vec<String> = argv.iter().take(MAX_WORDS).map(|word| word.to_string_lossy().into_owned()).collect();
    for at in 0..words.len() {
        let clean = redactor.redact(&words[at], &mut 0).into_owned();
        let clean = place_of(redactor, &words[..at], &words[at]).unwrap_or(clean);
        let flag_before = at.checked_sub(1).filter(|&before| words[before].starts_with('-') && !words[before].contains('='));
        words[at] = match flag_before.and_then(|before| value_of(redactor, &words[before], &words[at])) {
            Some(value) => value,
            None => clean,
        };
        if let Some((end, _)) = words[at].char_indices().nth(MAX_CHARS) {
            words[at].truncate(end);
            words[at].push('…');
        }
    }
    if argv.len() > MAX_WORDS {
        words.push(format!("… {} more", argv.len() - MAX_WORDS));
    }
    words
}

/// Redacts a word that its position shows to be a secret, such as `alice:…` after `curl -u`.
fn place_of(redactor: &Redactor, before: &[String], word: &str) -> Option<String> {
    let program = before.first()?.rsplit('/').next()?;
    let verb = before.get(1).filter(|verb| before.len() > 2 && !verb.starts_with('-'));
    let flag = before.last().filter(|_| before.len() > 1);
    let mut head = format!("{program} ");
    verb.into_iter().chain(flag).for_each(|part| head += &format!("{part} "));
    let mut count = 0;
    let clean = redactor.redact(&format!("{head}{word}"), &mut count).into_owned();
    clean.strip_prefix(&head).filter(|_| count > 0).map(str::to_owned)
}

/// Redacts the value of a flag such as `--password`, if the two together are a secret.
fn value_of(redactor: &Redactor, flag: &str, value: &str) -> Option<String> {
    let head = format!("{}=", flag.trim_start_matches('-'));
    let mut count = 0;
    let clean = redactor.redact(&format!("{head}{value}"), &mut count).into_owned();
    (count > 0).then(|| clean.strip_prefix(&head).map_or(clean.clone(), str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_go_and_the_rest_stays() {
        let argv = ["curl", "--password", "hunter2secret", "-H", "Authorization: Bearer abcdef0123456789abcdef", "https://u:p4ssw0rd@host/x", "-v", "plain"];
        let words = shown(&argv.map(OsString::from));
        assert_eq!((&*words[0], &*words[1], &*words[6], &*words[7]), ("curl", "--password", "-v", "plain"));
        for secret in ["hunter2", "abcdef0123456789", "p4ssw0rd"] {
            assert!(!words.iter().any(|word| word.contains(secret)), "{words:?}");
        }
        for (argv, want) in [
            (&["/usr/bin/curl", "-s", "-u", "alice:hunter2", "x"][..], "alice:[redacted:password]"),
            (&["mysql", "-uroot", "-phunter2", "db"], "-p[redacted:password]"),
            (&["docker", "login", "-u", "alice", "-p", "hunter2"], "[redacted:password]"),
            (&["git", "push", "-u", "origin"], "origin"),
            (&["docker", "run", "-p", "80:80"], "80:80"),
        ] {
            let words = shown(&argv.iter().map(OsString::from).collect::<Vec<_>>());
            assert!(words.iter().any(|word| word == want) && !words.iter().any(|word| word.contains("hunter2")), "{words:?}");
        }
        let many = vec![OsString::from("x".repeat(1000)); 100];
        assert!(shown(&many).len() == MAX_WORDS + 1 && shown(&many)[0].chars().count() == MAX_CHARS + 1);
    }
}
