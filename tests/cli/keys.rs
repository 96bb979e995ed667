//! Keys of `[error_detection]`: each changes what a scan finds.

use serde_json::Value;

use super::Folder;

const TRACE: &str = "Traceback (most recent call last):
  File \"a.py\", line 1, in one
    two()
  File \"a.py\", line 2, in two
    three()
  File \"a.py\", line 3, in three
    raise ValueError(\"boom\")
ValueError: boom
all is well
";

/// Returns what is found in a log with this key, and what is found without it.
fn with_and_without(key: &str, log: &str) -> [Vec<Value>; 2] {
    let folder = Folder::new();
    folder.write("log", log);
    [key, ""].map(|key| {
        folder.write("c.toml", format!("[error_detection]\n{key}\n"));
        folder.siftd(["scan", "--format", "ndjson", "--config", "c.toml", "log"]).ended(0).records()
    })
}

#[test]
fn max_stack_depth_bounds_the_frames() {
    let frames = with_and_without("max_stack_depth = 2", TRACE).map(|found| found[0]["exception"]["frames"].as_array().unwrap().len());
    assert_eq!(frames, [2, 3]);
}

#[test]
fn capture_multiline_can_be_switched_off() {
    let lines = with_and_without("capture_multiline = false", TRACE).map(|found| found[0]["multiline"].as_array().unwrap().len());
    assert_eq!(lines, [1, 8]);
}

#[test]
fn custom_false_positives_are_no_errors() {
    let found = with_and_without("custom_false_positives = [\"KeyError: 'drill'\"]", "KeyError: 'drill'\nall is well\nKeyError: 'price'\nall is well\n");
    let texts = found.map(|found| found.iter().map(|record| record["text"].as_str().unwrap().to_owned()).collect::<Vec<_>>());
    assert_eq!(texts, [vec!["KeyError: 'price'"], vec!["KeyError: 'drill'", "KeyError: 'price'"]]);
}

#[test]
fn error_indicators_mark_errors() {
    let found = with_and_without("error_indicators = [\"SOLD OUT\"]", "fine\nSOLD OUT: tea\nfine\n");
    assert_eq!(found.each_ref().map(Vec::len), [1, 0]);
    assert_eq!(found[0][0]["text"], "SOLD OUT: tea");
}
