//! How a JSON string represents a character: encoders write the same text differently.

/// Encoders of JSON strings, by what they escape. All of them leave [stable](is_stable) bytes alone.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoder {
    /// No encoder: the text is raw.
    Raw,
    /// Only what must be escaped, as `\"`.
    Least,
    /// As `Least`, and everything that is not ASCII (Python).
    Ascii,
    /// As `Ascii`, and `/` (PHP).
    Slashes,
    /// As `Least`, and what is special in HTML (Go, Rails).
    Html,
    /// As `Html`, and `=` and `'` (Gson).
    Attributes,
    /// Quotes as numbers, too, and everything that is not ASCII (.NET).
    Numbers,
}

impl Encoder {
    pub(super) const ALL: [Self; 7] = [Self::Raw, Self::Least, Self::Ascii, Self::Slashes, Self::Html, Self::Attributes, Self::Numbers];

    /// Writes `c`, calling `hex_letter` before each digit that may be written in either case.
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

    /// Whether the encoder writes `c` as `\u` and a number.
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

/// Whether every encoder leaves the byte unchanged.
pub(super) fn is_stable(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b" .,:;-_()[]{}!?*#@%^~|$".contains(&byte)
}
