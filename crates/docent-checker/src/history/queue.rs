use super::builder::{HistoryBuilder, QUEUE};
use crate::event::{AttemptId, Delivering, EventKind, Putting, Taking};
use crate::journal::ChangeKind;
use crate::run::{Queued, QueuedAs};
use std::time::Duration;

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

/// Events of the producers and consumers of the queue at [`QUEUE`].
pub(crate) trait QueueEvents: Sized {
    /// Client 1 was given an item at 200.
    fn of_delivery() -> (Self, Given);

    /// A put begins.
    fn putting(&mut self, number: u32, items: &[u64]) -> AttemptId;

    fn put_ended(&mut self, number: u32, put: AttemptId, outcome: Option<bool>) -> &mut Self;

    /// The nodes of items come, in one step.
    fn stored(&mut self, number: u32, items: &[u64]) -> &mut Self;

    /// An item is put, and there.
    fn put(&mut self, number: u32, item: u64) -> Stored;

    /// That item cannot be decoded.
    fn undecodable(&mut self, item: &Stored) -> &mut Self;

    fn take(&mut self, number: u32, waits: bool) -> AttemptId;

    fn over(&mut self, number: u32, take: AttemptId) -> &mut Self;

    /// Somebody takes a place in the line of the idle.
    fn idle(&mut self, number: u32) -> String;

    /// The claim of an item.
    fn claim(&mut self, number: u32, item: &Stored) -> String;

    /// An item is claimed and handed out.
    fn give(&mut self, number: u32, item: &Stored, count: u32) -> Given;

    /// An item is handed out, and no claim made.
    fn give_unclaimed(&mut self, number: u32, item: &Stored, fence: u64) -> &mut Self;

    fn held(&mut self, given: &Given, held: bool) -> &mut Self;

    fn acking(&mut self, given: &Given) -> &mut Self;

    fn acked(&mut self, given: &Given, outcome: Option<bool>) -> &mut Self;

    fn given_back(&mut self, given: &Given) -> &mut Self;

    /// The claim of a delivery is deleted by its client.
    fn delete_claim(&mut self, given: &Given) -> &mut Self;

    /// The item of a delivery is deleted by its client, and the claim with it.
    fn end_item(&mut self, given: &Given) -> &mut Self;

    /// The dead letter of an item comes.
    fn letter(&mut self, item: &Stored, undecodable: bool) -> &mut Self;

    /// Somebody claims an item and moves it to the dead letters.
    fn bury(&mut self, number: u32, item: &Stored, undecodable: bool) -> &mut Self;
}

impl QueueEvents for HistoryBuilder {
    fn of_delivery() -> (Self, Given) {
        let mut history = Self::new();
        let item = history.at(100).put(0, 7);
        let given = history.at(200).give(1, &item, 1);
        (history, given)
    }

    fn putting(&mut self, number: u32, items: &[u64]) -> AttemptId {
        let id = self.next_id();
        let began = Putting::Began { path: QUEUE.to_owned(), items: items.to_vec() };
        self.tell(number, EventKind::Put(id, began));
        id
    }

    fn put_ended(&mut self, number: u32, put: AttemptId, outcome: Option<bool>) -> &mut Self {
        self.tell(number, EventKind::Put(put, Putting::Ended(outcome)))
    }

    fn stored(&mut self, number: u32, items: &[u64]) -> &mut Self {
        let session = self.session_of(number);
        self.zxid += 1;
        for item in items {
            let next = self.numbers.entry(QUEUE.to_owned()).or_default();
            *next += 1;
            let node = format!("{QUEUE}/items/item-{:010}", *next - 1);
            self.change(session, ChangeKind::Created, &node, 0);
            self.nodes.insert(node.clone(), (self.zxid, 0));
            note_item(self, *item, node, QueuedAs::Item { decodable: true });
        }
        self
    }

    fn put(&mut self, number: u32, item: u64) -> Stored {
        let put = self.putting(number, &[item]);
        self.stored(number, &[item]).put_ended(number, put, Some(true));
        let node = self.run.facts.queued.last().map(|queued| queued.node.clone()).unwrap_or_default();
        Stored { item, node }
    }

