//! Packages from PyPI and npm, for the programs of peers.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;
use tokio::sync::OnceCell;

/// Time limit of pip and npm.
const PATIENCE: Duration = Duration::from_secs(300);

/// kazoo, pure-sasl for its SASL, and dubbo-python, whose consumer is strict about a provider's parameters.
pub static KAZOO: Packages = Packages::pypi("kazoo", include_str!("../packages/kazoo.txt"));

/// Apache's Dubbo SDK for Python, with kazoo. It needs Python 3.11.
pub static DUBBO: Packages = Packages::pypi("dubbo", include_str!("../packages/dubbo.txt"));

/// Patroni, with kazoo.
pub static PATRONI: Packages = Packages::pypi("patroni", include_str!("../packages/patroni.txt"));

/// Apache's Dubbo SDK for Node.
pub static DUBBO_JS: Packages = Packages::npm(
    "dubbo-js",
    include_str!("../packages/dubbo-js.json"),
    include_str!("../packages/dubbo-js-lock.json"),
);

/// axe-core, which finds barriers in pages for people who use a keyboard or a screen reader.
pub static AXE: Packages =
    Packages::npm("axe", include_str!("../packages/axe.json"), include_str!("../packages/axe-lock.json"));

/// Packages from a public registry, at exact versions, with all packages that they depend on.
///
/// They are installed once for each version of the language and of the packages, so all processes that use
/// the same folder share them.
#[derive(Debug)]
pub struct Packages {
    name: &'static str,
    source: Source,
    installed: OnceCell<PathBuf>,
}

#[derive(Debug, Hash)]
enum Source {
    /// PyPI, with the lines of a requirements file.
    PyPi { requirements: &'static str },
    /// npm, with the two files that describe a project.
    Npm { manifest: &'static str, lock: &'static str },
}

impl Packages {
    const fn pypi(name: &'static str, requirements: &'static str) -> Self {
        Self { name, source: Source::PyPi { requirements }, installed: OnceCell::const_new() }
    }

    const fn npm(name: &'static str, manifest: &'static str, lock: &'static str) -> Self {
        Self { name, source: Source::Npm { manifest, lock }, installed: OnceCell::const_new() }
    }

    /// Hint for a machine without the language, or without its package manager.
    pub fn missing(&self) -> &'static str {
        self.source.missing()
    }

    /// Returns a command that runs `program` with these packages, and that writes nothing beside the sources.
    /// The packages are installed below `folder` if they are not there.
    ///
    /// # Errors
    ///
    /// Fails if the language is missing, naming what to install, or if the packages cannot be installed.
    pub async fn command(&self, folder: &Path, program: &str) -> io::Result<Command> {
        let installed = self.installed(folder).await?;
        Ok(match self.source {
            Source::PyPi { .. } => {
                let mut python = Command::new(installed.join("bin/python"));
                python.args(["-B", program]);
                python
            }
            Source::Npm { .. } => {
                let mut node = Command::new("node");
                node.env("NODE_PATH", installed.join("node_modules")).arg(program);
                node
            }
        })
    }

    /// Returns the text of a file of a package: for npm, its path begins with the package's name. The
    /// packages are installed below `folder` if they are not there.
    ///
    /// # Errors
    ///
    /// As [`command`](Self::command), and if there is no such file.
    pub async fn text(&self, folder: &Path, file: &str) -> io::Result<String> {
        let installed = self.installed(folder).await?;
        let files = match self.source {
            Source::PyPi { .. } => installed.join("lib"),
            Source::Npm { .. } => installed.join("node_modules"),
        };
        std::fs::read_to_string(files.join(file))
    }

    async fn installed(&self, folder: &Path) -> io::Result<&PathBuf> {
        self.installed.get_or_try_init(|| self.install(folder)).await
    }

    /// Installs the packages under a temporary name and renames the folder when it is complete. Other threads
    /// and processes therefore see all packages or none.
    async fn install(&self, folder: &Path) -> io::Result<PathBuf> {
        let language = self.source.language().await?;
        let mut hasher = DefaultHasher::new();
        self.source.hash(&mut hasher);
        let installed = folder.join(format!("{}-{:016x}-{language}", self.name, hasher.finish()));
        if installed.exists() {
            return Ok(installed);
        }
        let new = folder.join(format!("{}.{}.new", self.name, std::process::id()));
        self.source.install(&new).await?;
        match std::fs::rename(&new, &installed) {
            // Another process was faster.
            Err(_) if installed.exists() => std::fs::remove_dir_all(&new)?,
            renamed => renamed?,
        }
        Ok(installed)
    }
}

impl Source {
    fn missing(&self) -> &'static str {
        match self {
            Self::PyPi { .. } => "install python3 and python3-venv; pip installs packages from PyPI",
            Self::Npm { .. } => "install nodejs and npm; npm installs packages from its registry",
        }
    }

    /// Returns the language with its version.
    async fn language(&self) -> io::Result<String> {
        match self {
            Self::PyPi { .. } => {
                let version = "import sys; print('python-%d.%d.%d' % sys.version_info[:3])";
                self.output(Command::new("python3").args(["-c", version])).await
            }
            Self::Npm { .. } => {
                self.output(Command::new("node").args(["-p", "'node-' + process.version"])).await
            }
        }
    }

    async fn install(&self, new: &Path) -> io::Result<()> {
        match self {
            Self::PyPi { requirements } => {
                self.output(Command::new("python3").args(["-m", "venv", "--clear"]).arg(new)).await?;
                std::fs::write(new.join("requirements.txt"), requirements)?;
                // The file lists every package. Some declare more than they need: dubbo-python an older
                // kazoo.
                let pip =
                    ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "-r"];
                let mut pip_install = Command::new(new.join("bin/python"));
                self.output(pip_install.args(pip).arg(new.join("requirements.txt"))).await?;
            }
            Self::Npm { manifest, lock } => {
                std::fs::create_dir_all(new)?;
                std::fs::write(new.join("package.json"), manifest)?;
                std::fs::write(new.join("package-lock.json"), lock)?;
                let options = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
                self.output(Command::new("npm").args(options).current_dir(new)).await?;
            }
        }
        Ok(())
    }

    /// Returns the output of a program that must succeed.
    async fn output(&self, program: &mut Command) -> io::Result<String> {
        let line = format!("{:?}", program.as_std());
        let output = program.stdin(Stdio::null()).kill_on_drop(true).output();
        let Ok(output) = tokio::time::timeout(PATIENCE, output).await else {
            let detail = format!("{line} did not finish within {PATIENCE:?}");
            return Err(io::Error::new(io::ErrorKind::TimedOut, detail));
        };
        let failed = |words: String| io::Error::other(format!("{line} failed: {words}; {}", self.missing()));
        let output = output.map_err(|error| failed(error.to_string()))?;
        let text = |bytes| String::from_utf8_lossy(bytes).trim().to_owned();
        let stdout = text(&output.stdout);
        if output.status.success() { Ok(stdout) } else { Err(failed(stdout + &text(&output.stderr))) }
    }
}
