use super::grpc::{self, GrpcError, GrpcLink, HeldBody};
use super::replay::Replayed;
use super::sender::Retry;
use super::{AttemptPolicy, Balanced, CallError, RetryBudget};
use crate::{Instance, Service};
use docent_core::recipe::call_hook;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http::{Request, Response};
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::task::spawn_blocking;
use tonic::body::Body;
use tonic::transport::Endpoint;
use tonic::{Code, Status};

/// gRPC channel that sends each request to an instance by [`Service::pick`], and learns from how that went: a
/// [`Balanced`] service that generated clients take. Made by [`Service::channel`].
///
/// # Guarantees
/// - All of [`Balanced`]. A call is in flight at its instance until its response is over: a stream as long as
///   it lasts.
/// - A call that no connection has taken yet is sent to another instance. One that an instance may have done
///   is sent to another only if it is safe by [`retry_if`](Self::retry_if).
/// - It spawns no task but those of the connections, which end with them.
///
/// # Errors
/// `Unavailable` when there is no instance or none can be reached, `DeadlineExceeded` when one did not answer
/// within the time of an attempt ([`AttemptPolicy`]); else those of tonic's channel.
///
/// # On drop
/// A call that is dropped says nothing of the instance. With the last clone the connections are dropped.
///
/// Cheap to clone; clones share their connections.
pub struct BalancedChannel<P> {
    balanced: Balanced<P, GrpcLink, Replayed>,
    is_safe: Arc<dyn Fn(&str) -> bool + Send + Sync>,
}

impl<P: Send + Sync + 'static> BalancedChannel<P> {
    fn new<M>(service: &Service<P>, endpoint: M) -> Self
    where
        M: Fn(&Arc<Instance<P>>) -> Option<Endpoint> + Send + Sync + 'static,
    {
        let endpoint = Arc::new(endpoint);
        let make = move |instance| {
            let endpoint = Arc::clone(&endpoint);
            async move {
                match made(endpoint, instance).await {
                    Some(endpoint) => GrpcLink::connect(endpoint).await.map(Some),
                    None => Ok(None),
                }
            }
            .boxed()
        };
        let mut balanced = Balanced::new(service, Arc::new(make));
        balanced.retry = Arc::new(Retry {
            copy: Box::new(|request: &Replayed| Some(request.clone())),
            is_safe: Box::new(Replayed::keeps),
        });
        balanced.keep = Arc::new(HeldBody::put);
        Self { balanced, is_safe: Arc::new(|_| false) }.fails_if(|code| code == Code::Unavailable)
    }

    /// Limits of attempts. Default: three attempts of 10 s. A `grpc-timeout` of the call bounds each of them,
    /// too.
    #[must_use]
    pub fn attempt_policy(mut self, policy: AttemptPolicy) -> Self {
        self.balanced = self.balanced.attempt_policy(policy);
        self
    }

    /// Budget of the attempts at further instances, for all calls together; `None` for no limit. Default:
    /// 20 % of the calls and ten a second.
    #[must_use]
    pub fn retry_budget(mut self, budget: impl Into<Option<RetryBudget>>) -> Self {
        self.balanced = self.balanced.retry_budget(budget);
        self
    }

    /// Sends a call to another instance when the first failed, if `is_safe` is true for the path of its
    /// method, such as `/shop.Orders/Find`: it does no harm when it is done twice. What such a call sends is
    /// kept in memory until its response begins: take none that streams much. Default: none is safe.
    #[must_use]
    pub fn retry_if(mut self, is_safe: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        self.is_safe = Arc::new(is_safe);
        self
    }

    /// Codes with which an instance fails, where the response begins with them. Default: `Unavailable`.
    #[must_use]
    pub fn fails_if(mut self, fails: impl Fn(Code) -> bool + Send + Sync + 'static) -> Self {
        self.balanced = self.balanced.classify(move |answer| grpc::outcome(answer, &fails));
        self
    }
}

/// The endpoint for an instance, by code of the user's, which may block or panic.
async fn made<P, M>(endpoint: Arc<M>, instance: Arc<Instance<P>>) -> Option<Endpoint>
where
    P: Send + Sync + 'static,
    M: Fn(&Arc<Instance<P>>) -> Option<Endpoint> + Send + Sync + 'static,
{
    let made = spawn_blocking(move || {
        let made = call_hook("endpoint", &instance.id, || endpoint(&instance)).unwrap_or(None);
        if made.is_none() {
            tracing::warn!(service = %instance.name, id = %instance.id, "an instance has no endpoint");
        }
        made
    });
    // It fails only when the runtime is shutting down.
    made.await.ok().flatten()
}

impl<P: Send + Sync + 'static> Service<P> {
    /// A gRPC channel that sends calls to the instances by [`pick`](Self::pick), and learns: it has the
    /// view's policy, counts what is in flight, sets aside who fails, and sends again what is safe. It
    /// connects to the [URI](Instance::uri) of an instance when a call first needs it.
    ///
    /// # Examples
    /// ```no_run
    /// use docent_discovery::{AttemptPolicy, Service};
    /// use std::time::Duration;
    ///
    /// # fn example(orders: Service<()>) {
    /// let channel = orders
    ///     .channel()
    ///     .attempt_policy(AttemptPolicy::default().timeout(Duration::from_secs(2)))
    ///     .retry_if(|method| method == "/shop.Orders/Find");
    /// // let orders = OrdersClient::new(channel);
    /// # let _ = channel;
    /// # }
    /// ```
    pub fn channel(&self) -> BalancedChannel<P> {
        self.channel_with(|instance| Endpoint::from_shared(instance.uri().ok()?).ok())
    }

    /// As [`channel`](Self::channel), with endpoints of the caller's, such as with TLS or timeouts. `None`
    /// leaves an instance out until it changes, and so does a panic. `endpoint` is called on a thread for
    /// blocking code.
    pub fn channel_with<M>(&self, endpoint: M) -> BalancedChannel<P>
    where
        M: Fn(&Arc<Instance<P>>) -> Option<Endpoint> + Send + Sync + 'static,
    {
        BalancedChannel::new(self, endpoint)
    }
}

impl<P: Send + Sync + 'static> tower::Service<Request<Body>> for BalancedChannel<P> {
    type Response = Response<Body>;
    type Error = Status;
    type Future = BoxFuture<'static, Result<Response<Body>, Status>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let is_safe = (self.is_safe)(request.uri().path());
        let sent = self.balanced.clone().send(Replayed::new(request, is_safe));
        sent.map(|result| result.map_err(status)).boxed()
    }
}

fn status(error: CallError<GrpcError>) -> Status {
    match error {
        CallError::Failed { error, .. } => Status::from_error(Box::new(error.error)),
        CallError::TimedOut { .. } => Status::deadline_exceeded(error.to_string()),
        _ => Status::unavailable(error.to_string()),
    }
}

impl<P> Clone for BalancedChannel<P> {
    fn clone(&self) -> Self {
        Self { balanced: self.balanced.clone(), is_safe: Arc::clone(&self.is_safe) }
    }
}

impl<P> fmt::Debug for BalancedChannel<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BalancedChannel")
            .field("service", &self.balanced.service.name())
            .field("attempt_policy", &self.balanced.policy)
            .finish_non_exhaustive()
    }
}
