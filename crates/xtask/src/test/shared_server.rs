use anyhow::{Context, Result, ensure};
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdin, Command, Stdio};

/// Variable by which test binaries learn of it.
pub(super) const VARIABLE: &str = "DOCENT_TEST_SERVER";

/// A real ZooKeeper that all test binaries of a run share.
///
/// # On drop
/// It ends.
#[derive(Debug)]
pub(super) struct SharedServer {
    pub(super) address: String,
    child: Child,
    input: Option<ChildStdin>,
}

impl SharedServer {
    /// Starts it, and waits until it serves.
    pub(super) fn start(command: &mut Command) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot run {command:?}"))?;
        let input = child.stdin.take();
        let output = child.stdout.take().context("the output was not piped")?;
        let mut address = String::new();
        BufReader::new(output).read_line(&mut address)?;
        let server = Self { address: address.trim().to_owned(), child, input };
        ensure!(!server.address.is_empty(), "the shared server did not start");
        Ok(server)
    }
}

impl Drop for SharedServer {
    fn drop(&mut self) {
        // It ends with its input.
        drop(self.input.take());
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started(script: &str) -> Result<SharedServer> {
        SharedServer::start(Command::new("sh").args(["-c", script]))
    }

    #[test]
    fn its_address_is_known_once_it_serves_and_it_ends_with_the_run() {
        let server = started("echo 127.0.0.1:2181; cat").unwrap();
        assert_eq!(server.address, "127.0.0.1:2181");
        drop(server);
    }

    #[test]
    fn a_server_that_does_not_start_is_an_error() {
        assert_eq!(started("exit 1").unwrap_err().to_string(), "the shared server did not start");
    }
}
