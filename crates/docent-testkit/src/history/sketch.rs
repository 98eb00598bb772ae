//! Small runs, written by hand: what a checker is checked with. Times are milliseconds.
//!
//! Clients have the numbers 0 to 3, and each has a session with the id 1 more than its number; the session timeout is 6 s, the
//! tick 500 ms, and news take 200 ms. Whatever is told happens at the time of the last [`at`](Sketch::at).

use super::check::check;
use super::event::{
    Announcing, Attempt, AttemptId, Candidacy, ClientId, Delivering, Ending, Event, FaultKind, Following,
    Grant, Handle, LinkState, Listed, Meeting, Outcome, Publishing, Putting, Role, Taking, Use, Viewing, Way,
    What,
};
use super::journal::{Change, ChangeKind, EndCause};
use super::run::{EndState, Facts, Queued, QueuedAs, Run, Written};
use super::violation::Invariant;
use std::collections::BTreeMap;
use std::time::Duration;

pub(crate) const LOCK: &str = "/lock";
/// A queue whose items are handed out twice at most.
const QUEUE: &str = "/queue";
/// The number of whoever looks at a folder, and of whoever follows a value.
pub(crate) const VIEW: u64 = 901;
pub(crate) const FOLLOWER: u64 = 902;
const CLIENTS: u32 = 4;

#[derive(Debug, Clone)]
pub(crate) struct Sketch {
    pub(crate) run: Run,
    now: Duration,
    zxid: i64,
    numbers: BTreeMap<String, i32>,
    attempts: u64,
    /// What stands before the number of an attempt's node, unless it is that of a mutex.
    markers: BTreeMap<AttemptId, &'static str>,
    /// Whose attempt, where, and by which nodes.
    seats: BTreeMap<AttemptId, (ClientId, String, Vec<String>)>,
    /// The session and epoch of each client.
    sessions: BTreeMap<ClientId, (i64, u64)>,
    /// Nodes that are there, with their creation and owner.
    nodes: BTreeMap<String, (i64, i64)>,
}

/// A member of a double barrier.
#[derive(Debug, Clone)]
pub(crate) struct Guest {
    id: AttemptId,
    number: u32,
    node: String,
}

/// An item of the queue.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    pub(crate) item: u64,
    pub(crate) node: String,
}

/// An item that was handed out.
#[derive(Debug, Clone)]
pub(crate) struct Given {
    pub(crate) item: Stored,
    pub(crate) fence: u64,
    id: AttemptId,
    number: u32,
}

pub(crate) fn client(number: u32) -> ClientId {
    ClientId { number, life: 0 }
}

/// The number of a candidate.
pub(crate) fn candidate(number: u64) -> AttemptId {
    AttemptId(1_000 + number)
}

impl Sketch {
    /// Four clients that are connected.
    pub(crate) fn new() -> Self {
        let mut sketch = Self {
            run: Run {
                facts: Facts::new(Duration::from_millis(500), Duration::from_secs(6)),
                ..Run::default()
            },
            now: Duration::from_millis(10),
            zxid: 0,
            numbers: BTreeMap::new(),
            attempts: 0,
            markers: BTreeMap::new(),
            seats: BTreeMap::new(),
            sessions: BTreeMap::new(),
            nodes: BTreeMap::new(),
        };
        sketch.run.facts.tolerances.news = Duration::from_millis(200);
        sketch.run.facts.queues.insert(QUEUE.to_owned(), 2);
        for number in 0..CLIENTS {
            sketch.connect(number, i64::from(number) + 1, 1);
        }
        sketch
    }

    /// One lock that is handed from client 0 to client 1; all is closed at the end.
    pub(crate) fn good() -> Self {
        let mut sketch = Self::new();
        let first = sketch.at(100).begin(0);
        sketch.at(102).create(first).at(104).grant(first).looked(first, true).used(first);
        let second = sketch.at(110).begin(1);
        sketch.at(112).create(second);
        sketch.at(200).releasing(first).at(202).delete(first).at(204).released(first, true);
        let gone = sketch.node(first);
        sketch.at(204).tell(1, What::Notified { path: gone });
        sketch.at(205).grant(second).used(second).looked(second, true);
        sketch.at(300).dropped(second).at(302).delete(second);
        for number in 0..CLIENTS {
            sketch.at(400).close(number);
        }
        sketch.end(1_000)
    }

