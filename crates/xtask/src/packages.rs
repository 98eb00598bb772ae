use crate::cargo::{run, succeeds};
use anyhow::{Context, Result, bail};
use std::path::Path;
use std::process::Command;

const PACKAGES: [&str; 2] = ["libzookeeper-java", "default-jre-headless"];
const JAR: &str = "/usr/share/java/zookeeper.jar";

/// Sees to it that a real ZooKeeper can be started: installs Debian's when it is missing and we may.
pub(crate) fn ensure_zookeeper() -> Result<()> {
    if is_installed() {
        return Ok(());
    }
    let wanted = PACKAGES.join(" ");
    if !is_root() {
        bail!(
            "no ZooKeeper: run `apt-get install --no-install-recommends {wanted}` as root, or set ZOOKEEPER_HOME"
        );
    }
    run(&mut apt_get(&["update"]))?;
    let install = ["install", "--yes", "--no-install-recommends"];
    run(&mut apt_get(&[&install[..], &PACKAGES].concat())).with_context(|| format!("cannot install {wanted}"))
}

fn is_installed() -> bool {
    let classes = std::env::var_os("ZOOKEEPER_HOME").is_some() || Path::new(JAR).is_file();
    let java = std::env::var_os("JAVA_HOME").is_some() || succeeds(Command::new("java").arg("-version"));
    classes && java
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout.trim_ascii() == b"0")
}

fn apt_get(arguments: &[&str]) -> Command {
    let mut command = Command::new("apt-get");
    command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
    command
}
