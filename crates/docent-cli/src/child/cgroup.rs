//! Control group of a command, in version 2 of Linux. A process that a member creates is a member, whatever
//! it does to its parent, group, session, user and environment.

use super::group::KILLED;
use super::proc::if_known;
use docent::time::{BootClock, Clock};
use rustix::fs::{Access, FlockOperation, access, flock};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, getpid, kill_process};
use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// Start of the name of each command's folder. A number of docent and a time follow.
const PREFIX: &str = "docent-";

/// File with the numbers of a group's processes. Writing a number moves the process.
const PROCESSES: &str = "cgroup.procs";

/// Interval of attempts to remove a folder whose processes are ending.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Maximum number of further attempts to create a folder that another docent removes.
const MAX_ATTEMPTS: u32 = 4;

/// Control group of a command: a folder in docent's own group. docent and the keeper hold a shared lock on
/// the folder, so that another docent finds [folders](clear_left) that are left.
///
/// # On drop
/// Kills the processes that are left, and removes the folder as soon as they have ended.
#[derive(Debug)]
pub(super) struct Cgroup {
    folder: PathBuf,
    _lock: File,
}

impl Cgroup {
    /// Creates a group in the group of this process. No controller is enabled, so both groups may have
    /// processes.
    ///
    /// # Errors
    /// If there is no such hierarchy, or the group is not delegated to this user.
    pub(super) fn create() -> io::Result<Self> {
        let parent = own_folder()?;
        // The command is moved from this group.
        access(parent.join(PROCESSES), Access::WRITE_OK)?;
        let group = Self::create_in(&parent)?;
        match fs::read_to_string(group.folder.join("cgroup.type")) {
            // Within a threaded group, for example.
            Ok(kind) if kind.trim() != "domain" => {
                Err(io::Error::other(format!("a group in {} is {:?}", parent.display(), kind.trim())))
            }
            _ => Ok(group),
        }
    }

    fn create_in(parent: &Path) -> io::Result<Self> {
        let mut attempts = 0..MAX_ATTEMPTS;
        loop {
            let name = format!("{PREFIX}{}-{}", getpid().as_raw_nonzero(), BootClock.now().as_nanos());
            let folder = parent.join(name);
            fs::create_dir(&folder)?;
            match Self::open(folder.clone()) {
                // Another docent has taken the folder for one that was left.
                Err(_) if attempts.next().is_some() => drop(fs::remove_dir(folder)),
                done => return done,
            }
        }
    }

    /// Opens the group in a folder that another process has created.
    ///
    /// # Errors
    /// If the folder does not exist, or another docent is removing it.
    pub(super) fn open(folder: PathBuf) -> io::Result<Self> {
        let lock = File::open(&folder)?;
        flock(&lock, FlockOperation::NonBlockingLockShared)?;
        // It may have been removed between the two steps.
        match fs::metadata(&folder)?.ino() == lock.metadata()?.ino() {
            true => Ok(Self { folder, _lock: lock }),
            false => Err(Errno::NOENT.into()),
        }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the numbers of the running processes. A number of 0 is that of a process of another namespace.
    ///
    /// # Errors
    /// The error if this process lacks descriptors or memory to read them.
    pub(super) fn processes(&self) -> io::Result<HashSet<i32>> {
        processes(&self.folder)
    }

    /// Kills all processes, also those that are being created.
    pub(super) fn kill(&self) {
        kill(&self.folder);
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        remove(&self.folder);
    }
}

/// Moves this process into the group in a folder.
///
/// # Errors
/// If the group does not exist or accepts no processes.
pub(super) fn join(folder: &Path) -> io::Result<()> {
    fs::write(folder.join(PROCESSES), "0")
}

/// Removes the groups that docents have left which were killed together with their keepers. Kills the
/// processes in them.
pub(super) fn clear_left() {
    if let Ok(parent) = own_folder() {
        clear_left_in(&parent);
    }
}

fn clear_left_in(parent: &Path) {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX)) {
        // The lock lasts until the folder is removed, so no process opens the group meanwhile.
        if let Ok(lock) = File::open(entry.path())
            && flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok()
        {
            remove(&entry.path());
        }
    }
}

/// Kills the processes of a group, and removes its folder when they have ended. Gives up if they do not end.
fn remove(folder: &Path) {
    let begun = Instant::now();
    loop {
        let Ok(mut folders) = with_descendants(folder) else { return };
        folders.reverse();
        // A folder can be removed when it has no running processes and no folders.
        let removed = folders.iter().try_for_each(|folder| match fs::remove_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        });
        match removed {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy && begun.elapsed() < KILLED => {
                kill(folder);
                thread::sleep(POLL_INTERVAL);
            }
            _ => return,
        }
    }
}

fn kill(folder: &Path) {
    if fs::write(folder.join("cgroup.kill"), "1").is_err() {
        kill_each(folder);
    }
}

