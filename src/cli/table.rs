//! Tables for people. On a terminal, a table fits its width: it gives up its less useful columns before its widest one is
//! cut too short to be read.

use super::out;

/// Between two columns.
const GAP: usize = 2;

/// The columns of a table; a column is named by its number from 0.
pub struct Columns<const N: usize> {
    /// Their headings.
    pub heads: [&'static str; N],
    /// The column that gets what the others leave.
    pub widest: usize,
    /// How many characters of it are shown at least.
    pub least: usize,
    /// Those that are left out if there is no room, in this order.
    pub left_out: &'static [usize],
    /// Those with numbers, which stand one below the other.
    pub numbers: &'static [usize],
}

impl<const N: usize> Columns<N> {
    /// Formats rows under their headings, in the width of the terminal if stdout is one.
    pub fn table(&self, rows: &[[String; N]]) -> String {
        self.within(rows, out::columns())
    }

    /// Formats rows under their headings in at most `room` characters; `None`: as wide as needed.
    fn within(&self, rows: &[[String; N]], room: Option<usize>) -> String {
        let heads = self.heads.map(str::to_owned);
        let all = || std::iter::once(&heads).chain(rows);
        let mut widths: [usize; N] = std::array::from_fn(|at| all().map(|row| row[at].chars().count()).max().unwrap_or(0));
        let kept = self.kept(&mut widths, room);
        let line = |row: &[String; N]| {
            let cells: Vec<String> = kept.iter().map(|&at| self.cell(at, &row[at], widths[at])).collect();
            format!("{}\n", cut(cells.join(&" ".repeat(GAP)).trim_end(), room.unwrap_or(usize::MAX)))
        };
        all().map(line).collect()
    }

    /// Returns the columns for which there is room, and narrows the widest one to what they leave.
    fn kept(&self, widths: &mut [usize; N], room: Option<usize>) -> Vec<usize> {
        let mut kept: Vec<usize> = (0..N).collect();
        let Some(room) = room else { return kept };
        let others = |kept: &[usize], widths: &[usize; N]| kept.iter().filter(|&&at| at != self.widest).map(|&at| widths[at] + GAP).sum::<usize>();
        let least = self.least.min(widths[self.widest]);
        for out in self.left_out {
            if others(&kept, widths) + least <= room {
                break;
            }
            kept.retain(|at| at != out);
        }
        widths[self.widest] = widths[self.widest].min(room.saturating_sub(others(&kept, widths))).max(least);
        kept
    }

    fn cell(&self, at: usize, text: &str, width: usize) -> String {
        match at {
            _ if at == self.widest => format!("{:width$}", cut(text, width)),
            _ if self.numbers.contains(&at) => format!("{text:>width$}"),
            _ => format!("{text:width$}"),
        }
    }
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

    const COLUMNS: Columns<6> =
        Columns { heads: ["SIGNATURE", "STATUS", "COUNT", "LAST SEEN", "LAST 24 H", "ERROR"], widest: 5, least: 40, left_out: &[4, 3, 1, 2], numbers: &[] };

    fn rows() -> Vec<[String; 6]> {
        let error = "x".repeat(200);
        vec![["0123456789ab", "new", "3", "2026-11-20 14:00", "························", &error].map(str::to_owned)]
    }

    #[test]
    fn a_table_is_as_wide_as_the_terminal() {
        for columns in [20, 60, 80, 100, 200] {
            let text = COLUMNS.within(&rows(), Some(columns));
            assert_eq!(text.lines().nth(1).map(|line| line.chars().count()), Some(columns), "{text}");
        }
        assert!(COLUMNS.within(&rows(), None).contains(&"x".repeat(200)));
    }

    #[test]
    fn the_least_useful_columns_go_first() {
        let within = |room| COLUMNS.within(&rows(), Some(room));
        assert!(within(200).starts_with("SIGNATURE     STATUS  COUNT  LAST SEEN         LAST 24 H"));
        assert!(within(90).starts_with("SIGNATURE     STATUS  COUNT  LAST SEEN         ERROR"));
        assert!(within(60).starts_with("SIGNATURE     ERROR"));
    }

    #[test]
    fn the_widest_column_may_stand_anywhere() {
        let columns = Columns { heads: ["NAME", "TYPE", "COUNT"], widest: 0, least: 8, left_out: &[1], numbers: &[2] };
        let rows = [["a-name-of-twenty-two-c", "file", "7"].map(str::to_owned)];
        let within = |room| columns.within(&rows, Some(room));
        assert_eq!(within(80), "NAME                    TYPE  COUNT\na-name-of-twenty-two-c  file      7\n");
        assert_eq!(within(24), "NAME         TYPE  COUNT\na-name-of-…  file      7\n");
        assert_eq!(within(15), "NAME      COUNT\na-name-…      7\n");
        assert_eq!(within(5), "NAME…\na-na…\n");
    }
}
