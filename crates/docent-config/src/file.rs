use crate::Revision;
use bytes::Bytes;
use docent_core::planted;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

/// Local file with the last valid value. Reading and writing block.
#[derive(Clone)]
pub(crate) struct LocalFile {
    file: PathBuf,
    /// Path of the file's node as the servers know it, with chroot and namespace.
    node: String,
    saving: Arc<Mutex<Saving>>,
}

/// State of the writer. One value is written at a time, even if a new subscriber replaces an earlier one.
#[derive(Default)]
struct Saving {
    next: Option<Record>,
    under_way: bool,
}

/// Content of a `LocalFile`.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) revision: Revision,
    pub(crate) data: Bytes,
}

/// First line of the file, followed by the data.
#[derive(Serialize, Deserialize)]
struct Header {
    docent_snapshot: u32,
    /// Path as the servers know it, so that a file of another chroot or namespace is detected. The servers
    /// are not recorded, because their names may change.
    node: String,
    czxid: i64,
    mzxid: i64,
    version: i32,
    modified_ms: u64,
    length: usize,
}

/// Current format. Files of format 1 did not record the chroot and namespace of their node.
const FORMAT: u32 = 2;

/// The part of the first line that all formats share.
#[derive(Deserialize)]
struct FormatOnly {
    docent_snapshot: u32,
}

/// Maximum size in bytes. A larger file was not written by Docent.
const LARGEST: u64 = 64 * 1024 * 1024;

impl LocalFile {
    pub(crate) fn new(file: &Path, node: String) -> Self {
        Self { file: file.to_owned(), node, saving: Arc::default() }
    }

    fn saving(&self) -> MutexGuard<'_, Saving> {
        self.saving.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Saves a value in the background. If values follow each other quickly, only the last one is certain to
    /// be saved. Needs a runtime.
    pub(crate) fn save_soon(&self, record: Record) {
        let mut saving = self.saving();
        saving.next = Some(record);
        if !std::mem::replace(&mut saving.under_way, true) {
            let file = self.clone();
            tokio::task::spawn_blocking(move || {
                while let Some(next) = file.next() {
                    file.save(&next);
                }
            });
        }
    }

    fn next(&self) -> Option<Record> {
        let mut saving = self.saving();
        let next = saving.next.take();
        saving.under_way = next.is_some();
        next
    }

