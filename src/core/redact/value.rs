//! Whether what a pattern found is worth hiding: a secret rather than prose, code, a placeholder or a name.

use regex::Captures;
use serde::Deserialize;

/// What a secret must also look like.
#[derive(Clone, Copy, Deserialize, Default, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(super) enum Value {
    #[default]
    Any,
    /// Letters and digits.
    Mixed,
    /// User and password of a URL, or a token in their place.
    Userinfo,
    /// What follows a key.
    Assigned,
    /// What follows a key that is also an ordinary word.
    Hinted,
    /// What follows a flag that is named after it.
    Flag,
    /// What a program takes for a password by its position.
    Argument,
    /// User and password in base64.
    Login,
}

/// Words that are no secret, from the patterns' file.
pub(super) struct Plain {
    /// What documentation writes in place of a secret.
    pub(super) placeholders: Vec<String>,
    /// Words that text uses after a flag's name.
    pub(super) prose: Vec<String>,
}

impl Plain {
    /// Whether `found`, the last group of `caps` in `text`, is a secret of this kind.
    pub(super) fn accepts(&self, value: Value, text: &str, caps: &Captures, found: &str) -> bool {
        match value {
            Value::Any => true,
            Value::Mixed => is_mixed(found),
            Value::Userinfo => self.is_userinfo(found),
            Value::Flag => caps.get(0).is_some_and(|whole| self.is_flag(whole.as_str(), found, &text[whole.end()..])),
            Value::Argument => !self.says_nothing(found) && !found.starts_with('-') && !is_pair_of_numbers(found),
            Value::Login => is_login(found),
            Value::Hinted => caps.get(0).is_some_and(|whole| self.is_hinted(text, whole.start(), whole.as_str(), found)),
            Value::Assigned => caps.get(0).is_some_and(|whole| self.is_assigned(text, whole.start(), whole.as_str(), found)),
        }
    }

    /// Whether the value of `key = value`, which starts at `start`, is a secret rather than prose, code or a placeholder.
    fn is_assigned(&self, text: &str, start: usize, whole: &str, value: &str) -> bool {
        let head = &whole[..whole.len() - value.len()];
        let key = key_of(head);
        let quoted = head.ends_with(['"', '\'']);
        if self.says_nothing(value) || (key == "pwd" && value.starts_with(['/', '~'])) {
            return false;
        }
        let weak = key.ends_with("token") || key.starts_with("credential");
        if weak && (value.len() < 6 || value.bytes().all(|b| b.is_ascii_digit()) || !value.bytes().any(|b| b.is_ascii_alphanumeric())) {
            return false;
        }
        // `second_pass=12` counts.
        if key == "_pass" && (value.len() < 4 || value.bytes().all(|b| b.is_ascii_digit())) {
            return false;
        }
        // `key = await f()` is displayed code; a value on its own has digits if it is worth anything.
        let alone = !weak && stands_alone(text, start, start + whole.len(), value);
        if !quoted && head.ends_with(' ') && head.contains('=') {
            return is_mixed(value) || alone;
        }
        // `key: value` is prose more often than data: "Invalid token: foo".
        let prose = !quoted && !head.contains('=') && !head.ends_with(':');
        !prose || (!complains(&text[..start]) && (is_mixed(value) && value.len() >= 6 || alone))
    }

    /// Whether the value of `pass = value`, which starts at `start`, is a secret rather than a count, a time, a path, or the name of a test or a compiler's pass.
    fn is_hinted(&self, text: &str, start: usize, whole: &str, value: &str) -> bool {
        let head = &whole[..whole.len() - value.len()];
        let unit = value.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').len();
        let is_amount = value.starts_with(|c: char| c.is_ascii_digit()) && unit <= 3;
        let is_name = value.contains(['/', ':']) || value.to_ascii_lowercase().contains("test");
        let is_prose = key_of(head) == "pass" && head.ends_with([':', ' ']) && !head.contains('=') && !stands_alone(text, start, start + whole.len(), value);
        value.len() >= 6 && is_mixed(value) && !is_amount && !is_name && !is_prose && self.is_assigned(text, start, whole, value)
    }

    /// Whether it holds a password, or a token that needs none.
    fn is_userinfo(&self, found: &str) -> bool {
        match found.rsplit_once(':') {
            Some((_, password)) if !password.is_empty() => !self.says_nothing(password),
            Some((user, _)) => user.len() >= 16 && is_mixed(user),
            None => found.len() >= 20 && is_mixed(found) && !self.says_nothing(found),
        }
    }

