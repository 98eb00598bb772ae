use crate::run::Record;
use crate::script::{Step, parse};
use crate::servers::record;
use anyhow::{Context, Result};
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Line between a script and the record of the real server.
const BETWEEN: &str = "---";

/// A script that is kept in a file, with the record of a real server.
#[derive(Debug)]
pub struct Fixed {
    /// Path of the file.
    pub file: PathBuf,
    /// The script.
    pub script: Vec<Step>,
    /// Record of a real server; empty if the file has none.
    pub expected: Record,
}

/// Reads all kept scripts, in the order of their names.
///
/// # Errors
/// Returns an error if a file cannot be read.
pub fn fixed_scripts() -> Result<Vec<Fixed>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts");
    let mut files: Vec<PathBuf> =
        fs::read_dir(&folder)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    files.sort();
    files.into_iter().map(Fixed::read).collect()
}

impl Fixed {
    fn read(file: PathBuf) -> Result<Self> {
        let text = fs::read_to_string(&file)?;
        let (script, expected) = parts(&text);
        let script = parse(script).with_context(|| format!("{}", file.display()))?;
        Ok(Self { script, expected: Record::parse(expected), file })
    }

    /// Runs the script on a server.
    ///
    /// # Errors
    /// Returns an error if the server is unreachable or does not reply.
    pub async fn run(&self, address: SocketAddr) -> Result<Record> {
        record(&self.script, address).await
    }

    /// Replaces the record in the file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn keep(&self, record: &Record) -> Result<()> {
        let text = fs::read_to_string(&self.file)?;
        let (script, _) = parts(&text);
        fs::write(&self.file, format!("{}\n{BETWEEN}\n{record}", script.trim_end()))?;
        Ok(())
    }
}

fn parts(text: &str) -> (&str, &str) {
    let (script, record) = text.split_once(&format!("\n{BETWEEN}\n")).unwrap_or((text, ""));
    (script, record)
}
