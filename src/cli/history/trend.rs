//! `siftd history trend`: a chart of how many errors there were, by the hour or by the day.

use serde_json::json;

use super::super::args::HistoryForm;
use super::super::table::cut;
use super::super::{Exit, Failure, out};
use super::{find, followed, shown};
use crate::core::event::Timestamp;
use crate::sinks::human::breaker::moment;
use crate::sinks::human::chart::bar;
use crate::sinks::record::rfc3339;
use crate::sources::clock::now;
use crate::state::history::{HOUR_US, Sum, spans};
use crate::state::shared::Shared;

/// Width of the longest bar, if there is room for it.
const BAR: usize = 30;
/// Below this width bars say too little: then what is new or has regressed is cut instead.
const LEAST_BAR: usize = 8;
/// Between two columns.
const GAP: &str = "  ";

/// One line of the chart.
struct Span {
    from: Timestamp,
    events: u64,
    new: u64,
    regressed: u64,
}

pub fn trend(shared: &Shared, signature: Option<&str>, days: u32, form: &HistoryForm) -> Result<Exit, Failure> {
    let at = now();
    let entry = signature.map(|digits| followed(shared, find(shared, digits)?)).transpose()?;
    let (hours, count) = if days <= 2 { (1, 24 * days as usize) } else { (24, days as usize) };
    let sums = shared.sums(at.0.div_euclid(HOUR_US) - i64::from(days + 1) * 24).map_err(Failure)?;
    let of = |pick: &dyn Fn(&Sum) -> u64| spans(sums.iter().map(|(hour, sum)| (*hour, pick(sum))), at, hours, count);
    let events = entry.as_ref().map_or_else(|| of(&|sum| sum.events), |entry| entry.row.hours.spans(at, hours, count));
    let (new, regressed) = if entry.is_some() { (vec![0; count], vec![0; count]) } else { (of(&|sum| sum.new), of(&|sum| sum.regressed)) };
    let last = at.0.div_euclid(HOUR_US).div_euclid(hours);
    let from = |index: usize| Timestamp((last - (count - 1 - index) as i64) * hours * HOUR_US);
    let all: Vec<Span> = (0..count).map(|index| Span { from: from(index), events: events[index], new: new[index], regressed: regressed[index] }).collect();
    if form.is_json() {
        let line = |span: &Span| {
            let object = json!({"from": rfc3339(span.from), "hours": hours, "count": span.events, "new": span.new, "regressed": span.regressed});
            format!("{object}\n")
        };
        return out::print(&all.iter().map(line).collect::<String>());
    }
    let room = out::columns();
    let head = entry.map_or(String::new(), |entry| format!("{}\n", shown(&entry, &format!("{}{GAP}", &entry.sign.signature[..12]), room)));
    out::print(&(head + &chart(&all, hours == 1, room)))
}

/// Draws the chart in at most `room` characters; `None`: as wide as needed.
fn chart(all: &[Span], is_by_hour: bool, room: Option<usize>) -> String {
    let most = all.iter().map(|span| span.events).max().unwrap_or(0);
    let name = |span: &Span| moment(span.from)[..if is_by_hour { 13 } else { 10 }].to_owned();
    let more = |span: &Span| {
        let parts = [(span.new, "new"), (span.regressed, "regressed")];
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}")).collect::<Vec<_>>().join(", ")
    };
    let lines: Vec<_> = all.iter().map(|span| (name(span), format!("{:>7}", span.events), more(span))).collect();
    let others = lines.iter().map(|(name, count, more)| [name, count, more].iter().map(|text| text.chars().count()).sum::<usize>()).max().unwrap_or(0);
    let width = room.map_or(BAR, |room| room.saturating_sub(others + 3 * GAP.len()).clamp(LEAST_BAR, BAR));
    let line = |(span, (name, count, more)): (&Span, &(String, String, String))| {
        let text = format!("{name}{GAP}{:<width$}{GAP}{count}{GAP}{more}", bar(span.events, most, width));
        format!("{}\n", cut(text.trim_end(), room.unwrap_or(usize::MAX)))
    };
    all.iter().zip(&lines).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_is_no_wider_than_the_terminal() {
        let day = |days: i64, events, new, regressed| Span { from: Timestamp(days * 24 * HOUR_US), events, new, regressed };
        let all = [day(20_000, 0, 0, 0), day(20_001, 1200, 3, 12), day(20_002, 600, 0, 1)];
        let widths = |room| chart(&all, false, room).lines().map(|line| line.chars().count()).collect::<Vec<_>>();
        assert_eq!(widths(None), widths(Some(200)));
        assert_eq!(widths(None)[1], 10 + BAR + 7 + "3 new, 12 regressed".len() + 6);
        for room in [72, 60, 50, 40, 20] {
            assert_eq!(widths(Some(room)).into_iter().max(), Some(room), "{}", chart(&all, false, Some(room)));
        }
        assert!(chart(&all, false, Some(60)).contains("     1200  3 new, 12 regressed\n"), "the bar gives way first");
    }
}
