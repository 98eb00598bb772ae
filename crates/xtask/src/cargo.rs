use anyhow::{Context, Result, ensure};
use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Packages that the workspace optimises for tests.
const OPTIMISED: [&str; 4] = ["docent-core", "docent-proto", "docent-server", "docent-testkit"];

/// Returns the cargo command that runs this program, in the root of the workspace.
pub(crate) fn cargo(arguments: &str) -> Command {
    let program = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.args(arguments.split_whitespace()).current_dir(root());
    remove_own_package(&mut command);
    command
}

/// Removes the environment variables that cargo sets for this program. Some build scripts run again if these
/// variables change, which would rebuild everything that depends on them.
pub(crate) fn remove_own_package(command: &mut Command) {
    for (name, _) in env::vars_os() {
        if let Some(name) = name.to_str()
            && (name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_"))
        {
            command.env_remove(name);
        }
    }
}

pub(crate) fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.ancestors().nth(2).expect("this package is two folders below the root").to_owned()
}

/// Returns cargo's build folder.
pub(crate) fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| root().join("target"), |path| root().join(Path::new(&path)))
}

/// Builds a program of the workspace with optimisations. With `planted`, the program contains all defects
/// that can be planted, and has a separate build folder, so nothing else is rebuilt.
pub(crate) fn build_program(package: &str, program: &str, planted: bool) -> Result<PathBuf> {
    let mut command = cargo(&format!("build --quiet --release --package {package} --bin {program}"));
    let target = if planted { build_planted(&mut command) } else { target() };
    run(&mut command)?;
    Ok(target.join("release").join(program))
}

/// Makes a cargo command build all defects that can be planted, and returns its build folder.
pub(crate) fn build_planted(command: &mut Command) -> PathBuf {
    let target = target().join("planted");
    command.env("RUSTFLAGS", "--cfg docent_planted").env("CARGO_TARGET_DIR", &target);
    target
}

/// Makes a cargo command build the mechanism GSSAPI, which needs MIT Kerberos, into a separate build folder.
/// Warnings are errors there, because no other build sees this code.
pub(crate) fn with_kerberos(command: &mut Command) {
    let target = target().join("kerberos");
    command.env("RUSTFLAGS", "--cfg docent_gssapi -D warnings").env("CARGO_TARGET_DIR", target);
}

/// Makes a cargo command compile all packages without optimisation, also those that the workspace optimises
/// for tests.
pub(crate) fn without_optimisation(command: &mut Command) {
    for package in OPTIMISED {
        command.arg("--config").arg(format!("profile.dev.package.{package}.opt-level=0"));
    }
}

/// Runs `command`, and fails if the command fails.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot run {command:?}"))?;
    ensure!(status.success(), "{command:?} failed: {status}");
    Ok(())
}

/// Returns true if `command` can be run and succeeds. Prints nothing.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}
