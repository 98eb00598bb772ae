use anyhow::{Context, Result, ensure};
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, Command, Stdio};

/// Environment variable with the server's address for test binaries.
pub(super) const VARIABLE: &str = "DOCENT_TEST_SERVER";

/// A real ZooKeeper that all test binaries of a run share.
///
/// # On drop
///
/// The server stops.
#[derive(Debug)]
pub(super) struct SharedServer {
    pub(super) address: String,
    child: Child,
    input: Option<ChildStdin>,
}

impl SharedServer {
    /// Starts the server, and waits until it serves.
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

    /// Stops the server. Fails if the server ended earlier, which explains failed tests.
    pub(super) fn stop(self) -> Result<()> {
        let address = &self.address;
        let connected = TcpStream::connect(address);
        connected
            .map(drop)
            .with_context(|| format!("the shared ZooKeeper at {address} ended before the tests"))
    }
}

impl Drop for SharedServer {
    fn drop(&mut self) {
        // The server exits when its input ends.
        drop(self.input.take());
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    fn started(script: &str) -> Result<SharedServer> {
        SharedServer::start(Command::new("sh").args(["-c", script]))
    }

    #[test]
    fn its_address_is_known_once_it_serves_and_it_ends_with_the_run() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let server = started(&format!("echo {address}; cat")).unwrap();
        assert_eq!(server.address, address);
        server.stop().unwrap();
    }

    #[test]
    fn a_server_that_ends_before_the_tests_is_an_error() {
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let error = started(&format!("echo {address}")).unwrap().stop().unwrap_err();
        assert_eq!(error.to_string(), format!("the shared ZooKeeper at {address} ended before the tests"));
    }

    #[test]
    fn a_server_that_does_not_start_is_an_error() {
        assert_eq!(started("exit 1").unwrap_err().to_string(), "the shared server did not start");
    }
}
