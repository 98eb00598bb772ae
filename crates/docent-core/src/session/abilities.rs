//! What the servers of a client can do. Older ZooKeepers and other servers of its protocol lack operations
//! (decision 31).

use crate::time::Timestamp;
use docent_proto::{Acl, Create, CreateKind, CreateMode, MultiOp, OpCode, Request, WatchKind};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Time after which a missing ability is tried again, on a new link, because the servers may have been
/// upgraded.
const REMEMBERED: Duration = Duration::from_secs(600);

/// Number of consecutive links that servers close without answering an operation before it is suspected to be
/// unknown to them. Servers that refuse an operation close the link behind their answer, which may be lost.
const SUSPICIOUS: u32 = 2;

/// Ability that not all servers have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Ability {
    /// `create2`, whose reply contains the node's stat.
    Create2,
    Containers,
    /// Nodes with a time to live.
    Ttl,
    RemoveWatches,
    /// Reads of many nodes in one request.
    MultiReads,
    PersistentWatches,
    WhoAmI,
}

impl Ability {
    pub(crate) const ALL: [Self; 7] = [
        Self::Create2,
        Self::Containers,
        Self::Ttl,
        Self::RemoveWatches,
        Self::MultiReads,
        Self::PersistentWatches,
        Self::WhoAmI,
    ];

    /// Returns the ability that the servers need for `request`.
    pub(super) fn of(request: &Request) -> Option<Self> {
        match request {
            Request::Multi(ops) => ops.iter().find_map(|op| match op {
                MultiOp::Create(Create { kind: CreateKind::Container, .. }) => Some(Self::Containers),
                MultiOp::Create(Create { kind: CreateKind::Ttl(_), .. }) => Some(Self::Ttl),
                _ => None,
            }),
            request => match request.op() {
                OpCode::Create2 => Some(Self::Create2),
                OpCode::CreateContainer => Some(Self::Containers),
                OpCode::CreateTtl => Some(Self::Ttl),
                OpCode::RemoveWatches => Some(Self::RemoveWatches),
                OpCode::MultiRead => Some(Self::MultiReads),
                OpCode::AddWatch | OpCode::SetWatches2 => Some(Self::PersistentWatches),
                OpCode::WhoAmI => Some(Self::WhoAmI),
                _ => None,
            },
        }
    }

    /// Returns a request that changes nothing and is answered by every server with the ability.
    pub(super) fn probe(self) -> Request {
        // The root always exists.
        let create = |kind, mode: CreateMode| {
            let (path, acl) = ("/".to_owned(), Acl::open().into());
            Request::Create(Create { kind, path, data: None, acl, flags: mode.flags() })
        };
        match self {
            Self::Create2 => create(CreateKind::WithStat, CreateMode::Persistent),
            Self::Containers => create(CreateKind::Container, CreateMode::Container),
            Self::Ttl => create(CreateKind::Ttl(1), CreateMode::PersistentTtl),
            Self::MultiReads => Request::MultiRead(vec![MultiOp::GetData { path: "/".to_owned() }]),
            // This client never watches that path.
            Self::RemoveWatches | Self::PersistentWatches => {
                Request::RemoveWatches { path: "/zookeeper/docent-probe".to_owned(), kind: WatchKind::Any }
            }
            Self::WhoAmI => Request::WhoAmI,
        }
    }

    /// Returns what the ability is called in errors, with the version that introduced it.
    pub(crate) fn requirement(self) -> &'static str {
        match self {
            Self::Create2 => "create2 (ZooKeeper 3.5 or newer)",
            Self::Containers => "containers (ZooKeeper 3.5 or newer, ClickHouse Keeper 26.6 or newer)",
            Self::Ttl => "nodes with a time to live (ZooKeeper 3.5 or newer with extendedTypesEnabled)",
            Self::RemoveWatches => "the removal of watches (ZooKeeper 3.5 or newer)",
            Self::MultiReads => "multi-reads (ZooKeeper 3.6 or newer)",
            Self::PersistentWatches => "persistent watches (ZooKeeper 3.6 or newer)",
            Self::WhoAmI => "whoAmI (ZooKeeper 3.7 or newer)",
        }
    }
}

