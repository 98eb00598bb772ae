//! The `/proc` folder of Linux, which lists processes.

use rustix::process::{Pid, getpid};
use std::fs;
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};

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
}