    /// What happens from now on happens at this time.
    pub(crate) fn at(&mut self, ms: u64) -> &mut Self {
        self.now = Duration::from_millis(ms);
        self
    }

    pub(crate) fn tell(&mut self, number: u32, what: What) -> &mut Self {
        self.run.events.push(Event { at: self.now, client: Some(client(number)), what });
        self
    }

    pub(crate) fn world(&mut self, what: What) -> &mut Self {
        self.run.events.push(Event { at: self.now, client: None, what });
        self
    }

    pub(crate) fn fault(&mut self, number: u32, kind: FaultKind) -> &mut Self {
        self.tell(number, What::Fault(kind))
    }

    pub(crate) fn heal(&mut self, number: u32, kind: FaultKind) -> &mut Self {
        self.tell(number, What::Healed(kind))
    }

    /// The server opens a session for a client, which tells that it is connected.
    pub(crate) fn connect(&mut self, number: u32, session: i64, epoch: u64) -> &mut Self {
        self.zxid += 1;
        self.change(session, ChangeKind::Opened, "", 0);
        self.sessions.insert(client(number), (session, epoch));
        self.link(number, LinkState::Connected)
    }

    /// A client tells another state of the link of its present session.
    pub(crate) fn link(&mut self, number: u32, state: LinkState) -> &mut Self {
        let (session, epoch) = self.sessions[&client(number)];
        self.tell(number, What::Connection { state, epoch, suspensions: 0, session: Some(session) })
    }

    pub(crate) fn begin(&mut self, number: u32) -> AttemptId {
        self.begin_at(number, LOCK)
    }

    pub(crate) fn begin_at(&mut self, number: u32, path: &str) -> AttemptId {
        self.begin_as(number, path, None)
    }

    pub(crate) fn begin_for(&mut self, number: u32, patience: u64) -> AttemptId {
        self.begin_as(number, LOCK, Some(Duration::from_millis(patience)))
    }

    /// Somebody wants to write.
    pub(crate) fn write(&mut self, number: u32) -> AttemptId {
        let attempt = self.begin(number);
        self.markers.insert(attempt, "__WRIT__");
        attempt
    }

    /// Somebody wants to read.
    pub(crate) fn read(&mut self, number: u32) -> AttemptId {
        let attempt = self.begin_role(number, LOCK, None, Role::Shared);
        self.markers.insert(attempt, "__READ__");
        attempt
    }

    /// Somebody wants to read at once.
    pub(crate) fn try_read(&mut self, number: u32) -> AttemptId {
        let attempt = self.begin_role(number, LOCK, Some(Duration::ZERO), Role::Shared);
        self.markers.insert(attempt, "__READ__");
        attempt
    }

    /// Somebody wants one of so many permits.
    pub(crate) fn permit(&mut self, number: u32, permits: u32) -> AttemptId {
        self.begin_role(number, LOCK, None, Role::Permits(permits))
    }

    /// Somebody campaigns for one term.
    pub(crate) fn campaign(&mut self, number: u32) -> AttemptId {
        let attempt = self.begin(number);
        self.stands(number, attempt.0 + 100, attempt, None, 0)
    }

    /// A candidate whose work is bound to its terms stands.
    pub(crate) fn run_at(&mut self, number: u32, candidate: u64) -> AttemptId {
        self.run_with(number, candidate, 0, 0)
    }

    /// As [`run_at`](Self::run_at), with a grace and a takeover delay.
    pub(crate) fn run_with(&mut self, number: u32, candidate: u64, grace: u64, delay: u64) -> AttemptId {
        let attempt = self.begin(number);
        self.stands(number, candidate, attempt, Some(Duration::from_millis(grace)), delay)
    }

    fn stands(
        &mut self,
        number: u32,
        stands: u64,
        attempt: AttemptId,
        bound: Option<Duration>,
        delay: u64,
    ) -> AttemptId {
        let delay = Duration::from_millis(delay);
        self.tell(number, What::Stood(candidate(stands), Candidacy::Stands { attempt, bound, delay }));
        self.markers.insert(attempt, "latch-");
        attempt
    }

