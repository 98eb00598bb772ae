//! Deletion of a node with everything below it.

use super::{Client, DeleteAllError};
use crate::cleanup::leave;
use crate::error::{Error, ErrorKind};
use crate::node::NodePath;
use futures_util::future::join_all;
use std::collections::HashSet;
use tokio::time::Instant;

/// Most nodes that are deleted by one request.
const BATCH: usize = 128;
/// Most bytes of paths in one request.
const BATCH_BYTES: usize = 128 * 1024;
/// Number of times that one folder is emptied while others fill it.
const ROUNDS: u32 = 32;
/// Most errors that are kept.
const MOST_ERRORS: usize = 100;

impl Client {
    /// Deletes a node with everything below it, and returns the number of nodes that it deleted: 0 where
    /// there is none. For users of Curator: `deletingChildrenIfNeeded`; of kazoo: `delete(recursive=True)`.
    ///
    /// It lists one folder at a time and deletes at most 128 nodes by one request, each of them exactly: a
    /// request that is applied late deletes nothing that was made since. A folder that others fill meanwhile
    /// is emptied again, up to 32 times. It is no transaction: others see a part of the nodes meanwhile.
    ///
    /// Each request has the operation timeout; the whole takes as long as the tree is large. Guards and kept
    /// nodes below the path are not spared: guards are lost, and kept nodes come back.
    ///
    /// # Errors
    /// [`DeleteAllError`], which says how many nodes were deleted and which were not: `NoAuth` where nodes
    /// may not be deleted or listed (nothing more is tried in such a folder, the others are deleted),
    /// `NotEmpty` where others go on to make nodes; `InvalidInput` for a path that breaks a rule or is the
    /// root. It stops at `Timeout` and `Closed`, and at `OutcomeUnknown` when a reply was lost.
    ///
    /// # Cancel safety
    /// This method is cancel safe: a part of the nodes may be deleted, and calling it again deletes the rest.
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
        // On the heap: it holds the futures of several operations.
        match Box::pin(deletion.run(root)).await {
            Ok(()) => match deletion.left.first().cloned() {
                Some(first) => Err(failed(first, deletion)),
                None => Ok(deletion.deleted),
            },
            Err(error) => Err(failed(error, deletion)),
        }
    }
}

/// A deletion under way.
struct Deletion<'a> {
    client: &'a Client,
    /// The node that it began with.
    root: String,
    deleted: usize,
    /// Errors of the nodes that were refused.
    left: Vec<Error>,
    /// Nodes that stay, because they or nodes below them were refused.
    stuck: HashSet<String>,
}

/// A node that may have children.
struct Folder {
    path: String,
    rounds: u32,
}

