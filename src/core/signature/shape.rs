//! Shapes that the normaliser knows: dates, times, UUIDs, addresses, hosts, codes,
//! units, random strings. Pure functions over bytes: each returns where a shape that
//! starts at `at` ends, or whether a token is of a kind. Nothing is written here.

/// Returns the number of ASCII digits at `at`.
pub(super) fn digits(bytes: &[u8], at: usize) -> usize {
    bytes.get(at..).map_or(0, |rest| rest.iter().take_while(|b| b.is_ascii_digit()).count())
}

fn hex_digits(bytes: &[u8], at: usize) -> usize {
    bytes.get(at..).map_or(0, |rest| rest.iter().take_while(|b| b.is_ascii_hexdigit()).count())
}

fn is(bytes: &[u8], at: usize, any: &[u8]) -> bool {
    bytes.get(at).is_some_and(|b| any.contains(b))
}

fn ends_token(bytes: &[u8], at: usize) -> bool {
    !bytes.get(at).is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_')
}

/// Whether the word is a three-letter English month, in any case.
pub(super) fn is_month(word: &[u8]) -> bool {
    let months = |lower| matches!(&lower, b"jan" | b"feb" | b"mar" | b"apr" | b"may" | b"jun" | b"jul" | b"aug" | b"sep" | b"oct" | b"nov" | b"dec");
    three(word).is_some_and(months)
}

/// Whether the word is a three-letter English month or weekday, in any case.
pub(super) fn names_day_or_month(word: &[u8]) -> bool {
    word.len() == 3 && (is_month(word) || is_weekday(word))
}

/// Returns a word of three bytes in lower case.
fn three(word: &[u8]) -> Option<[u8; 3]> {
    let &[first, second, third] = word else { return None };
    Some([first.to_ascii_lowercase(), second.to_ascii_lowercase(), third.to_ascii_lowercase()])
}

/// Whether the word is a three-letter English weekday, in any case.
pub(super) fn is_weekday(word: &[u8]) -> bool {
    three(word).is_some_and(|lower| matches!(&lower, b"mon" | b"tue" | b"wed" | b"thu" | b"fri" | b"sat" | b"sun"))
}

/// Returns the end of a date, a time, or both, that starts with a digit.
pub(super) fn date(bytes: &[u8], at: usize) -> Option<usize> {
    let end = match digits(bytes, at) {
        4 => iso_date(bytes, at)?,
        8 if is(bytes, at, b"12") && is(bytes, at + 8, b"Tt") && digits(bytes, at + 9) == 6 => return Some(zone(bytes, at + 15)),
        1 | 2 => match short_date(bytes, at) {
            Some(end) => end,
            None => return time(bytes, at),
        },
        _ => return None,
    };
    let next = if is(bytes, end, b"Tt_ :") { time(bytes, end + 1) } else { None };
    next.or_else(|| ends_token(bytes, end).then_some(end))
}

/// Returns the end of `2026-01-02`, `2026/1/2`.
fn iso_date(bytes: &[u8], at: usize) -> Option<usize> {
    let separator = *bytes.get(at + 4).filter(|b| matches!(b, b'-' | b'/' | b'.'))?;
    let month = digits(bytes, at + 5);
    let day_at = at + 5 + month + 1;
    let day = digits(bytes, day_at);
    let whole = (1..=2).contains(&month) && bytes.get(day_at - 1) == Some(&separator) && (1..=2).contains(&day);
    (whole && is(bytes, at, b"12")).then_some(day_at + day)
}

/// Returns the end of `01/02/2026`, `2-1-26`, `02/Jan/2026`, `2 Jan 2026`.
fn short_date(bytes: &[u8], at: usize) -> Option<usize> {
    let second = at + digits(bytes, at) + 1;
    let separator = *bytes.get(second - 1).filter(|b| matches!(b, b'-' | b'/' | b' '))?;
    if bytes.get(second..second + 3).is_some_and(is_month) {
        let year = second + 4;
        return (bytes.get(year - 1) == Some(&separator) && matches!(digits(bytes, year), 2 | 4)).then(|| year + digits(bytes, year));
    }
    let year = second + digits(bytes, second) + 1;
    let whole = separator == b'/' && matches!(digits(bytes, second), 1 | 2) && bytes.get(year - 1) == Some(&separator) && matches!(digits(bytes, year), 2 | 4);
    whole.then(|| year + digits(bytes, year))
}

/// Returns the end of `12:34:56`, with a fraction, AM or PM, and a zone.
pub(super) fn time(bytes: &[u8], at: usize) -> Option<usize> {
    let hour = digits(bytes, at);
    let minute = at + hour;
    if !(1..=2).contains(&hour) || !is(bytes, minute, b":") || digits(bytes, minute + 1) != 2 || !is(bytes, minute + 3, b":") || digits(bytes, minute + 4) != 2
    {
        return None;
    }
    let mut end = minute + 6;
    if is(bytes, end, b".,") && digits(bytes, end + 1) > 0 {
        end += 1 + digits(bytes, end + 1);
    }
    let marks: [&[u8]; 4] = [b" AM", b" PM", b" am", b" pm"];
    if marks.iter().any(|mark| bytes.get(end..end + 3) == Some(mark)) {
        end += 3;
    }
    Some(zone(bytes, end))
}

/// Returns the end of `Z`, `+01:00`, ` +0000`, ` UTC` at `at`, or `at`.
fn zone(bytes: &[u8], at: usize) -> usize {
    if is(bytes, at, b"Zz") && ends_token(bytes, at + 1) {
        return at + 1;
    }
    if bytes.get(at..at + 4) == Some(b" UTC") || bytes.get(at..at + 4) == Some(b" GMT") {
        return at + 4;
    }
    let sign = at + usize::from(is(bytes, at, b" "));
    match (is(bytes, sign, b"+-"), digits(bytes, sign + 1)) {
        (true, 4) => sign + 5,
        (true, 2) if is(bytes, sign + 3, b":") && digits(bytes, sign + 4) == 2 => sign + 6,
        _ => at,
    }
}