    /// A node is written under a term, and named after it.
    pub(crate) fn write_under(&mut self, attempt: AttemptId) -> &mut Self {
        let (session, _) = self.sessions[&self.seats[&attempt].0];
        let path = format!("/written/{attempt}-{:08x}", self.zxid);
        self.make(&path, session, 0)
    }

    fn begin_as(&mut self, number: u32, path: &str, patience: Option<Duration>) -> AttemptId {
        self.begin_role(number, path, patience, Role::Exclusive)
    }

    fn begin_role(&mut self, number: u32, path: &str, patience: Option<Duration>, role: Role) -> AttemptId {
        self.attempts += 1;
        let id = AttemptId(self.attempts);
        self.seats.insert(id, (client(number), path.to_owned(), Vec::new()));
        self.tell(number, What::Began(Attempt { id, path: path.to_owned(), role, patience }));
        id
    }

    /// The node of an attempt, in its client's present session.
    pub(crate) fn create(&mut self, attempt: AttemptId) -> &mut Self {
        let number = self.numbers.entry(self.seats[&attempt].1.clone()).or_default();
        *number += 1;
        let number = *number - 1;
        self.create_with(attempt, number)
    }

    /// The node of an attempt, with the number that another one's last node has.
    pub(crate) fn create_in_place_of(&mut self, other: AttemptId, attempt: AttemptId) -> &mut Self {
        let place = self.node(other);
        let number = place.split_at(place.len() - 10).1.parse().unwrap();
        self.create_with(attempt, number)
    }

    fn create_with(&mut self, attempt: AttemptId, number: i32) -> &mut Self {
        let (owner, folder) = (self.seats[&attempt].0, self.seats[&attempt].1.clone());
        let (session, _) = self.sessions[&owner];
        self.zxid += 1;
        let marker = self.markers.get(&attempt).copied().unwrap_or("lock-");
        let path = format!("{folder}/_c_00000000-0000-4000-8000-{:012}-{marker}{number:010}", self.zxid);
        self.change(session, ChangeKind::Created, &path, session);
        self.nodes.insert(path.clone(), (self.zxid, session));
        if let Some((.., nodes)) = self.seats.get_mut(&attempt) {
            nodes.push(path);
        }
        self
    }

    /// The last node of an attempt.
    pub(crate) fn node(&self, attempt: AttemptId) -> String {
        self.seats[&attempt].2.last().cloned().unwrap_or_default()
    }

    fn czxid(&self, path: &str) -> i64 {
        let created = |change: &&Change| change.kind == ChangeKind::Created && change.path == path;
        self.run.journal.iter().rev().find(created).map_or(0, |change| change.zxid)
    }

    fn seat(&self, attempt: AttemptId) -> u32 {
        self.seats[&attempt].0.number
    }

    /// The fence that goes with the node of an attempt.
    pub(crate) fn fence(&self, attempt: AttemptId) -> u64 {
        self.czxid(&self.node(attempt)).unsigned_abs()
    }

    /// Readers have no fence.
    pub(crate) fn grant(&mut self, attempt: AttemptId) -> &mut Self {
        if self.markers.get(&attempt) == Some(&"__READ__") {
            return self.grant_plain(attempt);
        }
        self.grant_with(attempt, self.fence(attempt))
    }

    pub(crate) fn grant_with(&mut self, attempt: AttemptId, fence: u64) -> &mut Self {
        self.grant_as(attempt, Some(fence))
    }

    /// Without a fence.
    pub(crate) fn grant_plain(&mut self, attempt: AttemptId) -> &mut Self {
        self.grant_as(attempt, None)
    }

    fn grant_as(&mut self, attempt: AttemptId, fence: Option<u64>) -> &mut Self {
        let (session, epoch) = self.sessions[&self.seats[&attempt].0];
        let grant = Grant { node: self.node(attempt), session, epoch, fence };
        self.tell(self.seat(attempt), What::Granted(attempt, grant))
    }

    pub(crate) fn ended(&mut self, attempt: AttemptId, ending: Ending) -> &mut Self {
        self.tell(self.seat(attempt), What::Ended(attempt, ending))
    }

    pub(crate) fn looked(&mut self, attempt: AttemptId, held: bool) -> &mut Self {
        self.tell(self.seat(attempt), What::Looked { attempt, held, cancelled: !held })
    }

