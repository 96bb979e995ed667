//! `siftd history`: shows which errors occurred, with small charts, and what people noted
//! about them. The rows come from `state::history`; all text printed by programs is sanitised.

use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{ToSpan, civil};
use serde_json::{Value, json};

use super::args::{HistoryArgs, HistoryCommand, HistoryForm, HistoryList, SetupArgs, Sort};
use super::table::{Columns, cut};
use super::{Exit, Failure, out, say, setup};
use crate::config::parse_duration;
use crate::core::event::Timestamp;
use crate::sinks::human::breaker::moment;
use crate::sinks::human::chart::spark;
use crate::sinks::human::sanitise;
use crate::sinks::record::rfc3339;
use crate::sources::clock::now;
use crate::state::history::{Choice, Entry, HOUR_US, Order, Row, Sign};
use crate::state::shared::Shared;
use crate::words::counted;

mod trend;

/// How long to wait for other processes.
const PATIENCE: Duration = Duration::from_secs(5);
/// Maximum number of characters of an error in a list, if no terminal says how many it has.
const SHOWN_CHARS: usize = 100;
/// First the chart goes, then when it was last seen, its status, how often.
const LIST: Columns<6> =
    Columns { heads: ["SIGNATURE", "STATUS", "COUNT", "LAST SEEN", "LAST 24 H", "ERROR"], widest: 5, least: 40, left_out: &[4, 3, 1, 2], numbers: &[] };
/// Maximum number of errors of each kind that `diff` shows.
const MAX_DIFF: usize = 100;
/// The status of an error that goes on as another one.
const JOINED: &str = "joined";
/// Minimum number of digits of a signature.
const MIN_DIGITS: usize = 4;

pub fn history(args: &HistoryArgs) -> Result<Exit, Failure> {
    let form = &args.form;
    let config = setup::config(&SetupArgs { config: form.config.clone(), ..SetupArgs::default() })?;
    let folder = form.state_dir.as_ref().unwrap_or(&config.state_dir);
    let changes = matches!(args.command, Some(HistoryCommand::Resolve { .. } | HistoryCommand::Mute { .. } | HistoryCommand::Join { .. }));
    let open = if changes { Shared::existing } else { Shared::ask_of };
    let Some(mut shared) = open(folder, setup::ledger_rules(&config), PATIENCE).map_err(|why| setup::state_failure(folder, &why))? else {
        let mend =
            "`siftd run` keeps one with its state, `exec` and `scan` with --state-dir; name its folder with --state-dir, or the configuration with --config";
        return Err(Failure::new(format!("no history in {}: {mend}", folder.display())));
    };
    shared.aside.iter().for_each(say);
    match &args.command {
        None => list(&shared, &args.list, form),
        Some(HistoryCommand::List(which)) => list(&shared, which, form),
        Some(HistoryCommand::Show { signature }) => show(&shared, &find(&shared, signature)?, form),
        Some(HistoryCommand::Resolve { signature }) => resolve(&mut shared, signature),
        Some(HistoryCommand::Mute { signature, span, off }) => mute(&mut shared, signature, *span, *off),
        Some(HistoryCommand::Trend { signature, days }) => trend::trend(&shared, signature.as_deref(), *days, form),
        Some(HistoryCommand::Diff { since }) => diff(&shared, parse_since(since)?, form),
        Some(HistoryCommand::Join { old, new }) => join(&mut shared, old, new),
    }
}

/// Parses a time as people write it.
fn parse_since(text: &str) -> Result<Timestamp, Failure> {
    let zone = TimeZone::system();
    let today = jiff::Timestamp::from_microsecond(now().0).unwrap_or_default().to_zoned(zone.clone()).date();
    let midnight = |date: civil::Date| date.to_zoned(zone.clone()).map(|zoned| zoned.timestamp().as_microsecond()).ok();
    let micros = match text {
        "today" => midnight(today),
        "yesterday" => today.checked_sub(1.day()).ok().and_then(midnight),
        _ => parse_duration(text)
            .and_then(|back| now().0.checked_sub(i64::try_from(back.as_micros()).ok()?))
            .or_else(|| text.parse::<jiff::Timestamp>().ok().map(|time| time.as_microsecond()))
            .or_else(|| text.parse::<civil::Date>().ok().and_then(midnight)),
    };
    let mend = "write a duration (36h, 7d), today, yesterday, a date (2026-11-20) or a time (2026-11-20T14:00:00Z)";
    micros.map(Timestamp).ok_or_else(|| Failure::new(format!("--since {text}: {mend}")))
}

