//! One manual page. `clap_mangen` fills whatever follows the options into one paragraph called EXTRA; here examples
//! keep their lines, and each part has the heading under which readers of manuals look for it.

use std::io;

use clap::Command;
use clap_mangen::Man;

/// Returns the name of the page's file, and the page.
pub fn of(command: Command) -> io::Result<(String, String)> {
    let extra = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let takes_command = command.get_positionals().any(clap::Arg::is_trailing_var_arg_set);
    let page = Man::new(command);
    let mut bytes = Vec::new();
    page.render(&mut bytes)?;
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    if let Some(part) = part(&text, "EXTRA") {
        text.replace_range(part, &sections(&extra));
    }
    if let Some(part) = part(&text, "SYNOPSIS").filter(|_| takes_command) {
        let at = text[part.clone()].rfind('<').map_or(part.end, |at| part.start + at);
        text.insert_str(at, "\\-\\- ");
    }
    Ok((page.get_filename(), text))
}

/// Returns where a section stands.
fn part(text: &str, heading: &str) -> Option<std::ops::Range<usize>> {
    let head = format!(".SH {heading}\n");
    let start = text.find(&head)?;
    let body = start + head.len();
    Some(start..text[body..].find(".SH ").map_or(text.len(), |end| body + end))
}

/// Returns the sections for what follows the options in the help, in the order that man-pages(7) gives.
fn sections(extra: &str) -> String {
    let (mut status, mut environment, mut notes, mut examples) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for paragraph in extra.split("\n\n") {
        if let Some(lines) = paragraph.strip_prefix("Examples:\n").or_else(|| paragraph.strip_prefix("Example:\n")) {
            examples.push(format!(".nf\n{}.fi\n", escaped(lines)));
        } else if let Some(codes) = paragraph.strip_prefix("Exit codes: ") {
            status.push(escaped(codes));
        } else if let Some(variables) = paragraph.strip_prefix("Environment: ") {
            environment.push(escaped(variables));
        } else {
            notes.push(escaped(paragraph));
        }
    }
    let all = [("EXIT STATUS", status), ("ENVIRONMENT", environment), ("NOTES", notes), ("EXAMPLES", examples)];
    all.iter().filter(|(_, parts)| !parts.is_empty()).map(|(heading, parts)| format!(".SH \"{heading}\"\n{}", parts.join(".PP\n"))).collect()
}

/// Writes lines so that roff shows them as they are: hyphens and quotes can be copied into a shell.
fn escaped(lines: &str) -> String {
    let line = |line: &str| format!("\\&{}\n", line.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq"));
    lines.lines().map(line).collect()
}
