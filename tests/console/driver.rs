//! The process that drives the browser.

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

const PROGRAM: &str = "/usr/bin/chromedriver";
const MISSING: &str = "install chromium, chromium-driver and fonts-dejavu-core";

/// Maximum number of attempts to start a chromedriver.
const ATTEMPTS: usize = 5;

/// A chromedriver on a free port of loopback, in a process group that its browsers belong to.
///
/// # On drop
///
/// All processes of the group are killed.
pub(crate) struct Driver {
    process: Child,
    pub(crate) port: u16,
}

impl Driver {
    /// Starts the process and waits until it listens.
    pub(crate) fn start() -> Self {
        // It takes a free port of IPv4, and ends if the same port of IPv6 is in use.
        let started = (0..ATTEMPTS).find_map(|_| Self::try_start());
        started.expect("chromedriver reports its port")
    }

    fn try_start() -> Option<Self> {
        let mut process = Command::new(PROGRAM)
            .arg("--port=0")
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot run {PROGRAM} ({error}): {MISSING}"));
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let port = lines.find_map(|line| port(&line.unwrap()));
        // Without a port, the process is killed and reaped.
        let driver = Self { process, port: port.unwrap_or_default() };
        port?;
        // A pipe that nothing reads would block the process.
        std::thread::spawn(move || lines.for_each(drop));
        Some(driver)
    }

    /// Identifier of the process and of its group.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let group = Pid::from_raw(i32::try_from(self.id()).expect("process identifiers fit"));
        // The process may have exited.
        let _ = killpg(group, Signal::SIGKILL);
        let _ = self.process.wait();
    }
}

fn port(line: &str) -> Option<u16> {
    line.strip_prefix("ChromeDriver was started successfully on port ")?.trim_end_matches('.').parse().ok()
}
