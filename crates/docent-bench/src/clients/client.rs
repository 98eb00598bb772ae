use anyhow::Result;
use std::future::Future;
use std::time::Duration;

/// Long enough that a session sends no requests besides the measured ones.
pub(crate) const SESSION_TIMEOUT: Duration = Duration::from_secs(30);

/// Operations of a ZooKeeper client that the worker measures.
pub(crate) trait Client: Sized + Send + 'static {
    fn connect(address: &str) -> impl Future<Output = Result<Self>> + Send;

    /// Reads a node.
    fn get(&mut self, path: &str) -> impl Future<Output = Result<()>> + Send;

    /// Creates an ephemeral sequential node with this prefix. Returns its path.
    fn create(&mut self, prefix: &str) -> impl Future<Output = Result<String>> + Send;

    fn delete(&mut self, path: &str) -> impl Future<Output = Result<()>> + Send;

    /// Does the same as `create`, and then lists `folder`. Both requests are submitted before either is
    /// awaited.
    fn create_and_list(&mut self, prefix: &str, folder: &str) -> impl Future<Output = Result<String>> + Send;

    /// Calls `get` `count` times, with `in_flight` calls at a time.
    fn get_many(
        &mut self,
        path: &str,
        count: usize,
        in_flight: usize,
    ) -> impl Future<Output = Result<()>> + Send;

    /// Calls `create` `count` times, with `in_flight` calls at a time.
    fn create_many(
        &mut self,
        prefix: &str,
        count: usize,
        in_flight: usize,
    ) -> impl Future<Output = Result<()>> + Send;

    /// Closes the session, which deletes its ephemeral nodes.
    fn close(self) -> impl Future<Output = Result<()>> + Send;
}
