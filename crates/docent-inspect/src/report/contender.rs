use super::{NodeText, Since, Writer, session};
use docent_core::{ClientIdentity, Fence, Role};
use serde::{Serialize, Serializer};

/// A holder or waiter, as its node shows it.
///
/// Facts from the node itself are `None` if the node may not be read or was omitted. A contender that left
/// between the listing and the read of its node is not included.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Contender {
    /// Name of the node.
    pub name: String,
    /// Number that the servers appended; `None` if the layout has none.
    pub number: Option<i32>,
    /// Role relative to others: `exclusive` or `shared`.
    pub role: Role,
    /// True if no contender ahead blocks it: it holds, unless it has lost its session.
    pub holds: bool,
    /// Name of the contender that it waits for: the nearest one ahead that must go first. `None` for holders.
    pub waits_for: Option<String>,
    /// Time at which it joined the queue.
    #[serde(flatten)]
    pub since: Option<Since>,
    /// Time since which it has held, if its node tells: Docent records this with the first heartbeat.
    pub held: Option<Since>,
    /// Fence that it has or would have.
    pub fence: Option<Fence>,
    /// Session that owns the node; serialized as text such as `"0x10000a3f"`.
    #[serde(serialize_with = "session::text")]
    pub session: Option<i64>,
    /// Data of the node: host, process and label, an id, or an address, depending on the writer.
    pub identity: Option<NodeText>,
    /// Host, process and label, if the identity has Docent's form; serialized as `host`, `pid`, `label`.
    #[serde(serialize_with = "client")]
    pub client: Option<ClientIdentity>,
    /// True once another client has asked it to leave.
    pub is_revoked: bool,
    /// Library that wrote the node.
    pub writer: Writer,
}

pub(super) fn client<S: Serializer>(
    client: &Option<ClientIdentity>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Fields<'a> {
        host: &'a str,
        pid: u32,
        label: Option<&'a str>,
    }
    let fields = client.as_ref().map(|client| Fields {
        host: client.host(),
        pid: client.pid(),
        label: client.label(),
    });
    fields.serialize(serializer)
}