    fn undecodable(&mut self, item: &Stored) -> &mut Self {
        for queued in &mut self.run.facts.queued {
            if queued.node == item.node {
                queued.kind = QueuedAs::Item { decodable: false };
            }
        }
        self
    }

    fn take(&mut self, number: u32, waits: bool) -> AttemptId {
        let id = self.next_id();
        self.tell(number, EventKind::Took(id, Taking::Began { path: QUEUE.to_owned(), waits }));
        id
    }

    fn over(&mut self, number: u32, take: AttemptId) -> &mut Self {
        self.tell(number, EventKind::Took(take, Taking::Over))
    }

    fn idle(&mut self, number: u32) -> String {
        let session = self.session_of(number);
        let node = format!("{QUEUE}/idle/_c_00000000-0000-4000-8000-{:012}-idle-0000000000", self.zxid + 1);
        self.make(&node, session, session);
        node
    }

    fn claim(&mut self, number: u32, item: &Stored) -> String {
        let session = self.session_of(number);
        let claim = format!("{}/claim", item.node);
        self.make(&claim, session, session);
        claim
    }

    fn give(&mut self, number: u32, item: &Stored, count: u32) -> Given {
        self.claim(number, item);
        let (id, fence) = (self.next_id(), self.zxid.unsigned_abs());
        self.tell(number, EventKind::Delivered(id, given(item, fence, Some(count))));
        Given { item: item.clone(), fence, id, number }
    }

    fn give_unclaimed(&mut self, number: u32, item: &Stored, fence: u64) -> &mut Self {
        let id = self.next_id();
        self.tell(number, EventKind::Delivered(id, given(item, fence, Some(1))))
    }

    fn held(&mut self, given: &Given, held: bool) -> &mut Self {
        tell_of(self, given, Delivering::Looked { held })
    }

    fn acking(&mut self, given: &Given) -> &mut Self {
        tell_of(self, given, Delivering::Acking)
    }

    fn acked(&mut self, given: &Given, outcome: Option<bool>) -> &mut Self {
        tell_of(self, given, Delivering::Acked(outcome))
    }

    fn given_back(&mut self, given: &Given) -> &mut Self {
        tell_of(self, given, Delivering::GivenBack { delay: Duration::ZERO })
    }

    fn delete_claim(&mut self, given: &Given) -> &mut Self {
        let session = self.session_of(given.number);
        self.delete_path(&format!("{}/claim", given.item.node), session)
    }

    fn end_item(&mut self, given: &Given) -> &mut Self {
        let session = self.session_of(given.number);
        self.delete_claim(given);
        self.zxid -= 1;
        self.delete_path(&given.item.node, session)
    }

    fn letter(&mut self, item: &Stored, undecodable: bool) -> &mut Self {
        let node = format!("{QUEUE}/dead/letter-{:010}", self.zxid);
        self.make(&node, 1, 0);
        note_item(self, item.item, node, QueuedAs::DeadLetter { undecodable });
        self
    }

    fn bury(&mut self, number: u32, item: &Stored, undecodable: bool) -> &mut Self {
        let take = self.take(number, true);
        let (claim, session) = (self.claim(number, item), self.session_of(number));
        self.over(number, take).delete_path(&claim, session);
        self.zxid -= 1;
        self.delete_path(&item.node, session);
        self.zxid -= 1;
        self.letter(item, undecodable)
    }
}

fn note_item(history: &mut HistoryBuilder, item: u64, node: String, kind: QueuedAs) {
    let zxid = history.zxid;
    history.run.facts.queued.push(Queued { queue: QUEUE.to_owned(), node, zxid, item, kind });
}

fn given(item: &Stored, fence: u64, deliveries: Option<u32>) -> Delivering {
    let Stored { item, node } = item.clone();
    Delivering::Given { item, node, fence, deliveries }
}

fn tell_of<'h>(history: &'h mut HistoryBuilder, given: &Given, step: Delivering) -> &'h mut HistoryBuilder {
    history.tell(given.number, EventKind::Delivered(given.id, step))
}
