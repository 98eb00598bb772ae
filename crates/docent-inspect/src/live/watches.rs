use crate::nodes::Read;
use docent_core::{Client, Error};
use futures_util::stream::{BoxStream, StreamExt};
use std::collections::{HashMap, HashSet};
use std::future::poll_fn;
use std::task::Poll;

/// Watches on the nodes that a report is made from.
#[derive(Default)]
pub(super) struct Watches(HashMap<Read, BoxStream<'static, ()>>);

impl Watches {
    /// Watches these nodes, at most so many, and no others. Returns the number of those that are not watched.
    ///
    /// # Errors
    /// `InvalidInput` when a path breaks a rule.
    pub(super) fn keep(&mut self, client: &Client, reads: &[Read], most: usize) -> Result<usize, Error> {
        let kept = &reads[..reads.len().min(most.max(1))];
        let wanted: HashSet<_> = kept.iter().collect();
        self.0.retain(|read, _| wanted.contains(read));
        for read in kept {
            if !self.0.contains_key(read) {
                self.0.insert(read.clone(), changes(client, read)?);
            }
        }
        Ok(reads.len() - kept.len())
    }

    /// Waits for a change of any of the nodes. A new watch tells of the present state first, which closes the
    /// gap between the read and the watch. False when the client is closed.
    pub(super) async fn changed(&mut self) -> bool {
        poll_fn(|cx| {
            for watch in self.0.values_mut() {
                if let Poll::Ready(change) = watch.poll_next_unpin(cx) {
                    return Poll::Ready(change.is_some());
                }
            }
            Poll::Pending
        })
        .await
    }
}

fn changes(client: &Client, read: &Read) -> Result<BoxStream<'static, ()>, Error> {
    Ok(match read {
        Read::Data(path) => client.watch_data(path)?.map(drop).boxed(),
        Read::Children(path) => client.watch_children(path)?.map(drop).boxed(),
    })
}