/// What the servers of a client can do, as far as it has learned in any of its sessions.
#[derive(Debug, Default)]
pub(crate) struct Abilities {
    /// True if the server of the link is a ClickHouse Keeper. Read for each request, so not behind the lock.
    is_keeper: AtomicBool,
    learned: Mutex<Learned>,
}

/// Ability, and for one that is asked of each server separately, the server.
type Key = (Ability, Option<SocketAddr>);

/// What is known about an ability.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    Proven,
    Missing {
        since: Timestamp,
    },
    /// Servers closed this number of consecutive links without an answer.
    Unanswered {
        links: u32,
    },
}

#[derive(Debug, Default)]
struct Learned {
    /// Server of the link; `None` if its address is not known.
    server: Option<SocketAddr>,
    abilities: BTreeMap<Key, Known>,
    /// Abilities that are missing and were not logged yet.
    unlogged: Vec<Ability>,
}

impl Learned {
    /// While an ensemble is upgraded, caches use persistent watches at those servers that have them. Anything
    /// else is the same for all servers, because each has a substitute.
    fn key(&self, ability: Ability) -> Key {
        (ability, self.server.filter(|_| ability == Ability::PersistentWatches))
    }

    fn known(&self, ability: Ability) -> Option<Known> {
        self.abilities.get(&self.key(ability)).copied()
    }

    fn lacks(&self, ability: Ability) -> bool {
        matches!(self.known(ability), Some(Known::Missing { .. }))
    }

    /// Returns true until the servers have shown whether they have the ability.
    fn is_open(&self, ability: Ability) -> bool {
        matches!(self.known(ability), None | Some(Known::Unanswered { .. }))
    }

    fn is_suspect(&self, ability: Ability) -> bool {
        matches!(self.known(ability), Some(Known::Unanswered { links }) if links >= SUSPICIOUS)
    }

    fn miss(&mut self, ability: Ability, now: Timestamp) {
        let before = self.abilities.insert(self.key(ability), Known::Missing { since: now });
        if !matches!(before, Some(Known::Missing { .. })) {
            self.unlogged.push(ability);
        }
    }

    /// Counts a link that was closed without an answer.
    fn count_unanswered(&mut self, ability: Ability) {
        let links = match self.known(ability) {
            Some(Known::Missing { .. }) => return,
            Some(Known::Unanswered { links }) => links.saturating_add(1),
            Some(Known::Proven) | None => 1,
        };
        self.abilities.insert(self.key(ability), Known::Unanswered { links });
    }
}

