use super::board::{Board, Poster};
use super::follower::Follower;
use crate::inspect::{Inspector, Tree};
use docent_core::Error;
use docent_core::recipe::{SubtreeEvents, spawn};
use std::sync::Arc;
use tokio::sync::watch;

/// A followed tree, shared by its subscribers. One task reads and watches the tree, and ends with the last
/// subscriber.
#[derive(Debug)]
pub(super) struct Feed {
    pub(super) board: Arc<Board>,
    /// Number of the last change on the board. The task ends when all receivers are dropped.
    pub(super) number: watch::Receiver<u64>,
}

impl Feed {
    /// Starts to follow a tree whose root is `root`.
    ///
    /// # Errors
    /// `InvalidInput` if the path breaks a rule.
    pub(super) fn start(inspector: &Inspector, root: &str, tree: Tree) -> Result<Self, Error> {
        let events = SubtreeEvents::new(inspector.client(), root)?;
        let (poster, number) = Poster::new();
        let board = Arc::clone(&poster.board);
        let follower = Follower::new(inspector, tree, events, poster.clone());
        spawn(inspector.client(), async move {
            tokio::select! {
                biased;
                () = poster.abandoned() => {}
                () = follower.run() => {}
            }
        });
        Ok(Self { board, number })
    }

    /// Returns false once the task has ended, because the client was closed.
    pub(super) fn is_followed(&self) -> bool {
        self.number.has_changed().is_ok()
    }
}