    /// Whether `value`, the end of `whole`, is given to a flag, rather than a word about it, a file or a name.
    fn is_flag(&self, whole: &str, value: &str, after: &str) -> bool {
        let head = &whole[..whole.len() - value.len()];
        let bare = value.trim_end_matches(['.', ',', ':', '!', '?']);
        let names = bare.split_once('=').is_some_and(|(name, _)| name.len() < 8 && name.bytes().all(|b| b.is_ascii_lowercase()));
        if self.says_nothing(value) || value.starts_with(['-', '/', '~', '.', '@', ':']) || names {
            return false;
        }
        let is_password = head.to_ascii_lowercase().contains("pass");
        let has_case = bare.bytes().skip(1).any(|b| b.is_ascii_uppercase()) && bare.bytes().any(|b| b.is_ascii_lowercase());
        let has_sign = is_password && bare.bytes().any(|b| b.is_ascii_punctuation() && !b"-_.,:;/'".contains(&b));
        if is_mixed(bare) || has_case || has_sign {
            return true;
        }
        // A word of letters counts at the end of the line, or before the next flag.
        let is_last = after.trim_start_matches(['"', '\'']).lines().next().is_none_or(|rest| rest.is_empty() || rest.starts_with(" -"));
        let is_word = bare.bytes().all(|b| b.is_ascii_lowercase()) || bare.bytes().all(|b| b.is_ascii_digit());
        let is_quoted = head.ends_with(['"', '\'']);
        is_password && bare.len() >= 4 && (is_quoted || (bare == value && is_word && is_last)) && !self.prose.iter().any(|word| word == bare)
    }

    /// Whether there is nothing to hide: stars, placeholders, references to variables, calls.
    fn says_nothing(&self, value: &str) -> bool {
        let bare = value.trim_matches(['"', '\'', '`', ',', ';', ')']);
        bare.is_empty()
            || bare.starts_with(['$', '%', '<', '{', '(', '['])
            || bare.contains(['(', '*', '…'])
            || bare.contains("...")
            || bare.contains("[redacted")
            || bare.contains("os.environ")
            || bare.contains("process.env")
            || bare.bytes().all(|b| matches!(b, b'x' | b'X' | b'.' | b'-' | b'_' | b'?' | b'#'))
            || bare.bytes().all(|b| !b.is_ascii_alphanumeric() && b < 0x80)
            || self.placeholders.iter().any(|word| bare.trim_end_matches('.').eq_ignore_ascii_case(word))
    }
}

/// Returns the key, in lower case, with which the text before a value begins.
fn key_of(head: &str) -> String {
    head.split(['"', '\'', '\\', ' ', '\t', '=', ':']).next().unwrap_or_default().to_ascii_lowercase()
}

/// Whether the value has letters and digits.
fn is_mixed(value: &str) -> bool {
    value.bytes().any(|b| b.is_ascii_digit()) && value.bytes().any(|b| b.is_ascii_alphabetic())
}

/// Whether the value is a pair of numbers: `8080:80`, `1000:1000`.
fn is_pair_of_numbers(value: &str) -> bool {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    value.split_once(':').is_some_and(|(left, right)| is_number(left) && is_number(right))
}

/// Whether the value is base64 of `user:password`: only printable text, and a colon.
fn is_login(value: &str) -> bool {
    const SIGNS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bits, mut held, mut colon) = (0_u32, 0, false);
    for sign in value.bytes().take_while(|b| *b != b'=') {
        let Some(six) = SIGNS.iter().position(|known| *known == sign) else { return false };
        (bits, held) = (bits << 6 | six as u32, held + 6);
        if held >= 8 {
            held -= 8;
            let byte = (bits >> held & 0xff) as u8;
            colon |= byte == b':';
            if byte.is_ascii_control() || byte >= 0xf8 {
                return false;
            }
        }
    }
    colon
}

/// Whether the word before a key makes what follows a complaint about it.
fn complains(before: &str) -> bool {
    const WORDS: &[&str] = &["unexpected", "invalid", "illegal", "unknown", "expected", "missing", "bad", "near", "unrecognized", "undefined", "wrong"];
    let last = before.trim_end().rsplit([' ', '\t', '(', '[']).next().unwrap_or_default();
    WORDS.iter().any(|word| last.eq_ignore_ascii_case(word))
}

/// Whether `key: value` is all that its line says, as in YAML.
fn stands_alone(text: &str, start: usize, end: usize, value: &str) -> bool {
    let line = text[..start].rsplit('\n').next().unwrap_or_default();
    let key = line.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b' ' | b'\t' | b'-' | b'_' | b'.'));
    let one_word = !line.trim_start_matches([' ', '\t', '-']).contains(' ');
    key && one_word && value.len() >= 6 && text[end..].lines().next().is_none_or(|rest| rest.trim().is_empty())
}
