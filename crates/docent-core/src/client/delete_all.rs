//! Deletion of a node with everything below it.

use super::Client;
use crate::cleanup::leave;
use crate::error::{Error, ErrorKind};
use crate::node::NodePath;
use futures_util::future::join_all;
use std::collections::HashSet;
use std::error::Error as StdError;
use std::fmt;
use tokio::time::Instant;

/// Maximum number of nodes deleted by one request.
const BATCH: usize = 128;
/// Maximum bytes of paths in one request.
const BATCH_BYTES: usize = 128 * 1024;
/// Maximum number of times that one folder is emptied while other clients fill it.
const ROUNDS: u32 = 32;
/// Maximum number of errors that are kept.
const MAX_ERRORS: usize = 100;

impl Client {
    /// Deletes a node with everything below it, and returns the number of deleted nodes: 0 if the node does
    /// not exist. Corresponds to Curator's `deletingChildrenIfNeeded` and kazoo's `delete(recursive=True)`.
    ///
    /// The method lists one folder at a time and deletes at most 128 nodes per request, each of them exactly:
    /// a request that is applied late does not delete nodes that were created since. If other clients fill a
    /// folder in the meantime, it is emptied again, up to 32 times. The deletion is not a transaction, so
    /// other clients may see only part of the nodes while it runs.
    ///
    /// Each request has the operation timeout; the whole takes as long as the size of the tree requires.
    /// Guards and kept nodes below the path are not spared: guards are lost, and kept nodes are re-created.
    ///
    /// # Errors
    /// [`DeleteAllError`], which reports how many nodes were deleted and which were not:
    ///
    /// - `NoAuth` if nodes may not be deleted or listed; nothing more is tried in such a folder, but other
    ///   folders are deleted;
    /// - `NotEmpty` if other clients keep creating nodes;
    /// - `InvalidInput` if the path breaks a rule or is the root;
    /// - `Timeout`, `Closed`, and `OutcomeUnknown` if a reply was lost; these end the deletion.
    ///
    /// # Cancel safety
    /// This method is cancel safe. Some of the nodes may be deleted, and calling it again deletes the rest.
    pub async fn delete_all(&self, path: &str) -> Result<usize, DeleteAllError> {
        let failed =
            |error, deletion: Deletion<'_>| DeleteAllError::new(error, deletion.deleted, deletion.left);
        let mut deletion = Deletion {
            client: self,
            root: path.to_owned(),
            deleted: 0,
            left: Vec::new(),
            stuck: HashSet::new(),
        };
        let root = match NodePath::new("delete", path) {
            Ok(root) => root.into(),
            Err(error) => return Err(failed(error, deletion)),
        };
        // On the heap, because it holds the futures of several operations.
        match Box::pin(deletion.run(root)).await {
            Ok(()) => match deletion.left.first().cloned() {
                Some(first) => Err(failed(first, deletion)),
                None => Ok(deletion.deleted),
            },
            Err(error) => Err(failed(error, deletion)),
        }
    }
}

/// A deletion in progress.
struct Deletion<'a> {
    client: &'a Client,
    /// The node to delete.
    root: String,
    deleted: usize,
    /// Errors of the nodes that were refused.
    left: Vec<Error>,
    /// Nodes that remain, because they or nodes below them were refused.
    stuck: HashSet<String>,
}

/// A node that may have children.
struct Folder {
    path: String,
    rounds: u32,
}

/// Next action after a round in a folder.
enum Next {
    /// The folder was deleted, or remains.
    Up,
    /// The folder is listed again.
    Repeat,
    /// Those of its children that have children come first.
    Down(Vec<String>),
}

