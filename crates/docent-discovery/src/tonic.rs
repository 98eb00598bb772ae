use crate::service::ServiceChange;
use crate::{Instance, Service};
use futures_util::StreamExt;
use std::sync::Arc;
use tokio::sync::mpsc::Sender;
use tonic::transport::channel::Change as Discovery;
use tonic::transport::{Channel, Endpoint};

/// Changes that a channel nobody uses has not taken yet. Changes beyond it wait, and come down to the last.
const WAITING: usize = 1024;

impl<P: Send + Sync + 'static> Service<P> {
    /// A gRPC channel that is balanced over the service's available instances, by tonic, with an endpoint for
    /// the [URI](Instance::uri) of each. Without an instance requests wait: give them a timeout.
    ///
    /// It goes on with the instances it knows when ZooKeeper is away or the client was closed. Whom tonic
    /// picks is not counted as in flight here.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn channel(&self) -> Channel {
        self.channel_with(|instance| Endpoint::from_shared(instance.uri().ok()?).ok())
    }

    /// As [`channel`](Self::channel), with endpoints of the caller's, such as with TLS or timeouts. `None`
    /// leaves an instance out.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn channel_with<M>(&self, endpoint: M) -> Channel
    where
        M: FnMut(&Arc<Instance<P>>) -> Option<Endpoint> + Send + 'static,
    {
        let (channel, changes) = Channel::balance_channel(WAITING);
        tokio::spawn(forward(self.clone(), endpoint, changes));
        channel
    }
}

/// Tells a channel of the instances, until it is dropped or the client is closed.
async fn forward<P, M>(service: Service<P>, mut endpoint: M, channel: Sender<Discovery<Arc<str>, Endpoint>>)
where
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
