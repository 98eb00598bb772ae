//! Descriptors that docent needs to start.

use crate::exit::Failure;
use rustix::io::{Errno, dup};
use rustix::process::{Resource, getrlimit};
use std::os::fd::OwnedFd;

/// Number of descriptors that every verb needs: those of the runtime, of its signals and of one connection.
const NEEDED: usize = 8;

/// Checks that enough descriptors are free. Otherwise the runtime would panic, or every connection fail.
///
/// # Errors
/// `Other` that names the limit.
pub(crate) fn check() -> Result<(), Failure> {
    let stderr = rustix::stdio::stderr();
    let opened: Result<Vec<OwnedFd>, Errno> = (0..NEEDED).map(|_| dup(stderr)).collect();
    match opened {
        Err(Errno::MFILE) => {
            let limit =
                getrlimit(Resource::Nofile).current.map_or_else(String::new, |limit| format!(" {limit}"));
            Err(Failure::other(format!(
                "cannot start: the limit{limit} of open files is too low, because docent needs at least {NEEDED} besides \
                 those that are already open; raise it with `ulimit -n`"
            )))
        }
        // A closed standard error, or a system without free files, is reported where it matters.
        _ => Ok(()),
    }
}
