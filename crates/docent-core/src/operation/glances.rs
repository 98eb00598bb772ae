use super::ClientKey;
use crate::error::Error;
use crate::task::Together;
use bytes::Bytes;
use docent_proto::Stat;
use std::fmt;
use std::sync::Arc;

/// Looks at lines that are under way, by full path: many who look at once ask once.
#[derive(Default)]
pub(crate) struct Glances {
    /// Names of the children of a line.
    pub(crate) lines: Together<ClientKey, Result<Arc<[String]>, Error>>,
    /// Nodes in lines; `None` for one that has left.
    pub(crate) nodes: Together<ClientKey, Result<Option<(Bytes, Stat)>, Error>>,
}

impl fmt::Debug for Glances {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Glances").finish_non_exhaustive()
    }
}