    pub(crate) fn used(&mut self, attempt: AttemptId) -> &mut Self {
        let fence = self.fence(attempt);
        self.used_with(attempt, fence, true)
    }

    pub(crate) fn used_with(&mut self, attempt: AttemptId, fence: u64, accepted: bool) -> &mut Self {
        self.tell(self.seat(attempt), What::Used(attempt, Use { fence, accepted }))
    }

    pub(crate) fn reentered(&mut self, attempt: AttemptId, handle: Handle) -> &mut Self {
        self.tell(self.seat(attempt), What::Reentered(attempt, handle))
    }

    pub(crate) fn lost(&mut self, attempt: AttemptId) -> &mut Self {
        self.tell(self.seat(attempt), What::Lost(attempt))
    }

    pub(crate) fn releasing(&mut self, attempt: AttemptId) -> &mut Self {
        self.tell(self.seat(attempt), What::Releasing(attempt))
    }

    pub(crate) fn released(&mut self, attempt: AttemptId, ok: bool) -> &mut Self {
        self.tell(self.seat(attempt), What::Released { attempt, ok })
    }

    pub(crate) fn dropped(&mut self, attempt: AttemptId) -> &mut Self {
        self.tell(self.seat(attempt), What::Dropped(attempt))
    }

    /// The client of an attempt deletes its last node.
    pub(crate) fn delete(&mut self, attempt: AttemptId) -> &mut Self {
        let (session, _) = self.sessions[&self.seats[&attempt].0];
        let path = self.node(attempt);
        self.delete_path(&path, session)
    }

    /// A session deletes a node.
    pub(crate) fn delete_path(&mut self, path: &str, session: i64) -> &mut Self {
        self.zxid += 1;
        let owner = self.nodes.remove(path).map_or(0, |(_, owner)| owner);
        self.change(session, ChangeKind::Deleted, path, owner);
        self
    }

    /// The server ends a session, and its nodes with it.
    pub(crate) fn end_session(&mut self, session: i64, cause: EndCause) -> &mut Self {
        self.zxid += 1;
        self.change(session, ChangeKind::Ended(cause), "", 0);
        let owned = |(_, (_, owner)): &(&String, &(i64, i64))| *owner == session;
        let paths: Vec<String> = self.nodes.iter().filter(owned).map(|(path, _)| path.clone()).collect();
        for path in paths {
            self.nodes.remove(&path);
            self.change(session, ChangeKind::Deleted, &path, session);
        }
        self
    }

    /// A client closes, as it should.
    pub(crate) fn close(&mut self, number: u32) -> &mut Self {
        let (session, _) = self.sessions[&client(number)];
        self.tell(number, What::Closing).end_session(session, EndCause::Closed);
        self.link(number, LinkState::Closed).tell(number, What::Closed)
    }

    /// The line's node is deleted and made anew: numbers begin at 0 again.
    pub(crate) fn reset(&mut self) -> &mut Self {
        self.numbers.clear();
        self
    }

    /// A session makes a node, which belongs to `owner`.
    pub(crate) fn make(&mut self, path: &str, session: i64, owner: i64) -> &mut Self {
        self.zxid += 1;
        self.change(session, ChangeKind::Created, path, owner);
        self.nodes.insert(path.to_owned(), (self.zxid, owner));
        self
    }

    /// A transaction that changes no node.
    pub(crate) fn pass(&mut self) -> &mut Self {
        self.zxid += 1;
        self.change(0, ChangeKind::Set, "/limit", 0);
        self
    }

    /// A member of the double barrier at [`LOCK`] comes, and its node.
    pub(crate) fn come(&mut self, number: u32, members: u32) -> Guest {
        self.attempts += 1;
        let id = AttemptId(self.attempts);
        self.tell(number, What::Met(id, Meeting::Came { path: LOCK.to_owned(), members }));
        let (session, _) = self.sessions[&client(number)];
        let node = format!("{LOCK}/00000000-0000-4000-8000-{:012}", self.zxid + 1);
        self.make(&node, session, session);
        Guest { id, number, node }
    }

