//! How long a server asks clients to wait, found in the output of a run: in the head of an HTTP response (`curl -i`,
//! `curl -v`, `wget -S`), or in headers that a client's error shows. Only the response that the run failed with counts: the
//! last one, unless something else went wrong after it. Pure: takes text and errors, returns the time as the server worded it.

use crate::core::event::{Event, Io, RetryClass};
use crate::core::retry::{http_status, reason_of_status, reset_at};
use crate::core::visible::visible;

/// Maximum number of lines read from the head of a response.
const MAX_HEAD_LINES: usize = 200;
/// The status of a rate limit. Only with this status does a header that says when a limit resets say when to retry.
const LIMITED: u16 = 429;
/// Headers that say when a limit resets, each after the header that says what is left of the limit.
const RESETS: [(&str, &str); 9] = [
    ("x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"),
    ("x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"),
    ("x-ratelimit-remaining", "x-ratelimit-reset-after"),
    ("x-ratelimit-remaining", "x-ratelimit-reset"),
    ("ratelimit-remaining", "ratelimit-reset"),
    ("anthropic-ratelimit-requests-remaining", "anthropic-ratelimit-requests-reset"),
    ("anthropic-ratelimit-input-tokens-remaining", "anthropic-ratelimit-input-tokens-reset"),
    ("anthropic-ratelimit-output-tokens-remaining", "anthropic-ratelimit-output-tokens-reset"),
    ("anthropic-ratelimit-tokens-remaining", "anthropic-ratelimit-tokens-reset"),
];

/// Returns the time named by the response that a run failed with; `outputs` are its outputs, stderr first.
#[must_use]
pub fn asked(errors: &[Event], outputs: [&[u8]; 2]) -> Option<String> {
    let failed = [Io::Stderr, Io::Stdout].iter().find_map(|io| last(errors.iter().filter(|event| event.io == Some(*io))))?;
    let (status, lines) = outputs.iter().find_map(|output| last_head(output))?;
    let is_it = http_status(&failed.text).map_or_else(|| failed.retry.reason == reason_of_status(status), |said| said == status);
    if is_it { wait(&lines, status == LIMITED) } else { None }
}

/// Returns the last error that a retry can fix.
pub fn last<'a>(errors: impl Iterator<Item = &'a Event>) -> Option<&'a Event> {
    errors.filter(|event| event.retry.class == RetryClass::Transient).max_by_key(|event| event.line_num)
}

/// Returns the time in the headers that an error shows.
#[must_use]
pub fn shown(event: &Event) -> Option<String> {
    wait(event.multiline.as_str(), event.retry.reason == reason_of_status(LIMITED))
}

/// Returns the time in the headers of a response with this status; `headers` are names and values.
#[must_use]
pub fn headers<'a>(status: Option<u16>, headers: impl Iterator<Item = (&'a str, &'a str)>) -> Option<String> {
    let lines: Vec<String> = headers.map(|(name, said)| format!("{name}: {said}")).collect();
    wait(&lines.join("\n"), status == Some(LIMITED))
}

/// Returns status and headers of the last response in an output.
fn last_head(output: &[u8]) -> Option<(u16, String)> {
    let (mark, mut end) = (memchr::memmem::Finder::new("HTTP/"), output.len());
    // A line is looked at once, however often it says `HTTP/`.
    let from = output.rsplit(|&byte| byte == b'\n').find_map(|line| {
        let start = end - line.len();
        end = start.saturating_sub(1);
        mark.find(line)?;
        Some((start, status(&header(line))?))
    });
    let (start, status) = from?;
    let lines = output[start..].split(|&byte| byte == b'\n').map(header).take(MAX_HEAD_LINES);
    let lines: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    Some((status, lines.join("\n")))
}

/// Returns a line without escapes and without the mark with which `curl -v` prefixes what it received.
fn header(line: &[u8]) -> String {
    let shown = visible(line, None);
    let text = String::from_utf8_lossy(&shown);
    let text = text.trim();
    text.strip_prefix('<').unwrap_or(text).trim().to_owned()
}

/// Parses `HTTP/1.1 429 Too Many Requests`, `HTTP/2 503`.
fn status(line: &str) -> Option<u16> {
    let mut words = line.strip_prefix("HTTP/")?.split(' ');
    let is_version = words.next()?.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let code = words.next().filter(|code| is_version && code.len() == 3)?;
    code.parse().ok()
}

