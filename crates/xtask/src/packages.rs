use crate::cargo::{run, succeeds};
use anyhow::{Context, Result, bail};
use std::path::Path;
use std::process::Command;

const JAR: &str = "/usr/share/java/zookeeper.jar";
const CURATOR_JARS: [&str; 2] =
    ["/usr/share/java/curator-recipes.jar", "/usr/share/java/curator-x-discovery.jar"];
const C_HEADER: &str = "/usr/include/zookeeper/zookeeper.h";
const C_SHELL: &str = "/usr/lib/zookeeper/bin/cli_mt";

/// Ensures that there is a Java runtime.
pub(crate) fn ensure_java() -> Result<()> {
    if has_java() { Ok(()) } else { install("Java", &["default-jre-headless"], ", or set JAVA_HOME") }
}

fn has_java() -> bool {
    std::env::var_os("JAVA_HOME").is_some() || runs("java")
}

/// Ensures that a real ZooKeeper can be started: installs Debian's if it is missing and this process may
/// install packages.
pub(crate) fn ensure_zookeeper() -> Result<()> {
    let classes = std::env::var_os("ZOOKEEPER_HOME").is_some() || Path::new(JAR).is_file();
    if classes && has_java() {
        return Ok(());
    }
    install("ZooKeeper", &["libzookeeper-java", "default-jre-headless"], ", or set ZOOKEEPER_HOME")
}

/// Ensures that tests with real Curator clients can run: installs Debian's if it is missing and this process
/// may install packages. The test program is run from its source, which needs a Java runtime with a compiler.
pub(crate) fn ensure_curator() -> Result<()> {
    let mut wanted = Vec::new();
    if !CURATOR_JARS.iter().all(|jar| Path::new(jar).is_file()) {
        wanted.extend(["libcurator-recipes-java", "libcurator-discovery-java"]);
    }
    if !runs("javac") {
        wanted.push("default-jdk-headless");
    }
    if wanted.is_empty() { Ok(()) } else { install("Curator with a JDK", &wanted, "") }
}

/// Ensures that tests with a real Prometheus can run: installs Debian's if it is missing and this process may
/// install packages.
pub(crate) fn ensure_prometheus() -> Result<()> {
    if runs_with("prometheus", "--version") { Ok(()) } else { install("Prometheus", &["prometheus"], "") }
}

/// Ensures that tests can create an environment with a real kazoo: installs Debian's Python if it is missing
/// and this process may install packages. The tests install kazoo from PyPI.
pub(crate) fn ensure_python() -> Result<()> {
    // Every Debian Python has the module `venv`, but the module does nothing without `ensurepip`.
    let modules = ["-c", "import ensurepip, venv"];
    if succeeds(Command::new("python3").args(modules)) {
        return Ok(());
    }
    install("Python with venv", &["python3", "python3-venv"], "")
}

/// Ensures that tests with ZooKeeper's C client can run: installs Debian's, with its shell, if it is missing
/// and this process may install packages.
pub(crate) fn ensure_c_client() -> Result<()> {
    let mut wanted = Vec::new();
    if !Path::new(C_HEADER).is_file() {
        wanted.push("libzookeeper-mt-dev");
    }
    if !Path::new(C_SHELL).is_file() {
        wanted.push("zookeeper-bin");
    }
    if !runs_with("cc", "--version") {
        wanted.push("build-essential");
    }
    if wanted.is_empty() { Ok(()) } else { install("ZooKeeper's client in C", &wanted, "") }
}

/// Ensures that code can be profiled: installs Debian's Valgrind if it is missing and this process may
/// install packages.
pub(crate) fn ensure_valgrind() -> Result<()> {
    if runs_with("valgrind", "--version") {
        Ok(())
    } else {
        install("Valgrind", &["valgrind", "libc6-dbg"], "")
    }
}

/// Ensures that a fresh Debian can be installed in a folder: installs debootstrap if it is missing and this
/// process may install packages.
pub(crate) fn ensure_debootstrap() -> Result<()> {
    if runs_with("debootstrap", "--version") { Ok(()) } else { install("debootstrap", &["debootstrap"], "") }
}

fn runs(program: &str) -> bool {
    runs_with(program, "-version")
}

fn runs_with(program: &str, argument: &str) -> bool {
    succeeds(Command::new(program).arg(argument))
}

/// Installs packages, or fails with the command that installs them and with the alternative `or_else`.
fn install(what: &str, packages: &[&str], or_else: &str) -> Result<()> {
    let wanted = packages.join(" ");
    if !is_root() {
        bail!("{what} is missing: run `apt-get install --no-install-recommends {wanted}` as root{or_else}");
    }
    run(&mut apt_get(&["update"]))?;
    let install = ["install", "--yes", "--no-install-recommends"];
    run(&mut apt_get(&[&install[..], packages].concat())).with_context(|| format!("cannot install {wanted}"))
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout.trim_ascii() == b"0")
}

fn apt_get(arguments: &[&str]) -> Command {
    let mut command = Command::new("apt-get");
    command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
    command
}