    /// Returns the saved record if it is complete. A file that is not a snapshot is reported and ignored.
    pub(crate) fn load(&self) -> Option<Record> {
        if let Err(error) = self.remove_stale_files() {
            // Event: The folder of a snapshot file could not be searched for abandoned temporary files.
            // Without client: the file belongs to the process.
            tracing::debug!(target: "docent::config", file = %self.file.display(), %error, "cannot clean up the folder of the snapshot file");
        }
        match self.try_load() {
            Ok(record) => Some(record),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                // Event: A snapshot file exists but was ignored: it is damaged, belongs to another node, or
                // other users may change it.
                // Action: Check the owner and the mode of the file and its folder, and that the path belongs
                // to this configuration. The next valid value replaces the file.
                // Without client: the file belongs to the process.
                tracing::warn!(target: "docent::config", file = %self.file.display(), %error, "cannot use the snapshot file; continuing without it");
                None
            }
        }
    }

    fn try_load(&self) -> io::Result<Record> {
        // Opening a pipe would block until its other end is opened.
        if !fs::metadata(&self.file)?.is_file() {
            return Err(invalid("not a regular file"));
        }
        let file = File::open(&self.file)?;
        check(&file)?;
        let mut all = Vec::new();
        file.take(LARGEST + 1).read_to_end(&mut all)?;
        if all.len() as u64 > LARGEST {
            return Err(invalid("too large"));
        }
        parse(&Bytes::from(all), &self.node)
    }

    /// Replaces the old file by a new one. A failure is reported only: the value is in use anyway.
    fn save(&self, record: &Record) {
        if let Err(error) = self.try_save(record) {
            // Event: The latest value could not be saved to the snapshot file. The value itself is in use.
            // Action: Check that the folder exists, is writable and has free space.
            // Without client: the file belongs to the process.
            tracing::warn!(target: "docent::config", file = %self.file.display(), %error, "cannot write the snapshot file; the next start may use an older value");
        }
    }

    fn try_save(&self, record: &Record) -> io::Result<()> {
        let text = self.text(record)?;
        let (new, file) = self.create()?;
        let written = write(file, &text).and_then(|()| fs::rename(&new, &self.file));
        if written.is_err() {
            let _ = fs::remove_file(&new);
        }
        written?;
        sync_folder(&self.file)
    }

    /// Creates a new file next to this one. The file must not exist yet: neither from another process, nor
    /// from an earlier process that died while writing, nor as a planted link.
    fn create(&self) -> io::Result<(PathBuf, File)> {
        const MAX_ATTEMPTS: usize = 1000;
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let name =
            self.file.file_name().ok_or_else(|| invalid("the path has no file name"))?.to_string_lossy();
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        for _ in 0..MAX_ATTEMPTS {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let new = self.file.with_file_name(format!(".{name}.{}-{number}.new", process::id()));
            match options.open(&new) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
                Ok(file) => return Ok((new, file)),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Removes new files that processes left behind when they died, if the files are old.
    fn remove_stale_files(&self) -> io::Result<()> {
        const LONG: Duration = Duration::from_secs(60 * 60);
        let Some(name) = self.file.file_name() else { return Ok(()) };
        for entry in fs::read_dir(folder(&self.file))? {
            let entry = entry?;
            let is_new = is_new_of(&name.to_string_lossy(), &entry.file_name().to_string_lossy());
            if is_new && let Err(error) = remove_older(&entry, LONG) {
                // Another process may have removed the file first.
                if error.kind() != io::ErrorKind::NotFound {
                    // Event: A temporary file that another process left behind more than an hour ago could
                    // not be removed.
                    // Action: Remove the file, or correct the permissions of the folder.
                    // Without client: the file belongs to the process.
                    tracing::debug!(target: "docent::config", file = %entry.path().display(), %error, "cannot remove an abandoned temporary file of a snapshot file");
                }
            }
        }
        Ok(())
    }

    fn text(&self, Record { revision, data }: &Record) -> io::Result<Vec<u8>> {
        let since_epoch = revision.modified.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let header = Header {
            docent_snapshot: FORMAT,
            node: self.node.clone(),
            czxid: revision.czxid,
            mzxid: revision.mzxid,
            version: revision.version,
            modified_ms: u64::try_from(since_epoch.as_millis()).unwrap_or(0),
            length: data.len(),
        };
        let mut text = serde_json::to_vec(&header)?;
        text.push(b'\n');
        text.extend_from_slice(data);
        Ok(text)
    }
}

fn invalid(problem: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem.into())
}

fn parse(all: &Bytes, node: &str) -> io::Result<Record> {
    let end =
        all.iter().position(|byte| *byte == b'\n').ok_or_else(|| invalid("the first line is missing"))?;
    // The faulty line may be the value itself, which may be secret, so the error does not repeat it.
    let foreign = |_| invalid("the first line is not that of a snapshot");
    let FormatOnly { docent_snapshot } = serde_json::from_slice(&all[..end]).map_err(foreign)?;
    if docent_snapshot != FORMAT {
        return Err(invalid(format!("format {docent_snapshot} instead of {FORMAT}")));
    }
    let header: Header = serde_json::from_slice(&all[..end]).map_err(foreign)?;
    if header.node != node && !planted!(SnapshotOfAnyNode) {
        return Err(invalid(format!("the snapshot is of {:?}, not of {node:?}", header.node)));
    }
    let data = all.slice(end + 1..);
    if data.len() != header.length {
        return Err(invalid(format!("incomplete: {} bytes of {}", data.len(), header.length)));
    }
    let modified = SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(header.modified_ms));
    let modified = modified.ok_or_else(|| invalid("the time is out of range"))?;
    let Header { czxid, mzxid, version, .. } = header;
    Ok(Record { revision: Revision { czxid, mzxid, version, modified }, data })
}

/// Returns true if `other` is the name of a temporary file for `name`.
fn is_new_of(name: &str, other: &str) -> bool {
    let rest = other.strip_prefix('.').and_then(|rest| rest.strip_prefix(name)?.strip_prefix('.'));
    let numbers = rest.and_then(|rest| rest.strip_suffix(".new")?.split_once('-'));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    numbers.is_some_and(|(process, number)| is_number(process) && is_number(number))
}

