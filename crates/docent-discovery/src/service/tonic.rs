use super::{Service, ServiceChange};
use crate::Instance;
use docent_core::recipe::call_hook;
use futures_util::StreamExt;
use std::sync::Arc;
use tokio::sync::mpsc::Sender;
use tokio::task::spawn_blocking;
use tonic::transport::Endpoint;
use tonic::transport::channel::Change as Discovery;

/// Changes that a channel nobody uses has not taken yet. Changes beyond it wait, and come down to the last.
pub(super) const WAITING: usize = 1024;

/// Tells a channel of the instances, until it is dropped or the client is closed.
pub(super) async fn forward<P, M>(
    service: Service<P>,
    mut endpoint: M,
    channel: Sender<Discovery<Arc<str>, Endpoint>>,
) where
    P: Send + Sync + 'static,
    M: FnMut(&Arc<Instance<P>>) -> Option<Endpoint> + Send + 'static,
{
    let mut changes = service.changes().into_keyed();
    // From here on the stream keeps the view alive.
    drop(service);
    loop {
        let change = tokio::select! {
            change = changes.next() => change,
            () = channel.closed() => return,
        };
        let discovery = match change {
            Some((key, ServiceChange::Added(instance) | ServiceChange::Updated(instance))) => {
                // Not in this task, as it is code of the user's, which may block.
                let made = spawn_blocking({
                    let instance = Arc::clone(&instance);
                    move || {
                        let made = call_hook("endpoint", &instance.id, || endpoint(&instance));
                        (endpoint, made.unwrap_or(None))
                    }
                });
                // It fails only when the runtime is shutting down.
                let Ok((again, made)) = made.await else { return };
                endpoint = again;
                match made {
                    Some(made) => Discovery::Insert(key, made),
                    None => {
                        tracing::warn!(service = %instance.name, id = %instance.id, "an instance has no endpoint");
                        Discovery::Remove(key)
                    }
                }
            }
            Some((key, ServiceChange::Removed(_))) => Discovery::Remove(key),
            Some(_) => continue,
            None => return,
        };
        if channel.send(discovery).await.is_err() {
            return;
        }
    }
}
