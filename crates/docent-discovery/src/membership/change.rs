use super::group::Group;
use super::peer::Peer;
use docent_core::recipe::{SyncStream, is_own_session};
use docent_core::{ChildrenCache, ChildrenEvent, ChildrenEvents, Error, Node};
use futures_core::Stream;
use futures_util::stream::{self, StreamExt};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Change in a group's list of members.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum MemberChange {
    /// A member joined.
    Joined(Peer),
    /// A member changed its data.
    Updated(Peer),
    /// A member left. The peer has its last data. If the member has rejoined in a new session,
    /// [`Joined`](Self::Joined) follows.
    Left(Peer),
    /// From here on the list may be out of date, for example after a lost connection.
    Stale,
    /// The changes up to here match the servers' list. Reported after the initial list, and at the end of a
    /// [`Stale`](Self::Stale) period.
    Current,
    /// The node of the member with this id cannot be read. The read is retried.
    Unreadable(Arc<str>, Error),
}

/// Stream of the changes of a group. Created by [`Members::changes`](super::Members::changes). Ends when the
/// client is closed.
///
/// An error, such as `NoAuth`, means that the group cannot be listed. It is reported once, and the listing is
/// retried continuously.
///
/// Changes in between may be skipped; the last one never is. A member that joined and left before the stream
/// could read it is not reported, and data that was set twice is reported once.
///
/// Own members are those that joined through the same [`Membership`](super::Membership). They are reported in
/// the same way as [`Members::current`](super::Members::current) shows them. They leave when they
/// [`leave`](super::Member::leave) or are dropped, but not when their nodes are deleted, because these are
/// re-created. [`Member::changed`](super::Member::changed) reports the state of an own member's node. While
/// another process has a node with the same id, that node's data is reported as
/// [`Updated`](MemberChange::Updated).
#[must_use = "a stream does nothing unless it is polled"]
pub struct MemberChanges {
    group: Arc<Group>,
    events: ChildrenEvents,
    known: BTreeMap<Arc<str>, KnownPeer>,
    /// Ids reported since the cache started a complete listing.
    listed: Option<BTreeSet<Arc<str>>>,
    /// Own members whose nodes were deleted.
    missing: BTreeSet<Arc<str>>,
    next: VecDeque<Result<MemberChange, Error>>,
    /// Fires when an own member may have left.
    departures: SyncStream<()>,
    // Keeps the cache alive that produces the events.
    _cache: Arc<ChildrenCache>,
}

struct KnownPeer {
    peer: Peer,
    mzxid: i64,
    /// Set for an own member until it is reported as left: its node may be deleted and re-created until then.
    is_own: bool,
}

impl MemberChanges {
    pub(super) fn new(group: Arc<Group>, cache: Arc<ChildrenCache>) -> Self {
        let events = cache.changes();
        let (known, missing, next) = (BTreeMap::new(), BTreeSet::new(), VecDeque::new());
        let departures = stream::unfold(group.departures.subscribe(), |mut departures| async move {
            departures.changed().await.ok()?;
            Some(((), departures))
        });
        let departures = SyncStream::new(departures);
        Self { group, events, known, listed: None, missing, next, departures, _cache: cache }
    }

    fn apply_event(&mut self, event: Result<ChildrenEvent, Error>) {
        let event = match event {
            Ok(event) => event,
            Err(error) => return self.next.push_back(Err(error)),
        };
        match event {
            ChildrenEvent::Init => self.listed = Some(BTreeSet::new()),
            ChildrenEvent::Added(id, node) | ChildrenEvent::Updated(id, node) => self.apply(&id, &node),
            ChildrenEvent::Delete(id) => self.delete(&id),
            ChildrenEvent::Unreadable(id, error) => {
                self.mark_listed(&id);
                self.push(MemberChange::Unreadable(id, error));
            }
            ChildrenEvent::Gap => self.push(MemberChange::Stale),
            ChildrenEvent::Ready => {
                self.complete();
                // Everything received before the end of a listing is part of it.
                self.report_departures();
                self.push(MemberChange::Current);
            }
            _ => {}
        }
    }

    fn apply(&mut self, id: &Arc<str>, node: &Node) {
        self.mark_listed(id);
        self.missing.remove(id);
        let (peer, mzxid) = (Peer::new(id, node), node.stat.mzxid);
        // The stream may receive a re-created node after the member has left; another client may have the id
        // by that time.
        let is_own = self.group.own().contains_key(id)
            || (self.is_own(id)
                && node.stat.owner.is_some_and(|owner| is_own_session(&self.group.client, owner)));
        match self.known.insert(Arc::clone(id), KnownPeer { peer: peer.clone(), mzxid, is_own }) {
            None => self.push(MemberChange::Joined(peer)),
            Some(known) if known.mzxid == mzxid => {}
            Some(known) if known.peer.czxid == peer.czxid => self.push(MemberChange::Updated(peer)),
            Some(known) if is_own => {
                if known.peer.data != peer.data {
                    self.push(MemberChange::Updated(peer));
                }
            }
            Some(known) => {
                self.push(MemberChange::Left(known.peer));
                self.push(MemberChange::Joined(peer));
            }
        }
    }

    fn delete(&mut self, id: &Arc<str>) {
        if self.is_own(id) {
            self.missing.insert(Arc::clone(id));
        } else if let Some(known) = self.known.remove(id) {
            self.push(MemberChange::Left(known.peer));
        }
    }

    fn is_own(&self, id: &Arc<str>) -> bool {
        self.known.get(id).is_some_and(|known| known.is_own) || self.group.own().contains_key(id)
    }

    fn push(&mut self, change: MemberChange) {
        self.next.push_back(Ok(change));
    }

    /// Reports own members that have left and whose nodes were deleted, once all events were processed.
    fn report_departures(&mut self) {
        let departed: Vec<_> = {
            let own = self.group.own();
            self.missing.iter().filter(|id| !own.contains_key(*id)).cloned().collect()
        };
        for id in departed {
            self.missing.remove(&id);
            if let Some(known) = self.known.remove(&id) {
                self.push(MemberChange::Left(known.peer));
            }
        }
    }

    fn mark_listed(&mut self, id: &Arc<str>) {
        if let Some(listed) = &mut self.listed {
            listed.insert(Arc::clone(id));
        }
    }

    /// Ends a complete listing: members that it did not contain have left.
    fn complete(&mut self) {
        let Some(listed) = self.listed.take() else { return };
        let departed: Vec<_> = self.known.keys().filter(|id| !listed.contains(*id)).cloned().collect();
        for id in departed {
            self.delete(&id);
        }
    }
}

impl Stream for MemberChanges {
    type Item = Result<MemberChange, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(change) = self.next.pop_front() {
                return Poll::Ready(Some(change));
            }
            match Pin::new(&mut self.events).poll_next(cx) {
                Poll::Ready(Some(event)) => self.apply_event(event),
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => {
                    let has_departed = matches!(self.departures.poll_next_unpin(cx), Poll::Ready(Some(())));
                    self.report_departures();
                    if self.next.is_empty() && !has_departed {
                        return Poll::Pending;
                    }
                }
            }
        }
    }
}

impl fmt::Debug for MemberChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemberChanges")
            .field("path", &self.group.path)
            .field("known", &self.known.len())
            .finish_non_exhaustive()
    }
}
