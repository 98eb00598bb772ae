use crate::cargo::{run, succeeds};
use anyhow::{Context, Result, bail};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
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

/// Ensures that tests with real proxies can run: installs Debian's nginx and haproxy if they are missing and
/// this process may install packages.
pub(crate) fn ensure_proxies() -> Result<()> {
    let is_missing = |program: &&&str| !runs_with(program, "-v");
    let wanted: Vec<_> = ["nginx", "haproxy"].iter().filter(is_missing).copied().collect();
    if wanted.is_empty() { Ok(()) } else { install("A proxy", &wanted, "") }
}

/// Ensures that tests can install packages from PyPI, such as kazoo: installs Debian's Python if it is
/// missing and this process may install packages.
pub(crate) fn ensure_python() -> Result<()> {
    // Every Debian Python has the module `venv`, but the module does nothing without `ensurepip`.
    let modules = ["-c", "import ensurepip, venv"];
    if succeeds(Command::new("python3").args(modules)) {
        return Ok(());
    }
    install("Python with venv", &["python3", "python3-venv"], "")
}

/// Ensures that tests can install packages from npm: installs Debian's Node and npm if they are missing and
/// this process may install packages.
pub(crate) fn ensure_node() -> Result<()> {
    let mut wanted = Vec::new();
    for (program, package) in [("node", "nodejs"), ("npm", "npm")] {
        if !runs_with(program, "--version") {
            wanted.push(package);
        }
    }
    if wanted.is_empty() { Ok(()) } else { install("Node with npm", &wanted, "") }
}

/// Ensures that tests of pages can run in a real browser: installs Debian's chromium with its driver and a
/// font if they are missing and this process may install packages.
pub(crate) fn ensure_chromium() -> Result<()> {
    let mut wanted = Vec::new();
    for (file, package) in [
        ("/usr/bin/chromium", "chromium"),
        ("/usr/bin/chromedriver", "chromium-driver"),
        ("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf", "fonts-dejavu-core"),
    ] {
        if !Path::new(file).is_file() {
            wanted.push(package);
        }
    }
    if wanted.is_empty() { Ok(()) } else { install("Chromium", &wanted, "") }
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

/// Ensures that clients with Kerberos can be built, and that tests with a KDC can run: installs Debian's MIT
/// Kerberos if it is missing and this process may install packages.
pub(crate) fn ensure_kerberos() -> Result<()> {
    let mut wanted = Vec::new();
    for (file, package) in [
        ("/usr/sbin/krb5kdc", "krb5-kdc"),
        ("/usr/sbin/kadmin.local", "krb5-admin-server"),
        ("/usr/bin/kinit", "krb5-user"),
        ("/usr/include/gssapi/gssapi.h", "libkrb5-dev"),
    ] {
        if !Path::new(file).is_file() {
            wanted.push(package);
        }
    }
    // The binding is generated by clang's library, which Debian's package of the compiler comes with.
    if !runs_with("clang", "--version") {
        wanted.push("clang");
    }
    if wanted.is_empty() { Ok(()) } else { install("Kerberos", &wanted, "") }
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
    let _quiet = NoServices::start()?;
    run(&mut apt_get(&[&install[..], packages].concat())).with_context(|| format!("cannot install {wanted}"))
}

/// While this exists, packages that are installed do not start their services: tests start what they need.
struct NoServices {
    is_own: bool,
}

impl NoServices {
    /// Program that Debian's packages ask whether they may start a service.
    const POLICY: &str = "/usr/sbin/policy-rc.d";

    fn start() -> Result<Self> {
        const NOTE: &str = "# While `cargo xtask` installs packages, they start no services.";
        let is_own = fs::read_to_string(Self::POLICY).map_or(true, |policy| policy.contains(NOTE));
        if is_own {
            // The status 101 forbids it. A file that an interrupted run left forbids nothing.
            let pid = std::process::id();
            fs::write(Self::POLICY, format!("#!/bin/sh\n{NOTE}\n! kill -0 {pid} 2>/dev/null || exit 101\n"))?;
            fs::set_permissions(Self::POLICY, Permissions::from_mode(0o755))?;
        }
        Ok(Self { is_own })
    }
}

impl Drop for NoServices {
    fn drop(&mut self) {
        if self.is_own
            && let Err(error) = fs::remove_file(Self::POLICY)
        {
            eprintln!("error: cannot remove {}: {error}", Self::POLICY);
        }
    }
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout.trim_ascii() == b"0")
}

fn apt_get(arguments: &[&str]) -> Command {
    let mut command = Command::new("apt-get");
    command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
    command
}
