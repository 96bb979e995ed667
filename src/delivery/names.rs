//! The names that an output file has had: siftd must not read those as logs.

/// Whether the part after a file's name is that of an older generation: `.1`, `-20261122.gz`.
#[must_use]
pub fn is_generation(rest: &[u8]) -> bool {
    let rest = rest.strip_suffix(b".gz").or(rest.strip_suffix(b".zst")).unwrap_or(rest);
    rest.len() > 1 && b".-".contains(&rest[0]) && rest[1..].iter().all(|byte| byte.is_ascii_digit() || b".-".contains(byte))
}

/// Whether the part after an output's name is empty, or that of one of its older generations, or of one that is being compressed.
#[must_use]
pub fn is_output(rest: &[u8]) -> bool {
    let is_half = |rest: &[u8]| rest.ends_with(b".gz");
    rest.is_empty() || is_generation(rest.strip_suffix(b".tmp").filter(|rest| is_half(rest)).unwrap_or(rest))
}
