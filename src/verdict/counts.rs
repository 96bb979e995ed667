//! How a judged run counts for a breaker: by the errors that made it fail, or as transient.
//! Success and a failure to start are evidence; nothing that a run printed is fatal.

use super::{Facts, Said, Verdict};
use crate::core::breaker::Failure;
use crate::core::event::{Event, Frames, Hex, Io, RetryClass};
use crate::core::signature;
use crate::delivery::Weight;

/// One error of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Which error.
    pub signature: Hex,
    /// How it counts.
    pub weight: Weight,
    /// The output that it was printed on.
    pub io: Option<Io>,
    /// Whether it is a status line, which says that something failed, not what.
    pub is_status: bool,
}

impl Fault {
    /// Takes the fault of an event.
    #[must_use]
    pub fn of(event: &Event) -> Self {
        Self { signature: event.signature, weight: Weight::of(event), io: event.io, is_status: event.is_status }
    }

    /// Takes a line of stderr that names an error of which nothing more is known.
    #[must_use]
    pub fn of_line(text: &str) -> Self {
        Self { signature: of_line(text), weight: Weight::Bug, io: Some(Io::Stderr), is_status: false }
    }
}

/// Returns the signature of a line that names an error.
#[must_use]
pub fn of_line(text: &str) -> Hex {
    signature::signature(&signature::Fault { message: text.trim(), ..Default::default() }, &[], &Frames::default()).0
}

/// Whether stderr decides what failed, given the output of each error and whether it is a status line. Where stderr has nothing
/// but status lines, such as make's last one, and stdout has any error, if only the name of a test, it does not.
#[must_use]
pub fn stderr_decides(errors: impl Iterator<Item = (Option<Io>, bool)> + Clone) -> bool {
    let on_stderr = |io: Option<Io>| io == Some(Io::Stderr);
    let is_told_elsewhere = || errors.clone().any(|(io, _)| !on_stderr(io));
    errors.clone().any(|(io, is_status)| on_stderr(io) && (!is_status || !is_told_elsewhere()))
}

/// Returns the failure of a run with these errors. Those of one output count: if [stderr decides](stderr_decides), errors on
/// stdout are part of what the run worked on. Status lines beside an error do not count. `class` is the class of the run; a run without errors is
/// identified by `last_words`.
#[must_use]
pub fn failure(faults: &[Fault], class: RetryClass, last_words: &str) -> Failure {
    if class == RetryClass::Transient {
        return Failure { is_transient: true, ..Failure::default() };
    }
    let weighty = || faults.iter().filter(|fault| fault.weight != Weight::None);
    let on_stderr = stderr_decides(weighty().map(|fault| (fault.io, fault.is_status)));
    let is_heard = |fault: &&Fault| (fault.io == Some(Io::Stderr)) == on_stderr;
    let has_only_status = weighty().filter(is_heard).all(|fault| fault.is_status);
    let counts = |fault: &&Fault| is_heard(fault) && (!fault.is_status || has_only_status);
    let mut failure = Failure::default();
    for fault in faults.iter().filter(counts) {
        match fault.weight {
            Weight::None => {}
            Weight::Transient => failure.is_transient = true,
            Weight::Bug if failure.signatures.contains(&fault.signature) => {}
            Weight::Bug => failure.signatures.push(fault.signature),
        }
    }
    if failure.signatures.is_empty() && !failure.is_transient {
        failure.signatures.push(of_line(last_words));
    }
    failure
}

/// Returns how a run that siftd supervised counts; `None` if it
/// succeeded. `not_started` means that the command could not be started.
#[must_use]
pub fn of_run(verdict: &Verdict, said: &Said, not_started: bool) -> Option<Failure> {
    if verdict.is_success() {
        return None;
    }
    let faults: Vec<Fault> = said.errors.iter().map(Fault::of).collect();
    let last = said.text.lines().rev().find(|line| !line.trim().is_empty());
    let ended = ended(&verdict.facts);
    let mut failure = failure(&faults, verdict.retry.class, last.unwrap_or(&ended));
    if verdict.facts.timed_out {
        // Runs that never end have that in common, whatever they printed before.
        failure.signatures.push(of_line(&ended));
    }
    if not_started {
        failure.fatal = Some(failure.signatures.first().copied());
    }
    Some(failure)
}

