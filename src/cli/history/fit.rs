//! Fits what `history` prints to the width of a terminal: a table gives up its less useful columns before its last
//! one is cut too short to be read.

/// Minimum number of columns for the last cell; less would not show what the error is.
const MIN_LAST: usize = 40;
/// The columns that are left out, in this order: the chart, when it was last seen, its status, how often.
const LEFT_OUT: [usize; 4] = [4, 3, 1, 2];

/// Formats rows under their headings in at most `columns` columns; the last cell gets what the others leave.
pub fn table(heads: [&str; 6], rows: &[[String; 6]], columns: usize) -> String {
    let heads = heads.map(str::to_owned);
    let all = || std::iter::once(&heads).chain(rows);
    let widths: [usize; 6] = std::array::from_fn(|at| all().map(|row| row[at].chars().count()).max().unwrap_or(0));
    let mut kept: Vec<usize> = (0..5).collect();
    let taken = |kept: &[usize]| kept.iter().map(|&at| widths[at] + 2).sum::<usize>();
    for out in LEFT_OUT {
        if taken(&kept) + MIN_LAST.min(widths[5]) <= columns {
            break;
        }
        kept.retain(|&at| at != out);
    }
    let line = |row: &[String; 6]| {
        let cells: String = kept.iter().map(|&at| format!("{:width$}  ", row[at], width = widths[at])).collect();
        format!("{}\n", cut(&format!("{cells}{}", row[5]), columns).trim_end())
    };
    all().map(line).collect()
}

/// Cuts a text to so many characters.
pub fn cut(text: &str, room: usize) -> String {
    if text.chars().count() <= room {
        return text.to_owned();
    }
    let kept: String = text.chars().take(room.saturating_sub(1)).collect();
    if room == 0 { kept } else { kept + "…" }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADS: [&str; 6] = ["SIGNATURE", "STATUS", "COUNT", "LAST SEEN", "LAST 24 H", "ERROR"];

    fn rows() -> Vec<[String; 6]> {
        let error = "x".repeat(200);
        vec![["0123456789ab", "new", "3", "2026-11-20 14:00", "························", &error].map(str::to_owned)]
    }

    #[test]
    fn a_table_is_as_wide_as_the_terminal() {
        for columns in [20, 60, 80, 100, 200] {
            let text = table(HEADS, &rows(), columns);
            assert_eq!(text.lines().nth(1).map(|line| line.chars().count()), Some(columns), "{text}");
        }
    }

    #[test]
    fn the_least_useful_columns_go_first() {
        assert!(table(HEADS, &rows(), 200).starts_with("SIGNATURE     STATUS  COUNT  LAST SEEN         LAST 24 H"));
        assert!(table(HEADS, &rows(), 90).starts_with("SIGNATURE     STATUS  COUNT  LAST SEEN         ERROR"));
        assert!(table(HEADS, &rows(), 60).starts_with("SIGNATURE     ERROR"));
    }
}
