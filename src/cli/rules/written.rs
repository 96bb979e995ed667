//! A rule as it was written: the piece of its file, comments included.

use crate::diag::{Diagnostic, Source};
use crate::rules::spec::{EntrySpec, FileSpec};

/// Where each entry's table begins, and its id.
fn sections(text: &str) -> Vec<(usize, EntrySpec)> {
    let Ok(file) = toml::from_str::<FileSpec>(text) else { return Vec::new() };
    let mut sections: Vec<(usize, EntrySpec)> = file.all().map(|entry| (start(text, entry.id.span().start), entry.clone())).collect();
    sections.sort_by_key(|(start, _)| *start);
    sections
}

/// The header before an id, and the comment lines above it.
fn start(text: &str, id: usize) -> usize {
    let mut start = text[..id].rfind("\n[[").map_or(0, |at| at + 1);
    while let Some(above) = text[..start].strip_suffix('\n') {
        let line = above.rfind('\n').map_or(0, |at| at + 1);
        if !text[line..].starts_with('#') {
            break;
        }
        start = line;
    }
    start
}

/// Whether a file is that of the family `id`.
pub fn is_family(text: &str, id: &str) -> bool {
    toml::from_str::<FileSpec>(text).is_ok_and(|file| file.family.id.get() == id)
}

/// The rule `id`; empty when there is none.
pub fn find(text: &str, id: &str) -> String {
    let sections = sections(text);
    let ends = sections.iter().skip(1).map(|(start, _)| *start).chain([text.len()]);
    let pieces = sections.iter().zip(ends).filter(|((_, entry), _)| entry.id.get() == id);
    pieces.map(|((start, _), end)| format!("{}\n\n", text[*start..end].trim_end())).collect()
}

/// Two entries of a file have one id.
pub fn repeated(name: &str, text: &str, id: &str) -> Diagnostic {
    let source = Source::new(name, text);
    let second = sections(&source.text).into_iter().filter(|(_, entry)| entry.id.get() == id).nth(1);
    let span = second.map_or(0..0, |(_, entry)| entry.id.span());
    source.error(span, format!("`{id}` is there twice in this file")).with_mend("give it another id")
}
