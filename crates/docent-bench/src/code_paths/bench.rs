//! Runs a worker under callgrind for each operation, and prints two tables.

use super::operation::Operation;
use super::profile::Profile;
use super::size::Size;
use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};
use docent::server::Server;
use std::fs;
use std::path::Path;
use tokio::process::Command;

/// The packages whose size is printed.
const PACKAGES: [&str; 6] =
    ["docent-core", "docent-locks", "docent-election", "docent-queue", "docent-discovery", "docent-config"];

/// Command line of the bench of code paths.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Also print the source files and functions that each operation executes.
    #[arg(long)]
    files: bool,
}

pub(crate) async fn run(options: Options) -> Result<()> {
    println!("| package | files | lines of code | types |\n|---|---|---|---|");
    for package in PACKAGES {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(package).join("src");
        let Size { files, lines, types } = Size::of(&folder)?;
        println!("| `{package}` | {files} | {lines} | {types} |");
    }
    println!("\n| operation | files executed | functions executed |\n|---|---|---|");
    for operation in Operation::value_variants() {
        let profile = profile(*operation).await?;
        println!("| {operation} | {} | {} |", profile.files(), profile.functions());
        if options.files {
            for (path, functions) in profile.executed() {
                println!(
                    "<!-- {path}: {} -->",
                    Vec::from_iter(functions.iter().map(String::as_str)).join(", ")
                );
            }
        }
    }
    Ok(())
}

/// Returns the profile of an operation, on a separate server in this process.
async fn profile(operation: Operation) -> Result<Profile> {
    let server = Server::start().await?;
    let output = std::env::temp_dir().join(format!("docent-code-path-{}", std::process::id()));
    let worker = Command::new("valgrind")
        .args([
            "--tool=callgrind",
            "--quiet",
            "--collect-atstart=no",
            "--toggle-collect=*measured_operation*",
        ])
        .arg(format!("--callgrind-out-file={}", output.display()))
        .arg(std::env::current_exe()?)
        .args(["code-path-worker", &operation.argument(), server.connect_string()])
        .kill_on_drop(true)
        .status()
        .await
        .context("cannot run valgrind")?;
    ensure!(worker.success(), "the worker of {operation} failed: {worker}");
    let text = fs::read_to_string(&output).with_context(|| format!("cannot read {}", output.display()))?;
    fs::remove_file(&output)?;
    let profile = Profile::parse(&text);
    ensure!(profile.files() > 0, "callgrind collected nothing for {operation}");
    Ok(profile)
}