/// Returns the one error whose signature starts with these digits.
fn find(shared: &Shared, digits: &str) -> Result<Entry, Failure> {
    let wanted = digits.to_ascii_lowercase();
    if wanted.len() < MIN_DIGITS || wanted.len() > 32 || !wanted.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(Failure::new(format!("{digits}: write a signature, or its first digits, at least {MIN_DIGITS}, as `siftd history` shows them")));
    }
    let mut found = shared.begin_with(&wanted).map_err(Failure)?;
    match found.len() {
        0 => Err(Failure::new(format!("{digits}: no such error: `siftd history list --all` shows them"))),
        1 => Ok(found.remove(0)),
        _ if wanted.len() == 32 => Ok(found.swap_remove(found.iter().enumerate().max_by_key(|(_, entry)| entry.sign.recipe).map_or(0, |(at, _)| at))),
        count => {
            let all: Vec<&str> = found.iter().map(|entry| entry.sign.signature.as_str()).collect();
            Err(Failure::new(format!("{digits}: {count} errors begin so: {}", all.join(", "))))
        }
    }
}

fn list(shared: &Shared, which: &HistoryList, form: &HistoryForm) -> Result<Exit, Failure> {
    let at = now();
    let since = which.since.as_deref().map(parse_since).transpose()?;
    let or_a_day = Some(since.unwrap_or(Timestamp(at.0 - 24 * HOUR_US)));
    let choice = Choice {
        seen_since: since,
        new_since: or_a_day.filter(|_| which.new),
        back_since: or_a_day.filter(|_| which.regressed),
        gone_since: None,
        all: which.all,
        order: match which.sort {
            Sort::Last => Order::Last,
            Sort::First => Order::First,
            Sort::Count => Order::Count,
        },
        limit: which.limit as usize + 1,
    };
    let mut entries = shared.list(&choice, at).map_err(Failure)?;
    let is_cut = entries.len() > which.limit as usize;
    entries.truncate(which.limit as usize);
    if form.is_json() {
        return out::print(&entries.iter().map(|entry| format!("{}\n", object(entry, at))).collect::<String>());
    }
    if entries.is_empty() {
        let all = shared.count(&Choice { all: true, ..Choice::default() }, at).map_err(Failure)?;
        return out::print(&format!("no such errors; {all} in the history\n"));
    }
    let room = out::columns().unwrap_or(SHOWN_CHARS);
    let rows: Vec<[String; 6]> = entries.iter().map(|entry| row(entry, at, room)).collect();
    let mut text = LIST.table(&rows);
    if is_cut {
        text += &format!("… more of {} (--limit, --since, --all)\n", shared.count(&choice, at).map_err(Failure)?);
    }
    out::print(&text)
}

fn row(entry: &Entry, at: Timestamp, room: usize) -> [String; 6] {
    let row = &entry.row;
    let chart = spark(&row.hours.spans(at, 1, 24));
    [entry.sign.signature[..12].to_owned(), row.standing(at).to_owned(), row.count.to_string(), moment(row.last), chart, error(entry, room)]
}

/// Returns what stands before an error, and the error, in the width of the terminal if there is one.
fn shown(entry: &Entry, before: &str, room: Option<usize>) -> String {
    let left = room.map_or(SHOWN_CHARS, |room| room.saturating_sub(before.chars().count()));
    format!("{before}{}", error(entry, left))
}

