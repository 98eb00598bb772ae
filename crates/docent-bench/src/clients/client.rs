use anyhow::Result;
use std::future::Future;
use std::time::Duration;

/// Long enough that nothing is sent besides the measured requests.
pub(crate) const SESSION_TIMEOUT: Duration = Duration::from_secs(30);

/// Operations of a ZooKeeper client that the worker measures.
pub(crate) trait Client: Sized + Send + 'static {
    fn connect(address: &str) -> impl Future<Output = Result<Self>> + Send;

    /// Reads a node.
    fn get(&mut self, path: &str) -> impl Future<Output = Result<()>> + Send;

    /// Creates an ephemeral node with a number behind `prefix`. Returns its path.
    fn create(&mut self, prefix: &str) -> impl Future<Output = Result<String>> + Send;

    fn delete(&mut self, path: &str) -> impl Future<Output = Result<()>> + Send;

    /// As `create`, and lists `folder` after it: both are submitted before either is awaited.
    fn create_and_list(&mut self, prefix: &str, folder: &str) -> impl Future<Output = Result<String>> + Send;

    /// `count` calls of `get`, `in_flight` at a time.
    fn get_many(
        &mut self,
        path: &str,
        count: usize,
        in_flight: usize,
    ) -> impl Future<Output = Result<()>> + Send;

    /// `count` calls of `create`, `in_flight` at a time.
    fn create_many(
        &mut self,
        prefix: &str,
        count: usize,
        in_flight: usize,
    ) -> impl Future<Output = Result<()>> + Send;

    /// Ends the session, and its nodes with it.
    fn close(self) -> impl Future<Output = Result<()>> + Send;
}
