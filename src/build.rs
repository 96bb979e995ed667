//! The build's own step: reads `config/rules/` and leaves what siftd would otherwise work out at each start, in forms that
//! cost little to read: the files without their examples (`rules.bin`), the literals of their entries (`literals.bin`),
//! where the prefilter looks for them (`plan.bin`), the words of the noise (`noise.bin`) and all
//! cancels as one pattern (`cancels.txt`). A file that is no TOML, or has
//! a key that is none, ends the build.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs, process};

use core::prefilter::Plan;
use rules::files::FILES;
use rules::literal::Literals;
use rules::prove::{inline, parsed, required_words};
use rules::spec::{EntrySpec, FACTS, FileSpec};
use serde::Serialize;

#[allow(dead_code, missing_docs)]
mod rules {
    pub mod files;
    pub mod literal;
    pub mod located;
    pub mod prove;
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
    let specs: Vec<FileSpec> = FILES.iter().map(|(name, text)| read(name, text)).collect();
    let literals = Literals::of(entries(&specs).map(|(entry, fact)| (entry.gate(), fact)));
    leave("rules.bin", &specs)?;
    leave("literals.bin", &literals)?;
    leave("plan.bin", &Plan::new(&literals.forms))?;
    leave("noise.bin", &specs.iter().flat_map(|spec| &spec.noise).map(words).collect::<Vec<_>>())?;
    let cancels = specs.iter().flat_map(|spec| &spec.cancel).filter_map(|cancel| Some(inline(cancel.regex.as_ref()?.get(), cancel.ignore_case)));
    Ok(fs::write(out("cancels.txt")?, cancels.collect::<Vec<_>>().join("|"))?)
}

fn read(name: &str, text: &str) -> FileSpec {
    let mut spec: FileSpec = toml::from_str(text).unwrap_or_else(|error| give_up(&format!("config/rules/{name}: {error}")));
    let tables = [&mut spec.rule, &mut spec.fact, &mut spec.cancel, &mut spec.noise, &mut spec.trace, &mut spec.region, &mut spec.note, &mut spec.border];
    tables.into_iter().flatten().for_each(|entry| entry.examples = Default::default());
    spec
}

/// All entries in the order in which a line is offered to them, each with whether it is a fact.
fn entries(specs: &[FileSpec]) -> impl Iterator<Item = (&EntrySpec, bool)> {
    let table = |number: usize| specs.iter().flat_map(move |spec| spec.tables()[number]);
    (0..=FACTS).flat_map(move |number| {
        let specific = table(number).filter(|entry| !entry.generic);
        specific.chain(table(number).filter(|entry| entry.generic)).map(move |entry| (entry, number == FACTS))
    })
}

fn words(noise: &EntrySpec) -> Option<Vec<String>> {
    required_words(&parsed(noise.regex.as_ref()?.get(), noise.ignore_case)?)
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