    /// The door of that barrier is opened.
    pub(crate) fn open(&mut self, number: u32) -> &mut Self {
        let (session, _) = self.sessions[&client(number)];
        self.make(&format!("{LOCK}/ready"), session, 0)
    }

    pub(crate) fn enter(&mut self, guest: &Guest) -> &mut Self {
        self.tell(guest.number, What::Met(guest.id, Meeting::Entered(guest.node.clone())))
    }

    pub(crate) fn leaving(&mut self, guest: &Guest) -> &mut Self {
        self.tell(guest.number, What::Met(guest.id, Meeting::Leaving))
    }

    pub(crate) fn left(&mut self, guest: &Guest) -> &mut Self {
        self.tell(guest.number, What::Met(guest.id, Meeting::Left { ok: true }))
    }

    /// The node of a member is deleted by its client.
    pub(crate) fn gone(&mut self, guest: &Guest) -> &mut Self {
        let (session, _) = self.sessions[&client(guest.number)];
        self.delete_path(&guest.node, session)
    }

    fn id(&mut self) -> AttemptId {
        self.attempts += 1;
        AttemptId(self.attempts)
    }

    /// A put begins.
    pub(crate) fn putting(&mut self, number: u32, items: &[u64]) -> AttemptId {
        let id = self.id();
        let began = Putting::Began { path: QUEUE.to_owned(), items: items.to_vec() };
        self.tell(number, What::Put(id, began));
        id
    }

    pub(crate) fn put_ended(&mut self, number: u32, put: AttemptId, outcome: Option<bool>) -> &mut Self {
        self.tell(number, What::Put(put, Putting::Ended(outcome)))
    }

    /// The nodes of items come, in one step.
    pub(crate) fn stored(&mut self, number: u32, items: &[u64]) -> &mut Self {
        let (session, _) = self.sessions[&client(number)];
        self.zxid += 1;
        for item in items {
            let next = self.numbers.entry(QUEUE.to_owned()).or_default();
            *next += 1;
            let node = format!("{QUEUE}/items/item-{:010}", *next - 1);
            self.change(session, ChangeKind::Created, &node, 0);
            self.nodes.insert(node.clone(), (self.zxid, 0));
            self.note_item(*item, node, QueuedAs::Item { decodable: true });
        }
        self
    }

    fn note_item(&mut self, item: u64, node: String, kind: QueuedAs) {
        self.run.facts.queued.push(Queued { queue: QUEUE.to_owned(), node, zxid: self.zxid, item, kind });
    }

    /// An item is put, and there.
    pub(crate) fn put(&mut self, number: u32, item: u64) -> Stored {
        let put = self.putting(number, &[item]);
        self.stored(number, &[item]).put_ended(number, put, Some(true));
        let node = self.run.facts.queued.last().map(|queued| queued.node.clone()).unwrap_or_default();
        Stored { item, node }
    }

    /// That item cannot be decoded.
    pub(crate) fn undecodable(&mut self, item: &Stored) -> &mut Self {
        for queued in &mut self.run.facts.queued {
            if queued.node == item.node {
                queued.kind = QueuedAs::Item { decodable: false };
            }
        }
        self
    }

    pub(crate) fn take(&mut self, number: u32, waits: bool) -> AttemptId {
        let id = self.id();
        self.tell(number, What::Took(id, Taking::Began { path: QUEUE.to_owned(), waits }));
        id
    }

    pub(crate) fn over(&mut self, number: u32, take: AttemptId) -> &mut Self {
        self.tell(number, What::Took(take, Taking::Over))
    }

    /// Somebody takes a place in the line of the idle.
    pub(crate) fn idle(&mut self, number: u32) -> String {
        let (session, _) = self.sessions[&client(number)];
        let node = format!("{QUEUE}/idle/_c_00000000-0000-4000-8000-{:012}-idle-0000000000", self.zxid + 1);
        self.make(&node, session, session);
        node
    }

    /// The claim of an item.
    pub(crate) fn claim(&mut self, number: u32, item: &Stored) -> String {
        let (session, _) = self.sessions[&client(number)];
        let claim = format!("{}/claim", item.node);
        self.make(&claim, session, session);
        claim
    }

