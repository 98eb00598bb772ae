use super::builder::{HistoryBuilder, LOCK};
use crate::event::{AttemptId, EventKind, Meeting};

/// A member of a double barrier.
#[derive(Debug, Clone)]
pub(crate) struct Guest {
    id: AttemptId,
    number: u32,
    node: String,
}

/// Events of the members of the double barrier at [`LOCK`].
pub(crate) trait BarrierEvents {
    /// A member arrives, and its node is created.
    fn arrive(&mut self, number: u32, members: u32) -> Guest;

    /// The node `ready` is created, which lets the members enter.
    fn open(&mut self, number: u32) -> &mut Self;

    fn enter(&mut self, guest: &Guest) -> &mut Self;

    fn leaving(&mut self, guest: &Guest) -> &mut Self;

    fn left(&mut self, guest: &Guest) -> &mut Self;

    /// A member's client deletes the member's node.
    fn delete_member(&mut self, guest: &Guest) -> &mut Self;
}

impl BarrierEvents for HistoryBuilder {
    fn arrive(&mut self, number: u32, members: u32) -> Guest {
        let id = self.next_id();
        self.record(number, EventKind::Met(id, Meeting::Arrived { path: LOCK.to_owned(), members }));
        let session = self.session_of(number);
        let node = format!("{LOCK}/00000000-0000-4000-8000-{:012}", self.zxid + 1);
        self.create_node(&node, session, session);
        Guest { id, number, node }
    }

    fn open(&mut self, number: u32) -> &mut Self {
        let session = self.session_of(number);
        self.create_node(&format!("{LOCK}/ready"), session, 0)
    }

    fn enter(&mut self, guest: &Guest) -> &mut Self {
        self.record(guest.number, EventKind::Met(guest.id, Meeting::Entered(guest.node.clone())))
    }

    fn leaving(&mut self, guest: &Guest) -> &mut Self {
        self.record(guest.number, EventKind::Met(guest.id, Meeting::Leaving))
    }

    fn left(&mut self, guest: &Guest) -> &mut Self {
        self.record(guest.number, EventKind::Met(guest.id, Meeting::Left { ok: true }))
    }

    fn delete_member(&mut self, guest: &Guest) -> &mut Self {
        let session = self.session_of(guest.number);
        self.delete_path(&guest.node, session)
    }
}
