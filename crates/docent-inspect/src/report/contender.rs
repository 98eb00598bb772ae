use super::{NodeText, Since, Writer, session};
use docent_core::{ClientIdentity, Fence, Role};
use serde::{Serialize, Serializer};

/// Node of one that holds a place or waits for one.
///
/// Facts that come from the node itself are `None` where it may not be read or was left out. One that left
/// between the listing and the read of its node is none of the line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Contender {
    /// Name of the node.
    pub name: String,
    /// The number that the servers appended; `None` where the layout has none.
    pub number: Option<i32>,
    /// Its role beside others: `exclusive` or `shared`.
    pub role: Role,
    /// True when nobody ahead keeps it from holding: a holder, unless it has lost its session.
    pub holds: bool,
    /// Name of the contender that it waits for: the nearest one ahead that has to go first. `None` for
    /// holders.
    pub waits_for: Option<String>,
    /// Time at which it took its place.
    #[serde(flatten)]
    pub since: Option<Since>,
    /// Time since which it holds, where its node tells: Docent notes it with the first heartbeat.
    pub held: Option<Since>,
    /// The fence that it has or would have.
    pub fence: Option<Fence>,
    /// The session that owns the node; serialized as text such as `"0x10000a3f"`.
    #[serde(serialize_with = "session::text")]
    pub session: Option<i64>,
    /// Data of the node: host, process and label, an id, or an address, as the writer chose.
    pub identity: Option<NodeText>,
    /// Host, process and label, where the identity has Docent's form; serialized as `host`, `pid`, `label`.
    #[serde(serialize_with = "client")]
    pub client: Option<ClientIdentity>,
    /// True once somebody asked it to give up its place.
    pub is_revoked: bool,
    /// Library that wrote it.
    pub writer: Writer,
}

fn client<S: Serializer>(client: &Option<ClientIdentity>, serializer: S) -> Result<S::Ok, S::Error> {
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