fn wait(text: &str, is_limited: bool) -> Option<String> {
    let of = |name: &str| text.lines().find_map(|line| value(line, name));
    let millis = of("retry-after-ms").filter(|text| text.parse::<f64>().is_ok()).map(|text| format!("{text}ms"));
    let reset = || {
        let all: Vec<(Option<String>, String)> = RESETS.iter().filter_map(|(left, reset)| Some((of(left), of(reset)?))).collect();
        let used_up = all.iter().find(|(left, _)| left.as_deref() == Some("0"));
        used_up.or_else(|| all.iter().find(|(left, _)| left.is_none())).map(|(_, reset)| reset.clone())
    };
    millis.or_else(|| of("retry-after")).or_else(|| is_limited.then(reset).flatten())
}

/// Returns the value of a header, in a response head or in a map of headers as languages print it.
fn value(line: &str, name: &str) -> Option<String> {
    let is_part = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || [b'-', b'_'].contains(byte));
    let bytes = line.as_bytes();
    let at = (0..=bytes.len().checked_sub(name.len())?).find(|&at| {
        let end = at + name.len();
        bytes[at..end].eq_ignore_ascii_case(name.as_bytes()) && !is_part(bytes.get(end)) && !is_part(at.checked_sub(1).and_then(|before| bytes.get(before)))
    })?;
    let said = line[at + name.len()..].trim_start_matches(['"', '\'', '\\', ' ', ')']);
    let said = said.strip_prefix([':', '=', ',']).or_else(|| said.strip_prefix("=>"))?;
    let said = said.trim_start_matches([' ', '\'', '"', '\\', '[', '>']);
    reset_at(said.split(['\'', '"', '\\']).next()?, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(head: &str) -> Option<String> {
        let (status, lines) = last_head(head.as_bytes())?;
        wait(&lines, status == LIMITED)
    }

    #[test]
    fn heads_as_programs_print_them() {
        for (head, wanted) in [
            ("HTTP/1.1 429 Too Many Requests\r\nDate: Fri, 27 Nov 2026 07:27:00 GMT\r\nRetry-After: 17\r\n\r\n{}", Some("17")),
            ("> GET / HTTP/1.1\n> \n< HTTP/2 503 \r\n< retry-after: Fri, 27 Nov 2026 07:28:00 GMT\r\n< \r\n", Some("Fri, 27 Nov 2026 07:28:00 GMT")),
            ("  HTTP/1.1 503 Service Unavailable\n  Retry-After: 120\n", Some("120")),
            ("\x1b[1mHTTP/2\x1b[0m 429\n\x1b[1mRetry-After\x1b[0m: 5\n", Some("5")),
            ("HTTP/2 429\nretry-after: 41\nretry-after-ms: 40500\n", Some("40500ms")),
            (
                "HTTP/2 429\nx-ratelimit-remaining-requests: 9\nx-ratelimit-remaining-tokens: 0\nx-ratelimit-reset-requests: 1s\nx-ratelimit-reset-tokens: 6m0s\n",
                Some("6m0s"),
            ),
            ("HTTP/2 429\nx-ratelimit-remaining: 12\nx-ratelimit-reset: 1795765680\n", None),
            ("HTTP/2 429\nx-ratelimit-reset: 1795765680\n", Some("1795765680")),
            ("HTTP/2 503\nx-ratelimit-reset: 1795765680\n", None),
            ("HTTP/2 429\n\nRetry-After: 9\n", None),
            ("HTTP/2 429\nretry-after: 9\n\nHTTP/2 200\n\nok\n", None),
            ("HTTP/2 429\nretry-after: 9\n\nHTTP/2 429\nserver: x\n", None),
            ("HTTP/2 429\nretry-after: soon; rm -rf /\n", None),
            ("a request over HTTP/2 429 times\nretry-after: 9\n", None),
        ] {
            assert_eq!(of(head).as_deref(), wanted, "{head}");
        }
    }

    #[test]
    fn a_line_full_of_marks_costs_no_more_than_its_length() {
        let head = format!("HTTP/2 429\nretry-after: 9\n\n{}\n", "HTTP/".repeat(200_000));
        let started = std::time::Instant::now();
        assert_eq!(of(&head).as_deref(), Some("9"));
        // Looking at the whole line for each mark takes minutes.
        assert!(started.elapsed().as_secs() < 10, "{:?}", started.elapsed());
    }

    #[test]
    fn headers_as_languages_print_them() {
        for (line, wanted) in [
            ("    'retry-after': '41',", Some("41")),
            ("headers: { \"Retry-After\": \"41\", \"x\": 1 }", Some("41")),
            ("Headers([('date', 'x'), ('retry-after', '41')])", Some("41")),
            ("  'retry-after' => ['41'],", Some("41")),
            ("retry-after-ms: 12", None),
            ("x-retry-after: 12", None),
            ("retry-after", None),
        ] {
            assert_eq!(value(line, "retry-after").as_deref(), wanted, "{line}");
        }
    }
}
