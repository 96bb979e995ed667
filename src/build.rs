//! The build script: reads `config/rules/` and precomputes what siftd would
//! otherwise work out at each start. It writes, in formats that are cheap to read:
//!
//! * the files without their examples (`index.bin`, `entries.bin`),
//! * the compiled form of their patterns (`forms.bin`),
//! * the literals of their entries as the prefilter searches for them (`literals.bin`), what these lead to
//!   (`leads.bin`), and which entries have them as written (`uses.bin`),
//! * the prefilter's tables for these literals (`steps.bin`, `sieve.bin`),
//! * the clues of the noise entries and the cancels (`clues.bin`).
//!
//! A file that is not valid TOML or has an unknown key fails the build.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs, process};

use core::prefilter::Plan;
use rules::clue::{Clue, Clues, clues};
use rules::compiled::{self, Compiled};
use rules::files::FILES;
use rules::left::{Index, Left, Place, Uses};
use rules::literal::Literals;
use rules::located::Located;
use rules::shelf::Form;
use rules::shelf_writer::Writer;
use rules::spec::{EntrySpec, FileSpec, Table};
use serde::Serialize;

#[allow(dead_code, unused_imports, missing_docs)]
mod rules {
    pub mod clue;
    pub mod compiled;
    pub mod ends;
    pub mod files;
    pub mod left;
    pub mod literal;
    pub mod located;
    pub mod one_or_many;
    pub mod padding;
    pub mod program;
    pub mod prove;
    pub mod shelf;
    #[path = "shelf/writer.rs"]
    pub mod shelf_writer;
    pub mod signs;
    pub mod source;
    pub mod spec;

    pub use literal::{LiteralForm, MIN_LITERAL_BYTES};
}
#[allow(dead_code, missing_docs, unused_imports)]
mod core {
    pub mod prefilter;
    /// Stubs: the build makes tables and searches nothing.
    pub mod simd {
        pub const LANES: usize = 64;

        pub fn widest<R>(work: impl FnOnce() -> R) -> R {
            work()
        }

        pub fn sift(_: &super::prefilter::Tables, _: &[u8], _: u32, _: &mut [u32], _: (&mut [u64], &mut [u64])) -> (usize, usize) {
            (0, 0)
        }

        pub fn mark(_: &[u8], _: (&mut [u64], &mut [u64])) {}
    }
}
#[allow(dead_code, unused_imports)]
mod words;

fn main() {
    // The rules files are compiled in, so Cargo reruns the build when one of them has changed.
    println!("cargo::rerun-if-changed=src/build.rs");
    if let Err(error) = write() {
        give_up(&format!("what is made of config/rules cannot be written: {error}"));
    }
}

fn write() -> Result<(), Box<dyn Error>> {
    let mut specs: Vec<FileSpec> = FILES.iter().map(|(name, text)| read(name, text)).collect();
    let noise = specs.iter().flat_map(|spec| &spec.noise).map(told_by).collect();
    let cancels = specs.iter().flat_map(|spec| &spec.cancel).map(told_by).collect();
    let clues = Clues { noise, cancels };
    leave("clues.bin", &clues)?;
    write_forms(&specs, &clues)?;
    let entries = entries(&mut specs);
    let literals = Literals::of(entries.iter().map(|entry| (entry.spec.gate(), entry.table == Table::Fact)));
    leave("literals.bin", &literals.forms)?;
    leave("leads.bin", &literals.leads)?;
    leave("steps.bin", &Plan::stepping(&literals.forms))?;
    leave("sieve.bin", &Plan::sifting(&literals.forms))?;
    leave("uses.bin", &uses(&entries))?;
    write_entries(specs, &entries)
}

fn read(name: &str, text: &str) -> FileSpec {
    let spec: FileSpec = toml::from_str(text).unwrap_or_else(|error| give_up(&format!("config/rules/{name}: {error}")));
    spec.without_examples()
}

/// An entry, with what its file says about it.
struct Read {
    family: u16,
    table: Table,
    /// Its position among all entries, in the order of the files.
    order: u16,
    spec: EntrySpec,
}

