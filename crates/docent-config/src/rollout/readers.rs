use crate::Revision;
use docent_core::recipe::{VersionedNode, if_exists};
use docent_core::{Error, ErrorKind, Transaction};
use serde::{Deserialize, Serialize};

/// Name of the node, below a value's own node, that holds a node for each reader that reports.
pub const FOLDER: &str = "_running";

/// Data of a reader's node: the revision that the reader has applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Applied {
    /// Transaction that wrote the value.
    pub mzxid: i64,
    /// Transaction that created the value's node.
    pub czxid: i64,
    /// Number of values before this one since the node was created.
    pub version: i32,
}

impl Applied {
    /// Returns the revision that the data of a reader's node has, or `None` for other data.
    pub fn parse(data: &[u8]) -> Option<Self> {
        serde_json::from_slice(data).ok()
    }

    pub(super) fn to_data(self) -> Vec<u8> {
        let Self { mzxid, czxid, version } = self;
        format!(r#"{{"mzxid":{mzxid},"czxid":{czxid},"version":{version}}}"#).into_bytes()
    }
}

impl From<&Revision> for Applied {
    fn from(revision: &Revision) -> Self {
        Self { mzxid: revision.mzxid, czxid: revision.czxid, version: revision.version }
    }
}

/// Nodes of the readers of a value, as they were listed.
#[derive(Debug)]
pub(crate) struct Readers {
    folder: String,
    /// Names of the readers' nodes, or `None` if there is no folder.
    names: Option<Vec<String>>,
}

impl Readers {
    pub(crate) async fn list(versioned: &VersionedNode) -> Result<Self, Error> {
        let folder = folder(versioned.path());
        let children = if_exists(versioned.client().children(&folder).await)?;
        Ok(Self { folder, names: children.map(|children| children.names) })
    }

    /// Deletes the nodes of the readers, and their folder.
    pub(crate) fn remove_all(&self, transaction: Transaction) -> Transaction {
        let Some(names) = &self.names else { return transaction };
        let remove = |transaction: Transaction, name: &String| {
            transaction.delete(&format!("{}/{name}", self.folder), None)
        };
        names.iter().fold(transaction, remove).delete(&self.folder, None)
    }

    /// Returns true for the refusal of the value's deletion because a reader has created its node since the
    /// listing.
    pub(crate) async fn have_grown(&self, versioned: &VersionedNode, error: &Error) -> Result<bool, Error> {
        Ok(match self.names {
            _ if error.kind() != ErrorKind::NotEmpty => false,
            Some(_) => error.path() == Some(&self.folder),
            None => versioned.client().exists(&self.folder).await?.is_some(),
        })
    }
}

/// Returns the path of the readers' folder of the value at `path`.
pub(super) fn folder(path: &str) -> String {
    format!("{path}/{FOLDER}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_has_the_revision_and_other_data_has_none() {
        let applied = Applied { mzxid: 0x1_0000_0000, czxid: 7, version: 3 };
        assert_eq!(applied.to_data(), br#"{"mzxid":4294967296,"czxid":7,"version":3}"#);
        assert_eq!(Applied::parse(&applied.to_data()), Some(applied));
        // Fields may be added.
        assert!(Applied::parse(br#"{"mzxid":4,"czxid":7,"version":3,"since":5}"#).is_some());
        for data in [&b""[..], b"web-1", b"{}", b"7", br#"{"mzxid":4,"czxid":7}"#, b"\xff"] {
            assert_eq!(Applied::parse(data), None, "{data:?}");
        }
    }
}
