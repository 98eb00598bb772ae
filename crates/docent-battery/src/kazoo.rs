//! A Python environment with kazoo from PyPI.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;
use tokio::sync::OnceCell;

const VERSION: &str = "2.11.0";

/// Words for a machine without Python, or with one that cannot make environments.
pub const MISSING: &str = "install python3 and python3-venv; kazoo comes from PyPI by pip";

/// Time within which pip has to be done.
const PATIENCE: Duration = Duration::from_secs(300);

/// A command that runs `program` with a Python that knows kazoo and writes nothing beside the sources. Its
/// environment is made below `folder` unless it is there: once for each version of Python and of kazoo.
///
/// # Errors
/// When Python is missing, with what to install, or kazoo cannot be installed.
pub async fn python(folder: &Path, program: &str) -> io::Result<Command> {
    static PYTHON: OnceCell<PathBuf> = OnceCell::const_new();
    let mut python = Command::new(PYTHON.get_or_try_init(|| made(folder)).await?);
    python.args(["-B", program]);
    Ok(python)
}

async fn made(folder: &Path) -> io::Result<PathBuf> {
    let version = "import sys; print('%d.%d.%d' % sys.version_info[:3])";
    let version = said(Command::new("python3").args(["-c", version])).await?;
    let venv = folder.join(format!("kazoo-{VERSION}-python-{}", version.trim()));
    if !venv.exists() {
        make(&venv).await?;
    }
    Ok(venv.join("bin/python"))
}

/// Makes the environment under another name and renames it when it is complete, so that others, in other
/// processes too, see it as a whole or not at all.
async fn make(venv: &Path) -> io::Result<()> {
    let new = venv.with_file_name(format!("kazoo-{VERSION}.{}.new", std::process::id()));
    said(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&new)).await?;
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    said(Command::new(new.join("bin/python")).args(install).arg(format!("kazoo=={VERSION}"))).await?;
    match std::fs::rename(&new, venv) {
        // Somebody else's was first.
        Err(_) if venv.exists() => std::fs::remove_dir_all(&new),
        renamed => renamed,
    }
}

/// Output of a program that has to succeed.
async fn said(program: &mut Command) -> io::Result<String> {
    let line = format!("{:?}", program.as_std());
    let output = program.stdin(Stdio::null()).kill_on_drop(true).output();
    let Ok(output) = tokio::time::timeout(PATIENCE, output).await else {
        return Err(io::Error::new(
            io::ErrorKind::TimedOut,
            format!("{line} is not done within {PATIENCE:?}"),
        ));
    };
    let failed = |words: String| io::Error::other(format!("{line} failed: {words}; {MISSING}"));
    let output = output.map_err(|error| failed(error.to_string()))?;
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    let said = text(&output.stdout);
    if output.status.success() { Ok(said) } else { Err(failed(said + &text(&output.stderr))) }
}
