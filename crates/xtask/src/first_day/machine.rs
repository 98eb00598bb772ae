//! Where the commands of the pages run.

use super::groups::Groups;
use crate::cargo::remove_own_package;
use anyhow::{Context, Result, bail, ensure};
use nix::sys::signal::Signal;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Longest duration of one step. The longest steps are builds.
const LIMIT: Duration = Duration::from_secs(20 * 60);
/// Time for which a command that runs until Ctrl-C works before it is ended.
const AT_WORK: Duration = Duration::from_secs(3);
/// Time for such a command to print its first line, and to end.
const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(50);

/// A machine on which the pages are followed: this one, or a folder with a separate system.
#[derive(Debug)]
pub(super) struct Machine {
    /// Root of the separate system.
    root: Option<PathBuf>,
    /// Folder of the reader, as seen from this process.
    home: PathBuf,
    variables: Vec<(String, String)>,
    /// Variables until [`end`](Self::end).
    temporary: Vec<(String, String)>,
    /// Folders that a page creates outside of the reader's folder.
    folders: Vec<PathBuf>,
    groups: Groups,
}

/// What a command printed.
#[derive(Debug, Default)]
pub(super) struct Printed {
    pub(super) output: String,
    pub(super) errors: String,
}

impl Machine {
    pub(super) fn new(root: Option<PathBuf>, home: PathBuf, variables: Vec<(String, String)>) -> Self {
        Self { root, home, variables, temporary: Vec::new(), folders: Vec::new(), groups: Groups::default() }
    }

    pub(super) fn home(&self) -> &Path {
        &self.home
    }

    /// Sets a variable until [`end`](Self::end).
    pub(super) fn set(&mut self, name: &str, value: impl Into<String>) {
        self.temporary.push((name.to_owned(), value.into()));
    }

    /// Returns `path` as the commands on this machine see it.
    pub(super) fn inside(&self, path: &Path) -> PathBuf {
        let relative = self.root.as_ref().and_then(|root| path.strip_prefix(root).ok());
        relative.map_or_else(|| path.to_owned(), |path| Path::new("/").join(path))
    }

    fn outside(&self, path: &str) -> PathBuf {
        let relative = path.trim().trim_start_matches('/');
        self.root.as_ref().map_or_else(|| PathBuf::from(path.trim()), |root| root.join(relative))
    }

    /// Runs commands in `folder` until they end, and returns what they printed and the folder that they are
    /// in at the end.
    pub(super) fn run(&mut self, folder: &Path, code: &str) -> Result<(Printed, PathBuf)> {
        let mut child = self.start(folder, code)?;
        let status = wait(&mut child, LIMIT)?;
        self.groups.keep(child.id());
        let printed = self.printed()?;
        ensure!(
            status.is_some_and(|status| status.success()),
            "{} {}{}",
            status.map_or_else(|| format!("does not end within {LIMIT:?}"), |status| status.to_string()),
            printed.output,
            printed.errors
        );
        let end =
            fs::read_to_string(self.home.join(".folder")).context("the shell did not leave its folder")?;
        Ok((printed, self.outside(&end)))
    }

    /// Runs a command until it has worked for a moment, then ends it as Ctrl-C does.
    pub(super) fn run_until_interrupted(&mut self, folder: &Path, code: &str) -> Result<Printed> {
        let mut child = self.start(folder, code)?;
        let started = Instant::now();
        while self.printed()?.output.is_empty() && started.elapsed() < PATIENCE {
            if child.try_wait()?.is_some() {
                break;
            }
            sleep(POLL);
        }
        if wait(&mut child, AT_WORK)?.is_none() {
            self.groups.signal(child.id(), Signal::SIGINT);
        }
        let status = wait(&mut child, PATIENCE)?;
        self.groups.keep(child.id());
        let printed = self.printed()?;
        let ended = status.is_some_and(|status| matches!(status.code(), None | Some(0 | 130)));
        ensure!(ended && !printed.output.is_empty(), "{status:?} {}{}", printed.output, printed.errors);
        Ok(printed)
    }

    /// Starts a command that runs until [`end`](Self::end), and returns the first line that it prints.
    pub(super) fn start_server(&mut self, folder: &Path, code: &str) -> Result<String> {
        let mut child = self.start(folder, code)?;
        let started = Instant::now();
        loop {
            let printed = self.printed()?;
            if let Some((line, _)) = printed.output.split_once('\n') {
                self.groups.keep(child.id());
                return Ok(line.to_owned());
            }
            if child.try_wait()?.is_some() || started.elapsed() > PATIENCE {
                self.groups.keep(child.id());
                bail!("{code} prints nothing: {}", printed.errors);
            }
            sleep(POLL);
        }
    }

    /// Ends all processes that the commands left, and removes the variables that were set meanwhile.
    pub(super) fn end(&mut self) {
        self.temporary.clear();
        self.groups.end();
        for folder in self.folders.drain(..) {
            // The page may not have created the folder.
            let _ = fs::remove_dir_all(folder);
        }
    }

    /// Notes a folder that a page creates, for its removal at the [`end`](Self::end).
    pub(super) fn remove_at_end(&mut self, folder: &str) -> Result<()> {
        let folder = self.outside(folder);
        ensure!(!folder.exists(), "{} exists already: remove it first", folder.display());
        self.folders.push(folder);
        Ok(())
    }

    fn start(&self, folder: &Path, code: &str) -> Result<Child> {
        let (home, start) = (self.inside(&self.home), self.inside(folder));
        let code =
            format!("cd '{}'\ntrap 'pwd > \"{}/.folder\"' EXIT\n{code}", start.display(), home.display());
        let mut command = self.command();
        command.args(["bash", "-eu", "-o", "pipefail", "-c"]).arg(code);
        command.process_group(0).stdin(Stdio::null());
        command
            .stdout(File::create(self.home.join(".output"))?)
            .stderr(File::create(self.home.join(".errors"))?);
        command.spawn().with_context(|| format!("cannot run {command:?}"))
    }

    fn command(&self) -> Command {
        let mut command = Command::new("env");
        // Ignored signals are inherited, for example from a shell that runs this task in the background.
        command.arg("--default-signal=INT");
        remove_own_package(&mut command);
        for name in ["CARGO", "CARGO_TARGET_DIR", "RUSTUP_TOOLCHAIN", "RUSTFLAGS", "DOCENT_CONNECT"] {
            command.env_remove(name);
        }
        if let Some(root) = &self.root {
            command.args(["-i", "/usr/sbin/chroot"]).arg(root).args(["env"]);
        }
        command.args(
            self.variables.iter().chain(&self.temporary).map(|(name, value)| format!("{name}={value}")),
        );
        command
    }

    fn printed(&self) -> Result<Printed> {
        let read = |name| {
            Ok::<_, anyhow::Error>(String::from_utf8_lossy(&fs::read(self.home.join(name))?).into_owned())
        };
        Ok(Printed { output: read(".output")?, errors: read(".errors")? })
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.end();
    }
}

/// Waits until `child` ends, at most for `limit`.
fn wait(child: &mut Child, limit: Duration) -> Result<Option<ExitStatus>> {
    let started = Instant::now();
    loop {
        let status = child.try_wait()?;
        if status.is_some() || started.elapsed() >= limit {
            return Ok(status);
        }
        sleep(POLL);
    }
}
