//! A fresh Debian in a folder, with Rust and a C compiler.

use super::machine::Machine;
use super::source::{Source, empty};
use super::task::{folder, follow};
use crate::cargo::run as run_command;
use crate::packages::ensure_debootstrap;
use anyhow::{Context, Result};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Second argument of the process that may mount.
pub(super) const INSIDE: &str = "--inside";

const RELEASE: &str = "bookworm";
const ARCHIVE: &str = "http://deb.debian.org/debian";
/// What the pages require: a C compiler, and what rustup needs for its download.
const PACKAGES: &str = "ca-certificates,curl,gcc,libc6-dev";
const HOME: &str = "root";

/// Follows the pages in a process whose mounts and children end with it.
pub(super) fn isolate() -> Result<()> {
    ensure_debootstrap()?;
    let program = env::current_exe()?;
    let mut command = Command::new("unshare");
    command.args(["--mount", "--pid", "--fork", "--kill-child"]).arg(program);
    let followed = run_command(command.args(["first-day", "--debian", INSIDE]));
    let system = system();
    fs::remove_dir_all(&system).with_context(|| format!("cannot remove {system:?}"))?;
    followed
}

/// Follows the pages on a fresh Debian.
pub(super) fn run() -> Result<()> {
    let root = empty(&system())?;
    println!("debootstrap {RELEASE} with {PACKAGES}");
    let mut debootstrap = Command::new("debootstrap");
    debootstrap
        .args(["--variant=minbase", &format!("--include={PACKAGES}"), RELEASE])
        .arg(&root)
        .arg(ARCHIVE);
    run_command(debootstrap.stdout(fs::File::create(folder().join("debootstrap.log"))?))?;
    mount(&root)?;
    let home = root.join(HOME);
    Source::snapshot(&home)?;
    let inside = Path::new("/").join(HOME);
    fs::write(home.join(".gitconfig"), Source::at(inside.join("source")).git_config())?;
    let checkout = home.join("docent");
    run_command(Command::new("git").args(["clone", "--quiet"]).arg(home.join("source")).arg(&checkout))?;
    let mut machine = Machine::new(Some(root), empty(&home.join("reader"))?, variables(&inside));
    let version = machine.run(&home, "cat /etc/debian_version; cargo --version; ! command -v java")?.0.output;
    println!("Debian {}", version.trim().replace('\n', ", "));
    follow(machine, &home.join("build"), &checkout)
}

fn system() -> PathBuf {
    folder().join("debian")
}

/// Mounts what each system has, and this machine's Rust as rustup would have installed it.
fn mount(root: &Path) -> Result<()> {
    let own = env::var_os("HOME").map_or_else(|| PathBuf::from("/root"), PathBuf::from);
    for folder in ["dev", "proc"] {
        run_command(Command::new("mount").args(["--rbind", &format!("/{folder}")]).arg(root.join(folder)))?;
    }
    for folder in [".rustup", ".cargo/bin"] {
        let place = root.join(HOME).join(folder);
        fs::create_dir_all(&place)?;
        run_command(Command::new("mount").args(["--bind", "--read-only"]).arg(own.join(folder)).arg(place))?;
    }
    for file in ["etc/resolv.conf", "etc/hosts", "etc/ssl/certs/ca-certificates.crt"] {
        fs::copy(Path::new("/").join(file), root.join(file))
            .with_context(|| format!("cannot copy /{file}"))?;
    }
    Ok(())
}

fn variables(home: &Path) -> Vec<(String, String)> {
    let cargo = home.join(".cargo");
    let bin = cargo.join("bin");
    let path = format!(
        "{}:/root/installed/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        bin.display()
    );
    let variables = [
        ("HOME", home.display().to_string()),
        ("PATH", path),
        ("DEBIAN_FRONTEND", "noninteractive".to_owned()),
        // The folder of rustup's programs is mounted read-only.
        ("CARGO_INSTALL_ROOT", "/root/installed".to_owned()),
    ];
    let variables = variables.map(|(name, value)| (name.to_owned(), value));
    [variables.to_vec(), super::source::settings(&cargo)].concat()
}
