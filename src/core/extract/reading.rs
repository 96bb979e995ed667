//! What the lines of an event say: reads the rows of a trace, its look-back lines and the groups of a
//! regex into what `extract` builds the event from. It does not decide where a trace begins or ends.

use super::Said;
use crate::core::engine::Engine;
use crate::core::event::{Frame, Link, Location};
use crate::core::frames;
use crate::core::text::printable;
use crate::core::trace::{OpenTrace, Outcome};
use crate::rules::spec::Shape;
use crate::rules::{Family, Groups, Machine, Pattern, Row, Take};

/// Reads a line by itself; `heading` is the file that a line above names.
pub(super) fn read_line(regex: &Pattern, part: &[u8], heading: Option<&str>) -> Said {
    let mut said = Said { text: printable(part).trim().to_owned(), ..Said::default() };
    if regex.has_groups()
        && let Some(groups) = regex.groups(part)
    {
        said.location = location(&groups).or_else(|| Some(place_in(heading?, &groups)));
        if groups.name("type").is_some() {
            said.links.push(link(&groups));
        }
    }
    said
}

pub(super) fn read_trace(engine: &Engine, family: &Family, machine: &Machine, trace: &OpenTrace, outcome: Outcome) -> Said {
    let mut said = Said::default();
    let mut named: Option<usize> = None;
    let rows = trace.rows(outcome.entry);
    said.location = trace.setting.heading.as_deref().map(|file| Location { file: file.to_owned(), line: 0, column: 0 });
    // A record says by its level what it is; another error may be one of the lines that the machine wants there.
    if trace.adopted.as_ref().is_none_or(|single| single.prefix.levels == 0) {
        named = read_lead(family, machine, trace, &mut said);
    }
    // Of a long stack, only the frames at the crash are wanted.
    let most_frames = if machine.crash_last { usize::MAX } else { engine.limits.max_stack_depth };
    for (index, (taken, row)) in trace.lines.first(outcome.lines).zip(rows).enumerate() {
        let Some(row) = machine.rows.get(usize::from(*row)) else { continue };
        if row.take == Take::Text || (row.take == Take::Exception && (machine.crash_last || said.links.is_empty())) {
            named = if row.take == Take::Text || machine.crash_last { Some(index) } else { named.or(Some(index)) };
        }
        read_row(family, row, taken.part, most_frames, &mut said);
    }
    if machine.crash_last {
        said.links.reverse();
        said.frames.reverse();
    }
    let head = rows.iter().position(|row| usize::from(*row) < machine.rows.len()).unwrap_or(0);
    // If a trace names nothing, the record above it does.
    let named = named.unwrap_or(if trace.adopted.is_some() { 0 } else { head }).min(outcome.lines.min(trace.lines.len()) - 1);
    let text = printable(trace.lines.get(named).part);
    said.location = said.location.filter(|place| !place.file.is_empty());
    // The lines of an exception group begin with bars.
    said.text = if machine.crash_last { text.trim_start_matches([' ', '|']).trim() } else { text.trim() }.to_owned();
    said
}

/// Reads the look-back lines as they were found: nearest first, each wanted line as often
/// as it may occur. Returns the index of the line that names the error, if one does.
fn read_lead(family: &Family, machine: &Machine, trace: &OpenTrace, said: &mut Said) -> Option<usize> {
    if machine.before.iter().all(|before| before.take == Take::Nothing) {
        return None;
    }
    let (mut left, mut named) = (trace.lead, None);
    for (index, before) in machine.before.iter().enumerate() {
        let next = machine.before.get(index + 1).filter(|_| before.may_be_skipped());
        let is_wanted = |at: &usize| {
            let part = trace.lines.get(*at).part;
            !next.is_some_and(|next| next.regex.is_match(part)) && before.regex.is_match(part)
        };
        for _ in 0..before.max {
            let Some(at) = left.checked_sub(1).filter(is_wanted) else { break };
            left = at;
            match before.take {
                Take::Text => named = Some(at),
                Take::Exception | Take::Location => {
                    named = if before.take == Take::Exception { Some(at) } else { named };
                    if let Some(groups) = before.regex.groups(trace.lines.get(at).part) {
                        read_groups(family, before.take, &groups, said);
                    }
                }
                Take::Nothing | Take::Message | Take::Frame => {}
            }
        }
    }
    named
}

