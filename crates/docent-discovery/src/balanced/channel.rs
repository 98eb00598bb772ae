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

/// A gRPC channel that sends each request to an instance chosen by [`Service::pick`] and reports the outcome
/// to the view. It is a [`Balanced`] service that generated clients accept. Created by [`Service::channel`].
///
/// # Guarantees
/// - All guarantees of [`Balanced`]. A call counts as in flight at its instance until its response has ended,
///   which includes the whole of a stream.
/// - A call that no connection has accepted yet is sent to another instance. A call that an instance may have
///   executed is sent to another one only if it is safe by [`retry_if`](Self::retry_if).
/// - It spawns no tasks except those of the connections, which end with the connections.
///
/// # Errors
/// `Unavailable` if there is no instance or none can be reached, `DeadlineExceeded` if an instance did not
/// answer within the time of an attempt ([`AttemptPolicy`]); otherwise those of tonic's channel.
///
/// # On drop
/// A dropped call reports nothing about the instance. The last clone drops the connections.
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
                match endpoint_of(endpoint, instance).await {
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

    /// Sets the limits of attempts. Default: three attempts of 10 s. A `grpc-timeout` of the call also limits
    /// each attempt.
    #[must_use]
    pub fn attempt_policy(mut self, policy: AttemptPolicy) -> Self {
        self.balanced = self.balanced.attempt_policy(policy);
        self
    }

    /// Sets the budget for attempts at further instances, shared by all calls; `None` for no limit. Default:
    /// 20 % of the calls and ten per second.
    #[must_use]
    pub fn retry_budget(mut self, budget: impl Into<Option<RetryBudget>>) -> Self {
        self.balanced = self.balanced.retry_budget(budget);
        self
    }

    /// Sends a call to another instance if the first one failed and `is_safe` returns true for the path of
    /// its method, such as `/shop.Orders/Find`. Safe means that executing the call twice does no harm. The
    /// request body of such a call is kept in memory until the response starts, so do not allow calls that
    /// stream much data. Default: no call is safe.
    #[must_use]
    pub fn retry_if(mut self, is_safe: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        self.is_safe = Arc::new(is_safe);
        self
    }

    /// Sets the codes that count as failure of an instance if a response starts with them. Default:
    /// `Unavailable`.
    #[must_use]
    pub fn fails_if(mut self, fails: impl Fn(Code) -> bool + Send + Sync + 'static) -> Self {
        self.balanced = self.balanced.classify(move |answer| grpc::outcome(answer, &fails));
        self
    }
}

/// Returns the endpoint for an instance from user code, which may block or panic.
async fn endpoint_of<P, M>(endpoint: Arc<M>, instance: Arc<Instance<P>>) -> Option<Endpoint>
where
    P: Send + Sync + 'static,
    M: Fn(&Arc<Instance<P>>) -> Option<Endpoint> + Send + Sync + 'static,
{
    let call = spawn_blocking(move || {
        let found = call_hook("endpoint", &instance.id, || endpoint(&instance)).unwrap_or(None);
        if found.is_none() {
            // Event: The application's function returned no gRPC endpoint for an instance, or the instance
            // has no valid URI. It gets no requests until its registration changes.
            // Action: Check the address, port and URI specification of the instance, and the application's
            // endpoint function.
            // Without client: the channel belongs to the application.
            tracing::warn!(target: "docent::discovery", service = %instance.name, id = %instance.id, "no endpoint for an instance; skipping it until it changes");
        }
        found
    });
    // This fails only while the runtime shuts down.
    call.await.ok().flatten()
}

impl<P: Send + Sync + 'static> Service<P> {
    /// Returns a gRPC channel that sends calls to the instances chosen by [`pick`](Self::pick). It uses the
    /// view's policy, counts calls in flight, sets failing instances aside, and resends safe calls. It
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

    /// Like [`channel`](Self::channel), with custom endpoints, for example with TLS or timeouts. `None` skips
    /// an instance until it changes, and so does a panic. `endpoint` is called on a thread for blocking code.
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