/// Returns an error for a list, in at most `room` characters.
fn error(entry: &Entry, room: usize) -> String {
    cut(&format!("{} {}: {}", sanitise(&entry.severity), sanitise(&entry.category), sanitise(&entry.sample)), room)
}

fn object(entry: &Entry, at: Timestamp) -> Value {
    let row = &entry.row;
    let mut object = json!({
        "signature": entry.sign.signature.as_str(), "sig_version": entry.sign.recipe, "status": row.standing(at), "count": row.count,
        "first": rfc3339(row.first), "last": rfc3339(row.last), "severity": entry.severity, "category": entry.category, "rule": entry.rule,
        "text": entry.sample, "streams": row.streams,
    });
    if let Some(back) = row.back {
        object["regressed_at"] = rfc3339(back).into();
    }
    if row.is_muted(at) {
        object["muted_until"] = row.muted_until.filter(|until| until.0 < i64::MAX).map(rfc3339).into();
    }
    object
}

fn show(shared: &Shared, entry: &Entry, form: &HistoryForm) -> Result<Exit, Failure> {
    let at = now();
    let former = former(shared, entry.sign)?;
    let goes_on = shared.goes_on_as(entry.sign).map_err(Failure)?.map(|entry| entry.sign);
    if form.is_json() {
        let mut object = object(entry, at);
        if let Some(sign) = goes_on {
            object["status"] = JOINED.into();
            object["goes_on_as"] = json!({"signature": sign.signature.as_str(), "sig_version": sign.recipe});
        }
        object["hours"] = entry.row.hours.iter().map(|(hour, count)| json!({"hour": rfc3339(Timestamp(hour * HOUR_US)), "count": count})).collect();
        object["former"] = former.iter().map(|sign| json!({"signature": sign.signature.as_str(), "sig_version": sign.recipe})).collect();
        return out::print(&format!("{object}\n"));
    }
    let row = &entry.row;
    // An error that was given to `breaker record` was found by no rule.
    let rule = if entry.rule.is_empty() { String::new() } else { format!(", rule {}", sanitise(&entry.rule)) };
    let mut fields = vec![
        ("error", sanitise(&entry.sample).into_owned()),
        ("signature", format!("{} (recipe {})", entry.sign.signature, entry.sign.recipe)),
        ("status", goes_on.map_or_else(|| row.standing(at), |_| JOINED).to_owned()),
        ("kind", format!("{} {}{rule}", sanitise(&entry.severity), sanitise(&entry.category))),
        ("seen", format!("{}, first {}, last {}", counted(row.count, "time"), moment(row.first), moment(row.last))),
        ("last 24 h", spark(&row.hours.spans(at, 1, 24))),
        ("last 14 d", spark(&row.hours.spans(at, 24, 14))),
    ];
    fields.extend(row.back.map(|back| ("came back", moment(back))));
    fields.extend(
        row.muted_until
            .filter(|_| row.is_muted(at))
            .map(|until| ("muted", if until.0 == i64::MAX { "until it is `mute --off`".to_owned() } else { format!("until {}", moment(until)) })),
    );
    fields.extend(row.streams.iter().map(|stream| ("in", sanitise(stream).into_owned())));
    fields.extend(goes_on.map(|sign| ("goes on as", format!("{} (recipe {})", sign.signature, sign.recipe))));
    fields.extend(former.iter().map(|sign| ("before", format!("{} (recipe {})", sign.signature, sign.recipe))));
    out::print(&fields.iter().map(|(name, value)| format!("{name:<11}{value}\n")).collect::<String>())
}

/// Returns the earlier signatures of an error.
fn former(shared: &Shared, sign: Sign) -> Result<Vec<Sign>, Failure> {
    let mut all = Vec::new();
    let mut last = sign;
    while let Some(before) = shared.former(last).map_err(Failure)?.filter(|before| *before != sign && !all.contains(before)) {
        all.push(before);
        last = before;
    }
    Ok(all)
}

