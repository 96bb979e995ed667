//! The build's own step: reads `config/rules/`, leaves the examples out, and writes the rest as `rules.bin`, which
//! `rules::builtin` reads at each start. A file that is no TOML, or has a key that is none, ends the build.

use std::error::Error;
use std::path::Path;
use std::{env, fs, process};

use rules::files::FILES;
use rules::spec::FileSpec;

#[allow(dead_code, missing_docs)]
mod rules {
    pub mod files;
    pub mod located;
    pub mod spec;
}
#[allow(dead_code, unused_imports)]
mod words;

fn main() {
    // The rules files are part of this program: Cargo builds and runs it again when one of them has changed.
    println!("cargo::rerun-if-changed=src/build.rs");
    if let Err(error) = write() {
        give_up(&format!("rules.bin cannot be written: {error}"));
    }
}

fn write() -> Result<(), Box<dyn Error>> {
    let specs: Vec<FileSpec> = FILES.iter().map(|(name, text)| read(name, text)).collect();
    Ok(fs::write(Path::new(&env::var("OUT_DIR")?).join("rules.bin"), postcard::to_allocvec(&specs)?)?)
}

fn read(name: &str, text: &str) -> FileSpec {
    let mut spec: FileSpec = toml::from_str(text).unwrap_or_else(|error| give_up(&format!("config/rules/{name}: {error}")));
    let tables = [&mut spec.rule, &mut spec.fact, &mut spec.cancel, &mut spec.noise, &mut spec.trace, &mut spec.region, &mut spec.note, &mut spec.border];
    tables.into_iter().flatten().for_each(|entry| entry.examples = Default::default());
    spec
}

fn give_up(error: &str) -> ! {
    // Cargo shows one line of each.
    error.lines().for_each(|line| println!("cargo::error={line}"));
    process::exit(1)
}
