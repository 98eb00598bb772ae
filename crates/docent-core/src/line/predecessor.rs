//! Waiting for the contenders ahead: a watch on one node ahead, and one on the own node.

use super::draw::list_request;
use super::position::{Further, Position};
use super::ticket::Step;
use super::{Ticket, WaitError};
use crate::hold::Role;
use crate::session::{Fired, Lane, Pending, Watch, watch_requests};
use crate::time::sleep_until;
use docent_proto::{Acl, Code, EventKind, Permissions, Request};
use std::future::pending;

/// Waits for the contender that decides the next step. If the predecessor is alone ahead, this is the
/// predecessor. Otherwise it is the contender before the predecessor, so that the ticket lists the line while
/// the predecessor holds, and not when its own turn has come.
pub(super) async fn wait_for(
    ticket: &Ticket,
    predecessor: String,
    further: Further,
    watches: &mut LineWatches,
) -> Result<Step, WaitError> {
    let target = further.nearest().unwrap_or(&predecessor).clone();
    if planted!(ExistenceWatch) && !watches.are_set(&target) {
        let _ = watches.set(ticket, &[]).await?;
        let _ = watches.read(ticket, &target).await?;
    }
    if !watches.are_set(&target) && !watches.set(ticket, std::slice::from_ref(&target)).await? {
        return Ok(Step::List);
    }
    let (own, Some(ahead)) = watches.on(&target) else { return Ok(Step::List) };
    // Event: A ticket waits in the line of a lock, semaphore or election until the node `target` is deleted
    // or changes.
    tracing::trace!(target: "docent::lock", client = %ticket.line.client().label(), ticket = %ticket.node.path, %target, "waiting in line");
    // Servers may send no events about a node that this client may not read. A long wait reads the node once
    // to find out.
    let max_silence = ticket.generation.lease.timeout() / 3;
    let fired = tokio::select! {
        biased;
        fired = fired_own(own) => return own_fired(ticket, fired, watches),
        fired = &mut ahead.watch => fired,
        error = keep_fresh(ticket), if ticket.must_keep_fresh(&further) => return Err(error),
        () = tokio::time::sleep(max_silence), if !ahead.delivers_events => Fired::Event(EventKind::DataChanged),
    };
    let losses = ahead.losses;
    match fired {
        Fired::Event(EventKind::Deleted) => {
            watches.forget(&target);
            if planted!(WaiterSleepsOn) {
                tokio::time::sleep(std::time::Duration::from_secs(5)).await;
            }
            // Events of a link arrive in the order of their transactions. If the own node was deleted before
            // this one, its watch has already fired, although `select` may not have polled that watch since.
            if let Some(fired) = watches.own_fired() {
                return own_fired(ticket, fired, watches);
            }
            Ok(step_after_deletion(ticket, predecessor, further, losses, watches.own.is_some()))
        }
        // The contender now holds and has recorded that, or another client asked it to leave. Its place is
        // the same.
        Fired::Event(EventKind::DataChanged) => match watches.read(ticket, &target).await? {
            None if watches.are_set(&target) && is_same_link(ticket, losses) => {
                Ok(Step::At(Position::Behind { predecessor, further }))
            }
            None => Ok(Step::List),
            Some(_) => wait_for_unreadable(ticket, &target, watches).await,
        },
        Fired::Event(_) => {
            watches.forget(&target);
            Ok(Step::List)
        }
        Fired::Ended(end) => Err(ticket.ended(end)),
    }
}

/// Returns true while watches report events in order, on the same link since `losses` links were lost.
fn is_same_link(ticket: &Ticket, losses: u64) -> bool {
    ticket.generation.session.orders_events() && ticket.generation.losses() == losses
}