impl Deletion<'_> {
    async fn run(&mut self, root: String) -> Result<(), Error> {
        let shared = self.client.shared();
        leave(shared, &shared.generation(), &shared.namespace.join(&root)).await;
        let mut branch = vec![Folder { path: root, rounds: 0 }];
        while let Some(folder) = branch.last_mut() {
            folder.rounds += 1;
            match self.round(&folder.path, folder.rounds).await? {
                Next::Up => drop(branch.pop()),
                Next::Repeat => {}
                Next::Down(paths) => {
                    branch.extend(paths.into_iter().map(|path| Folder { path, rounds: 0 }));
                }
            }
        }
        Ok(())
    }

    /// Deletes the children of a folder that have no children, and the folder if that leaves it empty.
    async fn round(&mut self, folder: &str, round: u32) -> Result<Next, Error> {
        if self.stuck.contains(folder) {
            return Ok(Next::Up);
        }
        if round > ROUNDS {
            let error = Error::new(ErrorKind::NotEmpty, "delete").at(folder);
            return Ok(self.leave(folder, error.because("other clients keep creating nodes there")));
        }
        let mut names = match self.client.children(folder).await {
            Ok(children) => children.names,
            Err(error) if error.kind() == ErrorKind::NoNode => return Ok(Next::Up),
            Err(error) if error.kind() == ErrorKind::NoAuth => return self.unlisted(folder, error).await,
            Err(error) => return Err(error),
        };
        let listed = names.len();
        names.retain(|name| !self.stuck.contains(&format!("{folder}/{name}")));
        if names.len() < listed && names.is_empty() {
            self.stuck.insert(folder.to_owned());
            return Ok(Next::Up);
        }
        let is_whole = names.len() == listed;
        self.empty(folder, names, is_whole).await
    }

    /// Deletes `names` of a folder, and the folder with them if they are all of its children.
    async fn empty(&mut self, folder: &str, names: Vec<String>, is_whole: bool) -> Result<Next, Error> {
        let mut batches = batches(folder, names);
        let mut folders = Vec::new();
        while let Some(mut batch) = batches.pop() {
            if batches.is_empty() && is_whole && folders.is_empty() {
                batch.push(folder.to_owned());
            }
            match self.delete_together(folder, batch).await {
                Ok(Batch { is_complete: true, .. }) => return Ok(Next::Up),
                Ok(Batch { forbidden: true, .. }) => {
                    self.stuck.insert(folder.to_owned());
                    return Ok(Next::Up);
                }
                Ok(batch) => folders.extend(batch.folders),
                // The session of the request has ended; the next listing shows the outcome.
                Err(Interrupted::Repeat) => return Ok(Next::Repeat),
                Err(Interrupted::Failed(error)) => return Err(error),
            }
        }
        Ok(match folders.is_empty() {
            true => Next::Repeat,
            false => Next::Down(folders),
        })
    }

    /// Deletes a node that may not be listed, in case it is empty.
    async fn unlisted(&mut self, folder: &str, refused: Error) -> Result<Next, Error> {
        match self.commit(&[folder.to_owned()]).await {
            Ok(()) => self.deleted += 1,
            Err(Interrupted::Repeat) => return Ok(Next::Repeat),
            Err(Interrupted::Failed(error)) => match error.kind() {
                ErrorKind::NoNode => {}
                ErrorKind::NotEmpty => return Ok(self.leave(folder, refused)),
                _ if is_refusal(&error) => return Ok(self.leave(folder, error)),
                _ => return Err(error),
            },
        }
        Ok(Next::Up)
    }

    /// Deletes the nodes `paths`, which are children of `folder` or the folder itself, except those that have
    /// children.
    async fn delete_together(&mut self, folder: &str, mut paths: Vec<String>) -> Result<Batch, Interrupted> {
        let mut batch = Batch::default();
        let mut has_checked = false;
        while !paths.is_empty() {
            let error = match self.commit(&paths).await {
                Ok(()) => {
                    self.deleted += paths.len();
                    batch.is_complete = paths.last().is_some_and(|last| last == folder);
                    break;
                }
                Err(Interrupted::Failed(error)) if is_refusal(&error) => error,
                Err(interrupted) => return Err(interrupted),
            };
            let refused = error.path().and_then(|path| paths.iter().position(|known| known == path));
            let Some(refused) = refused else { return Err(Interrupted::Failed(error)) };
            let is_folder = paths[refused] == folder;
            match error.kind() {
                // The folder was filled again in the meantime, or one of `batch.folders` is in it.
                ErrorKind::NotEmpty | ErrorKind::NoNode if is_folder => drop(paths.remove(refused)),
                ErrorKind::NotEmpty | ErrorKind::NoNode if !has_checked => {
                    has_checked = true;
                    paths = self.without_children(folder, paths, &mut batch).await?;
                }
                ErrorKind::NotEmpty => batch.folders.push(paths.remove(refused)),
                ErrorKind::NoNode => drop(paths.remove(refused)),
                kind => {
                    // Permission DELETE is checked on the parent, so the sibling nodes are refused, too.
                    batch.forbidden |= kind == ErrorKind::NoAuth && !is_folder;
                    self.leave(&paths.remove(refused), error);
                    if batch.forbidden {
                        return Ok(batch);
                    }
                }
            }
        }
        Ok(batch)
    }

    /// Checks each of `paths`, which cannot be deleted together. Returns those without children.
    async fn without_children(
        &self,
        folder: &str,
        paths: Vec<String>,
        batch: &mut Batch,
    ) -> Result<Vec<String>, Interrupted> {
        let stats = join_all(paths.iter().map(|path| self.client.exists(path))).await;
        let mut leaves = Vec::new();
        for (path, stat) in paths.into_iter().zip(stats) {
            match stat.map_err(Interrupted::Failed)? {
                _ if path == folder => {}
                Some(stat) if stat.num_children > 0 => batch.folders.push(path),
                Some(_) => leaves.push(path),
                None => {}
            }
        }
        Ok(leaves)
    }

    /// Deletes all of `paths`, or none.
    async fn commit(&self, paths: &[String]) -> Result<(), Interrupted> {
        let begun = Instant::now();
        let all = self.client.transaction().marked_outside(&self.root);
        let all = paths.iter().fold(all, |all, path| all.delete(path, None));
        match all.commit_exactly().await {
            Ok(_) => Ok(()),
            Err(error)
                if error.kind() == ErrorKind::OutcomeUnknown
                    && begun.elapsed() < self.client.operation_timeout() =>
            {
                Err(Interrupted::Repeat)
            }
            Err(error) => Err(Interrupted::Failed(error)),
        }
    }

    /// Records that a node remains.
    fn leave(&mut self, path: &str, error: Error) -> Next {
        if self.left.len() < MAX_ERRORS {
            self.left.push(error);
        }
        self.stuck.insert(path.to_owned());
        Next::Up
    }
}

