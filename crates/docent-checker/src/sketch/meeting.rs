use super::{LOCK, Sketch, client};
use crate::event::{AttemptId, Meeting, What};

/// A member of a double barrier.
#[derive(Debug, Clone)]
pub(crate) struct Guest {
    id: AttemptId,
    number: u32,
    node: String,
}

impl Sketch {
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
}
