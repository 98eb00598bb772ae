use super::watch::{Seen, Watch};
use crate::inspect::Tree;
use crate::nodes::{Known, Nodes, Read};
use docent_core::{Client, Error};
use futures_util::stream::{BoxStream, StreamExt};
use std::collections::{HashMap, HashSet};
use std::future::poll_fn;
use std::task::{Context, Poll};

/// One-shot watches on nodes that a tree is based on and that its persistent watch does not cover.
#[derive(Default)]
pub(super) struct Watches {
    open: HashMap<Watch, Open>,
    /// Reads whose changes no watch reports, because of the limit.
    unwatched: HashSet<Read>,
}

/// An open watch.
struct Open {
    stream: BoxStream<'static, Seen>,
    /// Reads whose changed answers the watch reports.
    guarded: Vec<Read>,
    /// True once the watch has reported the current state, which means that it is set at the server.
    is_set: bool,
}

impl Watches {
    /// Sets watches on everything that the tree is based on, up to `most`, and removes the others. If a
    /// persistent watch covers the root, only nodes outside of it are watched.
    ///
    /// # Errors
    /// `InvalidInput` if a path breaks a rule.
    pub(super) fn keep(
        &mut self,
        client: &Client,
        tree: &Tree,
        most: usize,
        is_covered: bool,
    ) -> Result<(), Error> {
        let mut before = std::mem::take(&mut self.open);
        self.unwatched.clear();
        let wanted = if is_covered { wanted_outside(tree) } else { wanted(tree) };
        for (watch, read) in wanted {
            if let Some(open) = self.open.get_mut(&watch) {
                open.guarded.push(read);
            } else if self.open.len() < most.max(1) {
                let open = match before.remove(&watch) {
                    Some(open) => Open { guarded: vec![read], ..open },
                    None => Open { stream: watch.open(client)?, guarded: vec![read], is_set: false },
                };
                self.open.insert(watch, open);
            } else {
                self.unwatched.insert(read);
            }
        }
        Ok(())
    }

    /// Returns the number of nodes that are not watched completely.
    pub(super) fn unwatched(&self) -> usize {
        self.unwatched.iter().map(Read::path).collect::<HashSet<_>>().len()
    }

    /// Records that everything which is not watched may have changed.
    pub(super) fn poll_unwatched(&self, tree: &mut Tree) {
        self.unwatched.iter().for_each(|read| tree.changed(read));
    }

    /// Waits until watches report something, and records what has changed. Returns `None` if the client is
    /// closed. At most `in_flight` watches are being set at the same time.
    ///
    /// A new watch reports the current state first, which closes the gap between the read and the watch.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub(super) async fn changed(&mut self, tree: &mut Tree, in_flight: usize) -> Option<()> {
        poll_fn(|cx| self.poll(cx, tree, in_flight.max(1))).await
    }

    fn poll(&mut self, cx: &mut Context<'_>, tree: &mut Tree, in_flight: usize) -> Poll<Option<()>> {
        let mut progress = Poll::Pending;
        let mut being_set = 0;
        for (watch, open) in &mut self.open {
            if !open.is_set && being_set == in_flight {
                continue;
            }
            while let Poll::Ready(seen) = open.stream.poll_next_unpin(cx) {
                let Some(seen) = seen else { return Poll::Ready(None) };
                open.is_set = true;
                progress = Poll::Ready(Some(()));
                for read in &open.guarded {
                    if !watch.agrees(seen, tree.nodes(), read) {
                        tree.changed(read);
                    }
                }
            }
            being_set += usize::from(!open.is_set);
        }
        progress
    }
}

/// Returns the watches for everything that a tree is based on, each with a read whose change it reports, in
/// the order of the paths.
fn wanted(tree: &Tree) -> Vec<(Watch, Read)> {
    let mut places: Vec<_> = tree.reads().collect();
    places.sort_unstable_by_key(|(path, _)| *path);
    let reads = places.into_iter().flat_map(|(path, reads)| reads.iter().map(move |read| (path, read)));
    // The stat of the path itself is part of the report, and was read together with its children.
    let wanted = reads.flat_map(|(path, read)| watches(tree.nodes(), read, read.path() == path));
    let mut seen = HashSet::new();
    wanted.filter(|one| seen.insert(one.clone())).collect()
}

/// Returns the watches for reads of nodes outside of the root.
fn wanted_outside(tree: &Tree) -> Vec<(Watch, Read)> {
    tree.outside().flat_map(|read| watches(tree.nodes(), read, true)).collect()
}

/// Returns the watches for a read, each with the read, or none for an omitted read. With `with_stat`, they
/// include the stat of a folder, which was read together with its children.
fn watches(nodes: &Nodes, read: &Read, with_stat: bool) -> impl Iterator<Item = (Watch, Read)> {
    let (watch, stat) = match (read, nodes.known(read)) {
        (_, None | Some(Known::LeftOut)) => (None, None),
        (Read::Data(path), Some(Known::Refused)) => (Some(Watch::Data(path.clone())), None),
        (Read::Data(path), Some(_)) => (Some(Watch::Node(path.clone())), None),
        (Read::Children(path), Some(known)) => {
            let stat = known.present().filter(|_| with_stat).map(|_| Watch::Node(path.clone()));
            (Some(Watch::Children(path.clone())), stat)
        }
    };
    watch.into_iter().chain(stat).map(|watch| (watch, read.clone()))
}
