//! Shapes of single words: codes, units, suffixes of pods, random strings, and words whose digits belong to them.

use super::shape::contains;

/// Whether the token is a compiler's, linter's or database's code: `E0308`, `TS2304`, `CS1002`, `DEP0040`, `ORA-00942`, `MY-012487`, `CVE-2024-1`.
pub(super) fn is_code(token: &[u8]) -> bool {
    const NO_CODE: &[&[u8]] = &[b"PID", b"TID", b"ID", b"USER", b"PORT", b"NODE", b"HOST", b"TASK", b"CORE", b"JOB", b"RUN", b"T", b"UID", b"POD", b"ROW"];
    const LONG: &[&[u8]] = &[b"NETSDK", b"PGRST", b"XAML"];
    const HYPHEN: &[&[u8]] = &[b"ORA", b"MY", b"PLS", b"TNS", b"CVE", b"RUSTSEC", b"RMAN", b"IMP", b"EXP", b"MDB", b"DPY", b"DPI", b"JAS", b"KUP"];
    let letters = token.iter().take_while(|b| b.is_ascii_uppercase()).count();
    let (head, tail) = token.split_at(letters);
    if let Some(number) = tail.strip_prefix(b"-") {
        return contains(HYPHEN, head) && !number.is_empty() && number.iter().all(|b| b.is_ascii_digit() || *b == b'-');
    }
    let shaped = (3..=6).contains(&tail.len()) && tail.iter().all(u8::is_ascii_digit);
    shaped && ((1..=4).contains(&letters) && !contains(NO_CODE, head) || contains(LONG, head))
}

/// Words, in lower case, whose digits belong to them.
const KNOWN: &[&[u8]] = &[
    b"a11y",
    b"aarch64",
    b"amd64",
    b"arm64",
    b"base64",
    b"bzip2",
    b"complex128",
    b"complex64",
    b"crc32",
    b"e2e",
    b"ec2",
    b"f16",
    b"f32",
    b"f64",
    b"float16",
    b"float32",
    b"float64",
    b"gb2312",
    b"h2",
    b"h264",
    b"http2",
    b"i128",
    b"i16",
    b"i18n",
    b"i32",
    b"i386",
    b"i64",
    b"i686",
    b"i8",
    b"int16",
    b"int32",
    b"int64",
    b"int8",
    b"ipv4",
    b"ipv6",
    b"k8s",
    b"l10n",
    b"latin1",
    b"lib32",
    b"lib64",
    b"log4j",
    b"lz4",
    b"md5",
    b"mp3",
    b"mp4",
    b"neo4j",
    b"oauth2",
    b"p2p",
    b"s3",
    b"sha1",
    b"sha256",
    b"sha384",
    b"sha512",
    b"sqlite3",
    b"tls1",
    b"u128",
    b"u16",
    b"u32",
    b"u64",
    b"u8",
    b"uint16",
    b"uint32",
    b"uint64",
    b"uint8",
    b"utf16",
    b"utf32",
    b"utf8",
    b"win32",
    b"win64",
    b"x509",
    b"x64",
    b"x86",
];

/// Whether a word's digits belong to it, as in `utf8`.
pub(super) fn is_known(word: &[u8]) -> bool {
    let mut lower = [0u8; 10];
    let Some(copy) = lower.get_mut(..word.len()) else { return false };
    copy.copy_from_slice(word);
    copy.make_ascii_lowercase();
    KNOWN.binary_search(&&*copy).is_ok()
}

/// What a unit measures.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Time,
    Size,
}

/// Returns the unit that a word names.
pub(super) fn unit(word: &[u8]) -> Option<Unit> {
    if word == "µs".as_bytes() || word == "μs".as_bytes() {
        return Some(Unit::Time);
    }
    let mut lower = [0u8; 12];
    let copy = lower.get_mut(..word.len())?;
    copy.copy_from_slice(word);
    copy.make_ascii_lowercase();
    match &*copy {
        b"b" | b"kb" | b"mb" | b"gb" | b"tb" | b"kib" | b"mib" | b"gib" | b"tib" | b"bytes" | b"byte" | b"kbytes" | b"mbytes" => Some(Unit::Size),
        b"ns" | b"us" | b"ms" | b"s" | b"sec" | b"secs" | b"second" | b"seconds" | b"m" | b"min" | b"mins" | b"minute" | b"minutes" | b"h" | b"hr" | b"hrs"
        | b"hour" | b"hours" | b"d" | b"day" | b"days" | b"msec" | b"millis" | b"milliseconds" | b"microseconds" | b"nanoseconds" => Some(Unit::Time),
        _ => None,
    }
}

/// Whether `at` begins what Kubernetes appends to a pod's name:
/// `7d9f8b6c5-x2x4z` (its alphabet is without vowels and look-alikes).
pub(super) fn pod_suffix(bytes: &[u8], at: usize, end: usize) -> bool {
    let safe = |part: &[u8]| part.iter().all(|b| b"bcdfghjklmnpqrstvwxz2456789".contains(b));
    let token = &bytes[at..end];
    let (hash, tail) = match memchr::memchr(b'-', token) {
        Some(dash) => token.split_at(dash),
        None => (&token[..0], token),
    };
    let tail = tail.strip_prefix(b"-").unwrap_or(tail);
    let numeric = token.iter().any(u8::is_ascii_digit) && token.iter().any(u8::is_ascii_lowercase);
    let hashed =
        hash.is_empty() || ((6..=10).contains(&hash.len()) && hash.iter().all(|b| b.is_ascii_hexdigit() || b"bcdfghjklmnpqrstvwxz2456789".contains(b)));
    tail.len() == 5 && safe(tail) && hashed && numeric && (!hash.is_empty() || tail.iter().filter(|b| b.is_ascii_digit()).count() >= 2)
}

/// Counts how often a token changes between letters and digits.
pub(super) fn changes(token: &[u8]) -> usize {
    token.windows(2).filter(|w| w[0].is_ascii_digit() != w[1].is_ascii_digit() && w.iter().all(u8::is_ascii_alphanumeric)).count()
}

/// Whether the token is Base64 or the like: at least 24 characters, upper, lower and digits, well mixed.
pub(super) fn is_random(token: &[u8]) -> bool {
    let body = token.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'_' | b'/'));
    let mixed = token.iter().any(u8::is_ascii_uppercase) && token.iter().any(u8::is_ascii_lowercase);
    let longest = token.split(|b| !b.is_ascii_alphanumeric()).map(<[u8]>::len).max().unwrap_or(0);
    token.len() >= 24 && body && mixed && longest >= 12 && changes(token) >= 4
}
