//! A real Chromium, for the tests and the bench of pages.

use rustix::process::{Pid, Signal, kill_process_group};
use std::io::{self, BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::{fs, thread};

/// The browser, as Debian installs it.
pub const PROGRAM: &str = "/usr/bin/chromium";

/// Switches of a browser without a screen, also in a container.
pub const SWITCHES: [&str; 5] =
    ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--lang=en"];

/// How to install the browser and its driver.
pub const MISSING: &str = "install chromium, chromium-driver and fonts-dejavu-core";

const DRIVER: &str = "/usr/bin/chromedriver";

/// Maximum number of attempts to start a chromedriver.
const ATTEMPTS: usize = 5;

/// Returns true if the browser and its driver are installed.
pub fn is_installed() -> bool {
    [PROGRAM, DRIVER].iter().all(|program| Path::new(program).exists())
}

/// Returns the running processes of a process group.
pub fn processes(group: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
    let processes = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    processes.filter(|process| running_group(*process) == Some(group)).collect()
}

/// Returns the group of a process, or `None` if it has exited.
fn running_group(process: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // After the name, in parentheses: state, parent, group.
    let mut fields = stat.rsplit(')').next()?.split_whitespace();
    let is_running = fields.next()? != "Z";
    fields.nth(1)?.parse().ok().filter(|_| is_running)
}

/// A chromedriver on a free port of loopback, in a process group that its browsers belong to.
///
/// # On drop
///
/// All processes of the group are killed.
#[derive(Debug)]
pub struct Driver {
    process: Child,
    port: u16,
}

impl Driver {
    /// Starts the process and waits until it listens.
    ///
    /// # Errors
    ///
    /// Fails if the program is missing, naming what to install, or if the process does not listen.
    pub fn start() -> io::Result<Self> {
        // It takes a free port of IPv4, and exits if the same port of IPv6 is in use.
        for _ in 0..ATTEMPTS {
            if let Some(driver) = Self::try_start()? {
                return Ok(driver);
            }
        }
        Err(io::Error::other(format!("{DRIVER} does not report its port")))
    }

    fn try_start() -> io::Result<Option<Self>> {
        let mut command = Command::new(DRIVER);
        command.arg("--port=0").process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let process = command.spawn().map_err(|error| {
            io::Error::new(error.kind(), format!("cannot run {DRIVER} ({error}): {MISSING}"))
        })?;
        // Without a port, the process is killed and reaped.
        let mut driver = Self { process, port: 0 };
        let output = driver.process.stdout.take().expect("the output is piped");
        let mut lines = BufReader::new(output).lines();
        let Some(port) = lines.find_map(|line| port(&line.ok()?)) else {
            return Ok(None);
        };
        driver.port = port;
        // A pipe that nothing reads would block the process.
        thread::spawn(move || lines.for_each(drop));
        Ok(Some(driver))
    }

    /// Address for WebDriver clients.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Identifier of the process and of its group.
    pub fn id(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // The process may have exited.
        let _ = kill_process_group(Pid::from_child(&self.process), Signal::KILL);
        let _ = self.process.wait();
    }
}

fn port(line: &str) -> Option<u16> {
    line.strip_prefix("ChromeDriver was started successfully on port ")?.trim_end_matches('.').parse().ok()
}
