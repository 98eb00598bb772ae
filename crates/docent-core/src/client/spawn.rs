use super::Client;
use std::future::Future;

/// Runs a task of a recipe that keeps something up to date, where the client's own tasks run: with
/// [`dedicated_thread`](crate::ClientBuilder::dedicated_thread) not where the session does. It calls users'
/// code by [`Hooks`](super::Hooks).
/// [`Client::close`] waits for it, at most for the operation timeout: it must end when the client is closed,
/// as streams and caches do. It should hold no [`Client`], which would keep the client open.
pub fn spawn(client: &Client, task: impl Future<Output = ()> + Send + 'static) {
    let shared = client.shared();
    shared.tasks.spawn_on(task, &shared.runtime);
}