/// Result of one request, apart from the nodes that it deleted.
#[derive(Default)]
struct Batch {
    /// True if the folder itself was deleted.
    is_complete: bool,
    /// Nodes that have children.
    folders: Vec<String>,
    /// True if nodes in the folder may not be deleted.
    forbidden: bool,
}

/// Reason why a request did not delete its nodes.
enum Interrupted {
    /// The outcome is not known; the next listing shows it.
    Repeat,
    Failed(Error),
}

/// Returns true for an error that concerns one node and would recur.
fn is_refusal(error: &Error) -> bool {
    let kind = error.kind();
    !error.is_of_own_node()
        && matches!(
            kind,
            ErrorKind::NoNode | ErrorKind::NotEmpty | ErrorKind::NoAuth | ErrorKind::InvalidInput
        )
}

/// Returns the paths of `names` in a folder, grouped into batches that fit into one request. Returns at least
/// one batch, which may be empty.
fn batches(folder: &str, names: Vec<String>) -> Vec<Vec<String>> {
    let mut batches = vec![Vec::new()];
    let (mut count, mut bytes) = (0, 0);
    for name in names {
        let path = format!("{folder}/{name}");
        (count, bytes) = (count + 1, bytes + path.len());
        if count > BATCH || bytes > BATCH_BYTES {
            (count, bytes) = (1, path.len());
            batches.push(Vec::new());
        }
        batches.last_mut().into_iter().for_each(|batch| batch.push(path.clone()));
    }
    batches
}

/// Error of [`Client::delete_all`](super::Client::delete_all): some nodes were not deleted.
#[derive(Debug, Clone)]
pub struct DeleteAllError {
    error: Error,
    deleted: usize,
    left: Vec<Error>,
}

impl DeleteAllError {
    pub(super) fn new(error: Error, deleted: usize, left: Vec<Error>) -> Self {
        Self { error, deleted, left }
    }

    /// Returns the number of nodes that were deleted despite the error.
    pub fn deleted(&self) -> usize {
        self.deleted
    }

    /// Returns the errors of the nodes that were refused, each with its path, at most 100. The nodes above
    /// them remain, too.
    pub fn left(&self) -> &[Error] {
        &self.left
    }

    /// Returns the error that ended the deletion, otherwise that of the first node that was refused.
    pub fn error(&self) -> &Error {
        &self.error
    }

    /// Returns the kind of the [error](Self::error).
    pub fn kind(&self) -> ErrorKind {
        self.error.kind()
    }

    /// Returns true if the same call may succeed later without any change by the caller.
    pub fn is_retryable(&self) -> bool {
        self.error.is_retryable()
    }

    /// Returns true if more nodes than [those counted](Self::deleted) may have been deleted.
    pub fn may_have_applied(&self) -> bool {
        self.error.may_have_applied()
    }

    /// Returns the path that the [error](Self::error) concerns, if it is known.
    pub fn path(&self) -> Option<&str> {
        self.error.path()
    }
}

impl From<DeleteAllError> for Error {
    fn from(error: DeleteAllError) -> Self {
        let path = error.path().map(str::to_owned);
        let may_have_applied = error.may_have_applied();
        Self::of_recipe(error.kind(), "delete_all", error)
            .at_path(path.as_deref())
            .maybe_applied(may_have_applied)
    }
}

impl fmt::Display for DeleteAllError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { error, deleted, .. } = self;
        write!(f, "delete_all: only {deleted} nodes were deleted: {error}")
    }
}

impl StdError for DeleteAllError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&self.error)
    }
}
