//! How a JSON string holds a character: the same text stands differently in the logs of different encoders.

/// Encoders of JSON strings, by what they escape. All of them leave [stable](is_stable) bytes alone.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoder {
    /// None: the text stands raw.
    Raw,
    /// What must be escaped, as `\"`.
    Least,
    /// That, and what is not ASCII (Python).
    Ascii,
    /// That, and `/` (PHP).
    Slashes,
    /// What must be, and what HTML reads (Go, Rails).
    Html,
    /// That, and `=` and `'` (Gson).
    Attributes,
    /// Quotes as numbers, too, and all that is not ASCII (.NET).
    Numbers,
}

impl Encoder {
    pub(super) const ALL: [Self; 7] = [Self::Raw, Self::Least, Self::Ascii, Self::Slashes, Self::Html, Self::Attributes, Self::Numbers];

    /// Writes `c`; calls `hex_letter` for each digit that may be written small or large, before it is written.
    pub(super) fn write(self, c: char, out: &mut Vec<u8>, mut hex_letter: impl FnMut(usize, u8)) {
        if self.numbers(c) {
            for unit in c.encode_utf16(&mut [0; 2]).iter() {
                out.extend(b"\\u");
                for digit in format!("{unit:04x}").bytes() {
                    if digit.is_ascii_alphabetic() {
                        hex_letter(out.len(), digit);
                    }
                    out.push(digit);
                }
            }
            return;
        }
        match c {
            '"' | '\\' if self != Self::Raw => out.extend([b'\\', c as u8]),
            '\t' if self != Self::Raw => out.extend(b"\\t"),
            '/' if self == Self::Slashes => out.extend(b"\\/"),
            c => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }

    /// Whether it writes `c` as `\u` and a number.
    fn numbers(self, c: char) -> bool {
        match self {
            Self::Raw | Self::Least => false,
            Self::Ascii | Self::Slashes => !c.is_ascii(),
            Self::Html => "<>&".contains(c),
            Self::Attributes => "<>&='".contains(c),
            Self::Numbers => !c.is_ascii() || "\"'<>&+`".contains(c),
        }
    }
}

/// Whether every encoder leaves a byte as it is.
pub(super) fn is_stable(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b" .,:;-_()[]{}!?*#@%^~|$".contains(&byte)
}
