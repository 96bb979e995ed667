//! The byte steps that every decoder needs: over blanks, digits, words and brackets. Each is
//! bounded, so that a decoder built from them is linear whatever the line holds; none allocates.

/// Longest word or bracket group that is taken for a field, in bytes.
const FIELD_BYTES: usize = 256;

/// Returns the byte at `at`, or 0 past the end: no shape of a prefix contains NUL.
pub fn byte(line: &[u8], at: usize) -> u8 {
    line.get(at).copied().unwrap_or(0)
}

/// Returns the line from `at` on; empty past the end.
pub fn rest(line: &[u8], at: usize) -> &[u8] {
    line.get(at..).unwrap_or_default()
}

/// Whether the byte is a space or a tab.
pub fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

/// Whether the byte is a blank, or past the end of the line (`byte` returns 0 there).
pub fn is_gap(byte: u8) -> bool {
    is_blank(byte) || byte == 0
}

/// Returns the end of the run of bytes from `at` that satisfy `test`, at most `FIELD_BYTES` long.
pub fn run(line: &[u8], at: usize, test: impl Fn(u8) -> bool) -> usize {
    let field = rest(line, at);
    let field = &field[..field.len().min(FIELD_BYTES)];
    at + field.iter().position(|&b| !test(b)).unwrap_or(field.len())
}

/// Returns the end of the blanks from `at`.
pub fn blanks(line: &[u8], at: usize) -> usize {
    run(line, at, is_blank)
}

/// Returns the end of the digits from `at`.
pub fn digits(line: &[u8], at: usize) -> usize {
    run(line, at, |b| b.is_ascii_digit())
}

/// Returns the end of the word (no blank in it) from `at`.
pub fn word(line: &[u8], at: usize) -> usize {
    run(line, at, |b| !is_blank(b))
}

/// Whether the byte may be part of a program's, service's or host's name.
pub fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-')
}

/// Returns the index of the bracket that closes the one at `at`; nested ones of the same kind are counted.
pub fn group(line: &[u8], at: usize) -> Option<usize> {
    let open = byte(line, at);
    let close = match open {
        b'[' => b']',
        b'(' => b')',
        b'<' => b'>',
        _ => return None,
    };
    let mut depth = 0usize;
    for (i, &b) in rest(line, at).iter().take(FIELD_BYTES).enumerate() {
        if b == open {
            depth += 1;
        } else if b == close {
            depth -= 1;
            if depth == 0 {
                return Some(at + i);
            }
        }
    }
    None
}
