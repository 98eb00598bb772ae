use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};

/// Ends the process whose id is in `$1/pid`, then removes the folder `$1`, as soon as its standard input
/// ends: that is when the process at the other end closed it, or died in any way. Removing is tried again,
/// because the process may still write a file while it dies.
const WATCHDOG: &str = r#"
trap '' HUP INT TERM
read -r _
pid=$(cat "$1/pid" 2>/dev/null) && kill -KILL "$pid" 2>/dev/null
for _ in 1 2 3 4 5 6 7 8 9 10; do
    rm -rf "$1" 2>/dev/null && exit
    sleep 0.1
done
"#;

/// Leaves its id in `$0` and becomes the process `$@`: there is no moment at which that runs and its id is
/// not known.
const LAUNCH: &str = r#"echo $$ >"$0" && exec "$@""#;

/// Watchdog that removes a server's folder and process when this value is dropped *or this process ends*, be
/// it killed.
///
/// It is a shell in a process group of its own, so that Ctrl-C in a terminal does not reach it. A
/// parent-death signal would not do: it goes off when the *thread* that spawned the child ends, which in a
/// test is soon, and leaves the folder behind.
#[derive(Debug)]
pub(super) struct Watchdog {
    shell: Child,
    leash: Option<ChildStdin>,
}

impl Watchdog {
    pub(super) fn over(folder: &Path) -> io::Result<Self> {
        let mut shell = Command::new("sh")
            .args(["-c", WATCHDOG, "sh"])
            .arg(folder)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let leash = shell.stdin.take();
        Ok(Self { shell, leash })
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        drop(self.leash.take());
        let _ = self.shell.wait();
    }
}

/// A running server. Killed when dropped.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    pid_file: PathBuf,
}

impl Process {
    /// Runs `program` with its output in `folder/log`.
    pub(super) fn launch(folder: &Path, program: &Path, arguments: &[OsString]) -> io::Result<Self> {
        let pid_file = folder.join("pid");
        let log = File::options().create(true).append(true).open(folder.join("log"))?;
        let child = Command::new("sh")
            .args(["-c", LAUNCH])
            .arg(&pid_file)
            .arg(program)
            .args(arguments)
            .current_dir(folder)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        Ok(Self { child, pid_file })
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Status of its end; `None` while it runs.
    pub(super) fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// Sends it a signal: `STOP` or `CONT`.
    pub(super) fn signal(&self, name: &str) -> io::Result<()> {
        let script = format!("kill -{name} {}", self.id());
        let status = Command::new("sh").args(["-c", &script]).status()?;
        if status.success() { Ok(()) } else { Err(io::Error::other(format!("{script:?} failed: {status}"))) }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_file(&self.pid_file);
    }
}