/// Waits for a contender ahead whose node this client may not read. `exists` needs no permission, but also
/// leaves a watch on a missing node, which is then removed. Some servers send no events about a node that the
/// client may not read, so the line is also listed from time to time.
async fn wait_for_unreadable(
    ticket: &Ticket,
    name: &str,
    watches: &mut LineWatches,
) -> Result<Step, WaitError> {
    let exists = Request::Exists { path: format!("{}/{name}", ticket.line.full_path()), watch: true };
    let Some(reply) = ticket.reply(ticket.generation.session.submit(exists, Lane::Call).await).await? else {
        return Ok(Step::List);
    };
    let (Ok(_), Some(watch)) = (reply.result, reply.watch) else { return Ok(Step::List) };
    tokio::select! {
        biased;
        fired = fired_own(&mut watches.own) => own_fired(ticket, fired, watches),
        fired = watch => match fired {
            Fired::Event(_) => Ok(Step::ProveAndList),
            Fired::Ended(end) => Err(ticket.ended(end)),
        },
        () = tokio::time::sleep(ticket.generation.lease.timeout() / 3) => Ok(Step::ProveAndList),
    }
}

/// Returns the next step after the deletion of the awaited node: the predecessor's, or one further ahead.
fn step_after_deletion(
    ticket: &Ticket,
    predecessor: String,
    further: Further,
    losses: u64,
    own_watched: bool,
) -> Step {
    if planted!(WakeUpIsGrant) {
        return Step::At(Position::First);
    }
    // The hold is granted without another round trip only if our own node certainly exists (decisions 3 and
    // 18). After a reconnect, the server reports the changes of the gap path by path, so the predecessor's
    // deletion may arrive before an earlier deletion of our own node. Sessions of `zookeeper-client` never
    // keep the order.
    let own_watched = own_watched || planted!(HandOffWithoutOwnWatch);
    let is_evident = own_watched && ticket.is_evident(losses);
    match further {
        Further::None if is_evident => Step::At(Position::First),
        Further::None => Step::Prove,
        Further::Few(mut ahead) => {
            ahead.pop();
            ahead.push(predecessor);
            Step::CheckAhead(ahead)
        }
        Further::Before(_) if is_evident && planted!(OneBeforeIsPredecessor) => Step::At(Position::First),
        Further::Before(_) => Step::ListAndWatch(predecessor),
        // If a listing would need a proof, both go in the same round trip.
        Further::Unknown | Further::Unordered if is_evident => Step::List,
        Further::Unknown | Further::Unordered => Step::ProveAndList,
    }
}

impl Ticket {
    /// Returns true if the events of this link about the own node and the nodes ahead suffice for a hold,
    /// without a check of the own node. This requires that no link was lost since `losses`, that events
    /// arrive in order, and that a write is recent enough (decision 18).
    pub(super) fn is_evident(&self, losses: u64) -> bool {
        is_same_link(self, losses) && self.acked_recently()
    }

    /// Returns true for the next ticket in a line. Only one ticket for each line does this, so that many
    /// waiters write nothing: all readers behind a writer would be next at the same time.
    fn must_keep_fresh(&self, further: &Further) -> bool {
        further.is_next() && self.line.role() == Role::Exclusive && self.generation.session.orders_events()
    }

    /// Lists the line and returns the place. If the reply arrives on the same link as everything before, and
    /// a write is recent enough, a listing in which the own node is first is sufficient evidence (decision
    /// 18).
    pub(super) async fn list_for_step(&self) -> Result<Step, WaitError> {
        let losses = self.generation.losses();
        let position = self.list().await?;
        Ok(self.step_after_listing(position, losses))
    }

    /// Lists the line after a contender before the predecessor has left, and watches the predecessor in the
    /// same round trip. Usually the predecessor now holds, and no other contender is ahead.
    pub(super) async fn list_and_watch(
        &self,
        predecessor: String,
        watches: &mut LineWatches,
    ) -> Result<Step, WaitError> {
        let losses = self.generation.losses();
        let list = self.generation.session.submit(list_request(&self.line), Lane::Call);
        // If the watch is skipped here, it is set once the place is known.
        if !planted!(ExistenceWatch) {
            let _ = watches.set(self, &[predecessor]).await?;
        }
        let position = self.position_in(list.await).await?;
        Ok(self.step_after_listing(position, losses))
    }

