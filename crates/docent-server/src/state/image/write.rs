use super::fields::put_bytes;
use crate::journal::EndCause;
use crate::state::effects::Effects;
use crate::state::node::{Lifetime, Node};
use crate::state::session::Session;
use crate::state::state::State;
use bytes::{BufMut, BytesMut};

impl State {
    /// Returns the image of this state in pieces, so that it is never in memory as a whole.
    pub(crate) fn image(&self) -> impl Iterator<Item = BytesMut> {
        let (tree, sessions) = (&self.database.tree, &self.database.sessions);
        let mut nodes: Vec<(&str, &Node)> = tree.iter().collect();
        // A parent comes before its children.
        nodes.sort_unstable_by_key(|(path, _)| *path);
        let kept = || sessions.iter().filter(|(_, session)| !session.is_local);
        let head = head(self.database.zxid, sessions.last_id(), kept().count(), nodes.len());
        let sessions = kept().map(|(id, session)| session_record(id, session));
        let nodes = nodes.into_iter().map(|(path, node)| node_record(path, node));
        std::iter::once(head).chain(sessions).chain(nodes)
    }

    /// Returns a copy of this state in which all sessions have expired. This is the state to start from if
    /// this server ends without saving an image.
    pub(crate) fn without_sessions(&self, now: i64) -> Self {
        let mut copy = self.snapshot();
        for id in copy.session_ids() {
            copy.database.end_session(id, EndCause::Expired, now, &mut Effects::default());
        }
        copy
    }
}

fn head(zxid: i64, last_session: i64, sessions: usize, nodes: usize) -> BytesMut {
    let mut out = BytesMut::new();
    out.put_i64(zxid);
    out.put_i64(last_session);
    out.put_u32(u32::try_from(sessions).unwrap_or(u32::MAX));
    out.put_u32(u32::try_from(nodes).unwrap_or(u32::MAX));
    out
}

fn session_record(id: i64, session: &Session) -> BytesMut {
    let mut out = BytesMut::new();
    out.put_i64(id);
    out.put_slice(&session.password);
    out.put_i32(session.timeout_ms);
    out
}

fn node_record(path: &str, node: &Node) -> BytesMut {
    let mut out = BytesMut::new();
    put_bytes(&mut out, path.as_bytes());
    out.put_u8(u8::from(node.data.is_some()));
    if let Some(data) = &node.data {
        put_bytes(&mut out, data);
    }
    put_lifetime(&mut out, node.lifetime);
    out.put_u32(u32::try_from(node.acl.len()).unwrap_or(u32::MAX));
    for entry in node.acl.iter() {
        out.put_i32(entry.permissions.0);
        put_bytes(&mut out, entry.scheme.as_bytes());
        put_bytes(&mut out, entry.id.as_bytes());
    }
    for number in [node.czxid, node.mzxid, node.pzxid, node.ctime, node.mtime] {
        out.put_i64(number);
    }
    for number in [node.version, node.aversion, node.creates] {
        out.put_i32(number);
    }
    out
}

fn put_lifetime(out: &mut BytesMut, lifetime: Lifetime) {
    let (kind, number) = match lifetime {
        Lifetime::Persistent => (0, 0),
        Lifetime::Ephemeral(owner) => (1, owner),
        Lifetime::Container => (2, 0),
        Lifetime::Ttl(ttl) => (3, ttl),
    };
    out.put_u8(kind);
    out.put_i64(number);
}