    /// An item is claimed and handed out.
    pub(crate) fn give(&mut self, number: u32, item: &Stored, count: u32) -> Given {
        self.claim(number, item);
        let (id, fence) = (self.id(), self.zxid.unsigned_abs());
        self.tell_given(number, id, item, fence, Some(count));
        Given { item: item.clone(), fence, id, number }
    }

    /// An item is handed out, and no claim made.
    pub(crate) fn give_unclaimed(&mut self, number: u32, item: &Stored, fence: u64) -> &mut Self {
        let id = self.id();
        self.tell_given(number, id, item, fence, Some(1))
    }

    fn tell_given(
        &mut self,
        number: u32,
        id: AttemptId,
        item: &Stored,
        fence: u64,
        deliveries: Option<u32>,
    ) -> &mut Self {
        let Stored { item, node } = item.clone();
        self.tell(number, What::Delivered(id, Delivering::Given { item, node, fence, deliveries }))
    }

    fn tell_of(&mut self, given: &Given, what: Delivering) -> &mut Self {
        self.tell(given.number, What::Delivered(given.id, what))
    }

    pub(crate) fn held(&mut self, given: &Given, held: bool) -> &mut Self {
        self.tell_of(given, Delivering::Looked { held })
    }

    pub(crate) fn acking(&mut self, given: &Given) -> &mut Self {
        self.tell_of(given, Delivering::Acking)
    }

    pub(crate) fn acked(&mut self, given: &Given, outcome: Option<bool>) -> &mut Self {
        self.tell_of(given, Delivering::Acked(outcome))
    }

    pub(crate) fn given_back(&mut self, given: &Given) -> &mut Self {
        self.tell_of(given, Delivering::GivenBack { delay: Duration::ZERO })
    }

    /// The claim of a delivery is deleted by its client.
    pub(crate) fn delete_claim(&mut self, given: &Given) -> &mut Self {
        let (session, _) = self.sessions[&client(given.number)];
        self.delete_path(&format!("{}/claim", given.item.node), session)
    }

    /// The item of a delivery is deleted by its client, and the claim with it.
    pub(crate) fn end_item(&mut self, given: &Given) -> &mut Self {
        let (session, _) = self.sessions[&client(given.number)];
        self.delete_claim(given);
        self.zxid -= 1;
        self.delete_path(&given.item.node, session)
    }

    /// The dead letter of an item comes.
    pub(crate) fn letter(&mut self, item: &Stored, undecodable: bool) -> &mut Self {
        let node = format!("{QUEUE}/dead/letter-{:010}", self.zxid);
        self.make(&node, 1, 0);
        self.note_item(item.item, node, QueuedAs::DeadLetter { undecodable });
        self
    }

    /// Somebody claims an item and moves it to the dead letters.
    pub(crate) fn bury(&mut self, number: u32, item: &Stored, undecodable: bool) -> &mut Self {
        let take = self.take(number, true);
        let (claim, session) = (self.claim(number, item), self.sessions[&client(number)].0);
        self.over(number, take).delete_path(&claim, session);
        self.zxid -= 1;
        self.delete_path(&item.node, session);
        self.zxid -= 1;
        self.letter(item, undecodable)
    }

    /// A node that is made with data; ephemeral unless its session is 0.
    pub(crate) fn write_node(&mut self, path: &str, session: i64, number: Option<u64>) -> &mut Self {
        self.make(path, session, session).note(path, number)
    }

    /// Data that is set.
    pub(crate) fn write_again(&mut self, path: &str, session: i64, number: Option<u64>) -> &mut Self {
        self.zxid += 1;
        self.change(session, ChangeKind::Set, path, session);
        self.note(path, number)
    }

    fn note(&mut self, path: &str, number: Option<u64>) -> &mut Self {
        self.run.facts.written.push(Written { path: path.to_owned(), zxid: self.zxid, number });
        self
    }

    pub(crate) fn last_zxid(&self) -> i64 {
        self.zxid
    }

    /// Somebody wants to be listed, or says something else.
    pub(crate) fn wants(&mut self, client: u32, id: u64, path: &str, number: u64) -> &mut Self {
        let path = path.to_owned();
        self.tell(client, What::Announced(AttemptId(id), Announcing::Wants { path, number }))
    }

