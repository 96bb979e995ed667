//! Shapes that the normaliser knows: UUIDs, addresses, hosts and files; `moment` has those of dates and times, `word`
//! those of words with digits. Pure functions over bytes: each returns where a shape that starts at `at` ends, or
//! whether a token is of a kind. Nothing is written here.

/// Returns the number of ASCII digits at `at`.
pub(super) fn digits(bytes: &[u8], at: usize) -> usize {
    bytes.get(at..).map_or(0, |rest| rest.iter().take_while(|b| b.is_ascii_digit()).count())
}

fn hex_digits(bytes: &[u8], at: usize) -> usize {
    bytes.get(at..).map_or(0, |rest| rest.iter().take_while(|b| b.is_ascii_hexdigit()).count())
}

/// Whether one of the bytes `any` is at `at`.
pub(super) fn is(bytes: &[u8], at: usize, any: &[u8]) -> bool {
    bytes.get(at).is_some_and(|b| any.contains(b))
}

/// Whether no word goes on at `at`.
pub(super) fn ends_token(bytes: &[u8], at: usize) -> bool {
    !bytes.get(at).is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_')
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

pub(super) fn contains(list: &[&[u8]], word: &[u8]) -> bool {
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
