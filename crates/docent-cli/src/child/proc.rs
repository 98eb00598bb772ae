//! The `/proc` folder of Linux, which lists processes.

use rustix::io::Errno;
use rustix::process::{Pid, Signal, getpid, test_kill_process};
use std::fs;
use std::io;
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};

/// Process as `/proc` shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Process {
    pub(super) number: i32,
    pub(super) parent: i32,
    pub(super) group: i32,
    /// False if the process has ended, with all its threads, but was not collected.
    pub(super) is_running: bool,
    /// Time of the start, in ticks since the system has started.
    pub(super) started: u64,
}

impl Process {
    /// Parses the line of `/proc/NUMBER/stat`.
    fn parse(number: i32, stat: &str) -> Option<Self> {
        // After the program's name, which is in parentheses and may contain any characters, come the state of
        // the first thread, parent and group. The number of threads and the start follow later.
        let mut fields = stat.rsplit_once(") ")?.1.split(' ');
        let state = fields.next()?;
        let (parent, group) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        let threads: u32 = fields.nth(14)?.parse().ok()?;
        let started = fields.nth(1)?.parse().ok()?;
        // The first thread may have ended before the others.
        let is_running = state != "X" && (state != "Z" || threads > 1);
        Some(Self { number, parent, group, is_running, started })
    }

    /// Returns a process, or `None` if it has ended.
    pub(super) fn read(number: i32) -> io::Result<Option<Self>> {
        let stat = if_known(fs::read(format!("/proc/{number}/stat")))?;
        // The name may be invalid UTF-8, because the system cuts it.
        Ok(stat.and_then(|stat| Self::parse(number, &String::from_utf8_lossy(&stat))))
    }

    /// Returns a running process that [`each_process`] did not show. 0 is the number of a process of another
    /// namespace.
    pub(super) fn unlisted(number: i32) -> Option<Self> {
        let has_ended = Pid::from_raw(number).is_some_and(|it| test_kill_process(it) == Err(Errno::SRCH));
        (!has_ended).then_some(Self { number, parent: 0, group: 0, is_running: true, started: 0 })
    }

    /// Returns the name of the process, for messages.
    pub(super) fn name(self) -> String {
        let name = fs::read(format!("/proc/{}/comm", self.number)).unwrap_or_default();
        String::from_utf8_lossy(&name).trim_end().to_owned()
    }

    /// Returns true if the process was started with this variable, written `NAME=value`. False if this
    /// process may not know.
    ///
    /// # Errors
    /// Same as [`each_process`].
    pub(super) fn has_variable(self, variable: &str) -> io::Result<bool> {
        let folder = PathBuf::from(format!("/proc/{}", self.number));
        let read = |folder: &Path| if_known(fs::read(folder.join("environ"))).map(Option::unwrap_or_default);
        let mut environment = read(&folder)?;
        if environment.is_empty() {
            // The first thread may have ended, and has no environment then.
            let threads = if_known(fs::read_dir(folder.join("task")))?;
            for thread in threads.into_iter().flatten().flatten() {
                environment = read(&thread.path())?;
                if !environment.is_empty() {
                    break;
                }
            }
        }
        Ok(environment.split(|byte| *byte == 0).any(|entry| entry == variable.as_bytes()))
    }

    /// Sends a signal, but not to a later process with the same number. Errors are ignored: the process may
    /// have ended, or belong to another user.
    #[cfg(target_os = "linux")]
    pub(super) fn signal(self, signal: Signal) {
        use rustix::process::{PidfdFlags, kill_process, pidfd_open, pidfd_send_signal};
        let Some(number) = Pid::from_raw(self.number) else { return };
        let descriptor = pidfd_open(number, PidfdFlags::empty());
        match Self::read(self.number) {
            Ok(Some(now)) if now.started == self.started => {}
            _ => return,
        }
        let _ = match descriptor {
            Ok(descriptor) => pidfd_send_signal(descriptor, signal),
            Err(Errno::SRCH) => Ok(()),
            // Before Linux 5.3, or without a free descriptor.
            Err(_) => kill_process(number, signal),
        };
    }

    /// No process is ever [listed](each_process).
    #[cfg(not(target_os = "linux"))]
    pub(super) fn signal(self, _: Signal) {}
}

