use super::{Service, ServiceChange};
use crate::Instance;
use futures_util::StreamExt;
use std::sync::Arc;
use tokio::sync::mpsc::Sender;
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
    M: FnMut(&Arc<Instance<P>>) -> Option<Endpoint>,
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
                match endpoint(&instance) {
                    Some(endpoint) => Discovery::Insert(key, endpoint),
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