    fn step_after_listing(&self, position: Position, losses: u64) -> Step {
        match position {
            // A listing is a read: it may be stale, and does not renew the lease.
            Position::First if !self.is_evident(losses) => Step::Prove,
            position => Step::At(position),
        }
    }

    /// Finds out which contenders of `ahead`, in line order, remain, by setting watches on their nodes. A
    /// contender whose node was deleted has left for good: its name is never used again, and new contenders
    /// join behind.
    pub(super) async fn check_ahead(
        &self,
        ahead: Vec<String>,
        watches: &mut LineWatches,
    ) -> Result<Step, WaitError> {
        let losses = self.generation.losses();
        if !watches.set(self, &ahead).await? {
            return Ok(Step::List);
        }
        let in_order = watches.are_of_link(&ahead, losses);
        let mut remaining = watches.remaining(ahead);
        // If the own node was deleted first, its event has already arrived.
        if let Some(fired) = watches.own_fired() {
            return own_fired(self, fired, watches);
        }
        Ok(match remaining.pop() {
            None if in_order && watches.own.is_some() && self.is_evident(losses) => Step::At(Position::First),
            None => Step::Prove,
            Some(predecessor) => {
                let further = if remaining.is_empty() { Further::None } else { Further::Few(remaining) };
                Step::At(Position::Behind { predecessor, further })
            }
        })
    }
}

/// Returns the next step after an event of the own node.
pub(super) fn own_fired(ticket: &Ticket, fired: Fired, watches: &mut LineWatches) -> Result<Step, WaitError> {
    watches.own = None;
    watches.own_changed = true;
    match fired {
        Fired::Event(EventKind::Deleted) => Err(WaitError::Gone),
        Fired::Event(_) => Ok(Step::List),
        Fired::Ended(end) => Err(ticket.ended(end)),
    }
}

async fn fired_own(own: &mut Option<Box<Watch>>) -> Fired {
    match own {
        Some(watch) => watch.await,
        None => pending().await,
    }
}

/// Checks the own node often enough that the newest acknowledged write is always fresh enough for a hold. A
/// check is due three quarters of a pulse after the last acknowledged write, whichever part of the session
/// sent that write. Returns when a check fails.
///
/// # Cancel safety
/// Cancel safe: a check changes nothing.
pub(super) async fn keep_fresh(ticket: &Ticket) -> WaitError {
    let (lease, clock) = (&ticket.generation.lease, &ticket.generation.clock);
    let mut not_before = clock.now();
    loop {
        let pace = lease.timing().pulse() / 4 * 3;
        let due = (lease.proof() + pace).max(not_before);
        if clock.now() < due {
            sleep_until(clock.as_ref(), due).await;
            // Another write of the session may have renewed the lease in the meantime.
            continue;
        }
        // If an answer proved too little, pause before the next check. If several tickets of one session are
        // next in their lines, one of them checks for all.
        let now = clock.now();
        not_before = now + lease.timing().pause();
        if !ticket.generation.begin_check(now, lease.timing().pause()) {
            continue;
        }
        match ticket.proven(ticket.submit_check().await).await {
            Ok(_) => {}
            Err(error) => return error,
        }
    }
}

// Watches of a waiting ticket, on its own node and on nodes ahead, set with as few requests as possible.

/// The watches of one ticket.
#[derive(Debug, Default)]
pub(super) struct LineWatches {
    /// Watch on the own node; `None` if no watch is set, or it fired.
    pub(super) own: Option<Box<Watch>>,
    /// True if another client wrote to the own node, or may have. The node's watch reports later writes, but
    /// not that one.
    pub(super) own_changed: bool,
    /// Watches on nodes ahead, at most one for each node.
    ahead: Vec<WatchAhead>,
}