/// Kills the processes of a group one by one, as before Linux 5.14. They are frozen, so that they create no
/// others meanwhile; SIGKILL also ends a frozen process.
fn kill_each(folder: &Path) {
    let freeze = |frozen| drop(fs::write(folder.join("cgroup.freeze"), frozen));
    freeze("1");
    let begun = Instant::now();
    while begun.elapsed() < KILLED {
        let Ok(processes) = processes(folder) else { break };
        let processes = processes.into_iter().filter_map(Pid::from_raw);
        let killed = processes.filter(|process| kill_process(*process, Signal::KILL).is_ok()).count();
        if killed == 0 {
            break;
        }
        thread::sleep(POLL_INTERVAL);
    }
    freeze("0");
}

/// Returns a group's folder and those below it, each after its parent.
fn with_descendants(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut folders = vec![folder.to_owned()];
    let mut next = 0;
    while let Some(folder) = folders.get(next) {
        let entries = if_known(fs::read_dir(folder))?;
        let below: Vec<_> = entries
            .into_iter()
            .flatten()
            .flatten()
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .map(|entry| entry.path())
            .collect();
        folders.extend(below);
        next += 1;
    }
    Ok(folders)
}

/// Returns the numbers of the processes of a group and of those below it.
fn processes(folder: &Path) -> io::Result<HashSet<i32>> {
    let mut found = HashSet::new();
    for folder in with_descendants(folder)? {
        found.extend(numbers(&folder)?);
    }
    Ok(found)
}

fn numbers(folder: &Path) -> io::Result<Vec<i32>> {
    let processes = if_known(fs::read_to_string(folder.join(PROCESSES)))?.unwrap_or_default();
    Ok(processes.lines().filter_map(|line| line.parse().ok()).collect())
}

/// Returns the folder of this process's group.
fn own_folder() -> io::Result<PathBuf> {
    let groups = fs::read_to_string("/proc/self/cgroup")?;
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    let folder = folder_in(&groups, &mounts)
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no hierarchy of version 2 is mounted"))?;
    // The mounted hierarchy may show groups as another namespace does.
    match numbers(&folder)?.contains(&getpid().as_raw_nonzero().get()) {
        true => Ok(folder),
        false => Err(io::Error::other(format!("{} is another group", folder.display()))),
    }
}

/// Finds the folder of a group, from the list of groups and the list of mounts of a process.
fn folder_in(groups: &str, mounts: &str) -> Option<PathBuf> {
    let path = Path::new(groups.lines().find_map(|line| line.strip_prefix("0::"))?);
    mounts.lines().find_map(|line| {
        let (mount, kind) = line.split_once(" - ")?;
        let mut fields = mount.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        let below = path.strip_prefix(root).ok().filter(|_| kind.starts_with("cgroup2 "))?;
        Some(Path::new(point).join(below))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    use std::process::Command;

    #[test]
    fn the_folder_of_a_group_is_below_the_mount_that_shows_it() {
        let old = "26 24 0:23 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n";
        let unified = "30 24 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";
        let part = "31 24 0:26 /a.slice /part rw shared:4 - cgroup2 cgroup rw\n";
        let folder = |groups: &str, mounts: &[&str]| folder_in(groups, &mounts.concat());
        let own = "12:pids:/b\n0::/a.slice/b\n";
        assert_eq!(folder(own, &[old, unified]), Some("/sys/fs/cgroup/a.slice/b".into()));
        assert_eq!(folder(own, &[part]), Some("/part/b".into()));
        assert_eq!(folder("0::/\n", &[part, unified]), Some("/sys/fs/cgroup/".into()));
        assert_eq!(folder("0::/../b\n", &[part]), None, "it is outside of what the mount shows");
        assert_eq!(folder("12:pids:/b\n", &[unified]), None);
        assert_eq!(folder(own, &[old]), None);
    }

    #[test]
    fn processes_are_killed_one_by_one_where_the_kernel_does_not_kill_groups() {
        let folder = tempfile::tempdir().unwrap();
        let below = folder.path().join("below");
        fs::create_dir(&below).unwrap();
        let start = || Command::new("sleep").arg("600").process_group(0).spawn().unwrap();
        let mut sleeping = [start(), start()];
        for (folder, process) in [folder.path(), &below].into_iter().zip(&sleeping) {
            fs::write(folder.join(PROCESSES), format!("{}\n0\n", process.id())).unwrap();
        }
        kill_each(folder.path());
        for process in &mut sleeping {
            assert_eq!(process.wait().unwrap().signal(), Some(9));
        }
        assert_eq!(fs::read_to_string(folder.path().join("cgroup.freeze")).unwrap(), "0");
    }

    #[test]
    fn only_folders_of_docents_that_have_ended_are_removed() {
        let parent = tempfile::tempdir().unwrap();
        let folder = |name: &str| {
            let folder = parent.path().join(name);
            fs::create_dir_all(folder.join("below")).unwrap();
            folder
        };
        let (left, other) = (folder("docent-1-2"), folder("other"));
        let living = Cgroup::open(folder("docent-3-4")).unwrap();
        clear_left_in(parent.path());
        assert!(!left.exists() && other.exists() && living.folder().exists());
        // The keeper has the folder open as well.
        let keeper = Cgroup::open(living.folder().into()).unwrap();
        drop(living);
        assert!(!keeper.folder().exists());
        assert!(Cgroup::open(keeper.folder().into()).is_err());
    }
}
