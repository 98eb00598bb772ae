use super::group::Group;
use super::lost_pipe;
use super::trampoline::{self, Ties};
use crate::exit::Failure;
use bytes::Bytes;
use docent::Fence;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// Variables that commands get about what they run under, each where it applies.
pub(crate) const OWN_VARIABLES: [&str; 6] = [
    "DOCENT_DELIVERIES",
    "DOCENT_FENCE",
    "DOCENT_ITEM",
    lost_pipe::VARIABLE,
    "DOCENT_PATH",
    "DOCENT_VERSION",
];

/// Command to run: its program and arguments, without a shell, and variables for it.
#[derive(Debug, Clone)]
pub(crate) struct ChildCommand {
    words: Vec<OsString>,
    variables: Vec<(String, String)>,
    stdin: Stdin,
    /// True where nobody is to see its output.
    is_quiet: bool,
}

/// Standard input of a command.
#[derive(Debug, Clone)]
enum Stdin {
    /// The one of this process.
    Ours,
    /// These bytes.
    Data(Bytes),
    /// One with nothing in it.
    Empty,
}

impl ChildCommand {
    /// The command of these words, the program first; `None` without any.
    pub(crate) fn new(words: &[OsString]) -> Option<Self> {
        (!words.is_empty()).then(|| Self {
            words: words.to_vec(),
            variables: Vec::new(),
            stdin: Stdin::Ours,
            is_quiet: false,
        })
    }

    /// Sets a variable in its environment.
    pub(crate) fn variable(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.variables.push((name.into(), value.into()));
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

    /// Gives it these bytes as its standard input. They are in a file without a name: a command that reads
    /// none of them holds nothing up.
    pub(crate) fn with_input(mut self, data: Bytes) -> Self {
        self.stdin = Stdin::Data(data);
        self
    }

    /// Lets it read nothing, and nobody see its output.
    pub(crate) fn in_silence(self) -> Self {
        Self { stdin: Stdin::Empty, is_quiet: true, ..self }
    }

    /// Name of the program, for messages.
    pub(crate) fn name(&self) -> String {
        self.words.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// Starts it. On Linux it is killed when the calling thread ends: this is to be the main thread.
    ///
    /// # Errors
    /// `NotRunnable` when no process can be made. A program that cannot be run ends with 126 or 127.
    pub(super) fn spawn(&self, ties: Ties) -> Result<Group, Failure> {
        let mut command = Command::new(trampoline::program());
        command.arg0("docent").args(ties.arguments()).args(&self.words).process_group(0);
        // What an outer docent has set is about another path.
        for name in OWN_VARIABLES {
            command.env_remove(name);
        }
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        let unmade = |error| Failure::not_runnable(format!("cannot run {:?}: {error}", self.name()));
        match &self.stdin {
            Stdin::Ours => {}
            Stdin::Data(data) => drop(command.stdin(file_with(data).map_err(unmade)?)),
            Stdin::Empty => drop(command.stdin(Stdio::null())),
        }
        if self.is_quiet {
            command.stdout(Stdio::null()).stderr(Stdio::null());
        }
        trampoline::spawn(&mut command).map(Group::new).map_err(unmade)
    }
}

/// A file without a name, with `data`, to be read from its beginning.
fn file_with(data: &[u8]) -> io::Result<File> {
    let mut file = tempfile::tempfile()?;
    file.write_all(data)?;
    file.rewind()?;
    Ok(file)
}