/// Watch on a node ahead.
#[derive(Debug)]
pub(super) struct WatchAhead {
    name: String,
    pub(super) watch: Watch,
    /// Number of links that were lost before the watch was set.
    pub(super) losses: u64,
    /// True if a read set the watch, which shows that the servers send this client events about the node.
    pub(super) delivers_events: bool,
}

/// State of a node ahead, as its watch shows right after it was set.
enum NodeState {
    Watched,
    Changed,
    Deleted,
}

impl LineWatches {
    /// Returns the watch on the own node, and the watch on the node of this name if one is set.
    pub(super) fn on(&mut self, name: &str) -> (&mut Option<Box<Watch>>, Option<&mut WatchAhead>) {
        (&mut self.own, self.ahead.iter_mut().find(|ahead| ahead.name == name))
    }

    pub(super) fn forget(&mut self, name: &str) {
        self.ahead.retain(|ahead| ahead.name != name);
    }

    /// Returns true if the own node is watched, or a planted defect skips that watch.
    fn watches_own(&self) -> bool {
        self.own.is_some() || planted!(HandOffWithoutOwnWatch | GrantWithoutOwnNode)
    }

    /// Returns true if the watches on the own node and on the node of this name are set.
    pub(super) fn are_set(&self, name: &str) -> bool {
        self.watches_own() && self.ahead.iter().any(|ahead| ahead.name == name)
    }

    /// Returns the event of the watch on the own node, if it has arrived.
    pub(super) fn own_fired(&mut self) -> Option<Fired> {
        self.own.as_mut()?.fired.try_recv().ok()
    }

    /// Takes the watch on the own node for the new guard, unless the node may have changed since the ticket
    /// created it.
    pub(super) fn hand_over(&mut self) -> Option<Box<Watch>> {
        if self.own_changed { None } else { self.own.take() }
    }

    /// Sets the missing watches on the nodes of `names` and on the own node. All are set as of the
    /// transaction that created the own node, so the watch reports every write to the own node. Returns false
    /// if the caller should list the line again.
    ///
    /// # Errors
    /// `Gone` if the own node does not exist.
    pub(super) async fn set(&mut self, ticket: &Ticket, names: &[String]) -> Result<bool, WaitError> {
        let missing = names.iter().filter(|name| !self.ahead.iter().any(|ahead| ahead.name == **name));
        let missing: Vec<String> = missing.cloned().collect();
        let own = (!self.watches_own()).then(|| ticket.node.path.clone());
        let (set_own, read_own) = match own {
            Some(own) if self.own_changed || !ticket.is_surely_readable() => (None, Some(own)),
            own => (own, None),
        };
        let own_is_set = set_own.is_some();
        let folder = ticket.line.full_path();
        let paths = missing.iter().map(|name| format!("{folder}/{name}")).chain(set_own);
        let losses = ticket.generation.losses();
        let submit = |request| ticket.generation.session.submit(request, Lane::Call);
        let requests = watch_requests(ticket.node.czxid, paths, ticket.generation.max_request);
        let set: Vec<_> = requests.into_iter().map(submit).collect();
        if let Some(own) = read_own
            && !self.read_own(ticket, submit(watched(own))).await?
        {
            return Ok(false);
        }
        let mut watches = Vec::with_capacity(missing.len() + 1);
        for pending in set {
            let Some(reply) = ticket.reply(pending.await).await? else { return Ok(false) };
            if let Err(code) = reply.result {
                return Err(ticket.line.refused(code).into());
            }
            watches.extend(reply.watches);
        }
        if own_is_set {
            self.own = watches.pop().map(Box::new);
        }
        let ahead = missing.into_iter().zip(watches);
        self.ahead.extend(ahead.map(|(name, watch)| WatchAhead {
            name,
            watch,
            losses,
            delivers_events: false,
        }));
        Ok(true)
    }

    async fn read_own(&mut self, ticket: &Ticket, read: Pending) -> Result<bool, WaitError> {
        match ticket.reply(read.await).await? {
            None => Ok(false),
            Some(reply) if reply.result == Err(Code::NO_NODE) => Err(WaitError::Gone),
            // Without READ permission on the own node there is no watch. The node is then checked when the
            // turn comes.
            Some(reply) => {
                self.own = reply.watch;
                self.own_changed = true;
                Ok(true)
            }
        }
    }

