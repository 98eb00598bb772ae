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
    let mut wanted = Vec::new();
    for (place, read) in places.into_iter().flat_map(|(path, reads)| reads.iter().map(move |it| (path, it))) {
        if let Some(watch) = watch(tree.nodes(), read) {
            wanted.push((watch, read.clone()));
        }
        // The stat of the path itself is part of the report, and was read together with its children.
        if let (Read::Children(path), Some(Known::Present(_))) = (read, tree.nodes().folder(place))
            && path == place
        {
            wanted.push((Watch::Node(path.clone()), read.clone()));
        }
    }
    let mut seen = HashSet::new();
    wanted.retain(|one| seen.insert(one.clone()));
    wanted
}

/// Returns the watches for reads of nodes outside of the root.
fn wanted_outside(tree: &Tree) -> Vec<(Watch, Read)> {
    let of = |read: &Read| {
        let mut watches: Vec<_> = watch(tree.nodes(), read).into_iter().collect();
        // The stat of the folder was read together with its children.
        if let (Read::Children(path), Some(Known::Present(_))) = (read, tree.nodes().folder(read.path())) {
            watches.push(Watch::Node(path.clone()));
        }
        watches.into_iter().map(|watch| (watch, read.clone())).collect::<Vec<_>>()
    };
    tree.outside().flat_map(of).collect()
}

/// Returns the watch for a read, or `None` for an omitted read.
fn watch(nodes: &Nodes, read: &Read) -> Option<Watch> {
    match read {
        Read::Data(path) => match nodes.data(path)? {
            Known::Present(_) | Known::Absent => Some(Watch::Node(path.clone())),
            Known::Refused => Some(Watch::Data(path.clone())),
            Known::LeftOut => None,
        },
        Read::Children(path) => match nodes.folder(path)? {
            Known::LeftOut => None,
            _ => Some(Watch::Children(path.clone())),
        },
    }
}
