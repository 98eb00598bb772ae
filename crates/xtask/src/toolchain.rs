//! Other toolchains of Rust than the one that runs this program.

use crate::cargo::{remove_own_package, root, run, succeeds};
use anyhow::{Context, Result, ensure};
use std::process::Command;

/// An installed toolchain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Toolchain(String);

impl Toolchain {
    /// Returns the toolchain `name`, such as `1.88.0`, and installs it with rustup if it is missing.
    ///
    /// # Errors
    ///
    /// Fails if rustup is missing or cannot download the toolchain.
    pub(crate) fn ensure(name: &str) -> Result<Self> {
        if let Some(installed) = Self::installed(name) {
            return Ok(installed);
        }
        ensure!(
            succeeds(Command::new("rustup").arg("--version")),
            "Rust {name} is needed and rustup is missing: install rustup from https://rustup.rs, then run \
             `rustup toolchain install {name} --profile minimal`"
        );
        println!("installing Rust {name}, once");
        let install = ["toolchain", "install", name, "--profile", "minimal", "--no-self-update"];
        run(Command::new("rustup").args(install)).with_context(|| {
            format!(
                "cannot install Rust {name}: if this machine cannot reach static.rust-lang.org, set \
                 RUSTUP_DIST_SERVER to a mirror"
            )
        })?;
        Ok(Self(name.to_owned()))
    }

    /// Returns the toolchain `name` unless it is missing.
    pub(crate) fn installed(name: &str) -> Option<Self> {
        succeeds(Command::new("rustup").args(["run", name, "rustc", "--version"]))
            .then(|| Self(name.to_owned()))
    }

    /// Returns the cargo command of this toolchain, in the root of the workspace.
    pub(crate) fn cargo(&self, arguments: &str) -> Command {
        let mut command = Command::new("rustup");
        command.args(["run", &self.0, "cargo"]).args(arguments.split_whitespace()).current_dir(root());
        // Cargo set these for its own toolchain.
        for name in ["CARGO", "RUSTC", "RUSTDOC", "RUSTUP_TOOLCHAIN"] {
            command.env_remove(name);
        }
        remove_own_package(&mut command);
        command
    }
}
