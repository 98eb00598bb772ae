//! The number of open files of this process, each connection being one of them.

use std::fs;

/// Returns the number of open files; −1 if the system does not report it.
pub(crate) fn open_files() -> i64 {
    let count = fs::read_dir("/proc/self/fd").map(Iterator::count);
    count.ok().and_then(|count| i64::try_from(count).ok()).unwrap_or(-1)
}

/// Returns the maximum number of open files; −1 if the system does not report it.
pub(crate) fn most_files() -> i64 {
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(-1)
}
