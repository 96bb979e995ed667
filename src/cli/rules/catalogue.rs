//! The catalogue of rules: a table for people, JSON for programs.

use serde::Serialize;

use crate::cli::table::Columns;
use crate::rules::{Family, RuleSet};
use crate::sinks::human::sanitise;
use crate::words::counted;

/// One rule.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    id: String,
    family: String,
    title: String,
    kind: &'static str,
    depth: &'static str,
    literals: usize,
    examples: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    language: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    category: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    severity: Option<&'static str>,
    file: String,
}

impl Row {
    /// Whether `name` is the rule or its family.
    pub fn is_of(&self, name: &str) -> bool {
        self.family == name || self.id == name
    }
}

/// Returns all rules by family, then in the order in which they are tried on a line; cancels come last.
pub fn rows(set: &RuleSet) -> Vec<Row> {
    let entries = set.entries.iter().map(|entry| {
        let family = &set.families[usize::from(entry.family)];
        Row {
            literals: entry.gate.literals.len() + entry.gate.at_end.len(),
            examples: entry.examples.matching.len() + entry.examples.no_match.len(),
            language: entry.fault.language.clone().or_else(|| family.language.clone()),
            category: entry.fault.category.map(|category| category.as_str()),
            severity: entry.fault.severity.map(|severity| severity.as_str()),
            ..row(family, &entry.id, entry.kind.table().as_str())
        }
    });
    let cancels = set.cancels.iter().filter_map(|cancel| {
        let name = cancel.id.split('.').next().unwrap_or_default();
        let family = set.families.iter().find(|family| family.id == name)?;
        Some(Row { examples: cancel.examples.matching.len() + cancel.examples.no_match.len(), ..row(family, &cancel.id, "cancel") })
    });
    let mut rows: Vec<Row> = entries.chain(cancels).collect();
    let order = |row: &Row| set.families.iter().position(|family| family.id == row.family);
    rows.sort_by_key(order);
    rows
}

fn row(family: &Family, id: &str, kind: &'static str) -> Row {
    Row {
        id: id.to_owned(),
        family: family.id.clone(),
        title: family.title.clone(),
        kind,
        depth: family.depth.as_str(),
        literals: 0,
        examples: 0,
        language: None,
        category: None,
        severity: None,
        file: family.file.clone(),
    }
}

/// The id of a rule begins with its family.
const LIST: Columns<5> = Columns { heads: ["FAMILY", "RULE", "KIND", "DEPTH", "LITERALS"], widest: 1, least: 40, left_out: &[0, 4, 3], numbers: &[4] };

/// Formats the rows in columns, with a last line for the totals.
pub fn table(rows: &[Row]) -> String {
    let cells = |row: &Row| [row.family.as_str(), &row.id, row.kind, row.depth, &row.literals.to_string()].map(|text| sanitise(text).into_owned());
    let mut out = LIST.table(&rows.iter().map(cells).collect::<Vec<_>>());
    let literals: usize = rows.iter().map(|row| row.literals).sum();
    out.push_str(&format!("{}, {}\n", counted(rows.len() as u64, "rule"), counted(literals as u64, "literal")));
    out
}
