//! A rules file without its examples: they are a third of its text, and only `siftd rules` reads them.
//! It knows as much of TOML as finding the end of a value takes.

/// How an entry's examples begin, at the beginning of a line.
const KEY: &str = "examples = ";

/// The file without the examples of its entries.
pub fn without_examples(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = find(rest) {
        kept.push_str(&rest[..at]);
        rest = &rest[at + KEY.len()..];
        rest = &rest[value_len(rest.as_bytes())..];
    }
    kept.push_str(rest);
    kept
}

/// Where a line with examples begins.
fn find(text: &str) -> Option<usize> {
    let begins = |at: &usize| *at == 0 || text.as_bytes()[at - 1] == b'\n';
    memchr::memmem::find_iter(text.as_bytes(), KEY).find(begins)
}

/// Length of the inline table at the front.
fn value_len(text: &[u8]) -> usize {
    let (mut at, mut depth) = (0, 0_usize);
    while let Some(next) = next_mark(&text[at..]) {
        at += next;
        match text[at] {
            b'{' => depth += 1,
            b'}' if depth <= 1 => return at + 1,
            b'}' => depth -= 1,
            b'#' => at += memchr::memchr(b'\n', &text[at..]).unwrap_or(text.len() - at) - 1,
            _ => at += string_len(&text[at..]) - 1,
        }
        at += 1;
    }
    text.len()
}

/// The next byte that tells where a value ends.
fn next_mark(text: &[u8]) -> Option<usize> {
    text.iter().position(|byte| matches!(byte, b'{' | b'}' | b'#' | b'"' | b'\''))
}

/// Length of the string at the front, quotes included.
fn string_len(text: &[u8]) -> usize {
    let quote = text[0];
    let quotes = if text.starts_with(&[quote; 3]) { 3 } else { 1 };
    let mut at = quotes;
    while at < text.len() {
        match text[at] {
            b'\\' if quote == b'"' => at += 2,
            byte if byte == quote && text[at..].starts_with(&[quote; 3][..quotes]) => {
                // Up to two quotes may stand before the closing ones.
                let run = text[at..].iter().take_while(|byte| **byte == quote).count();
                return at + if quotes == 3 { run.min(5) } else { 1 };
            }
            _ => at += 1,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::super::builtin::{FILES, WARNINGS};
    use super::super::{ExampleSpec, parse};
    use super::*;

    #[test]
    fn only_examples_are_left_out() {
        for (name, text) in FILES.iter().chain([&WARNINGS]) {
            let (mut whole, skimmed) = (parse(name, text, false).expect("a rules file"), parse(name, &without_examples(text), false).expect("the rest"));
            whole.entries.iter_mut().map(|entry| &mut entry.examples).chain(whole.cancels.iter_mut().map(|cancel| &mut cancel.examples)).for_each(|examples| {
                *examples = ExampleSpec::default();
            });
            assert_eq!(format!("{whole:?}"), format!("{skimmed:?}"), "{name}");
        }
    }

    #[test]
    fn strings_hide_the_end_of_a_value() {
        let text =
            "a = 1\nexamples = { match = ['}', \"\\\"}\", '''\n'}''''', \"\"\"\\\"\"\"}\"\"\"], # }\n no_match = [{}] }\nb = \"examples = { x\"\nexamples = {}";
        assert_eq!(without_examples(text), "a = 1\n\nb = \"examples = { x\"\n");
        assert_eq!(without_examples("x = 1"), "x = 1");
        assert_eq!(without_examples("examples = { 'a"), "");
    }
}
