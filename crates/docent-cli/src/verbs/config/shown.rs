use bytes::Bytes;
use docent::config::{Revision, Snapshot};
use docent::inspect::NodeText;
use docent::recipe::since_1970_ms;
use serde::Serialize;

/// A value as shown in JSON.
#[derive(Debug, Serialize)]
pub(super) struct Shown<'a> {
    path: &'a str,
    #[serde(flatten)]
    revision: ShownRevision,
    value: NodeText,
}

/// A revision as shown in JSON. All fields are `None` for a value that is not from the servers.
#[derive(Debug, Default, Serialize)]
pub(super) struct ShownRevision {
    version: Option<i32>,
    mzxid: Option<i64>,
    modified_ms: Option<u64>,
}

impl<'a> Shown<'a> {
    pub(super) fn new(path: &'a str, value: &Bytes, revision: Option<Revision>) -> Self {
        let revision = revision.map(ShownRevision::new).unwrap_or_default();
        Self { path, revision, value: NodeText::new(value.clone()) }
    }

    pub(super) fn of(path: &'a str, snapshot: &Snapshot<Bytes>) -> Self {
        Self::new(path, snapshot.value(), snapshot.revision())
    }
}

impl ShownRevision {
    pub(super) fn new(revision: Revision) -> Self {
        Self {
            version: Some(revision.version),
            mzxid: Some(revision.mzxid),
            modified_ms: Some(since_1970_ms(revision.modified)),
        }
    }
}