/// Returns the error that an error goes on as: that one is listed and counted.
fn followed(shared: &Shared, entry: Entry) -> Result<Entry, Failure> {
    Ok(shared.goes_on_as(entry.sign).map_err(Failure)?.unwrap_or(entry))
}

fn resolve(shared: &mut Shared, signatures: &[String]) -> Result<Exit, Failure> {
    marked(shared, signatures, "resolved", &|row| row.is_resolved = true)
}

fn mute(shared: &mut Shared, signatures: &[String], span: Option<Duration>, off: bool) -> Result<Exit, Failure> {
    let span = span.and_then(|span| i64::try_from(span.as_micros()).ok()).unwrap_or(i64::MAX);
    let until = (!off).then(|| Timestamp(now().0.saturating_add(span)));
    marked(shared, signatures, if off { "muted no more" } else { "muted" }, &|row| row.muted_until = until)
}

fn marked(shared: &mut Shared, signatures: &[String], word: &str, mark: &dyn Fn(&mut Row)) -> Result<Exit, Failure> {
    // Nothing is changed unless all of them are known.
    let entries: Vec<Entry> = signatures.iter().map(|digits| find(shared, digits)).collect::<Result<_, _>>()?;
    let mut text = String::new();
    for named in entries {
        let entry = followed(shared, named.clone())?;
        let more = if entry.sign == named.sign { String::new() } else { format!(" ({} goes on as it)", &named.sign.signature[..12]) };
        if shared.mark(entry.sign, now(), mark).map_err(Failure)? {
            text += &format!("{}{more}\n", shown(&entry, &format!("{word}: {}  ", &entry.sign.signature[..12]), out::columns()));
        } else {
            say(&format!("{}: it was forgotten meanwhile", entry.sign.signature));
        }
    }
    out::print(&text)
}

fn diff(shared: &Shared, since: Timestamp, form: &HistoryForm) -> Result<Exit, Failure> {
    let at = now();
    let base = Choice { limit: MAX_DIFF + 1, ..Choice::default() };
    // The period before `since` is as long as the one after it.
    let before = Timestamp(since.0.saturating_sub(at.0.saturating_sub(since.0)));
    let kinds = [
        ("new", "+", Choice { new_since: Some(since), order: Order::Count, ..base.clone() }),
        ("regressed", "~", Choice { back_since: Some(since), order: Order::Count, ..base.clone() }),
        ("gone", "-", Choice { seen_since: Some(before), gone_since: Some(since), ..base }),
    ];
    let (mut text, mut counts, room) = (String::new(), Vec::new(), Some(out::columns().unwrap_or(SHOWN_CHARS)));
    for (word, sign, choice) in kinds {
        let mut entries = shared.list(&choice, at).map_err(Failure)?;
        let is_cut = entries.len() > MAX_DIFF;
        entries.truncate(MAX_DIFF);
        for entry in &entries {
            if form.is_json() {
                let mut object = object(entry, at);
                object["change"] = word.into();
                text += &format!("{object}\n");
            } else {
                let head = format!("{sign} {}  {:>5} ×  ", &entry.sign.signature[..12], entry.row.count);
                text += &format!("{}\n", shown(entry, &head, room));
            }
        }
        counts.push(format!("{}{} {word}", entries.len(), if is_cut { "+" } else { "" }));
    }
    if !form.is_json() {
        text += &format!("since {}: {}\n", moment(since), counts.join(", "));
    }
    out::print(&text)
}

fn join(shared: &mut Shared, old: &str, new: &str) -> Result<Exit, Failure> {
    let (old, new) = (find(shared, old)?, find(shared, new)?);
    if old.sign == new.sign {
        return Err(Failure::new("both are the same error"));
    }
    if former(shared, old.sign)?.contains(&new.sign) {
        return Err(Failure::new("that one goes on as this one already"));
    }
    if !shared.join(old.sign, new.sign, now()).map_err(Failure)? {
        return Err(Failure::new("it goes on as another one already"));
    }
    out::print(&format!("{} goes on as {}\n", &old.sign.signature[..12], &new.sign.signature[..12]))
}