/// Returns the end of `00:39`: minutes and seconds, two digits each, and nothing after.
pub(super) fn clock(bytes: &[u8], at: usize) -> Option<usize> {
    let whole = digits(bytes, at) == 2 && is(bytes, at + 2, b":") && digits(bytes, at + 3) == 2 && ends_token(bytes, at + 5) && !is(bytes, at + 5, b":");
    whole.then_some(at + 5)
}

/// Returns the end of a UUID: 8-4-4-4-12 hex digits (RFC 9562).
pub(super) fn uuid(bytes: &[u8], at: usize) -> Option<usize> {
    let mut end = at;
    for (index, length) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if index > 0 {
            is(bytes, end, b"-").then_some(())?;
            end += 1;
        }
        (hex_digits(bytes, end) == length).then_some(())?;
        end += length;
    }
    ends_token(bytes, end).then_some(end)
}

/// Maximum number of colons in an address (`1:2:3:4:5:6:7::`); without a
/// bound, each number of `1:2:3:…` would be read to the end of the text.
const MAX_COLONS: usize = 8;

/// Returns the end of an IPv6 or MAC address: hex groups and colons, with `::`, eight groups, or six groups of two digits.
pub(super) fn colon_address(bytes: &[u8], at: usize) -> Option<usize> {
    let (mut end, mut colons, mut double, mut pairs, mut numeric) = (at, 0, false, true, false);
    loop {
        let group = hex_digits(bytes, end);
        if group > 4 || colons > MAX_COLONS {
            return None;
        }
        numeric |= bytes[end..end + group].iter().any(u8::is_ascii_digit);
        pairs &= group == 2;
        end += group;
        if !is(bytes, end, b":") || (!is(bytes, end + 1, b":") && hex_digits(bytes, end + 1) == 0) {
            break;
        }
        double |= is(bytes, end + 1, b":");
        colons += 1;
        end += 1;
    }
    let whole = numeric && ends_token(bytes, end) && ((double && colons >= 2) || colons == 7 || (pairs && colons == 5));
    whole.then_some(end)
}

/// Whether a dotted lower-case name is a host rather than a file or a module: by its last label, or because a port follows.
pub(super) fn is_host(name: &[u8], port_follows: bool) -> bool {
    let Some(dot) = memchr::memrchr(b'.', name) else { return false };
    let last = &name[dot + 1..];
    let plain = name.iter().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'.' | b'-'))
        && name[0].is_ascii_alphanumeric()
        && !name.windows(2).any(|w| w == b"..");
    let dots = memchr::memchr_iter(b'.', name).count();
    plain
        && (is_tld(last)
            || (dots >= 2
                && (contains(LOCAL, last) || (port_follows && !last.is_empty() && last.iter().all(u8::is_ascii_lowercase) && !contains(EXTENSIONS, last)))))
}

/// Whether a quick look shows that a file name is its own normal form: `worker.rs`, but not one with a
/// host's ending. It has `stem` letters and underscores before its dot, and the letters `last` after it.
pub(super) fn is_plain_file((stem, last): (usize, &[u8])) -> bool {
    // 16 letters and more may be a hex id.
    (1..16).contains(&stem) && (1..16).contains(&last.len()) && !is_tld(last)
}

/// Whether a file name has an extension.
pub(super) fn has_extension(name: &[u8]) -> bool {
    let Some(dot) = memchr::memrchr(b'.', name) else { return false };
    let last = &name[dot + 1..];
    (1..=10).contains(&last.len()) && last[0].is_ascii_alphabetic() && last.iter().all(u8::is_ascii_alphanumeric)
}

fn contains(list: &[&[u8]], word: &[u8]) -> bool {
    list.contains(&word)
}

/// Top-level domains that log lines name and that no module, property or file ends in.
fn is_tld(label: &[u8]) -> bool {
    matches!(
        label,
        b"com"
            | b"net"
            | b"org"
            | b"edu"
            | b"gov"
            | b"io"
            | b"dev"
            | b"cn"
            | b"ru"
            | b"de"
            | b"uk"
            | b"fr"
            | b"jp"
            | b"eu"
            | b"ch"
            | b"nl"
            | b"br"
            | b"kr"
            | b"tw"
            | b"hk"
            | b"au"
            | b"cloud"
            | b"ai"
            | b"co"
            | b"localdomain"
            | b"lan"
    )
}
/// Last labels of private names; only with two or more dots.
const LOCAL: &[&[u8]] = &[b"local", b"internal", b"svc", b"corp", b"in", b"us", b"ca", b"info", b"home", b"intra", b"consul"];
/// Last labels before `:12` that make a name a file.
const EXTENSIONS: &[&[u8]] = &[
    b"py", b"js", b"ts", b"tsx", b"jsx", b"mjs", b"cjs", b"rs", b"go", b"java", b"kt", b"rb", b"php", b"c", b"h", b"cc", b"cpp", b"hpp", b"cs", b"ex", b"exs",
    b"dart", b"swift", b"scala", b"sh", b"r", b"lua", b"pl", b"vue", b"html", b"css", b"json", b"yml", b"yaml", b"toml", b"xml", b"sql", b"txt", b"md", b"log",
    b"erl", b"hs", b"ml", b"clj", b"groovy", b"gradle", b"tf", b"cmake", b"proto", b"svelte", b"conf", b"in",
];

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
