//! A rule as written: the section of its file, including comments.

use crate::diag::{Diagnostic, Source};
use crate::rules::spec::{EntrySpec, FileSpec};

/// The header of a family's table.
const FAMILY: &str = "[family]";

/// Returns where each entry's table starts, and the entry.
fn sections(text: &str) -> Vec<(usize, EntrySpec)> {
    let Ok(file) = toml::from_str::<FileSpec>(text) else { return Vec::new() };
    let mut sections: Vec<(usize, EntrySpec)> = file.all().map(|entry| (start(text, entry.id.span().start), entry.clone())).collect();
    sections.sort_by_key(|(start, _)| *start);
    sections
}

/// Returns the start of the header before an id, or of the comment lines above it.
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

/// Whether the file defines the family `id`.
pub fn is_family(text: &str, id: &str) -> bool {
    toml::from_str::<FileSpec>(text).is_ok_and(|file| file.family.id.get() == id)
}

/// Returns the text of the rule `id`, below the head of its family, so that it is a file of rules; empty if there is none.
pub fn find(text: &str, id: &str) -> String {
    let sections = sections(text);
    let ends = sections.iter().skip(1).map(|(start, _)| *start).chain([text.len()]);
    let pieces: Vec<&str> =
        sections.iter().zip(ends).filter(|((_, entry), _)| entry.id.get() == id).map(|((start, _), end)| text[*start..end].trim_end()).collect();
    let head = (!pieces.is_empty()).then(|| head(text, &sections)).flatten();
    head.into_iter().chain(pieces).map(|piece| format!("{piece}\n\n")).collect()
}

/// Returns the table of the family, which ends before the first entry below it.
fn head<'t>(text: &'t str, sections: &[(usize, EntrySpec)]) -> Option<&'t str> {
    let start = if text.starts_with(FAMILY) { 0 } else { text.find(&format!("\n{FAMILY}"))? + 1 };
    let end = sections.iter().map(|(entry, _)| *entry).find(|entry| *entry > start).unwrap_or(text.len());
    Some(text[start..end].trim_end())
}

/// Reports that two entries of a file have the same id.
pub fn repeated(name: &str, text: &str, id: &str) -> Diagnostic {
    let source = Source::new(name, text);
    let second = sections(&source.text).into_iter().filter(|(_, entry)| entry.id.get() == id).nth(1);
    let span = second.map_or(0..0, |(_, entry)| entry.id.span());
    source.error(span, format!("`{id}` is there twice in this file")).with_mend("give it another id")
}