impl Abilities {
    fn lock(&self) -> MutexGuard<'_, Learned> {
        self.learned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the abilities that no server has without `ability`. Persistent watches are not among them,
    /// because each server is asked for these separately.
    fn newer_than(&self, ability: Ability) -> &'static [Ability] {
        use Ability::{Containers, MultiReads, RemoveWatches, Ttl, WhoAmI};
        match ability {
            Ability::Create2 => &[Containers, Ttl, RemoveWatches, MultiReads, WhoAmI],
            Containers if self.is_keeper() => &[Ttl],
            _ => &[],
        }
    }

    /// Records a new link to `server`.
    pub(super) fn linked(&self, server: Option<SocketAddr>, now: Timestamp) {
        let mut learned = self.lock();
        learned.server = server;
        self.is_keeper.store(false, Ordering::Relaxed);
        // Caches ask for persistent watches once on each link.
        let asked = learned.key(Ability::PersistentWatches);
        learned.abilities.retain(|key, known| match known {
            Known::Proven => *key != asked,
            Known::Missing { since } => now.since(*since) < REMEMBERED,
            Known::Unanswered { .. } => true,
        });
    }

    /// Records what a server's answer to the handshake shows: `is_keeper` for a ClickHouse Keeper, which
    /// hangs up on operations that it does not know, and restores no session. Its versions with `create2` are
    /// served as well by `create`, and none has `whoAmI`.
    pub(super) fn greeted(&self, is_keeper: bool, now: Timestamp) {
        self.is_keeper.store(is_keeper, Ordering::Relaxed);
        if is_keeper {
            let mut learned = self.lock();
            learned.miss(Ability::Create2, now);
            learned.miss(Ability::WhoAmI, now);
        }
    }

    /// Returns true if the servers are known not to have the ability.
    pub(crate) fn lacks(&self, ability: Ability) -> bool {
        self.lock().lacks(ability)
    }

    /// Returns true once the servers have shown that they have the ability.
    pub(crate) fn has(&self, ability: Ability) -> bool {
        self.lock().known(ability) == Some(Known::Proven)
    }

    /// Returns true if the server of the link is a ClickHouse Keeper.
    pub(crate) fn is_keeper(&self) -> bool {
        self.is_keeper.load(Ordering::Relaxed)
    }

    /// Records that a server has the ability.
    pub(crate) fn answered(&self, ability: Ability) {
        let mut learned = self.lock();
        let key = learned.key(ability);
        learned.abilities.insert(key, Known::Proven);
        // Keeper has had nodes with a time to live for longer than containers.
        if self.is_keeper() && ability == Ability::Containers && learned.lacks(Ability::Ttl) {
            learned.abilities.remove(&(Ability::Ttl, None));
        }
    }

    /// Records that a server refused an operation that it does not know.
    pub(crate) fn refused(&self, ability: Ability, now: Timestamp) {
        let mut learned = self.lock();
        learned.miss(ability, now);
        for newer in self.newer_than(ability) {
            learned.miss(*newer, now);
        }
    }

    /// Records that a server closed the link before it answered. `is_probe` says that nothing else was in
    /// flight, and that the operation was suspected before. A link may be lost for any reason: otherwise it
    /// takes several of them, and the operation is only suspected.
    pub(super) fn hung_up(&self, ability: Ability, is_probe: bool, now: Timestamp) {
        if is_probe {
            return self.refused(ability, now);
        }
        let mut learned = self.lock();
        if learned.is_open(ability) {
            learned.count_unanswered(ability);
        }
    }

    /// Records that the link was lost while a request for a persistent watch was unanswered. Caches do well
    /// without, so this needs no proof.
    pub(super) fn unanswered(&self, ability: Ability, now: Timestamp) {
        let mut learned = self.lock();
        learned.count_unanswered(ability);
        if learned.is_suspect(ability) {
            learned.miss(ability, now);
            // A log message would name the server of the next link.
            learned.unlogged.retain(|unlogged| *unlogged != ability);
        }
    }

    /// Returns the abilities that were found to be missing since the last call.
    pub(super) fn take_unlogged(&self) -> Vec<Ability> {
        std::mem::take(&mut self.lock().unlogged)
    }

    /// Returns true while it is open whether the server of the link hangs up on a probe.
    pub(super) fn is_probing(&self) -> bool {
        self.is_keeper() && self.lock().is_open(Ability::Containers)
    }

    /// Returns the ability to probe before anything else is sent, if the next request needs `next`. A Keeper
    /// is probed as soon as the session is attached: hanging up ends the session, which has nothing to lose
    /// yet. A client that `only_reads` never probes with a write.
    pub(super) fn to_probe(&self, next: Option<Ability>, only_reads: bool) -> Option<Ability> {
        let may_ask = |ability: &Ability| !(only_reads && ability.probe().is_write());
        let of_keeper = self.is_probing().then_some(Ability::Containers).filter(may_ask);
        let is_due =
            |ability: &Ability| *ability != Ability::PersistentWatches && self.lock().is_suspect(*ability);
        of_keeper.or_else(|| next.filter(is_due).filter(may_ask))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::default() + Duration::from_secs(seconds)
    }

    fn server(port: u16) -> Option<SocketAddr> {
        Some(SocketAddr::from(([127, 0, 0, 1], port)))
    }

    #[test]
    fn a_refusal_counts_for_all_servers_and_for_a_time() {
        let abilities = Abilities::default();
        abilities.linked(server(1), at(0));
        abilities.refused(Ability::Create2, at(1));
        abilities.linked(server(2), at(2));
        assert!(abilities.lacks(Ability::Create2));
        assert!(abilities.lacks(Ability::Containers), "containers are not older");
        assert!(!abilities.lacks(Ability::PersistentWatches), "each server is asked for these");
        abilities.linked(server(2), at(601));
        assert!(!abilities.lacks(Ability::Create2), "the servers may have been upgraded");
    }

    #[test]
    fn a_refusal_of_persistent_watches_counts_for_its_own_server_and_for_a_time() {
        let (abilities, ability) = (Abilities::default(), Ability::PersistentWatches);
        abilities.linked(server(1), at(0));
        assert!(!abilities.lacks(ability));
        abilities.refused(ability, at(1));
        assert!(abilities.lacks(ability));
        abilities.linked(server(2), at(2));
        assert!(!abilities.lacks(ability), "the link is to another server");
        abilities.linked(server(1), at(600));
        assert!(abilities.lacks(ability));
        abilities.linked(server(1), at(601));
        assert!(!abilities.lacks(ability), "the server may have been upgraded");
    }

    #[test]
    fn a_server_that_drops_each_link_that_asks_for_persistent_watches_counts_as_refusing() {
        let (abilities, ability) = (Abilities::default(), Ability::PersistentWatches);
        abilities.linked(server(1), at(0));
        abilities.unanswered(ability, at(0));
        abilities.linked(server(1), at(1));
        assert!(!abilities.lacks(ability), "a link may be lost for any reason");
        abilities.answered(ability);
        abilities.unanswered(ability, at(1));
        abilities.linked(server(1), at(2));
        assert!(!abilities.lacks(ability), "the server has answered since");
        abilities.unanswered(ability, at(2));
        abilities.linked(server(1), at(3));
        assert!(abilities.lacks(ability));
        assert_eq!(abilities.take_unlogged(), [], "the next link may be to another server");
    }

    #[test]
    fn a_hang_up_only_counts_if_it_repeats_and_then_again_on_a_probe() {
        let (abilities, ability) = (Abilities::default(), Ability::Create2);
        abilities.linked(server(1), at(0));
        abilities.hung_up(ability, false, at(1));
        assert_eq!(abilities.to_probe(Some(ability), false), None, "a link may be lost for any reason");
        abilities.hung_up(ability, false, at(2));
        assert!(!abilities.lacks(ability));
        assert_eq!(abilities.to_probe(Some(ability), false), Some(ability));
        assert_eq!(abilities.to_probe(None, false), None, "it is not needed");
        abilities.hung_up(ability, true, at(3));
        assert!(abilities.lacks(ability));
        assert_eq!(abilities.to_probe(Some(ability), false), None);
    }

    #[test]
    fn an_answer_corrects_a_suspicion_and_later_hang_ups_do_not_count() {
        let (abilities, ability) = (Abilities::default(), Ability::Create2);
        abilities.linked(server(1), at(0));
        for seconds in 1..3 {
            abilities.hung_up(ability, false, at(seconds));
        }
        abilities.answered(ability);
        for seconds in 3..9 {
            abilities.hung_up(ability, false, at(seconds));
        }
        assert_eq!(abilities.to_probe(Some(ability), false), None);
        assert!(!abilities.lacks(ability));
    }

    #[test]
    fn a_keeper_is_probed_once_before_anything_else() {
        let abilities = Abilities::default();
        abilities.linked(server(1), at(0));
        abilities.greeted(true, at(0));
        assert!(abilities.lacks(Ability::Create2) && abilities.lacks(Ability::WhoAmI));
        assert_eq!(abilities.to_probe(None, false), Some(Ability::Containers));
        abilities.hung_up(Ability::Containers, true, at(0));
        assert!(abilities.lacks(Ability::Containers) && abilities.lacks(Ability::Ttl));
        abilities.linked(server(2), at(1));
        abilities.greeted(true, at(1));
        assert_eq!(abilities.to_probe(None, false), None);
        abilities.linked(server(2), at(601));
        abilities.greeted(true, at(601));
        assert_eq!(abilities.to_probe(None, false), Some(Ability::Containers), "it may have been upgraded");
        abilities.answered(Ability::Containers);
        assert!(!abilities.lacks(Ability::Containers) && !abilities.lacks(Ability::Ttl));
    }
}
