//! The build's own step: reads `config/rules/` and leaves what siftd would otherwise work out at each start, in forms that
//! cost little to read: the files without their examples (`rules.bin`), the literals of their entries (`literals.bin`),
//! where the prefilter looks for them (`plan.bin`), the words of the noise and of the cancels (`quiet.bin`). A file that is no
//! TOML, or has a key that is none, ends the build.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs, process};

use core::prefilter::Plan;
use rules::files::FILES;
use rules::literal::Literals;
use rules::prove::{QuietWords, required_words};
use rules::source::parsed;
use rules::spec::{EntrySpec, FileSpec, Table};
use serde::Serialize;

#[allow(dead_code, missing_docs)]
mod rules {
    pub mod files;
    pub mod literal;
    pub mod located;
    pub mod prove;
    pub mod source;
    pub mod spec;

    pub use literal::{LiteralForm, MIN_LITERAL_BYTES};
}
#[allow(dead_code, missing_docs, unused_imports)]
mod core {
    pub mod prefilter;
}
#[allow(dead_code, unused_imports)]
mod words;

fn main() {
    // The rules files are part of this program: Cargo builds and runs it again when one of them has changed.
    println!("cargo::rerun-if-changed=src/build.rs");
    if let Err(error) = write() {
        give_up(&format!("what is made of config/rules cannot be written: {error}"));
    }
}

fn write() -> Result<(), Box<dyn Error>> {
    let mut specs: Vec<FileSpec> = FILES.iter().map(|(name, text)| read(name, text)).collect();
    let literals = literals(&mut specs);
    leave("rules.bin", &specs)?;
    leave("literals.bin", &literals)?;
    leave("plan.bin", &Plan::new(&literals.forms))?;
    let noise = specs.iter().flat_map(|spec| &spec.noise).map(words).collect();
    let cancels = specs.iter().flat_map(|spec| &spec.cancel).map(words).collect();
    leave("quiet.bin", &QuietWords { noise, cancels })
}

fn read(name: &str, text: &str) -> FileSpec {
    let mut spec: FileSpec = toml::from_str(text).unwrap_or_else(|error| give_up(&format!("config/rules/{name}: {error}")));
    spec.all().for_each(|entry| entry.examples = Default::default());
    spec
}

/// Those of all entries, in the order that `RuleSet` gives these.
fn literals(specs: &mut [FileSpec]) -> Literals {
    let mut all = Vec::new();
    for &table in Table::ALL {
        let entries = specs.iter_mut().flat_map(|spec| spec.table(table));
        all.extend(entries.map(|entry| ((table, entry.generic), entry.gate())));
    }
    all.sort_by_key(|(order, _)| *order);
    Literals::of(all.into_iter().map(|((table, _), gate)| (gate, table == Table::Fact)))
}

fn words(entry: &EntrySpec) -> Option<Vec<String>> {
    required_words(&parsed(entry.regex.as_ref()?.get(), entry.ignore_case)?)
}

fn leave(name: &str, what: &impl Serialize) -> Result<(), Box<dyn Error>> {
    Ok(fs::write(out(name)?, postcard::to_allocvec(what)?)?)
}

fn out(name: &str) -> Result<PathBuf, env::VarError> {
    Ok(Path::new(&env::var("OUT_DIR")?).join(name))
}

fn give_up(error: &str) -> ! {
    // Cargo shows one line of each.
    error.lines().for_each(|line| println!("cargo::error={line}"));
    process::exit(1)
}
