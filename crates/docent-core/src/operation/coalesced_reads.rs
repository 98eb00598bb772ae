use super::ClientKey;
use crate::error::Error;
use crate::task::Coalescer;
use bytes::Bytes;
use docent_proto::Stat;
use std::fmt;
use std::sync::Arc;

/// Reads of lines in flight, by full path: concurrent callers share one request.
#[derive(Default)]
pub(crate) struct CoalescedReads {
    /// Names of the children of a line.
    pub(crate) lines: Coalescer<ClientKey, Result<Arc<[String]>, Error>>,
    /// Nodes in lines; `None` for a node that has left.
    pub(crate) nodes: Coalescer<ClientKey, Result<Option<(Bytes, Stat)>, Error>>,
}

impl fmt::Debug for CoalescedReads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CoalescedReads").finish_non_exhaustive()
    }
}
