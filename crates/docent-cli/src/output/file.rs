use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

/// Mode of a file that did not exist, before the process's umask is applied.
const NEW: u32 = 0o666;
/// Maximum number of symbolic links to follow, as in Linux.
const LINKS: usize = 40;

/// Replaces the content of a file atomically, so that a reader sees the old content or the new one. Returns
/// false if the file has that content already. With `keeps`, an existing file is left unchanged.
///
/// The file keeps its mode, and its owner if this process may set it. If the path is a symbolic link, the
/// file that it points to is replaced.
///
/// # Errors
/// If the file is not a regular one, or cannot be read or written. Then it has its old content.
pub(crate) fn replace(path: &Path, content: &[u8], keeps: bool) -> io::Result<bool> {
    let target = target(path)?;
    let existing = existing(&target)?;
    if existing.is_some() && (keeps || fs::read(&target)? == content) {
        return Ok(false);
    }
    // The names must not match the patterns with which other programs include all files of a folder.
    let mut builder = tempfile::Builder::new();
    builder.prefix(".docent-").suffix(".tmp").permissions(Permissions::from_mode(NEW));
    let mut file = builder.tempfile_in(folder(&target))?;
    if let Some(existing) = existing {
        copy_access(file.as_file(), &existing)?;
    }
    file.write_all(content)?;
    file.as_file().sync_all()?;
    file.persist(&target)?;
    Ok(true)
}

/// Follows symbolic links, also to a file that does not exist yet.
fn target(path: &Path) -> io::Result<PathBuf> {
    let mut target = path.to_owned();
    for _ in 0..LINKS {
        match fs::read_link(&target) {
            // An absolute link replaces the folder.
            Ok(link) => target = folder(&target).join(link),
            // Not a link, or not present.
            Err(error) if matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::NotFound) => {
                return Ok(target);
            }
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("too many symbolic links"))
}

fn existing(target: &Path) -> io::Result<Option<Metadata>> {
    match fs::symlink_metadata(target) {
        Ok(metadata) if metadata.is_file() => Ok(Some(metadata)),
        Ok(_) => Err(io::Error::other("not a regular file")),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn copy_access(file: &File, existing: &Metadata) -> io::Result<()> {
    let own = file.metadata()?;
    if (own.uid(), own.gid()) != (existing.uid(), existing.gid()) {
        // Only root may give a file to another user, but others may set one of their groups.
        let _ = fchown(file, Some(existing.uid()), Some(existing.gid()))
            .or_else(|_| fchown(file, None, Some(existing.gid())));
    }
    file.set_permissions(Permissions::from_mode(existing.mode() & 0o777))
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_replaced_only_if_its_content_differs() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list");
        assert!(replace(&path, b"a", false).unwrap());
        let inode = |path: &Path| fs::metadata(path).unwrap().ino();
        let first = inode(&path);
        assert!(!replace(&path, b"a", false).unwrap());
        assert_eq!(inode(&path), first);
        assert!(!replace(&path, b"b", true).unwrap());
        assert_eq!(fs::read(&path).unwrap(), b"a");
        // A reader that opened the file before keeps the old content.
        let mut opened = File::open(&path).unwrap();
        assert!(replace(&path, b"b", false).unwrap());
        assert_eq!(io::read_to_string(&mut opened).unwrap(), "a");
        assert_eq!(fs::read(&path).unwrap(), b"b");
        assert_eq!(names(folder.path()), ["list"], "no temporary file is left");
    }

    #[test]
    fn a_replaced_file_keeps_its_mode_and_links() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("sub")).unwrap();
        let (link, path) = (folder.path().join("link"), folder.path().join("sub/list"));
        symlink("sub/list", &link).unwrap();
        assert!(replace(&link, b"a", false).unwrap(), "a link to no file yet");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        assert!(replace(&link, b"b", false).unwrap());
        assert_eq!(fs::read(&path).unwrap(), b"b");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o640);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }

    #[test]
    fn a_failed_write_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("missing/list");
        assert_eq!(replace(&missing, b"a", false).unwrap_err().kind(), ErrorKind::NotFound);
        assert!(replace(folder.path(), b"a", false).unwrap_err().to_string().contains("not a regular file"));
        let looped = folder.path().join("loop");
        symlink("loop", &looped).unwrap();
        assert!(replace(&looped, b"a", false).unwrap_err().to_string().contains("symbolic links"));
        assert_eq!(names(folder.path()), ["loop"]);
    }

    #[test]
    fn a_name_without_a_folder_is_in_the_current_one() {
        assert_eq!(folder(Path::new("list")), Path::new("."));
        assert_eq!(folder(Path::new("/list")), Path::new("/"));
    }
}