    /// Returns true if all watches on the nodes of `names` were set on this link, after `losses` lost links.
    /// Events of older watches arrive path by path after a reconnect.
    pub(super) fn are_of_link(&self, names: &[String], losses: u64) -> bool {
        self.ahead.iter().filter(|ahead| names.contains(&ahead.name)).all(|ahead| ahead.losses == losses)
    }

    /// Returns the members of `names` whose nodes exist, according to the watches that were just set. A node
    /// that was written to still exists.
    pub(super) fn remaining(&mut self, names: Vec<String>) -> Vec<String> {
        let mut remaining = Vec::with_capacity(names.len());
        for name in names {
            match self.state_of(&name) {
                NodeState::Deleted => self.forget(&name),
                NodeState::Changed => {
                    self.forget(&name);
                    remaining.push(name);
                }
                NodeState::Watched => remaining.push(name),
            }
        }
        remaining
    }

    fn state_of(&mut self, name: &str) -> NodeState {
        let Some(ahead) = self.ahead.iter_mut().find(|ahead| ahead.name == name) else {
            return NodeState::Changed;
        };
        match ahead.watch.fired.try_recv() {
            Ok(Fired::Event(EventKind::Deleted)) => NodeState::Deleted,
            Ok(_) => NodeState::Changed,
            Err(_) => NodeState::Watched,
        }
    }

    /// Reads the node of this name with a watch, which replaces one that was set without a read. Returns
    /// `None` if the node does not exist, or if the caller should list the line again.
    ///
    /// # Errors
    /// `Some(NO_AUTH)` if the node may not be read.
    pub(super) async fn read(&mut self, ticket: &Ticket, name: &str) -> Result<Option<Code>, WaitError> {
        let path = format!("{}/{name}", ticket.line.full_path());
        let losses = ticket.generation.losses();
        let request = match planted!(ExistenceWatch) {
            true => Request::Exists { path, watch: true },
            false => watched(path),
        };
        let read = ticket.generation.session.submit(request, Lane::Call).await;
        let Some(reply) = ticket.reply(read).await? else {
            self.forget(name);
            return Ok(None);
        };
        // Add the new watch before the old one is dropped, so that the registration at the server is kept.
        if let Some(watch) = reply.watch {
            let read = WatchAhead { name: name.to_owned(), watch: *watch, losses, delivers_events: true };
            self.forget(name);
            self.ahead.push(read);
            return Ok(None);
        }
        self.forget(name);
        match reply.result {
            Err(Code::NO_AUTH) => Ok(Some(Code::NO_AUTH)),
            Ok(_) | Err(Code::NO_NODE) => Ok(None),
            Err(code) => Err(ticket.line.refused(code).into()),
        }
    }
}

impl Ticket {
    /// Returns true if the access control list lets everyone, or its creator, read the node. Otherwise only a
    /// read shows whether events arrive, because some servers send no events about a node that the client may
    /// not read.
    fn is_surely_readable(&self) -> bool {
        /// Number of digits at the end of the path.
        const DIGITS: usize = 10;
        let path = &self.node.path;
        let prefix = path.len().checked_sub(DIGITS).and_then(|end| path.get(..end)).unwrap_or(path);
        let all = |entry: &Acl| &*entry.scheme == "world" && &*entry.id == "anyone";
        let reads = |entry: &Acl| entry.permissions.contains(Permissions::READ);
        let acl = self.line.client().shared().acl(prefix);
        acl.iter().any(|entry| reads(entry) && (all(entry) || &*entry.scheme == "auth"))
    }
}

/// Returns a request that reads a node and watches it. Unlike `exists`, it leaves no watch if the node does
/// not exist.
pub(super) fn watched(path: String) -> Request {
    Request::GetData { path, watch: true }
}
