use super::{Sketch, client};
use crate::event::{AttemptId, Delivering, Putting, Taking, What};
use crate::journal::ChangeKind;
use crate::run::{Queued, QueuedAs};
use std::time::Duration;

/// A queue whose items are handed out twice at most.
pub(super) const QUEUE: &str = "/queue";

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

impl Sketch {
    /// Client 1 was given an item at 200.
    pub(crate) fn of_delivery() -> (Self, Given) {
        let mut sketch = Self::new();
        let item = sketch.at(100).put(0, 7);
        let given = sketch.at(200).give(1, &item, 1);
        (sketch, given)
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
}
