//! Processes of the compared libraries.

use super::driver::Driver;
use super::side::Side;
use anyhow::{Context, Result, ensure};
use docent_battery::packages::KAZOO;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tokio::process::Command;

const MANIFEST: &str = env!("CARGO_MANIFEST_DIR");
const SOURCES: [&str; 9] =
    ["Configurations", "Crowd", "Driver", "Elections", "Locks", "Measured", "Order", "Queues", "Services"];
const JARS: [&str; 6] = [
    "/usr/share/java/zookeeper.jar",
    "/usr/share/java/curator-client.jar",
    "/usr/share/java/curator-framework.jar",
    "/usr/share/java/curator-recipes.jar",
    "/usr/share/java/curator-x-discovery.jar",
    "/usr/share/java/slf4j-nop.jar",
];
const MISSING_JAVA: &str =
    "install libcurator-recipes-java, libcurator-discovery-java and default-jdk-headless";

/// Starts a driver of one library.
///
/// # Errors
///
/// Fails if the library is not installed, naming what to install.
pub(super) async fn start(side: Side) -> Result<Driver> {
    let command = match side {
        Side::Docent | Side::Bare => docent()?,
        Side::Curator => curator().await?,
        Side::Kazoo => KAZOO.command(&folder("python")?, &format!("{MANIFEST}/python/driver.py")).await?,
    };
    Driver::start(side, command).await
}

/// Starts this program again, so its CPU and memory belong to one side alone.
fn docent() -> Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("recipe-worker");
    Ok(command)
}

/// Starts a JVM with its default settings, except for the maximum heap size.
async fn curator() -> Result<Command> {
    for jar in JARS {
        ensure!(Path::new(jar).is_file(), "{jar} does not exist: {MISSING_JAVA}");
    }
    let classes = folder("curator")?;
    let mut javac = Command::new("javac");
    javac.args(["-cp", &JARS.join(":"), "-d"]).arg(&classes);
    javac.args(SOURCES.map(|class| format!("{MANIFEST}/java/{class}.java")));
    succeed(&mut javac, MISSING_JAVA).await?;
    let mut java = Command::new("java");
    let class_path = format!("{}:{}", JARS.join(":"), classes.display());
    java.args(["-Xmx1g", "-XX:-UsePerfData", "-cp", &class_path, "Driver"]);
    Ok(java)
}

/// Returns the version of Curator, from the names of Debian's jars.
///
/// # Errors
///
/// Fails if the folder of the jars cannot be read.
pub(super) fn curator_version() -> Result<String> {
    for jar in std::fs::read_dir("/usr/share/java")? {
        let name = jar?.file_name().to_string_lossy().into_owned();
        let version = name.strip_prefix("curator-recipes-").and_then(|rest| rest.strip_suffix(".jar"));
        if let Some(version) = version {
            return Ok(version.to_owned());
        }
    }
    Ok("of unknown version".to_owned())
}

/// Returns a folder beside this program for files that are built once.
fn folder(name: &str) -> Result<PathBuf> {
    let program = std::env::current_exe()?;
    let folder =
        program.parent().context("the program's file has no parent folder")?.join("bench-recipes").join(name);
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}

async fn succeed(program: &mut Command, missing: &str) -> Result<()> {
    let output = program.stdin(Stdio::null()).kill_on_drop(true).output().await;
    let output = output.with_context(|| format!("cannot run {program:?}: {missing}"))?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{program:?} failed: {stderr}{missing}");
    Ok(())
}
