//! Which keys an entry of a rules file gives, and which keys its table takes. `load` reports misplaced keys.

use super::spec::{EntrySpec, Table};

/// Returns the keys that a table takes besides `id`, `regex` and those of the literals.
pub(super) fn of(table: Table) -> &'static [&'static str] {
    match table {
        Table::Border => &[],
        Table::Noise => &["reason", "block", "undecided", "examples"],
        Table::Region => &["open", "close", "max_lines", "implied", "late", "allowed", "absorb", "seal", "pass", "pass_by_caller", "fail", "examples"],
        Table::Trace => &[
            "rows",
            "before",
            "above",
            "stop",
            "region",
            "needs_frame",
            "crash_last",
            "once",
            "shows_commands",
            "shows_records",
            "generic",
            "code",
            "fault",
            "examples",
        ],
        Table::Note => &["before", "claimed_by", "max_lines", "waits", "silent", "of_job", "of_one", "fault", "examples"],
        Table::Rule => &["above", "generic", "leveled", "code", "fault", "examples"],
        Table::Fact => &["fact", "fault", "examples"],
    }
}

/// Number of keys.
const KEYS: usize = 35;

/// Returns each key, and whether it is given.
pub(super) fn given(spec: &EntrySpec) -> [(&'static str, bool); KEYS] {
    let fault =
        spec.category.is_some() || spec.severity.is_some() || spec.cause.is_some() || spec.retry.is_some() || spec.hint.is_some() || spec.language.is_some();
    [
        ("above", spec.above.is_some()),
        ("generic", spec.generic),
        ("leveled", spec.leveled),
        ("code", spec.code),
        ("fault", fault),
        ("fact", spec.fact.is_some()),
        ("reason", spec.reason.is_some()),
        ("block", spec.block.is_some()),
        ("undecided", spec.undecided),
        ("rows", !spec.rows.is_empty()),
        ("before", !spec.before.is_empty()),
        ("stop", spec.stop.is_some()),
        ("region", spec.region.is_some()),
        ("needs_frame", spec.needs_frame),
        ("crash_last", spec.crash_last),
        ("once", spec.once),
        ("shows_commands", spec.shows_commands),
        ("shows_records", spec.shows_records),
        ("open", spec.open.is_some()),
        ("close", spec.close.is_some()),
        ("max_lines", spec.max_lines.is_some()),
        ("implied", spec.implied.is_some()),
        ("late", spec.late),
        ("allowed", spec.allowed),
        ("absorb", spec.absorb),
        ("seal", spec.seal),
        ("pass", spec.pass.is_some()),
        ("pass_by_caller", spec.pass_by_caller.is_some()),
        ("fail", spec.fail.is_some()),
        ("claimed_by", !spec.claimed_by.is_empty()),
        ("waits", spec.waits),
        ("silent", spec.silent),
        ("of_job", spec.of_job),
        ("of_one", spec.of_one),
        ("examples", !spec.examples.is_empty()),
    ]
}
