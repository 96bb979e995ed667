//! Small charts of counts for a terminal: a line of eight heights, a bar of eighths.

/// Returns a line with one character per count, each as high as its count; blank for 0.
#[must_use]
pub fn spark(counts: &[u64]) -> String {
    const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = counts.iter().copied().max().unwrap_or(0).max(1);
    let height = |count: u64| match count {
        0 => ' ',
        count => HEIGHTS[(((u128::from(count) * 8).div_ceil(u128::from(most))) as usize).clamp(1, 8) - 1],
    };
    counts.iter().map(|count| height(*count)).collect()
}

/// Returns a bar that is `width` characters long for `most`; any count above 0 is visible.
#[must_use]
pub fn bar(count: u64, most: u64, width: usize) -> String {
    const PARTS: [char; 7] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    if count == 0 || most == 0 {
        return String::new();
    }
    let eighths = ((u128::from(count) * width as u128 * 8).div_ceil(u128::from(most)) as usize).clamp(1, width * 8);
    let part = (eighths % 8).checked_sub(1).map(|at| PARTS[at]);
    "█".repeat(eighths / 8).chars().chain(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charts_show_the_least_and_fill_with_the_most() {
        assert_eq!(spark(&[0, 1, 4, 8, 100]), " ▁▁▁█");
        assert_eq!(spark(&[1, 2, 3, 4, 5, 6, 7, 8]), "▁▂▃▄▅▆▇█");
        assert_eq!((spark(&[]), spark(&[0, 0])), (String::new(), "  ".to_owned()));
        assert_eq!(spark(&[u64::MAX, 1]), "█▁");
        assert_eq!((bar(8, 8, 3), bar(1, 1000, 3), bar(0, 8, 3)), ("███".to_owned(), "▏".to_owned(), String::new()));
        assert_eq!(bar(u64::MAX, u64::MAX, 2), "██");
    }
}
