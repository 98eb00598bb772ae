use super::wanted::Wanted;
use super::watch::{Seen, Watch};
use crate::nodes::{Earlier, Read};
use docent_core::{Client, Error};
use futures_util::stream::{BoxStream, StreamExt};
use std::collections::{HashMap, HashSet};
use std::future::poll_fn;
use std::task::{Context, Poll};

/// Watches on the nodes that an inspection is based on.
#[derive(Default)]
pub(super) struct Watches(HashMap<Watch, Open>);

/// An open watch.
struct Open {
    stream: BoxStream<'static, Seen>,
    /// Reads whose changed answers the watch reports.
    guarded: Vec<Read>,
    /// True once the watch has reported the current state, which means that it is set at the server.
    is_set: bool,
}

/// Reads whose changes the watches report, and the number of nodes whose changes they do not.
pub(super) struct Kept {
    pub(super) guarded: HashSet<Read>,
    pub(super) unwatched: usize,
}

impl Watches {
    /// Sets the first `most` of the wanted watches, and no others.
    ///
    /// # Errors
    /// `InvalidInput` if a path breaks a rule.
    pub(super) fn keep(&mut self, client: &Client, wanted: &[Wanted], most: usize) -> Result<Kept, Error> {
        let mut before = std::mem::take(&mut self.0);
        let (mut beyond, mut unwatched) = (HashSet::new(), HashSet::new());
        for Wanted { watch, read } in wanted {
            if let Some(open) = self.0.get_mut(watch) {
                open.guarded.push(read.clone());
            } else if self.0.len() < most.max(1) {
                let open = match before.remove(watch) {
                    Some(open) => Open { guarded: vec![read.clone()], ..open },
                    None => Open { stream: watch.open(client)?, guarded: vec![read.clone()], is_set: false },
                };
                self.0.insert(watch.clone(), open);
            } else {
                beyond.insert(read);
                unwatched.insert(read.path());
            }
        }
        let guarded = wanted.iter().map(|wanted| &wanted.read).filter(|read| !beyond.contains(read));
        Ok(Kept { guarded: guarded.cloned().collect(), unwatched: unwatched.len() })
    }

    /// Waits until watches report something, and removes the answers that they contradict from `earlier`.
    /// Returns true if there were any, and `None` if the client is closed. At most `in_flight` watches are
    /// being set at the same time.
    ///
    /// A new watch reports the current state first, which closes the gap between the read and the watch.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub(super) async fn changed(&mut self, earlier: &mut Earlier, in_flight: usize) -> Option<bool> {
        poll_fn(|cx| self.poll(cx, earlier, in_flight.max(1))).await
    }

    fn poll(&mut self, cx: &mut Context<'_>, earlier: &mut Earlier, in_flight: usize) -> Poll<Option<bool>> {
        let mut progress = Poll::Pending;
        let mut being_set = 0;
        for (watch, open) in &mut self.0 {
            if !open.is_set && being_set == in_flight {
                continue;
            }
            while let Poll::Ready(seen) = open.stream.poll_next_unpin(cx) {
                let Some(seen) = seen else { return Poll::Ready(None) };
                open.is_set = true;
                let mut is_change = matches!(progress, Poll::Ready(Some(true)));
                for read in &open.guarded {
                    if !watch.agrees(seen, earlier.get(read)) {
                        earlier.take(read);
                        is_change = true;
                    }
                }
                progress = Poll::Ready(Some(is_change));
            }
            being_set += usize::from(!open.is_set);
        }
        progress
    }
}