fn read_row(family: &Family, row: &Row, part: &[u8], most_frames: usize, said: &mut Said) {
    match row.take {
        Take::Nothing | Take::Text => {}
        Take::Message => {
            if let Some(link) = said.links.last_mut() {
                if !link.message.is_empty() {
                    link.message.push('\n');
                }
                link.message.push_str(printable(message_in(row, part)).trim());
            }
        }
        Take::Frame if said.frames.len() >= most_frames => {}
        Take::Frame if row.shape.is_some() => {
            if let Some(shape) = row.shape {
                said.push_frame(family, frames::read(shape, &printable(part)));
            }
        }
        Take::Exception if row.shape == Some(Shape::Named) => {
            let part = printable(part);
            let (kind, message) = frames::named(&part);
            said.links.push(Link { kind: kind.to_owned(), message: message.trim().to_owned() });
        }
        Take::Frame | Take::Location | Take::Exception => {
            if let Some(groups) = row.regex.groups(part) {
                read_groups(family, row.take, &groups, said);
            }
        }
    }
}

/// The group `message` of the row, or the whole line.
fn message_in<'a>(row: &Row, part: &'a [u8]) -> &'a [u8] {
    if row.regex.has_groups() { row.regex.groups(part).and_then(|groups| groups.name("message")).unwrap_or(part) } else { part }
}

fn read_groups(family: &Family, take: Take, groups: &Groups, said: &mut Said) {
    match take {
        Take::Frame => {
            let name = |group| groups.name(group).map(printable).unwrap_or_default();
            let (line, column) = (number(groups, "line"), number(groups, "column"));
            said.push_frame(family, Frame { function: name("function").trim_end(), file: &name("file"), line, column, in_app: false });
        }
        Take::Location => read_place(groups, said),
        _ => {
            said.links.push(link(groups));
            if said.location.as_ref().is_none_or(|place| place.line == 0) {
                read_place(groups, said);
            }
            // Ruby and R name the throwing function in the head.
            if groups.name("function").is_some() {
                read_groups(family, Take::Frame, groups, said);
            }
        }
    }
}

/// Reads a place: one line may name the file, and others the line number and the column.
fn read_place(groups: &Groups, said: &mut Said) {
    let (line, column) = (number(groups, "line"), number(groups, "column"));
    match &mut said.location {
        // A place without a file takes the file, and the line number if there is one.
        Some(place) if place.file.is_empty() && groups.name("file").is_some() => {
            place.file = file(groups);
            if line > 0 {
                (place.line, place.column) = (line, column);
            }
        }
        Some(place) if place.line == 0 => (place.line, place.column) = (line, column.max(place.column)),
        Some(place) if place.column == 0 && line == 0 => place.column = column,
        Some(_) => {}
        None => said.location = Some(place_in(&file(groups), groups)).filter(|place| !place.file.is_empty() || line > 0),
    }
}

fn link(groups: &Groups) -> Link {
    let message = groups.name("message").map(printable).unwrap_or_default();
    Link { kind: text(groups, "type"), message: message.trim().to_owned() }
}

fn location(groups: &Groups) -> Option<Location> {
    groups.name("file")?;
    Some(place_in(&file(groups), groups))
}

/// Returns the name of the file, without the colon after it that a rule may include.
fn file(groups: &Groups) -> String {
    let file = text(groups, "file");
    file.strip_suffix(':').map_or_else(|| file.clone(), str::to_owned)
}

fn place_in(file: &str, groups: &Groups) -> Location {
    Location { file: file.to_owned(), line: number(groups, "line"), column: number(groups, "column") }
}

fn text(groups: &Groups, name: &str) -> String {
    groups.name(name).map(printable).unwrap_or_default().into_owned()
}

fn number(groups: &Groups, name: &str) -> u32 {
    groups.name(name).and_then(|m| std::str::from_utf8(m).ok()?.parse().ok()).unwrap_or_default()
}
