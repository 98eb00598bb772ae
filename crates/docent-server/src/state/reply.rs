use docent_proto::{Code, Response};

/// The answer to a request.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) zxid: i64,
    pub(crate) result: Result<Response, Code>,
    /// Set when the link ends once the answer is written.
    pub(crate) closes: bool,
}
