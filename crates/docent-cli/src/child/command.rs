use super::group::Group;
use super::lost_pipe::LostPipe;
use super::trampoline;
use crate::exit::Failure;
use docent::Fence;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// Command to run: its program and arguments, without a shell, and variables for it.
#[derive(Debug, Clone)]
pub(crate) struct ChildCommand {
    words: Vec<OsString>,
    variables: Vec<(&'static str, String)>,
    empty_stdin: bool,
}

impl ChildCommand {
    /// The command of these words, the program first; `None` without any.
    pub(crate) fn new(words: &[OsString]) -> Option<Self> {
        (!words.is_empty()).then(|| Self { words: words.to_vec(), variables: Vec::new(), empty_stdin: false })
    }

    /// Sets a variable in its environment.
    pub(crate) fn variable(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.variables.push((name, value.into()));
        self
    }

    /// Tells it the path that it runs under, and the fence, if there is one.
    pub(crate) fn under(self, path: &str, fence: Option<Fence>) -> Self {
        let command = self.variable("DOCENT_PATH", path);
        match fence {
            Some(fence) => command.variable("DOCENT_FENCE", fence.to_string()),
            None => command,
        }
    }

    /// Gives it an empty standard input in place of ours.
    pub(crate) fn without_stdin(mut self) -> Self {
        self.empty_stdin = true;
        self
    }

    /// Name of the program, for messages.
    pub(crate) fn name(&self) -> String {
        self.words.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// Starts it. On Linux it is killed when the calling thread ends: this is to be the main thread.
    ///
    /// # Errors
    /// `NotRunnable` when no process can be made. A program that cannot be run ends with 126 or 127.
    pub(super) fn spawn(&self, lost: Option<&LostPipe>) -> Result<Group, Failure> {
        let mut command = Command::new(trampoline::program());
        command.arg0("docent").args(trampoline::arguments(lost)).args(&self.words).process_group(0);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        if self.empty_stdin {
            command.stdin(Stdio::null());
        }
        let unmade = |error| Failure::NotRunnable(format!("cannot run {:?}: {error}", self.name()));
        command.spawn().map(Group::new).map_err(unmade)
    }
}