/// Calls `act` for each process, the newest first: a process that was just created may end soon. There are
/// none on systems other than Linux, and if `/proc` belongs to [another namespace](is_own_namespace).
///
/// # Errors
/// The error if this process lacks descriptors or memory to read the list, which is then unknown, and that of
/// `act`.
pub(super) fn each_process(mut act: impl FnMut(Process) -> io::Result<()>) -> io::Result<()> {
    if !is_own_namespace() {
        return Ok(());
    }
    let entries = if_known(fs::read_dir("/proc"))?;
    let number = |entry: io::Result<fs::DirEntry>| entry.ok()?.file_name().to_str()?.parse().ok();
    let mut numbers: Vec<i32> = entries.into_iter().flatten().filter_map(number).collect();
    // Numbers are given out in ascending order, until the last one.
    numbers.sort_unstable_by(|a, b| b.cmp(a));
    numbers.into_iter().try_for_each(|number| Process::read(number)?.map_or(Ok(()), &mut act))
}

/// Returns what was read, or `None` if a file does not exist or may not be read, as when its process has
/// ended.
///
/// # Errors
/// The error if this process lacks descriptors or memory: whether the file exists is then unknown.
pub(super) fn if_known<T>(read: io::Result<T>) -> io::Result<Option<T>> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(error) => match Errno::from_io_error(&error) {
            Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM) => Err(error),
            _ => Ok(None),
        },
    }
}

/// Returns true if `/proc` numbers processes as this process does. A namespace that was created without its
/// own `/proc` shows the processes of another namespace, where docent's numbers name unrelated processes.
pub(super) fn is_own_namespace() -> bool {
    names(fs::read_link("/proc/self").ok().as_deref(), getpid())
}

/// Returns the path of a descriptor of another process, if there can be one.
pub(super) fn descriptor(process: i32, number: RawFd) -> Option<PathBuf> {
    is_own_namespace().then(|| format!("/proc/{process}/fd/{number}").into())
}

/// Returns true if the link to the reading process names this process.
fn names(link: Option<&Path>, own: Pid) -> bool {
    link.is_some_and(|link| link == Path::new(&own.as_raw_nonzero().to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_of_another_pid_namespace_are_ignored() {
        let own = Pid::from_raw(12).unwrap();
        assert!(names(Some(Path::new("12")), own));
        assert!(!names(Some(Path::new("31012")), own), "the process has another number in that namespace");
        assert!(!names(None, own), "the process is unknown in that namespace, or the folder does not exist");
        #[cfg(target_os = "linux")]
        assert!(is_own_namespace() && descriptor(1, 3).is_some_and(|path| path == Path::new("/proc/1/fd/3")));
    }

    #[test]
    fn fields_are_parsed_after_a_name_with_any_characters() {
        let rest = "3 45 6 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 789 0";
        let process = Process { number: 12, parent: 3, group: 45, is_running: true, started: 789 };
        assert_eq!(Process::parse(12, &format!("12 (a) b) S {rest}")), Some(process));
        let ended = Process { is_running: false, ..process };
        assert_eq!(Process::parse(12, &format!("12 (ended) Z {rest}")), Some(ended));
        assert_eq!(Process::parse(12, ""), None);
    }

    #[test]
    fn a_process_runs_until_its_last_thread_has_ended() {
        let process = |state, threads| {
            let line = format!("12 (a) {state} 3 45 6 0 -1 0 0 0 0 0 0 0 0 0 20 0 {threads} 0 789 0");
            Process::parse(12, &line).unwrap().is_running
        };
        assert!(process("S", 1) && process("Z", 2));
        assert!(!process("Z", 1) && !process("Z", 0) && !process("X", 0));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_is_listed() {
        let own = getpid().as_raw_nonzero().get();
        let mut processes = Vec::new();
        each_process(|process| {
            processes.push(process);
            Ok(())
        })
        .unwrap();
        assert!(processes.is_sorted_by_key(|process| std::cmp::Reverse(process.number)));
        let listed = processes.into_iter().find(|process| process.number == own).unwrap();
        assert!(listed.is_running && listed.parent == nix::unistd::getppid().as_raw() && listed.started > 0);
        let path = format!("PATH={}", std::env::var("PATH").unwrap());
        assert!(listed.has_variable(&path).unwrap() && !listed.has_variable("PATH=").unwrap());
    }

    #[test]
    fn a_missing_descriptor_does_not_mean_that_a_process_has_ended() {
        let failed = |errno: Errno| if_known::<()>(Err(errno.into())).map_err(|error| error.kind());
        for ended in [Errno::NOENT, Errno::SRCH, Errno::ACCESS, Errno::PERM] {
            assert_eq!(failed(ended), Ok(None));
        }
        for unknown in [Errno::MFILE, Errno::NFILE, Errno::NOMEM] {
            assert!(failed(unknown).is_err());
        }
    }
}
