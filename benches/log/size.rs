//! Sizes with units, as people write them.

/// Parses `4096`, `64KiB`, `16MiB`, `1GiB` into bytes.
pub fn parse(text: &str) -> anyhow::Result<u64> {
    let units = [("KiB", 10), ("MiB", 20), ("GiB", 30)];
    let unit = units.iter().find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, *shift)));
    let (number, shift) = unit.unwrap_or((text, 0));
    Ok(number.trim().parse::<u64>()? << shift)
}
