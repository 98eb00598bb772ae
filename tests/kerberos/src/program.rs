use crate::realm::PATIENCE;
use std::path::Path;
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

/// A client in its own process. It is killed when this value is dropped.
pub struct Program {
    _process: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Program {
    /// Starts the program `kerberos_client` of this package.
    pub fn start(program: &Path, environment: &[(&str, String)]) -> Self {
        let mut command = Command::new(program);
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        let mut process =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
        let (input, output) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        Self { _process: process, input, output: BufReader::new(output).lines() }
    }

    /// Sends a line, and returns the client's answer.
    pub async fn ask(&mut self, line: &str) -> String {
        self.input.write_all(format!("{line}\n").as_bytes()).await.unwrap();
        let answer = timeout(PATIENCE, self.output.next_line()).await;
        let answer = answer.unwrap_or_else(|_| panic!("no answer to {line:?} within {PATIENCE:?}"));
        answer.unwrap().unwrap_or_else(|| panic!("the client ended instead of answering {line:?}"))
    }
}
