use bytes::Bytes;
use docent_core::recipe::since_1970_ms;
use docent_core::{Fence, Participant};
use serde::ser::{Serialize, SerializeStruct, Serializer};
use std::fmt;
use std::time::SystemTime;

/// The leader of an election, as a server reported it.
///
/// The leader may have resigned or lost its leadership since. Use this information for operators, dashboards
/// and clients that need to find the leader. Work that only the leader may do must be done by the leader
/// itself, under its [`Leadership`](crate::Leadership).
///
/// The id is printed and serialized only if it is a single line of text of at most 256 bytes. If the election
/// handle was built with [data](crate::ElectionBuilder::data), the id is never printed or serialized. The
/// serialized fields are `id`, `fence`, `since_ms` (milliseconds since 1970) and `session_id` (a text such as
/// `"0x10000a3f"`).
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Leader {
    /// Id of the leader, or its data as text. Replacement characters stand for bytes that are not valid text.
    pub id: String,
    /// Data of the leader's node.
    pub data: Bytes,
    /// Fence of the leader's term.
    pub fence: Fence,
    /// Time at which the leader became a candidate, by the server's clock.
    pub since: SystemTime,
    /// Session that owns the leader's node.
    pub session_id: i64,
    /// Whether the id may be printed and serialized.
    has_id: bool,
}

impl From<Participant> for Leader {
    fn from(first: Participant) -> Self {
        Self {
            // Only an id that is a single line of text is printed.
            has_id: first.identity_text().is_some_and(|text| text.as_bytes() == first.identity),
            id: String::from_utf8_lossy(&first.identity).into_owned(),
            data: first.identity,
            fence: first.fence,
            since: first.since,
            session_id: first.session_id,
        }
    }
}

impl Leader {
    fn shown_id(&self) -> Option<&str> {
        self.has_id.then_some(self.id.as_str())
    }
}

impl Serialize for Leader {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Leader", 4)?;
        fields.serialize_field("id", &self.shown_id())?;
        fields.serialize_field("fence", &self.fence)?;
        fields.serialize_field("since_ms", &since_1970_ms(self.since))?;
        fields.serialize_field("session_id", &format_args!("{:#x}", self.session_id))?;
        fields.end()
    }
}

// Does not print data that is not an id.
impl fmt::Debug for Leader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leader")
            .field("id", &self.shown_id())
            .field("data", &format_args!("{} bytes", self.data.len()))
            .field("fence", &self.fence)
            .field("since", &self.since)
            .field("session_id", &format_args!("{:#x}", self.session_id))
            .finish_non_exhaustive()
    }
}