fn remove_older(entry: &fs::DirEntry, than: Duration) -> io::Result<()> {
    if entry.metadata()?.modified()?.elapsed().is_ok_and(|age| age > than) {
        fs::remove_file(entry.path())?;
    }
    Ok(())
}

fn folder(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn write(mut file: File, text: &[u8]) -> io::Result<()> {
    file.write_all(text)?;
    file.sync_all()
}

/// A file that other users own or may write to cannot be trusted.
#[cfg(unix)]
fn check(file: &File) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(invalid("not a regular file"));
    }
    let user = rustix::process::geteuid().as_raw();
    write_access_problem(metadata.uid(), metadata.mode(), user)
        .map_or(Ok(()), |problem| Err(invalid(problem)))
}

/// Returns why other users can change a file of this owner and mode; `user` is the user of this process. Root
/// is trusted.
#[cfg(unix)]
fn write_access_problem(owner: u32, mode: u32, user: u32) -> Option<String> {
    const ROOT: u32 = 0;
    const GROUP_OR_OTHERS_WRITE: u32 = 0o022;
    if owner != user && owner != ROOT {
        return Some(format!("the file belongs to user {owner}, but must belong to user {user} or root"));
    }
    (mode & GROUP_OR_OTHERS_WRITE != 0)
        .then(|| format!("other users may write to the file (mode {:o})", mode & 0o777))
}

#[cfg(not(unix))]
fn check(file: &File) -> io::Result<()> {
    if file.metadata()?.is_file() { Ok(()) } else { Err(invalid("not a regular file")) }
}

