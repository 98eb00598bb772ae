use super::arguments::Edit;
use super::failure::check_json;
use super::set::print_published;
use crate::app::App;
use crate::child::{self, ChildCommand, Signals};
use crate::exit::{Ending, Failure, Outcome};
use bytes::Bytes;
use docent::config::{Config, PublishError, Snapshot};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Folder of files in memory, in which every user may create files.
const MEMORY: &str = "/dev/shm";

/// Lets the user change the value in an editor, and publishes it unless it was changed meanwhile. If a
/// changed value is not published, its file is kept.
pub(super) async fn run(
    app: &App,
    config: &Config<Bytes>,
    arguments: &Edit,
    signals: &mut Signals,
) -> Outcome {
    let seen = config.get().await?;
    let before = seen.as_ref().map(|seen| seen.value().clone()).unwrap_or_default();
    let file = written(&before)?;
    let published = match changed(file.path(), &before, arguments, signals).await {
        Ok(Some(value)) => publish(config, &value, seen.as_ref()).await,
        Ok(None) => {
            app.output.remark("nothing was changed");
            return Ok(Ending::Done);
        }
        Err(failure) => Err(failure),
    };
    let published = published.map_err(|failure| kept(file, &before, failure))?;
    print_published(app, config.path(), &published).map(|()| Ending::Done)
}

/// Returns the value that the user edited, or `None` if it equals `before`.
async fn changed(
    file: &Path,
    before: &Bytes,
    arguments: &Edit,
    signals: &mut Signals,
) -> Result<Option<Bytes>, Failure> {
    edit(file, signals).await?;
    let value = Bytes::from(fs::read(file).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Failure::other("the editor left no file: nothing was published"),
        _ => Failure::other(format!("cannot read {}: {error}", file.display())),
    })?);
    if value == *before {
        return Ok(None);
    }
    check_json(&value, arguments.json)?;
    Ok(Some(value))
}

/// Publishes a value in place of the `seen` one.
async fn publish(
    config: &Config<Bytes>,
    value: &Bytes,
    seen: Option<&Snapshot<Bytes>>,
) -> Result<Snapshot<Bytes>, Failure> {
    let published = match seen {
        Some(seen) => config.publish_if(value, seen).await,
        None => config.publish_new(value).await,
    };
    published.map_err(|error| match error {
        PublishError::Conflict => {
            Failure::conflict("another client published a value meanwhile: nothing was published")
        }
        error => error.into(),
    })
}

/// Creates a file with the value that only this user can access, in the first folder that is usable: that of
/// TMPDIR or `/tmp`, that of XDG_RUNTIME_DIR, or one in memory.
fn written(value: &[u8]) -> Result<NamedTempFile, Failure> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").filter(|folder| !folder.is_empty()).map(PathBuf::from);
    let folders = [Some(std::env::temp_dir()), runtime, Some(PathBuf::from(MEMORY))];
    let mut reasons = Vec::new();
    for folder in folders.into_iter().flatten() {
        match written_in(&folder, value) {
            Ok(file) => return Ok(file),
            Err(error) => reasons.push(format!("{}: {}", folder.display(), error.kind())),
        }
    }
    let reasons = reasons.join(", ");
    Err(Failure::other(format!(
        "cannot create a file for the editor ({reasons}): set TMPDIR to a folder that this user may write to"
    )))
}

fn written_in(folder: &Path, value: &[u8]) -> io::Result<NamedTempFile> {
    let suffix =
        if serde_json::from_slice::<serde::de::IgnoredAny>(value).is_ok() { ".json" } else { ".txt" };
    let mut file = tempfile::Builder::new().prefix("docent-").suffix(suffix).tempfile_in(folder)?;
    file.write_all(value)?;
    file.flush()?;
    Ok(file)
}

/// Runs the editor in the foreground of the terminal until it ends.
async fn edit(file: &Path, signals: &mut Signals) -> Result<(), Failure> {
    let editor = editor()?;
    let words: Vec<_> = editor.split_whitespace().map(OsStr::new).chain([file.as_os_str()]).collect();
    let words: Vec<_> = words.into_iter().map(OsStr::to_owned).collect();
    let command = ChildCommand::new(&words).expect("the command contains at least the file");
    let exit = child::run(&command, signals).await?;
    match exit.code() {
        Some(0) => Ok(()),
        Some(_) if exit.was_not_run() => {
            let text = format!("cannot run the editor {:?} of VISUAL or EDITOR", command.name());
            Err(Failure::not_runnable(text))
        }
        _ => Err(Failure::other(format!(
            "the editor {:?} ended with {exit}: nothing was published",
            command.name()
        ))),
    }
}

/// Returns the editor's command with its arguments, to be split at spaces.
fn editor() -> Result<String, Failure> {
    let set = |name| std::env::var_os(name).filter(|value: &OsString| !value.is_empty());
    let editor = set("VISUAL").or_else(|| set("EDITOR")).unwrap_or_else(|| "vi".into());
    editor.into_string().map_err(|_| Failure::usage("the editor in VISUAL or EDITOR is not valid UTF-8"))
}

/// Keeps the file with the user's work, and says where it is. An unchanged value is not kept.
fn kept(file: NamedTempFile, before: &Bytes, failure: Failure) -> Failure {
    let is_worth_it = match fs::read(file.path()) {
        Ok(value) => value != *before,
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    };
    if !is_worth_it {
        return failure;
    }
    match file.keep() {
        Ok((_, path)) => failure.with(&format!("; the changed value is in {}", path.display())),
        Err(error) => failure.with(&format!("; the changed value could not be kept: {error}")),
    }
}
