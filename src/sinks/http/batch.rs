//! Which records are sent together, in which format, and whether compressed. Pure; records keep the order of the outbox.

use std::collections::VecDeque;
use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Deserialize;

use crate::config::HttpFormat;
use crate::core::event::Timestamp;

/// One record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// Its number in the outbox.
    pub number: u64,
    /// Its id.
    pub id: String,
    /// The record as it is sent, without a newline.
    pub bytes: Vec<u8>,
}

/// Records that were read and are not done.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub rows: VecDeque<Row>,
    bytes: u64,
    /// When the first record came.
    pub since: Option<Timestamp>,
}

#[derive(Deserialize)]
struct Named<'a> {
    #[serde(default)]
    id: &'a str,
}

/// Returns the `id` of a native record; empty if it has none.
pub(super) fn id_of(record: &[u8]) -> String {
    serde_json::from_slice::<Named>(record).map_or_else(|_| String::new(), |named| named.id.to_owned())
}

impl Batch {
    pub fn is_full(&self, max_rows: usize, max_bytes: u64) -> bool {
        self.rows.len() >= max_rows || self.bytes >= max_bytes
    }

    /// Whether a record of that size still fits. The first record always does.
    pub fn has_room(&self, bytes: usize, max_bytes: u64) -> bool {
        self.rows.is_empty() || self.bytes + bytes as u64 <= max_bytes
    }

    pub fn add(&mut self, row: Row, now: Timestamp) {
        self.bytes += row.bytes.len() as u64;
        self.since.get_or_insert(now);
        self.rows.push_back(row);
    }

    /// Takes those of the first `count` records for which `is_over` is true; `is_over` gets their index.
    pub fn take(&mut self, count: usize, mut is_over: impl FnMut(usize) -> bool) -> Vec<Row> {
        let mut taken = Vec::new();
        let mut kept = VecDeque::new();
        for at in 0..count.min(self.rows.len()) {
            let Some(row) = self.rows.pop_front() else { break };
            if is_over(at) { taken.push(row) } else { kept.push_back(row) }
        }
        self.bytes -= taken.iter().map(|row| row.bytes.len() as u64).sum::<u64>();
        while let Some(row) = kept.pop_back() {
            self.rows.push_front(row);
        }
        if self.rows.is_empty() {
            self.since = None;
        }
        taken
    }
}

/// Returns the body for the first `count` records.
pub(super) fn body(format: HttpFormat, rows: &VecDeque<Row>, count: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(rows.iter().take(count).map(|row| row.bytes.len() + 64).sum());
    if format == HttpFormat::Json {
        out.push(b'[');
    }
    for (at, row) in rows.iter().take(count).enumerate() {
        match format {
            HttpFormat::Ndjson => {}
            HttpFormat::Json if at > 0 => out.push(b','),
            HttpFormat::Json => {}
            // An id is made of hexadecimal digits, so it needs no escaping.
            HttpFormat::Elasticsearch => out.extend(format!("{{\"create\":{{\"_id\":\"{}\"}}}}\n", row.id).bytes()),
        }
        out.extend_from_slice(&row.bytes);
        if format != HttpFormat::Json {
            out.push(b'\n');
        }
    }
    if format == HttpFormat::Json {
        out.push(b']');
    }
    out
}

pub(super) const fn content_type(format: HttpFormat) -> &'static str {
    match format {
        HttpFormat::Json => "application/json",
        HttpFormat::Ndjson | HttpFormat::Elasticsearch => "application/x-ndjson",
    }
}

/// Compresses a body with gzip.
pub(super) fn squeezed(body: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(body.len() / 4), Compression::default());
    encoder.write_all(body)?;
    encoder.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(count: u64) -> Batch {
        let mut batch = Batch::default();
        for number in 1..=count {
            batch.add(Row { number, id: format!("{number:02x}"), bytes: format!("{{\"n\":{number}}}").into() }, Timestamp(number as i64));
        }
        batch
    }

    #[test]
    fn each_format_has_its_form() {
        let rows = batch(3).rows;
        let text = |format| String::from_utf8(body(format, &rows, 2)).unwrap();
        assert_eq!(text(HttpFormat::Ndjson), "{\"n\":1}\n{\"n\":2}\n");
        assert_eq!(text(HttpFormat::Json), "[{\"n\":1},{\"n\":2}]");
        assert_eq!(text(HttpFormat::Elasticsearch), "{\"create\":{\"_id\":\"01\"}}\n{\"n\":1}\n{\"create\":{\"_id\":\"02\"}}\n{\"n\":2}\n");
    }

    #[test]
    fn what_is_taken_out_leaves_the_order() {
        let mut batch = batch(5);
        assert!(batch.is_full(5, 1000) && batch.is_full(9, 35) && !batch.is_full(6, 36));
        assert!(batch.has_room(5, 40) && !batch.has_room(6, 40) && Batch::default().has_room(99, 1));
        let numbers = |rows: &[Row]| rows.iter().map(|row| row.number).collect::<Vec<_>>();
        assert_eq!(numbers(&batch.take(4, |at| at % 2 == 1)), [2, 4]);
        assert_eq!((numbers(batch.rows.make_contiguous()), batch.bytes, batch.since), (vec![1, 3, 5], 21, Some(Timestamp(1))));
        assert_eq!(numbers(&batch.take(9, |_| true)), [1, 3, 5]);
        assert_eq!((batch.bytes, batch.since), (0, None));
    }

    #[test]
    fn ids_are_found_in_records_only() {
        assert_eq!(id_of(br#"{"schema":1,"kind":"error","id":"0af3","source":{"id":"x"}}"#), "0af3");
        assert_eq!((id_of(b"{}"), id_of(b"no JSON")), (String::new(), String::new()));
    }

    #[test]
    fn gzip_comes_back() {
        let mut back = Vec::new();
        io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&squeezed(b"hello").unwrap()[..]), &mut back).unwrap();
        assert_eq!(back, b"hello");
    }
}
