//! The folder `/proc` of Linux, by which processes are looked at.

use rustix::process::{Pid, getpid};
use std::fs;
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};

/// True where `/proc` numbers processes as we do. In a namespace that was made without a `/proc` of its own
/// it shows those of another one: by our numbers it leads to strangers there.
pub(super) fn is_ours() -> bool {
    names(fs::read_link("/proc/self").ok().as_deref(), getpid())
}

/// Path of a descriptor of another process, where there can be one.
pub(super) fn descriptor(process: i32, number: RawFd) -> Option<PathBuf> {
    is_ours().then(|| format!("/proc/{process}/fd/{number}").into())
}

/// True when the link to the process that reads it leads to this one.
fn names(link: Option<&Path>, own: Pid) -> bool {
    link.is_some_and(|link| link == Path::new(&own.as_raw_nonzero().to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_of_another_namespace_are_not_looked_at() {
        let own = Pid::from_raw(12).unwrap();
        assert!(names(Some(Path::new("12")), own));
        assert!(!names(Some(Path::new("31012")), own), "it has another number there");
        assert!(!names(None, own), "it is not known there, or there is no such folder");
        #[cfg(target_os = "linux")]
        assert!(is_ours() && descriptor(1, 3).is_some_and(|path| path == Path::new("/proc/1/fd/3")));
    }
}
