//! A pipe whose reader has gone.

use std::process::Stdio;

use super::{Done, Folder, error};

/// Runs siftd with a stdout that nobody reads; returns its exit code.
fn unread(folder: &Folder, args: &[&str]) -> Option<i32> {
    let mut child = folder.command(args).stderr(Stdio::inherit()).spawn().unwrap();
    drop(child.stdout.take());
    Done::of(child).code()
}

#[test]
fn an_error_to_fail_on_is_not_forgotten_with_the_reader() {
    let folder = Folder::new();
    let many: String = (0..3000).map(|n| error(&format!("boom {n} of the reactor"))).collect();
    folder.write("big.log", &many);
    folder.write("base.ndjson", folder.piped(["scan", "--format", "ndjson"], error("quite another one")).ended(0).out());
    // What is worth failing for stands after what is not.
    folder.write("late.log", many + "./a.sh: line 3: kubectll: command not found\n");
    for format in ["unix", "github", "ndjson", "pretty", "report", "sarif"] {
        let code = |more: &[&str]| unread(&folder, &[&["scan", "--format", format], more].concat());
        assert_eq!(code(&["--fail-on", "low", "big.log"]), Some(1), "{format}");
        assert_eq!(code(&["--fail-on", "blocking", "late.log", "big.log"]), Some(1), "{format}");
        assert_eq!(code(&["--new-only", "--baseline", "base.ndjson", "big.log"]), Some(1), "{format}");
        assert_eq!(code(&["--fail-on", "blocking", "big.log"]), Some(0), "{format}");
        assert_eq!(code(&["big.log"]), Some(0), "{format}");
    }
}
