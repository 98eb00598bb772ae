use super::Client;

/// True for the id of a session that a client has, or had; the last 64 of them are known.
pub fn is_own_session(client: &Client, session: i64) -> bool {
    client.session_id() == Some(session) || client.shared().witness_of(session).is_some()
}
