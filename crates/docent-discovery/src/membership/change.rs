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
    /// Somebody is in it who was not.
    Joined(Peer),
    /// A member says something else about itself.
    Updated(Peer),
    /// A member is gone; with its last data. A member that joined again since, with a new session, joins
    /// next.
    Left(Peer),
    /// From here on the list may be out of date, as after a lost link.
    Stale,
    /// The changes up to here make up the servers' list: ends the first list, and a [`Stale`](Self::Stale).
    Current,
    /// The node of the member with this id cannot be read. It is tried again.
    Unreadable(Arc<str>, Error),
}

/// The changes of a group for one who looks at them. Made by [`Members::changes`](super::Members::changes).
/// Ends with the client.
///
/// An error, as `NoAuth`, says that the group cannot be listed; it is told once and tried again all the time.
///
/// Changes in between may be left out, the last one never is: a member that joined and left while nobody
/// could look was never there, and data that was set twice is told once.
///
/// Own members, joined through the same [`Membership`](super::Membership), are told as
/// [`Members::current`](super::Members::current) shows them: they leave when they
/// [`leave`](super::Member::leave) or are dropped, and not when their nodes go, with a session or by
/// somebody's hand, since these are made anew. The state of an own member's node is told by
/// [`Member::changed`](super::Member::changed). While another process has its id, that process's data is told
/// as an [`Updated`](MemberChange::Updated).
#[must_use = "a stream does nothing unless it is polled"]
pub struct MemberChanges {
    group: Arc<Group>,
    events: ChildrenEvents,
    known: BTreeMap<Arc<str>, KnownPeer>,
    /// Ids that were told since everything is told anew.
    whole: Option<BTreeSet<Arc<str>>>,
    /// Own members whose nodes are gone.
    missing: BTreeSet<Arc<str>>,
    next: VecDeque<Result<MemberChange, Error>>,
    /// Tells when one of these may have left.
    left: SyncStream<()>,
    // Keeps the cache alive that the events come from.
    _cache: Arc<ChildrenCache>,
}

struct KnownPeer {
    peer: Peer,
    mzxid: i64,
    /// Set for an own member until it is told as gone: its node may come and go until then.
    is_own: bool,
}

impl MemberChanges {
    pub(super) fn new(group: Arc<Group>, cache: Arc<ChildrenCache>) -> Self {
        let events = cache.changes();
        let (known, missing, next) = (BTreeMap::new(), BTreeSet::new(), VecDeque::new());
        let left = stream::unfold(group.left(), |mut left| async move {
            left.changed().await.ok()?;
            Some(((), left))
        });
        let left = SyncStream::new(left);
        Self { group, events, known, whole: None, missing, next, left, _cache: cache }
    }

    fn hear(&mut self, event: Result<ChildrenEvent, Error>) {
        let event = match event {
            Ok(event) => event,
            Err(error) => return self.next.push_back(Err(error)),
        };
        match event {
            ChildrenEvent::Init => self.whole = Some(BTreeSet::new()),
            ChildrenEvent::Added(id, node) | ChildrenEvent::Updated(id, node) => self.apply(&id, &node),
            ChildrenEvent::Delete(id) => self.delete(&id),
            ChildrenEvent::Unreadable(id, error) => {
                self.tell(&id);
                self.say(MemberChange::Unreadable(id, error));
            }
            ChildrenEvent::Gap => self.say(MemberChange::Stale),
            ChildrenEvent::Ready => {
                self.complete();
                // Whatever was heard before the end of a list is part of it.
                self.part();
                self.say(MemberChange::Current);
            }
            _ => {}
        }
    }

    fn apply(&mut self, id: &Arc<str>, node: &Node) {
        self.tell(id);
        self.missing.remove(id);
        let (peer, mzxid) = (Peer::new(id, node), node.stat.mzxid);
        // The stream may hear of a node that was made anew when the member has left meanwhile; somebody else
        // may have the id by then.
        let is_own = self.group.own().contains_key(id)
            || (self.is_own(id)
                && node.stat.owner.is_some_and(|owner| is_own_session(&self.group.client, owner)));
        match self.known.insert(Arc::clone(id), KnownPeer { peer: peer.clone(), mzxid, is_own }) {
            None => self.say(MemberChange::Joined(peer)),
            Some(known) if known.mzxid == mzxid => {}
            Some(known) if known.peer.czxid == peer.czxid => self.say(MemberChange::Updated(peer)),
            Some(known) if is_own => {
                if known.peer.data != peer.data {
                    self.say(MemberChange::Updated(peer));
                }
            }
            Some(known) => {
                self.say(MemberChange::Left(known.peer));
                self.say(MemberChange::Joined(peer));
            }
        }
    }

    fn delete(&mut self, id: &Arc<str>) {
        if self.is_own(id) {
            self.missing.insert(Arc::clone(id));
        } else if let Some(known) = self.known.remove(id) {
            self.say(MemberChange::Left(known.peer));
        }
    }

    fn is_own(&self, id: &Arc<str>) -> bool {
        self.known.get(id).is_some_and(|known| known.is_own) || self.group.own().contains_key(id)
    }

    fn say(&mut self, change: MemberChange) {
        self.next.push_back(Ok(change));
    }

    /// Tells of own members that have left and whose nodes are gone, once all events were heard.
    fn part(&mut self) {
        let gone: Vec<_> = {
            let own = self.group.own();
            self.missing.iter().filter(|id| !own.contains_key(*id)).cloned().collect()
        };
        for id in gone {
            self.missing.remove(&id);
            if let Some(known) = self.known.remove(&id) {
                self.say(MemberChange::Left(known.peer));
            }
        }
    }

    fn tell(&mut self, id: &Arc<str>) {
        if let Some(whole) = &mut self.whole {
            whole.insert(Arc::clone(id));
        }
    }

    /// Members that were not told again are gone.
    fn complete(&mut self) {
        let Some(whole) = self.whole.take() else { return };
        let gone: Vec<_> = self.known.keys().filter(|id| !whole.contains(*id)).cloned().collect();
        for id in gone {
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
                Poll::Ready(Some(event)) => self.hear(event),
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => {
                    let has_left = matches!(self.left.poll_next_unpin(cx), Poll::Ready(Some(())));
                    self.part();
                    if self.next.is_empty() && !has_left {
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
