use bytes::Bytes;
use docent_proto::{Code, MultiResult, Response};

/// The reply to a request.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) zxid: i64,
    pub(crate) result: Result<Response, Code>,
    /// Whether the link is closed once the reply is written.
    pub(crate) closes: bool,
}

impl Reply {
    /// Returns a lower bound of the encoded size, so that a long reply is not moved while it is written.
    pub(crate) fn len_hint(&self) -> usize {
        const HEADER: usize = 20;
        let size = |data: &Option<Bytes>| data.as_ref().map_or(0, Bytes::len);
        let of_result = |result: &MultiResult| match result {
            MultiResult::Data { data, .. } => size(data),
            MultiResult::Children(names) => lengths(names),
            _ => 0,
        };
        HEADER
            + match &self.result {
                Ok(Response::Data { data, .. }) => size(data),
                Ok(Response::Children { names, .. } | Response::Ephemerals(names)) => lengths(names),
                Ok(Response::Multi(results)) => results.iter().map(of_result).sum(),
                _ => 0,
            }
    }
}

fn lengths(names: &[String]) -> usize {
    names.iter().map(|name| 4 + name.len()).sum()
}
