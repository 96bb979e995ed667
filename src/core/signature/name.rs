//! The second half of the normaliser: what is inside a name. Words stay; numbers, ids, versions, sizes and durations do not.
//! Called for each token that is not a date, path, host or code as a whole, and for the last part of paths and URLs.
//! It never looks at what precedes the token.

use super::normalise::{Listener, Machine, Span};
use super::shape;
use super::word::{self, Unit};

/// Maximum number of groups of a dotted number: if a letter follows them all, each is read again from the next one.
const MAX_GROUPS: usize = 32;

impl<L: Listener> Machine<'_, '_, L> {
    /// Handles the parts of a name: words stay, numbers, ids and versions do not.
    pub(super) fn names(&mut self, (from, end): Span) {
        if self.code_or_sign((from, end)) {
            return;
        }
        let mut at = from;
        while at < end {
            if self.bytes[at].is_ascii_alphanumeric() {
                at = self.part(from, at, end);
            } else if self.bytes[at] == b'-' && at > from && self.bytes[at - 1] == b'_' && shape::digits(self.bytes, at + 1) >= 8 {
                // HDFS: `blk_-1608999687919862906`.
                self.replace((at, at + 1), "", "sign");
                at += 1;
            } else {
                at += 1;
            }
        }
    }

    /// A compiler code stays whole; a sign before a number goes with it.
    fn code_or_sign(&mut self, (from, end): Span) -> bool {
        if from >= end || word::is_code(self.slice((from, end))) {
            return true;
        }
        let free = from == 0 || !self.bytes[from - 1].is_ascii_alphanumeric();
        if free && matches!(self.bytes[from], b'-' | b'+') && shape::digits(self.bytes, from + 1) > 0 && end > from + 1 {
            self.replace((from, from + 1), "", "sign");
        }
        false
    }

    /// Handles one run of letters and digits within a name that reaches from `from` to `end`.
    fn part(&mut self, from: usize, at: usize, end: usize) -> usize {
        let stop = at + self.bytes[at..end].iter().take_while(|b| b.is_ascii_alphanumeric()).count();
        let word = self.slice((at, stop));
        if let Some(next) = self.pod(from, at, end) {
            return next;
        }
        if word.len() == 8
            && self.bytes.get(stop) == Some(&b'-')
            && let Some(next) = shape::uuid(self.bytes, at).filter(|&next| next <= end)
        {
            self.replace((at, next), "UUID", "UUID");
            return next;
        }
        // The kernel: `libshop.so[7f2a1c000000+1af000]`.
        let is_hex = |part: &[u8]| part.iter().all(u8::is_ascii_hexdigit);
        if at > from + 7 && self.bytes[at - 1] == b'+' && is_hex(word) && is_hex(self.slice((from, at - 1))) {
            self.replace((at, stop), "N", "offset");
            return stop;
        }
        let digits = word.iter().filter(|b| b.is_ascii_digit()).count();
        if digits == 0 {
            return self.letters(at, stop, end);
        }
        if word[0].is_ascii_digit()
            && let Some(next) = self.number(at, stop, end)
        {
            return next;
        }
        self.mixed(at, stop, digits, end)
    }

    /// Handles a run of letters within a name: kept, unless it is a long random one in hex.
    fn letters(&mut self, at: usize, stop: usize, end: usize) -> usize {
        let word = self.slice((at, stop));
        if word.len() >= 16 && word.iter().all(u8::is_ascii_hexdigit) {
            self.replace((at, stop), "N", "hex id");
        } else if word == b"pytest" && self.bytes[stop..end].starts_with(b"-of-") {
            self.replace((at, end), "TMP", "temporary name");
            return end;
        }
        stop
    }

    /// Replaces what Kubernetes appends to names, after a `-` at `at - 1`.
    fn pod(&mut self, from: usize, at: usize, end: usize) -> Option<usize> {
        let fits = at > from + 1 && end - at >= 5 && end - at <= 16 && self.bytes[at - 1] == b'-' && self.bytes[from].is_ascii_alphabetic();
        (fits && word::pod_suffix(self.bytes, at, end)).then(|| {
            self.replace((at, end), "POD", "pod suffix");
            end
        })
    }

    /// Handles a number and what belongs to it: groups of a version or address, a fraction, a unit.
    fn number(&mut self, at: usize, stop: usize, end: usize) -> Option<usize> {
        let (mut to, mut groups) = (at + shape::digits(self.bytes, at), 1);
        while groups < MAX_GROUPS && to < end && self.bytes[to] == b'.' && shape::digits(self.bytes, to + 1) > 0 {
            to += 1 + shape::digits(self.bytes, to + 1);
            groups += 1;
        }
        let tail = self.slice((to, end));
        let free = !tail.first().is_some_and(|b| b.is_ascii_alphanumeric() || *b >= 0x80);
        if groups >= 3 {
            return (free || tail[0].is_ascii_lowercase()).then(|| self.dotted((at, to), groups, end));
        }
        if groups == 1 && to < stop && self.bytes[at..stop].iter().all(u8::is_ascii_hexdigit) && stop - at >= 7 {
            return None;
        }
        if free {
            return Some(self.counted(at, self.thousands(to, end), end));
        }
        self.measured(at, to, end)
    }

