use std::fs::File;
use std::io;

/// Creates an empty file in memory, which has no name in any folder.
#[cfg(target_os = "linux")]
pub(super) fn memory_file() -> io::Result<File> {
    use rustix::fs::{MemfdFlags, memfd_create};
    Ok(memfd_create(c"docent", MemfdFlags::CLOEXEC)?.into())
}

/// Creates an empty file without a name.
#[cfg(not(target_os = "linux"))]
pub(super) fn memory_file() -> io::Result<File> {
    tempfile::tempfile()
}