/// Makes the new name durable, too.
#[cfg(unix)]
fn sync_folder(file: &Path) -> io::Result<()> {
    File::open(folder(file))?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_file: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(data: &'static str) -> Record {
        let modified = SystemTime::UNIX_EPOCH + Duration::from_millis(1_700_000_000_123);
        let revision = Revision { czxid: 3, mzxid: 9, version: 2, modified };
        Record { revision, data: Bytes::from_static(data.as_bytes()) }
    }

    fn local(folder: &tempfile::TempDir) -> LocalFile {
        LocalFile::new(&folder.path().join("limits.snapshot"), "/shop/limits".to_owned())
    }

    #[test]
    fn a_saved_value_is_loaded_and_replaced_by_a_new_one() {
        let folder = tempfile::tempdir().unwrap();
        let file = local(&folder);
        assert!(file.load().is_none());
        for data in ["{\n}", "", "{\"a\":1}"] {
            file.save(&record(data));
            assert!(file.load() == Some(record(data)));
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no other file may remain");
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_may_access_the_file() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let file = local(&folder);
        file.save(&record("1"));
        let mode = |file: &LocalFile| fs::metadata(&file.file).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&file), 0o600);
        fs::set_permissions(&file.file, fs::Permissions::from_mode(0o620)).unwrap();
        let error = file.try_load().err().unwrap().to_string();
        assert_eq!(error, "other users may write to the file (mode 620)");
        file.save(&record("2"));
        assert!(file.load().is_some() && mode(&file) == 0o600);
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_another_user_owns_or_may_write_is_rejected() {
        assert_eq!(write_access_problem(7, 0o600, 7), None);
        assert_eq!(write_access_problem(0, 0o644, 7), None);
        let belongs = "the file belongs to user 8, but must belong to user 7 or root";
        assert_eq!(write_access_problem(8, 0o600, 7).as_deref(), Some(belongs));
        assert!(write_access_problem(8, 0o600, 0).is_some() && write_access_problem(0, 0o602, 7).is_some());
    }

    #[test]
    fn concurrent_saves_leave_one_complete_file() {
        let folder = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for data in ["one", "another"] {
                let file = local(&folder);
                scope.spawn(move || (0..100).for_each(|_| file.try_save(&record(data)).unwrap()));
            }
            let file = local(&folder);
            scope.spawn(move || {
                for _ in 0..100 {
                    let whole = |found: Record| found == record("one") || found == record("another");
                    assert!(
                        file.try_load().map_or_else(|error| error.kind() == io::ErrorKind::NotFound, whole)
                    );
                }
            });
        });
        assert!(local(&folder).load().is_some());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no other file may remain");
    }

    #[test]
    fn existing_temporary_files_are_neither_followed_nor_deleted_early() {
        let folder = tempfile::tempdir().unwrap();
        let file = local(&folder);
        let (first, _) = file.create().unwrap();
        let number: u64 =
            first.to_str().unwrap().rsplit_once('-').unwrap().1.trim_end_matches(".new").parse().unwrap();
        let name =
            |number: u64| folder.path().join(format!(".limits.snapshot.{}-{number}.new", process::id()));
        // Other tests advance the number, too.
        (number + 1..number + 100).for_each(|number| fs::write(name(number), "theirs").unwrap());
        file.try_save(&record("1")).unwrap();
        assert!(fs::read_to_string(name(number + 50)).unwrap() == "theirs" && file.load().is_some());
        let old = SystemTime::now() - Duration::from_secs(2 * 60 * 60);
        File::open(name(number + 50)).unwrap().set_modified(old).unwrap();
        fs::write(folder.path().join(".limits.snapshot.mine.new"), "").unwrap();
        File::open(folder.path().join(".limits.snapshot.mine.new")).unwrap().set_modified(old).unwrap();
        file.load();
        assert!(!name(number + 50).exists() && name(number + 51).exists());
        assert!(
            folder.path().join(".limits.snapshot.mine.new").exists(),
            "the file may belong to another program"
        );
    }

    #[cfg(unix)]
    #[test]
    fn an_entry_that_cannot_be_removed_does_not_block_the_removal_of_others() {
        let folder = tempfile::tempdir().unwrap();
        let old = SystemTime::now() - Duration::from_secs(2 * 60 * 60);
        let name = |number: u32| folder.path().join(format!(".limits.snapshot.1-{number}.new"));
        // In any order of listing, a file that cannot be removed precedes one that can.
        for number in 0..40 {
            if number % 2 == 0 {
                fs::create_dir(name(number)).unwrap();
            } else {
                fs::write(name(number), "").unwrap();
            }
            File::open(name(number)).unwrap().set_modified(old).unwrap();
        }
        local(&folder).load();
        let remaining = (0..40).filter(|number| name(*number).exists());
        assert!(remaining.eq((0..40).step_by(2)));
    }

    #[test]
    fn an_incomplete_snapshot_or_one_of_another_path_is_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let file = local(&folder);
        let whole = file.text(&record("{}")).unwrap();
        let other = LocalFile { node: "/staging/limits".into(), ..file.clone() };
        let text = String::from_utf8(whole.clone()).unwrap();
        for bad in [
            Vec::new(),
            b"\n".to_vec(),
            b"{}\n{}".to_vec(),
            vec![0xff; 100],
            whole[..whole.len() - 1].to_vec(),
            [&whole[..], b" "].concat(),
            other.text(&record("{}")).unwrap(),
            text.replace("\"docent_snapshot\":2", "\"docent_snapshot\":3").into_bytes(),
            text.replace("1700000000123", "-1").into_bytes(),
        ] {
            fs::write(&file.file, &bad).unwrap();
            assert!(file.load().is_none(), "{}", String::from_utf8_lossy(&bad));
            fs::remove_file(&file.file).unwrap();
        }
        // The error names both paths, or both formats.
        let earlier = br#"{"docent_snapshot":1,"path":"/limits","czxid":3,"mzxid":9,"version":2,"modified_ms":0,"length":2}"#;
        for (bad, why) in [
            (
                other.text(&record("{}")).unwrap(),
                r#"the snapshot is of "/staging/limits", not of "/shop/limits""#,
            ),
            ([&earlier[..], b"\n{}"].concat(), "format 1 instead of 2"),
        ] {
            fs::write(&file.file, bad).unwrap();
            assert_eq!(file.try_load().err().unwrap().to_string(), why);
            fs::remove_file(&file.file).unwrap();
        }
        fs::create_dir(&file.file).unwrap();
        assert!(file.load().is_none());
        file.save(&record("{}"));
    }
}
