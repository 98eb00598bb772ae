use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};

/// Kills the process whose id is in `$1/pid` and removes the folder `$1`, as soon as standard input ends.
/// This happens when the process at the other end closes the pipe or exits in any way. The removal is
/// retried, because the process may still write a file while it dies.
const WATCHDOG: &str = r#"
trap '' HUP INT TERM
read -r _
pid=$(cat "$1/pid" 2>/dev/null) && kill -KILL "$pid" 2>/dev/null
for _ in 1 2 3 4 5 6 7 8 9 10; do
    rm -rf "$1" 2>/dev/null && exit
    sleep 0.1
done
"#;

/// Writes its process id to `$0` and becomes the process `$@`, so that the process never runs without its id
/// being known.
const LAUNCH: &str = r#"echo $$ >"$0" && exec "$@""#;

/// Watchdog that kills a server's process and removes its folder when this value is dropped *or this process
/// ends*, even if it is killed.
///
/// It is a shell in its own process group, so that Ctrl-C in a terminal does not reach it. A parent-death
/// signal would not work: it is sent when the *thread* that spawned the child ends, which in a test is soon,
/// and it does not remove the folder.
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

/// A running server, which is killed when this value is dropped.
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

    /// Returns the exit status; `None` while the process runs.
    pub(super) fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// Sends a signal to the process: `STOP` or `CONT`.
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
