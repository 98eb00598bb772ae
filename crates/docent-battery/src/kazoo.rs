//! A Python environment with kazoo from PyPI, pure-sasl for its SASL, and dubbo-python.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;
use tokio::sync::OnceCell;

const VERSION: &str = "2.11.0";

/// Version of pure-sasl, with which kazoo authenticates.
const SASL_VERSION: &str = "0.6.2";

/// Version of dubbo-python, a strict consumer of Dubbo's registry that uses kazoo.
const DUBBO_VERSION: &str = "0.0.4";

/// Hint for a machine without Python, or with a Python that cannot create environments.
pub const MISSING: &str = "install python3 and python3-venv; pip installs kazoo from PyPI";

/// Time limit of pip.
const PATIENCE: Duration = Duration::from_secs(300);

/// Returns a command that runs `program` with a Python that has kazoo, and that writes nothing beside the
/// sources. The environment is created below `folder` if it does not exist: once for each version of Python
/// and of the packages.
///
/// # Errors
///
/// Fails if Python is missing, naming what to install, or if kazoo cannot be installed.
pub async fn python(folder: &Path, program: &str) -> io::Result<Command> {
    static PYTHON: OnceCell<PathBuf> = OnceCell::const_new();
    let mut python = Command::new(PYTHON.get_or_try_init(|| installed_python(folder)).await?);
    python.args(["-B", program]);
    Ok(python)
}

async fn installed_python(folder: &Path) -> io::Result<PathBuf> {
    let version = "import sys; print('%d.%d.%d' % sys.version_info[:3])";
    let version = output_of(Command::new("python3").args(["-c", version])).await?;
    let packages = format!("kazoo-{VERSION}-sasl-{SASL_VERSION}-dubbo-{DUBBO_VERSION}");
    let venv = folder.join(format!("{packages}-python-{}", version.trim()));
    if !venv.exists() {
        create_venv(&venv).await?;
    }
    Ok(venv.join("bin/python"))
}

/// Creates the environment under a temporary name and renames it when it is complete. Other threads and
/// processes therefore see the whole environment or none.
async fn create_venv(venv: &Path) -> io::Result<()> {
    let new = venv.with_file_name(format!("kazoo-{VERSION}.{}.new", std::process::id()));
    output_of(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&new)).await?;
    let packages = [format!("kazoo=={VERSION}"), format!("pure-sasl=={SASL_VERSION}")];
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    output_of(Command::new(new.join("bin/python")).args(install).args(packages)).await?;
    // Without its dependencies, which are an older kazoo and the SDK of a registry that no test uses.
    let dubbo = format!("dubbo-python=={DUBBO_VERSION}");
    output_of(Command::new(new.join("bin/python")).args(install).args(["--no-deps", &dubbo])).await?;
    match std::fs::rename(&new, venv) {
        // Another process was faster.
        Err(_) if venv.exists() => std::fs::remove_dir_all(&new),
        renamed => renamed,
    }
}

/// Returns the output of a program that must succeed.
async fn output_of(program: &mut Command) -> io::Result<String> {
    let line = format!("{:?}", program.as_std());
    let output = program.stdin(Stdio::null()).kill_on_drop(true).output();
    let Ok(output) = tokio::time::timeout(PATIENCE, output).await else {
        return Err(io::Error::new(
            io::ErrorKind::TimedOut,
            format!("{line} did not finish within {PATIENCE:?}"),
        ));
    };
    let failed = |words: String| io::Error::other(format!("{line} failed: {words}; {MISSING}"));
    let output = output.map_err(|error| failed(error.to_string()))?;
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    let stdout = text(&output.stdout);
    if output.status.success() { Ok(stdout) } else { Err(failed(stdout + &text(&output.stderr))) }
}
