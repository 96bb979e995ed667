//! The heads of a chunk as bytes: length, severity, category of each record, six bytes apiece.

use crate::core::event::{Category, Severity};
use crate::delivery::Head;

/// Stands for "no error".
const NONE: u8 = u8::MAX;

pub(super) fn encode(heads: &[Head]) -> Vec<u8> {
    let mut out = Vec::with_capacity(heads.len() * 6);
    for head in heads {
        out.extend(head.len.to_le_bytes());
        let (severity, category) = head.kind.map_or((NONE, NONE), |(severity, category)| (severity as u8, category as u8));
        out.extend([severity, category]);
    }
    out
}

/// Packs the kind of an error into a number; `None` for no error.
pub(super) fn packed(kind: Option<(Severity, Category)>) -> Option<i64> {
    kind.map(|(severity, category)| i64::from(severity as u8) << 8 | i64::from(category as u8))
}

/// Unpacks what [`packed`] made.
pub(super) fn unpacked(number: Option<i64>) -> Option<(Severity, Category)> {
    let number = usize::try_from(number?).ok()?;
    Severity::ALL.get(number >> 8).copied().zip(Category::ALL.get(number & 0xff).copied())
}

pub(super) fn decode(bytes: &[u8]) -> Vec<Head> {
    let one = |row: &[u8]| {
        let len = u32::from_le_bytes(row[..4].try_into().unwrap_or_default());
        let severity = Severity::ALL.get(usize::from(row[4])).copied();
        let category = Category::ALL.get(usize::from(row[5])).copied();
        Head { len, kind: severity.zip(category) }
    };
    bytes.chunks_exact(6).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_come_back() {
        let mut heads = vec![Head { len: 70_000, kind: None }];
        for &severity in Severity::ALL {
            heads.extend(Category::ALL.iter().map(|&category| Head { len: 1, kind: Some((severity, category)) }));
        }
        assert_eq!(decode(&encode(&heads)), heads);
        heads.iter().for_each(|head| assert_eq!(unpacked(packed(head.kind)), head.kind));
        assert_eq!(unpacked(Some(i64::MAX)), None);
    }
}
