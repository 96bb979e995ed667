//! A digest as text or Markdown: a heading by siftd, then the errors inside a fence. The lines that name errors come first,
//! as many as fit, then their details. Lines are cut only if nothing else helps: the most telling one is always included.

use super::{Digest, Item};
use crate::words::{DIGEST_WARNING, SHORT_WARNING};

/// Renders the digest in at most `max_chars` characters.
pub fn render(digest: &Digest, max_chars: usize, is_markdown: bool) -> String {
    let heading = heading(digest, is_markdown);
    if digest.items.is_empty() && digest.last_words.is_empty() {
        return cut(&heading, max_chars.saturating_sub(1)) + "\n";
    }
    let fence = fence(digest);
    let long = format!("{heading}\n{DIGEST_WARNING}\n{fence}\n");
    let room = |head: &str| max_chars.saturating_sub(chars(head) + chars(&fence) + 1);
    // If there is little room, only the warning is kept beside the error.
    let head = if room(&long) >= max_chars / 3 { long } else { format!("{SHORT_WARNING}\n{fence}\n") };
    let body = if digest.items.is_empty() { last_words(digest, room(&head)) } else { items(digest, room(&head)) };
    format!("{head}{body}{fence}\n")
}

fn heading(digest: &Digest, is_markdown: bool) -> String {
    let counts = digest.counts();
    let said = digest.ended.as_ref().map_or(counts.clone(), |ended| format!("{ended}, {counts}"));
    if is_markdown { format!("## {said}\n") } else { said }
}

/// Returns a fence that is longer than any run of tildes inside it, so that nothing
/// in there can close it. Tildes allow a digest to be put between backticks.
fn fence(digest: &Digest) -> String {
    let texts = digest.items.iter().flat_map(|item| item.details().into_iter().chain([item.text.clone()])).chain(digest.last_words.iter().cloned());
    let longest = texts.map(|text| text.split(|c| c != '~').map(str::len).max().unwrap_or_default()).max().unwrap_or_default();
    "~".repeat((longest + 1).clamp(3, 60))
}

fn items(digest: &Digest, room: usize) -> String {
    let mut left = room;
    let mut shown: Vec<(String, Vec<String>)> = Vec::new();
    for (index, item) in digest.items.iter().enumerate() {
        let head = head(item);
        let rest = digest.items.len() - index - 1;
        // Reserves room for the line that says how many are left out.
        let reserved = if rest > 0 { chars(&omitted(rest)) } else { 0 };
        if chars(&head) + 1 + reserved <= left {
            left -= chars(&head) + 1;
            shown.push((head, Vec::new()));
        } else if index == 0 {
            let head = cut(&head, left.saturating_sub(reserved + 1));
            left -= (chars(&head) + 1).min(left);
            shown.push((head, Vec::new()));
        } else {
            break;
        }
    }
    let missing = digest.items.len() - shown.len();
    left = left.saturating_sub(if missing > 0 { chars(&omitted(missing)) } else { 0 });
    let mut all: Vec<_> = digest.items.iter().map(|item| item.details().into_iter()).collect();
    // What each error says, and where, comes before the other details of any.
    for most in [1, 1, usize::MAX] {
        for ((_, details), left_over) in shown.iter_mut().zip(&mut all) {
            for detail in left_over.take(most) {
                let line = format!("  {detail}");
                if chars(&line) < left {
                    left -= chars(&line) + 1;
                    details.push(line);
                }
            }
        }
    }
    let mut body: String = shown.iter().flat_map(|(head, details)| std::iter::once(head).chain(details)).map(|line| format!("{line}\n")).collect();
    if missing > 0 {
        body.push_str(&omitted(missing));
    }
    body
}

fn head(item: &Item) -> String {
    let times = if item.count > 1 { format!(" (×{})", item.count) } else { String::new() };
    format!("{} {}{times}: {}", item.severity, item.category, item.text)
}

fn omitted(count: usize) -> String {
    format!("… {count} more\n")
}

/// Returns as many of the last lines as fit.
fn last_words(digest: &Digest, room: usize) -> String {
    let mut left = room;
    let mut lines: Vec<String> = Vec::new();
    for line in digest.last_words.iter().rev() {
        if chars(line) < left {
            left -= chars(line) + 1;
            lines.push(line.clone());
        } else {
            if lines.is_empty() {
                lines.push(cut(line, left.saturating_sub(1)));
            }
            break;
        }
    }
    lines.iter().rev().map(|line| format!("{line}\n")).collect()
}

fn chars(text: &str) -> usize {
    text.chars().count()
}

/// Returns at most `max` characters, with an ellipsis if something was cut.
pub fn cut(text: &str, max: usize) -> String {
    if chars(text) <= max {
        return text.to_owned();
    }
    let kept: String = text.chars().take(max.saturating_sub(1)).collect();
    if max == 0 { String::new() } else { kept + "…" }
}