    /// Replaces an address or a version: `10.0.0.1` or `1.2.3-beta.1`.
    fn dotted(&mut self, (at, to): Span, groups: usize, end: usize) -> usize {
        let octet = |part: &[u8]| part.len() <= 3 && part.iter().fold(0u32, |sum, b| sum * 10 + u32::from(b - b'0')) < 256;
        if groups == 4 && self.slice((at, to)).split(|&b| b == b'.').all(octet) {
            self.replace((at, to), "IP", "IPv4 address");
            return to;
        }
        const MARKS: [&[u8]; 8] = [b"alpha", b"beta", b"rc", b"dev", b"SNAPSHOT", b"canary", b"next", b"RELEASE"];
        let rest = &self.bytes[to..end];
        let rest = rest.strip_prefix(b"-").or(rest.strip_prefix(b".")).unwrap_or(rest);
        let marked = MARKS.iter().any(|mark| rest.starts_with(mark));
        let pre = |b: &&u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-');
        let stop = if marked { to + self.bytes[to..end].iter().take_while(pre).count() } else { to };
        self.replace((at, stop), "VER", "version");
        stop
    }

    /// Returns the end of `1,234,567` when the token ends before its first comma.
    fn thousands(&self, to: usize, end: usize) -> usize {
        let mut stop = to;
        while to == end && self.bytes.get(stop) == Some(&b',') && shape::digits(self.bytes, stop + 1) == 3 {
            stop += 4;
        }
        stop
    }

    /// Replaces a bare number, with a unit in the next word or without.
    fn counted(&mut self, at: usize, to: usize, end: usize) -> usize {
        if to >= end && self.bytes.get(to) == Some(&b' ') {
            let letters = |b: &&u8| b.is_ascii_alphabetic() || **b >= 0x80;
            let next = to + 1 + self.bytes[to + 1..].iter().take_while(letters).count();
            let single = next == to + 2 && !matches!(self.bytes[to + 1], b's' | b'B');
            let word = self.slice((to + 1, next));
            let alone = !self.bytes.get(next).is_some_and(|b| b.is_ascii_digit() || matches!(b, b'_' | b'/' | b'='));
            if !single
                && alone
                && let Some(unit) = word::unit(word)
            {
                return self.quantity((at, next), unit);
            }
        }
        self.replace((at, to), "N", "number");
        to
    }

    /// Replaces `12ms`, `1m20s`, `3KiB`: a number with its unit in the same token.
    fn measured(&mut self, at: usize, first: usize, end: usize) -> Option<usize> {
        let (mut to, mut last) = (first, Unit::Time);
        loop {
            let next = to + self.bytes[to..end].iter().take_while(|b| b.is_ascii_alphabetic() || **b >= 0x80).count();
            let unit = word::unit(self.slice((to, next)))?;
            (to == first || unit == last).then_some(())?;
            (to, last) = (next, unit);
            let digits = shape::digits(self.bytes, to);
            if to >= end || digits == 0 {
                break;
            }
            to += digits;
            if self.bytes.get(to) == Some(&b'.') && to < end {
                to += 1 + shape::digits(self.bytes, to + 1);
            }
        }
        (to <= end && (to == end || matches!(self.bytes[to], b'/' | b'-'))).then(|| self.quantity((at, to), last))
    }

    /// Writes a duration or size. The same size again in parentheses, for people, adds nothing; nor does a `<` before it.
    fn quantity(&mut self, span: Span, unit: Unit) -> usize {
        self.keep(span.0);
        let (token, why) = if unit == Unit::Time { ("DUR", "duration") } else { ("SIZE", "size") };
        if self.out.ends_with(" <") {
            self.out.pop();
        }
        if unit == Unit::Size && self.out.ends_with("SIZE (") && self.bytes.get(span.1) == Some(&b')') {
            self.out.truncate(self.out.len() - 2);
            self.replace((span.0, span.1 + 1), "", why);
            return span.1 + 1;
        }
        self.replace(span, token, why);
        span.1
    }

    /// Handles mixed letters and digits: an address, a hex id, a version, a random id, a known word, or a name with numbers in it.
    fn mixed(&mut self, at: usize, stop: usize, digits: usize, end: usize) -> usize {
        let word = self.slice((at, stop));
        let hex = word.iter().all(u8::is_ascii_hexdigit);
        let after_sign = at > 0 && self.bytes[at - 1] == b'@';
        let found = if word.len() > 2 && word.starts_with(b"0x") && word[2..].iter().all(u8::is_ascii_hexdigit) {
            Some(("0xN", "address"))
        } else if hex && (word.len() >= 7 || (after_sign && word.len() >= 5)) && digits < word.len() {
            Some(("N", "hex id"))
        } else if matches!(word[0], b'v' | b'V') && digits + 1 == word.len() && self.bytes.get(stop) == Some(&b'.') && shape::digits(self.bytes, stop + 1) > 0 {
            let to = stop + self.bytes[stop..end].iter().take_while(|b| b.is_ascii_digit() || **b == b'.').count();
            self.replace((at, to), "VER", "version");
            return to;
        } else if word.len() >= 8 && word::changes(word) >= 4 {
            Some(("ID", "random id"))
        } else {
            None
        };
        match found {
            Some((token, why)) => self.replace((at, stop), token, why),
            None if word == b"x86" && self.slice((stop, end)).starts_with(b"_64") => return stop + 3,
            None if word::is_known(word) => {}
            None => self.mask(at, stop),
        }
        stop
    }

    /// Replaces the digits of a name.
    fn mask(&mut self, mut at: usize, stop: usize) {
        while at < stop {
            let run = shape::digits(self.bytes, at).min(stop - at);
            if run > 0 {
                self.replace((at, at + run), "N", "number in a name");
            }
            at += run.max(1);
        }
    }
}
