use super::wanted::Wanted;
use super::watch::{Seen, Watch};
use crate::nodes::{Earlier, Read};
use docent_core::{Client, Error};
use futures_util::stream::{BoxStream, StreamExt};
use std::collections::{HashMap, HashSet};
use std::future::poll_fn;
use std::task::{Context, Poll};

/// Watches on the nodes that a look was made from.
#[derive(Default)]
pub(super) struct Watches(HashMap<Watch, Open>);

/// One of them.
struct Open {
    stream: BoxStream<'static, Seen>,
    /// Reads whose answers it tells changes of.
    guarded: Vec<Read>,
    /// True once it told the present state: it is set at the server then.
    is_set: bool,
}

/// Reads whose changes the watches tell, and the number of nodes whose changes they do not.
pub(super) struct Kept {
    pub(super) guarded: HashSet<Read>,
    pub(super) unwatched: usize,
}

impl Watches {
    /// Sets the first `most` of the watches that are wanted, and no others.
    ///
    /// # Errors
    /// `InvalidInput` when a path breaks a rule.
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

    /// Waits until watches tell something, and takes the answers that they contradict out of `earlier`. True
    /// when there were any; `None` when the client is closed. At most so many watches are being set at the
    /// same time.
    ///
    /// A new watch tells the present state first, which closes the gap between the read and the watch.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub(super) async fn changed(&mut self, earlier: &mut Earlier, in_flight: usize) -> Option<bool> {
        poll_fn(|cx| self.poll(cx, earlier, in_flight.max(1))).await
    }

    fn poll(&mut self, cx: &mut Context<'_>, earlier: &mut Earlier, in_flight: usize) -> Poll<Option<bool>> {
        let mut told = Poll::Pending;
        let mut being_set = 0;
        for (watch, open) in &mut self.0 {
            if !open.is_set && being_set == in_flight {
                continue;
            }
            while let Poll::Ready(seen) = open.stream.poll_next_unpin(cx) {
                let Some(seen) = seen else { return Poll::Ready(None) };
                open.is_set = true;
                let mut is_news = matches!(told, Poll::Ready(Some(true)));
                for read in &open.guarded {
                    if !watch.agrees(seen, earlier.get(read)) {
                        earlier.take(read);
                        is_news = true;
                    }
                }
                told = Poll::Ready(Some(is_news));
            }
            being_set += usize::from(!open.is_set);
        }
        told
    }
}
