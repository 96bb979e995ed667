//! The few byte steps that every decoder takes: over blanks, digits, words and brackets.
//! Each is bounded, so that a decoder built of them is linear whatever the line holds; none allocates.

/// Longest word or bracket group that is taken for a field, in bytes.
const FIELD_BYTES: usize = 256;

/// The byte at `at`, 0 past the end: no shape of a prefix contains NUL.
pub fn byte(line: &[u8], at: usize) -> u8 {
    line.get(at).copied().unwrap_or(0)
}

/// The line from `at` on; empty past the end.
pub fn rest(line: &[u8], at: usize) -> &[u8] {
    line.get(at..).unwrap_or_default()
}

/// Space or tab.
pub fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

/// A blank, or the end of the line (`byte` gives 0 there).
pub fn is_gap(byte: u8) -> bool {
    is_blank(byte) || byte == 0
}

/// End of the run of bytes from `at` that satisfy `test`, at most `FIELD_BYTES` on.
pub fn run(line: &[u8], at: usize, test: impl Fn(u8) -> bool) -> usize {
    let field = rest(line, at);
    let field = &field[..field.len().min(FIELD_BYTES)];
    at + field.iter().position(|&b| !test(b)).unwrap_or(field.len())
}

/// End of the blanks from `at`.
pub fn blanks(line: &[u8], at: usize) -> usize {
    run(line, at, is_blank)
}

/// End of the digits from `at`.
pub fn digits(line: &[u8], at: usize) -> usize {
    run(line, at, |b| b.is_ascii_digit())
}

/// End of the word (no blank in it) from `at`.
pub fn word(line: &[u8], at: usize) -> usize {
    run(line, at, |b| !is_blank(b))
}

/// A byte of a program's, service's or host's name.
pub fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-')
}

/// Index of the bracket that closes the one at `at`; nested ones of the same kind are counted.
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
