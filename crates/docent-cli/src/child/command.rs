use super::group::Group;
use super::lost_pipe;
use super::members::{self, Mark, Members};
use super::memory_file::memory_file;
use super::trampoline::{self, Ties};
use crate::exit::Failure;
use bytes::Bytes;
use docent::Fence;
use rustix::process::Pid;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Variables that tell a command what it runs under. Each is set only if it applies.
pub(crate) const OWN_VARIABLES: [&str; 7] = [
    "DOCENT_DELIVERIES",
    "DOCENT_FENCE",
    "DOCENT_ITEM",
    lost_pipe::VARIABLE,
    "DOCENT_PATH",
    members::VARIABLE,
    "DOCENT_VERSION",
];

/// Command to run without a shell: its program, arguments and additional variables.
#[derive(Debug, Clone)]
pub(crate) struct ChildCommand {
    words: Vec<OsString>,
    variables: Vec<(String, String)>,
    stdin: Stdin,
    /// True if the command's output is discarded.
    is_quiet: bool,
}

/// Standard input of a command.
#[derive(Debug, Clone)]
enum Stdin {
    /// Inherited from this process.
    Inherited,
    /// These bytes.
    Data(Bytes),
    /// Empty.
    Empty,
}

impl ChildCommand {
    /// Creates a command from these words, the program first. Returns `None` if there are no words.
    pub(crate) fn new(words: &[OsString]) -> Option<Self> {
        (!words.is_empty()).then(|| Self {
            words: words.to_vec(),
            variables: Vec::new(),
            stdin: Stdin::Inherited,
            is_quiet: false,
        })
    }

    /// Sets a variable in the command's environment.
    pub(crate) fn variable(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    /// Sets the variables for the path that the command runs under and, if there is one, the fence.
    pub(crate) fn under(self, path: &str, fence: Option<Fence>) -> Self {
        let command = self.variable("DOCENT_PATH", path);
        match fence {
            Some(fence) => command.variable("DOCENT_FENCE", fence.to_string()),
            None => command,
        }
    }

    /// Passes these bytes as standard input. They are stored in a file in memory, so a command that does not
    /// read them blocks nothing.
    pub(crate) fn with_input(mut self, data: Bytes) -> Self {
        self.stdin = Stdin::Data(data);
        self
    }

    /// Gives the command an empty input and discards its output.
    pub(crate) fn without_output(self) -> Self {
        Self { stdin: Stdin::Empty, is_quiet: true, ..self }
    }

    /// Returns the name of the program, for messages.
    pub(crate) fn name(&self) -> String {
        self.words.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// Starts the command. On Linux, the kernel kills it when the calling thread ends, so this must be the
    /// main thread. `members` are those of its group.
    ///
    /// # Errors
    /// `NotRunnable` if no process can be created. A program that cannot be run ends with 126 or 127.
    pub(super) fn spawn(
        &self,
        ties: Ties,
        mark: Option<&Mark>,
        members: impl FnOnce(Pid) -> Members,
    ) -> Result<Group, Failure> {
        let mut command = Command::new(trampoline::program());
        command.arg0("docent").args(ties.arguments()).args(&self.words).process_group(0);
        // The variables of an outer docent are about another path. Its mark stays unless this command gets
        // its own, because the command is part of the outer one.
        for name in OWN_VARIABLES.into_iter().filter(|name| mark.is_some() || *name != members::VARIABLE) {
            command.env_remove(name);
        }
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.envs(mark.map(|mark| (members::VARIABLE, &mark.value)));
        let not_runnable = |error| Failure::not_runnable(format!("cannot run {:?}: {error}", self.name()));
        match &self.stdin {
            Stdin::Inherited => {}
            Stdin::Data(data) => drop(command.stdin(file_with(data).map_err(not_runnable)?)),
            Stdin::Empty => drop(command.stdin(trampoline::null().map_err(not_runnable)?)),
        }
        if self.is_quiet {
            let null = || trampoline::null().map_err(not_runnable);
            command.stdout(null()?).stderr(null()?);
        }
        trampoline::spawn(&mut command).map(|child| Group::new(child, members)).map_err(not_runnable)
    }
}

/// Creates a file in memory that contains `data`, positioned at its start.
fn file_with(data: &[u8]) -> io::Result<File> {
    let mut file = memory_file()?;
    file.write_all(data)?;
    file.rewind()?;
    Ok(file)
}