    /// Somebody looks at a folder.
    pub(crate) fn view(&mut self, client: u32, folder: &str, grace: u64) -> &mut Self {
        let (folder, grace) = (folder.to_owned(), Duration::from_millis(grace));
        self.tell(client, What::Viewed(AttemptId(VIEW), Viewing::Opened { folder, grace }))
    }

    /// What is shown below `/s`.
    pub(crate) fn shown(&mut self, client: u32, listed: &[(&str, Option<u64>)]) -> &mut Self {
        let list = |(name, number): &(&str, Option<u64>)| {
            let zxid = number.and_then(|number| self.written(&format!("/s/{name}"), number));
            Listed { name: (*name).to_owned(), number: *number, zxid }
        };
        let listed = listed.iter().map(list).collect();
        self.tell(client, What::Viewed(AttemptId(VIEW), Viewing::Shown(listed)))
    }

    fn written(&self, path: &str, number: u64) -> Option<i64> {
        let mut written = self.run.facts.written.iter();
        written.find(|write| write.path == path && write.number == Some(number)).map(|write| write.zxid)
    }

    /// Somebody follows a value.
    pub(crate) fn follow(&mut self, client: u32, path: &str) -> &mut Self {
        self.tell(client, What::Followed(AttemptId(FOLLOWER), Following::Begins(path.to_owned())))
    }

    /// It is shown a number, with the transaction that wrote it, if one did.
    pub(crate) fn saw(&mut self, client: u32, path: &str, number: u64) -> &mut Self {
        let zxid = self.written(path, number).unwrap_or_default();
        self.tell(client, What::Followed(AttemptId(FOLLOWER), Following::Saw { number, zxid }))
    }

    /// A call that changes a value.
    pub(crate) fn publish(&mut self, client: u32, id: u64, path: &str, way: Way) -> &mut Self {
        let path = path.to_owned();
        self.tell(client, What::Published(AttemptId(id), Publishing::Began { path, way }))
    }

    /// It returns.
    pub(crate) fn published(&mut self, client: u32, id: u64, outcome: Outcome) -> &mut Self {
        self.tell(client, What::Published(AttemptId(id), Publishing::Done(outcome)))
    }

    fn change(&mut self, session: i64, kind: ChangeKind, path: &str, owner: i64) {
        let (zxid, at) = (self.zxid, self.now);
        self.run.journal.push(Change { zxid, at, session, kind, path: path.to_owned(), owner });
    }

    /// Somebody looks at what the server has at this time, and the run is over.
    pub(crate) fn end(&mut self, ms: u64) -> Self {
        let mut end = EndState::new(Duration::from_millis(ms));
        end.nodes = self.nodes.keys().cloned().collect();
        let mut open = BTreeMap::new();
        for change in &self.run.journal {
            match change.kind {
                ChangeKind::Opened => open.insert(change.session, 0),
                ChangeKind::Ended(_) => open.remove(&change.session),
                _ => None,
            };
        }
        end.sessions = open;
        self.run.facts.end = end;
        self.clone()
    }

    pub(crate) fn run(&self) -> Run {
        self.run.clone()
    }

    /// The invariants that the run breaks, each once.
    pub(crate) fn broken(&self) -> Vec<Invariant> {
        let mut broken: Vec<Invariant> = check(&self.run).iter().map(|found| found.invariant).collect();
        broken.sort_unstable();
        broken.dedup();
        broken
    }

    /// The sentences of one invariant's violations.
    pub(crate) fn sentences(&self, invariant: Invariant) -> Vec<String> {
        let found = check(&self.run);
        found.iter().filter(|found| found.invariant == invariant).map(|found| found.what.clone()).collect()
    }

    /// Asserts that exactly one invariant is broken.
    #[track_caller]
    pub(crate) fn breaks(&self, invariant: Invariant) {
        assert_eq!(self.broken(), [invariant], "{:#?}", check(&self.run));
    }

    /// Asserts that this invariant is broken, perhaps with others.
    #[track_caller]
    pub(crate) fn breaks_also(&self, invariant: Invariant) {
        assert!(self.broken().contains(&invariant), "{:#?}", check(&self.run));
    }

    /// Asserts that nothing is broken.
    #[track_caller]
    pub(crate) fn holds(&self) {
        assert_eq!(check(&self.run), []);
    }
}
