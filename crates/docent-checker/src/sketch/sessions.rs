use super::{Sketch, client};
use crate::event::{LinkState, What};
use crate::journal::{ChangeKind, EndCause};

impl Sketch {
    /// The server opens a session for a client, which tells that it is connected.
    pub(crate) fn connect(&mut self, number: u32, session: i64, generation: u64) -> &mut Self {
        self.zxid += 1;
        self.change(session, ChangeKind::Opened, "", 0);
        self.sessions.insert(client(number), (session, generation));
        self.link(number, LinkState::Connected)
    }

    /// A client tells another state of the link of its present session.
    pub(crate) fn link(&mut self, number: u32, state: LinkState) -> &mut Self {
        let (session, generation) = self.sessions[&client(number)];
        self.tell(number, What::Connection { state, generation, suspensions: 0, session: Some(session) })
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
}