/// Returns all entries, in the order of `RuleSet`.
fn entries(specs: &mut [FileSpec]) -> Vec<Read> {
    let mut all = Vec::new();
    for &table in Table::ALL {
        let entries = (0..).zip(specs.iter_mut()).flat_map(|(family, spec)| std::mem::take(spec.table(table)).into_iter().map(move |spec| (family, spec)));
        all.extend(entries.map(|(family, spec)| Read { family, table, order: 0, spec }));
    }
    all.sort_by_key(|entry| entry.family);
    (0..).zip(&mut all).for_each(|(order, entry)| entry.order = order);
    all.sort_by_key(|entry| (entry.table, entry.spec.generic));
    all
}

/// Returns, for each literal, the entries that have it.
fn uses(entries: &[Read]) -> Uses<'_> {
    let mut uses: BTreeMap<&str, Vec<u16>> = BTreeMap::new();
    for (at, Read { spec, .. }) in (0..).zip(entries) {
        spec.literals.iter().chain(&spec.at_end).for_each(|literal| uses.entry(literal.get()).or_default().push(at));
    }
    uses.into_iter().collect()
}

/// Writes the entries one after another, and where each begins.
fn write_entries(specs: Vec<FileSpec>, entries: &[Read]) -> Result<(), Box<dyn Error>> {
    let (mut bytes, mut places) = (Vec::new(), Vec::new());
    for Read { family, table, order, spec } in entries {
        let (generic, implied, at) = (spec.generic, spec.implied.is_some(), u32::try_from(bytes.len())?);
        places.push(Place { id: spec.id.get(), family: *family, table: *table as u8, generic, implied, order: *order, at });
        let is_weak = |other: &Read| other.spec.region.as_ref().is_some_and(|region| region.get() == spec.id.get());
        let weak = (0..).zip(entries).filter(|(_, other)| is_weak(other)).map(|(at, _)| at).collect();
        bytes.extend(postcard::to_allocvec(&Left { spec: spec.clone(), weak })?);
    }
    let mut by_id: Vec<u16> = (0..).zip(&places).map(|(at, _)| at).collect();
    by_id.sort_by_key(|&at| places[usize::from(at)].id);
    let cancels = (0..).zip(&specs).flat_map(|(family, spec)| spec.cancel.iter().map(move |cancel| (family, cancel.clone()))).collect();
    leave("index.bin", &Index { cancels, places, by_id, families: specs.iter().map(|spec| spec.family.clone()).collect() })?;
    Ok(fs::write(out("entries.bin")?, bytes)?)
}

/// Writes the compiled forms of all patterns.
fn write_forms(specs: &[FileSpec], clues: &Clues) -> Result<(), Box<dyn Error>> {
    let mut forms = Writer::default();
    for clue in clues.noise.iter().chain(&clues.cancels).flatten() {
        forms.add(&clue.source, false, Form::Match, || Compiled::new(&clue.source, false))?;
    }
    for (file, spec) in specs.iter().flat_map(|file| file.all().map(move |spec| (file, spec))) {
        // What a cancel covers is where it matches.
        let is_cancel = file.cancel.iter().any(|cancel| std::ptr::eq(cancel, spec));
        for source in spec.regexes().map(Located::get) {
            forms.add(source, spec.ignore_case, Form::Match, || Compiled::new(source, spec.ignore_case))?;
            if (is_cancel || compiled::has_groups(source))
                && let Some(reader) = compiled::reader(source, spec.ignore_case)
            {
                forms.add(source, spec.ignore_case, Form::Groups, || reader)?;
            }
        }
    }
    Ok(fs::write(out("forms.bin")?, forms.bytes())?)
}

fn told_by(entry: &EntrySpec) -> Vec<Clue> {
    entry.regex.as_ref().map_or_else(Vec::new, |regex| clues(regex.get(), entry.ignore_case))
}

fn leave(name: &str, what: &impl Serialize) -> Result<(), Box<dyn Error>> {
    Ok(fs::write(out(name)?, postcard::to_allocvec(what)?)?)
}

fn out(name: &str) -> Result<PathBuf, env::VarError> {
    Ok(Path::new(&env::var("OUT_DIR")?).join(name))
}

fn give_up(error: &str) -> ! {
    // Cargo shows only one line of each message.
    error.lines().for_each(|line| println!("cargo::error={line}"));
    process::exit(1)
}
