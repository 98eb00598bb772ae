//! The state of a server that has lost its quorum and serves only reads.

use super::op_code::{DELETE_CONTAINER, is_write};
use super::reply::Reply;
use super::state::State;
use docent_proto::{Code, ConnectRequest, OpCode};

impl State {
    pub(crate) fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Enters or leaves the mode. Sessions opened in this mode end with it, and all other sessions have their
    /// full timeout afterwards. All links must be closed.
    pub(crate) fn set_read_only(&mut self, read_only: bool, now: i64) {
        self.read_only = read_only;
        self.database.sessions.remove_local();
        self.database.sessions.touch_all(now);
    }

    /// Returns the reason to close a link that asks for a session in this mode.
    pub(super) fn refused_in_mode(&self, request: &ConnectRequest) -> Option<&'static str> {
        let is_asked_for = request.read_only == Some(true);
        let session = self.database.sessions.get(request.session_id);
        match session {
            _ if !self.read_only => None,
            _ if !is_asked_for => Some("the server is read-only, which the client does not accept"),
            Some(session) if !session.is_local => Some("the session was opened before the read-only mode"),
            _ => None,
        }
    }

    /// Returns whether this mode refuses the operation with this number.
    pub(crate) fn refuses_write(&self, op: i32) -> bool {
        let changes = match OpCode::from_number(op) {
            Ok(OpCode::CloseSession) => false,
            Ok(op) => is_write(op) || op == OpCode::Sync,
            Err(_) => op == DELETE_CONTAINER,
        };
        self.read_only && changes
    }

    /// Returns the reply to a refused operation, whose fields are not decoded. It uses up no transaction
    /// number.
    pub(crate) fn not_read_only(&self) -> Reply {
        Reply { zxid: self.zxid(), result: Err(Code::NOT_READ_ONLY), closes: false }
    }
}
