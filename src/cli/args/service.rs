//! `siftd service`: siftd as a systemd service.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// `siftd service`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sudo \"$(command -v siftd)\" service install          program, units, user, folders and a first configuration
  sudo systemctl enable --now siftd                   … and it runs, now and after each boot
  sudo siftd service uninstall                        all of it gone but configuration, state and logs
  siftd service install --dry-run                     what would be written and run, and nothing more
  siftd service install --root build/package --prefix /usr
                                                      the files alone, for a package")]
pub struct ServiceArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: ServiceCommand,
}

/// The commands of `siftd service`.
#[derive(Debug, Subcommand)]
pub enum ServiceCommand {
    /// Copy this program and write units, user, folders and, where there is none, a configuration
    Install {
        #[command(flatten)]
        place: ServicePlace,
    },
    /// Stop the service and remove what `install` wrote; configuration, state and logs stay
    Uninstall {
        #[command(flatten)]
        place: ServicePlace,
        /// Remove configuration, state and logs as well.
        #[arg(long)]
        purge: bool,
    },
}

/// Where the files go.
#[derive(Debug, Args)]
pub struct ServicePlace {
    /// Folder of the program: bin below it. With /usr the units and what goes with them lie in /usr/lib, where those of
    /// packages belong, else in /etc.
    #[arg(long, value_name = "FOLDER", default_value = "/usr/local")]
    pub prefix: PathBuf,
    /// Write below this folder instead of /, and run nothing.
    #[arg(long, value_name = "FOLDER")]
    pub root: Option<PathBuf>,
    /// Only say what would be written, removed and run.
    #[arg(long)]
    pub dry_run: bool,
}
