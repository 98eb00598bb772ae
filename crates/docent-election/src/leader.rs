use bytes::Bytes;
use docent_core::recipe::since_1970_ms;
use docent_core::{Fence, Participant};
use serde::ser::{Serialize, SerializeStruct, Serializer};
use std::fmt;
use std::time::SystemTime;

/// The leader of an election, as a server saw it.
///
/// It may have been lost or have resigned since: this is for people, dashboards and clients that look for
/// somebody to talk to. Work that must be done by the leader alone is done by the leader itself, under its
/// [`Leadership`](crate::Leadership).
///
/// Its id is printed and serialized where it is a text in one line of at most 256 bytes, unless the election
/// that it was asked of was built with [data](crate::ElectionBuilder::data): those are not shown. It is
/// serialized as `id`, `fence`, `since_ms`, in milliseconds since 1970, and `session_id`, a text as
/// `"0x10000a3f"`.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Leader {
    /// Its id, or its data as text; replacement characters stand for bytes that are no text.
    pub id: String,
    /// Data of its node.
    pub data: Bytes,
    /// The fence of its term.
    pub fence: Fence,
    /// When it became a candidate, by the server's clock.
    pub since: SystemTime,
    /// The session that its candidacy belongs to.
    pub session_id: i64,
    /// True when the id may be shown.
    has_id: bool,
}

impl From<Participant> for Leader {
    fn from(first: Participant) -> Self {
        Self {
            // An id that is shown is one line of text.
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

// Data that is no id is not printed.
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
