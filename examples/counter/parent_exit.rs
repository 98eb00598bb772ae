use std::fs;
use std::io::{self, stdin};
use std::path::Path;
use std::thread;

/// Ends this process when its standard input ends: the parent has exited, and can no longer remove the file.
///
/// Uses a thread and not a task: the thread works whatever the tasks do, and the runtime does not wait for it
/// at the end.
pub(crate) fn exit_with_parent(file: &Path) {
    let file = file.to_owned();
    thread::spawn(move || {
        let _ = io::copy(&mut stdin().lock(), &mut io::sink());
        let _ = fs::remove_file(file);
        std::process::exit(1);
    });
}
