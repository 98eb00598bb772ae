use anyhow::{Context, Result, ensure};
use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The cargo that runs this, in the root of the workspace.
pub(crate) fn cargo(arguments: &str) -> Command {
    let program = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.args(arguments.split_whitespace()).current_dir(root());
    remove_own_package(&mut command);
    command
}

/// Removes the variables that cargo sets for this program. Some build scripts run again when they change, and
/// what depends on them is built once more.
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

/// Folder that cargo builds in.
pub(crate) fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| root().join("target"), |path| root().join(Path::new(&path)))
}

/// Builds a program of the workspace with optimisations. With `planted` it has all defects that can be
/// planted, and a build folder of its own, so that nothing else is built anew.
pub(crate) fn build_program(package: &str, program: &str, planted: bool) -> Result<PathBuf> {
    let mut command = cargo(&format!("build --quiet --release --package {package} --bin {program}"));
    let target = if planted { build_planted(&mut command) } else { target() };
    run(&mut command)?;
    Ok(target.join("release").join(program))
}

/// Makes a command of cargo build all defects that can be planted, and returns its build folder.
pub(crate) fn build_planted(command: &mut Command) -> PathBuf {
    let target = target().join("planted");
    command.env("RUSTFLAGS", "--cfg docent_planted").env("CARGO_TARGET_DIR", &target);
    target
}

/// Runs `command` and fails when it does.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot run {command:?}"))?;
    ensure!(status.success(), "{command:?} failed: {status}");
    Ok(())
}

/// True when `command` can be run and succeeds. Says nothing.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}
