use super::Client;
use std::future::Future;

/// Spawns a task of a recipe that keeps something up to date, on the runtime of the client's own tasks. With
/// [`dedicated_thread`](crate::ClientBuilder::dedicated_thread) that is not the session's runtime. The task
/// calls user code through [`Hooks`](super::Hooks).
///
/// [`Client::close`] waits for the task, at most for the operation timeout. The task must end when the client
/// is closed, as streams and caches do. It should hold no [`Client`], which would keep the client open.
pub fn spawn(client: &Client, task: impl Future<Output = ()> + Send + 'static) {
    let shared = client.shared();
    shared.tasks.spawn_on(task, &shared.runtime);
}
