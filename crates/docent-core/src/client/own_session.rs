use super::Client;

/// Returns true for the id of the client's session or of an earlier one, as far as the last 64 are known.
pub fn is_own_session(client: &Client, session: i64) -> bool {
    client.session_id() == Some(session) || client.shared().witness_of(session).is_some()
}
