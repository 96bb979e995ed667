//! `--keep-output`: keeps what a failed run printed in a folder: both ends of each output, without secrets.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::kept::Kept;
use crate::core::event::Io;
use crate::core::redact::Redactor;
use crate::sources::clock::now;

/// Bytes kept from the beginning and the end of each output.
pub const KEPT_BYTES: (usize, usize) = (1 << 20, 7 << 20);

/// Writes `<time>-<name>.stdout` and `.stderr`, but no file for an empty output.
///
/// # Errors
/// The folder cannot be written.
pub fn keep(folder: &Path, argv: &[String], task: Option<&str>, outputs: &[(Io, &Kept)]) -> io::Result<()> {
    let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", folder.display()));
    fs::create_dir_all(folder).map_err(named)?;
    let program = argv.first().map(|program| program.rsplit('/').next().unwrap_or(program)).unwrap_or_default();
    let name = format!("{}-{}", now().0, plain(task.unwrap_or(program)));
    for (io, kept) in outputs.iter().filter(|(_, kept)| kept.total() > 0) {
        let path = folder.join(format!("{name}.{io}"));
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).map_err(named)?;
        file.write_all(&secretless(kept.bytes())).map_err(named)?;
    }
    Ok(())
}

/// Returns the name without characters that are special in a path or to a shell.
fn plain(name: &str) -> String {
    let kept = name.chars().map(|c| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '_' });
    kept.take(60).collect::<String>().trim_start_matches('.').to_owned()
}

/// Returns the bytes unchanged unless they contain a secret.
fn secretless(bytes: Vec<u8>) -> Vec<u8> {
    let redactor = Redactor::builtin();
    if !redactor.touches(&bytes) {
        return bytes;
    }
    let text = String::from_utf8_lossy(&bytes);
    let mut lines: Vec<String> = text.split('\n').map(str::to_owned).collect();
    let mut count = 0;
    redactor.redact_lines(&mut lines, &mut count);
    if count == 0 { bytes } else { lines.join("\n").into_bytes() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_stay_and_secrets_go() {
        assert_eq!(secretless(b"a\xff\r\n\0".to_vec()), b"a\xff\r\n\0");
        let clean = secretless(b"token ghp_0123456789abcdefghijABCDEFGHIJ012345\nb".to_vec());
        assert!(clean.ends_with(b"\nb") && !clean.windows(4).any(|part| part == b"ghp_"));
        assert_eq!(plain("../a b;c"), "_a_b_c");
    }
}