fn ended(facts: &Facts) -> String {
    match (facts.timed_out, facts.signal, facts.exit_code) {
        (true, ..) => "timed out".to_owned(),
        (_, Some(signal), _) => format!("ended by signal {signal}"),
        (.., code) => format!("exit code {}", code.unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::{Status, judge};

    fn fault(name: char, weight: Weight, io: Io) -> Fault {
        Fault { signature: Hex::new([name as u8; 16]), weight, io: Some(io), is_status: false }
    }

    #[test]
    fn stderr_decides_and_refusals_never_count() {
        use Io::{Stderr, Stdout};
        let names = |failure: Failure| failure.signatures.iter().map(|signature| signature.digest()[0] as char).collect::<String>();
        let bug = |name, io| fault(name, Weight::Bug, io);
        assert_eq!(names(failure(&[bug('A', Stdout), bug('B', Stderr), bug('B', Stderr)], RetryClass::Unknown, "x")), "B");
        assert_eq!(names(failure(&[bug('A', Stdout), fault('R', Weight::None, Stderr)], RetryClass::Unknown, "x")), "A");
        let status = |name, io| Fault { is_status: true, ..bug(name, io) };
        for (faults, want) in [
            (&[bug('A', Stdout), status('M', Stderr)][..], "A"),
            (&[status('T', Stdout), status('M', Stderr)], "T"),
            (&[status('M', Stderr)], "M"),
            (&[bug('A', Stdout), bug('B', Stderr), status('M', Stderr)], "B"),
            (&[fault('W', Weight::None, Stdout), status('M', Stderr)], "M"),
        ] {
            assert_eq!(names(failure(faults, RetryClass::Unknown, "x")), want);
        }
        let mixed = failure(&[bug('A', Stderr), fault('N', Weight::Transient, Stderr)], RetryClass::Permanent, "x");
        assert!(mixed.is_transient && names(mixed) == "A");
    }

    #[test]
    fn a_transient_run_counts_by_no_signature() {
        let faults = [fault('A', Weight::Bug, Io::Stderr), fault('N', Weight::Transient, Io::Stderr)];
        assert_eq!(failure(&faults, RetryClass::Transient, "x"), Failure { is_transient: true, ..Failure::default() });
    }

    #[test]
    fn without_an_error_the_last_words_or_the_exit_code_name_it() {
        let run = |text: &str, code| {
            let said = Said { text: text.to_owned(), ..Said::default() };
            let facts = Facts { exit_code: Some(code), attempts: 1, ..Facts::default() };
            of_run(&judge(facts, &said), &said, false)
        };
        assert_eq!(run("", 0), None);
        assert_eq!(run("odd thing 17\n", 1), run("odd thing 18", 1));
        assert_ne!(run("odd thing", 1), run("another thing", 1));
        assert_ne!(run("", 1), run("", 2));
    }

    #[test]
    fn a_run_that_timed_out_is_like_others_and_one_that_cannot_start_is_fatal() {
        let facts = Facts { timed_out: true, attempts: 1, ..Facts::default() };
        let said = Said { text: "still at it 3 %".to_owned(), ..Said::default() };
        let failure = of_run(&judge(facts, &said), &said, false).unwrap();
        assert!(failure.signatures.contains(&of_line("timed out")) && failure.fatal.is_none());
        let facts = Facts { exit_code: Some(127), run_status: Some(Status::Failure), attempts: 1, ..Facts::default() };
        let said = Said { text: "agnet: command not found".to_owned(), ..Said::default() };
        let failure = of_run(&judge(facts, &said), &said, true).unwrap();
        assert_eq!(failure.fatal, Some(Some(of_line("agnet: command not found"))));
    }
}
