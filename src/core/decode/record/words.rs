//! The words of the error that a record reports beside its message: `"msg":"push failed","error":"connection refused"`.

use super::super::json::{Leaf, Leaves, first};

/// Where loggers put them, in this order: the error as a string, or the message of the object that it is.
const ERRORS: [&str; 26] = [
    "error",
    "err",
    "exception",
    "error.message",
    "error.msg",
    "err.message",
    "err.msg",
    "exception.message",
    "exception.msg",
    "exception_message",
    "exceptionmessage",
    "error_message",
    "errormessage",
    "errmsg",
    "err_msg",
    "error_msg",
    "exc_info",
    "fields.error",
    "fields.err",
    "jsonpayload.error",
    "jsonpayload.err",
    "context.exception.message",
    "context.error",
    "attributes.exception.message",
    "cause",
    "cause.message",
];

/// Values that say that there is no error.
const NONE: [&str; 8] = ["", "null", "none", "nil", "<nil>", "false", "0", "no"];

/// Whether the value of a field named as an error says that there is none.
pub(super) fn is_none(text: &str) -> bool {
    NONE.iter().any(|none| none.eq_ignore_ascii_case(text))
}

/// Returns the first field of an error that says something: in words, not as the flag `true`.
pub(super) fn words<'l, 'de>(leaves: &'l Leaves<'de>) -> Option<&'l Leaf<'de>> {
    let says = |text: &str| !is_none(text.trim()) && !text.trim().eq_ignore_ascii_case("true");
    first(leaves, &ERRORS, |leaf| leaf.text().filter(|text| says(text)).map(|_| leaf))
}

/// Returns a message followed by the words of its error, if they add anything to it.
#[must_use]
pub fn with_error(message: &str, error: &str) -> Option<String> {
    let (head, error) = (message.lines().next().unwrap_or_default().trim_end(), error.lines().next().unwrap_or_default().trim());
    if error.is_empty() || message.contains(error) {
        return None;
    }
    let rest = message.get(message.find('\n').unwrap_or(message.len())..).unwrap_or_default();
    let head = head.trim_end_matches([':', '.', ' ']);
    Some(if head.is_empty() || error.starts_with(head) { format!("{error}{rest}") } else { format!("{head}: {error}{rest}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_follows_the_message_that_lacks_it() {
        for (message, error, both) in [
            ("Reconciler error", "Operation cannot be fulfilled", Some("Reconciler error: Operation cannot be fulfilled")),
            ("push failed:", "dial tcp: refused", Some("push failed: dial tcp: refused")),
            ("push failed: refused", "refused", None),
            ("boom", "boom at noon", Some("boom at noon")),
            ("", "refused", Some("refused")),
            ("a\nb", "c\nd", Some("a: c\nb")),
            ("a", " ", None),
        ] {
            assert_eq!(with_error(message, error).as_deref(), both, "{message}");
        }
    }
}