/// Next action after a round in a folder.
enum Next {
    /// The folder is gone, or stays.
    Up,
    /// The folder is looked at again.
    Again,
    /// Its children with children of their own come first.
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
                Next::Again => {}
                Next::Down(paths) => {
                    branch.extend(paths.into_iter().map(|path| Folder { path, rounds: 0 }));
                }
            }
        }
        Ok(())
    }

    /// Deletes the children of a folder that have none, and the folder when it is empty then.
    async fn round(&mut self, folder: &str, round: u32) -> Result<Next, Error> {
        if self.stuck.contains(folder) {
            return Ok(Next::Up);
        }
        if round > ROUNDS {
            let error = Error::new(ErrorKind::NotEmpty, "delete").at(folder);
            return Ok(self.leave(folder, error.because("others go on to make nodes in it")));
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

    /// Deletes `names` of a folder, and with them the folder if they are all that is in it.
    async fn empty(&mut self, folder: &str, names: Vec<String>, is_whole: bool) -> Result<Next, Error> {
        let mut batches = batches(folder, names);
        let mut folders = Vec::new();
        while let Some(mut batch) = batches.pop() {
            if batches.is_empty() && is_whole && folders.is_empty() {
                batch.push(folder.to_owned());
            }
            match self.delete_together(folder, batch).await {
                Ok(Batch { is_over: true, .. }) => return Ok(Next::Up),
                Ok(Batch { forbidden: true, .. }) => {
                    self.stuck.insert(folder.to_owned());
                    return Ok(Next::Up);
                }
                Ok(batch) => folders.extend(batch.folders),
                // Its session has ended: the next look shows the outcome.
                Err(Interrupted::Again) => return Ok(Next::Again),
                Err(Interrupted::Failed(error)) => return Err(error),
            }
        }
        Ok(match folders.is_empty() {
            true => Next::Again,
            false => Next::Down(folders),
        })
    }

    /// Deletes a node that may not be listed, in case it is empty.
    async fn unlisted(&mut self, folder: &str, refused: Error) -> Result<Next, Error> {
        match self.commit(&[folder.to_owned()]).await {
            Ok(()) => self.deleted += 1,
            Err(Interrupted::Again) => return Ok(Next::Again),
            Err(Interrupted::Failed(error)) => match error.kind() {
                ErrorKind::NoNode => {}
                ErrorKind::NotEmpty => return Ok(self.leave(folder, refused)),
                _ if is_refusal(&error) => return Ok(self.leave(folder, error)),
                _ => return Err(error),
            },
        }
        Ok(Next::Up)
    }

    /// Deletes the nodes `paths`, which are children of `folder` or that itself, besides those that have
    /// children.
    async fn delete_together(&mut self, folder: &str, mut paths: Vec<String>) -> Result<Batch, Interrupted> {
        let mut batch = Batch::default();
        let mut looked = false;
        while !paths.is_empty() {
            let error = match self.commit(&paths).await {
                Ok(()) => {
                    self.deleted += paths.len();
                    batch.is_over = paths.last().is_some_and(|last| last == folder);
                    break;
                }
                Err(Interrupted::Failed(error)) if is_refusal(&error) => error,
                Err(interrupted) => return Err(interrupted),
            };
            let refused = error.path().and_then(|path| paths.iter().position(|known| known == path));
            let Some(refused) = refused else { return Err(Interrupted::Failed(error)) };
            let is_folder = paths[refused] == folder;
            match error.kind() {
                // The folder is filled again meanwhile, or one of `batch.folders` is in it.
                ErrorKind::NotEmpty | ErrorKind::NoNode if is_folder => drop(paths.remove(refused)),
                ErrorKind::NotEmpty | ErrorKind::NoNode if !looked => {
                    looked = true;
                    paths = self.look(folder, paths, &mut batch).await?;
                }
                ErrorKind::NotEmpty => batch.folders.push(paths.remove(refused)),
                ErrorKind::NoNode => drop(paths.remove(refused)),
                kind => {
                    // The permission is that of the parent: the nodes beside it are refused, too.
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

    /// Looks at all of `paths`, which cannot be deleted together: those without children come back.
    async fn look(
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
                Err(Interrupted::Again)
            }
            Err(error) => Err(Interrupted::Failed(error)),
        }
    }

    /// Takes note that a node stays.
    fn leave(&mut self, path: &str, error: Error) -> Next {
        if self.left.len() < MOST_ERRORS {
            self.left.push(error);
        }
        self.stuck.insert(path.to_owned());
        Next::Up
    }
}

/// Result of one request, besides the nodes that it deleted.
#[derive(Default)]
struct Batch {
    /// True when the folder itself is gone.
    is_over: bool,
    /// Those that have children.
    folders: Vec<String>,
    /// True when nodes may not be deleted there.
    forbidden: bool,
}

/// Reason why a request did not delete its nodes.
enum Interrupted {
    /// Its outcome is not known, and a look tells.
    Again,
    Failed(Error),
}

/// True for an error that is about one node and would come again.
fn is_refusal(error: &Error) -> bool {
    let kind = error.kind();
    !error.is_of_own_node()
        && matches!(
            kind,
            ErrorKind::NoNode | ErrorKind::NotEmpty | ErrorKind::NoAuth | ErrorKind::InvalidInput
        )
}

/// The paths of `names` in a folder, as many together as one request takes. At least one, which may be empty.
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
