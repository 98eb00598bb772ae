use super::link::{Cause, Make};
use super::links::Links;
use super::retry_budget::Tokens;
use super::{AttemptPolicy, CallError, Outcome, RetryBudget};
use crate::balance::Picked;
use crate::{Instance, Service};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::error::Error;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Copies a request, if it can be copied.
type Copy<R> = Box<dyn Fn(&R) -> Option<R> + Send + Sync>;

/// Rule for sending a request again.
pub(super) struct Retry<R> {
    /// Copies a request, if it can be copied.
    pub(super) copy: Copy<R>,
    /// Returns true for a request that may be executed twice.
    pub(super) is_safe: Box<dyn Fn(&R) -> bool + Send + Sync>,
}

/// Classifies the results of attempts.
type Classify<S, R> = Arc<
    dyn Fn(Result<&<S as tower::Service<R>>::Response, &<S as tower::Service<R>>::Error>) -> Outcome
        + Send
        + Sync,
>;

/// Hook that keeps a pick in flight until a response has ended.
type Keep<P, S, R> = Arc<
    dyn Fn(<S as tower::Service<R>>::Response, Picked<P>) -> <S as tower::Service<R>>::Response + Send + Sync,
>;

/// A tower service that sends each request to an instance chosen by [`Service::pick`], over a connection that
/// it keeps, and reports the outcome to the view. Created by [`Service::balanced`].
///
/// # Expected flow
/// Create one for each service to call, clone it where it is needed, and send requests. `P` is the payload of
/// instances, `S` the tower service that represents a connection, and `R` the request.
///
/// # Guarantees
/// - Each attempt counts as in flight at its instance until its response has started. It reports to the view
///   whether the instance [succeeded](Picked::succeeded) or [failed](Picked::failed), and ends in time
///   ([`AttemptPolicy`]).
/// - A request that no connection has accepted yet is sent to another instance. A request that an instance
///   may have executed is sent to another one only if it is safe by [`retry_if`](Self::retry_if).
/// - Attempts at further instances are limited for all requests together ([`RetryBudget`]).
/// - There is at most one connection to each instance. The first request that needs it opens it; it is
///   reopened if it broke or the instance changed. It is dropped when the instance leaves the view; requests
///   in flight keep a clone until they end.
/// - Each attempt waits for `poll_ready` of a clone of the connection, so a concurrency limit around `S`
///   limits the requests to each instance. `poll_ready` of the balanced service itself is always ready.
///
/// # On drop
/// A dropped response future reports nothing about the instance and ends its attempt; the request may have
/// been sent. The last clone drops the connections.
///
/// The service keeps using the instances it knows while ZooKeeper is unreachable or after the client was
/// closed. Cheap to clone. Clones share their connections; changing a setting affects only that clone.
pub struct Balanced<P, S: tower::Service<R>, R> {
    pub(super) service: Service<P>,
    pub(super) links: Arc<Links<P, S>>,
    pub(super) policy: AttemptPolicy,
    pub(super) tokens: Arc<Tokens>,
    pub(super) retry: Arc<Retry<R>>,
    pub(super) classify: Classify<S, R>,
    pub(super) keep: Keep<P, S, R>,
}

impl<P, S, R> Balanced<P, S, R>
where
    P: Send + Sync + 'static,
    S: tower::Service<R> + Send + 'static,
{
    pub(super) fn new(service: &Service<P>, make: Make<P, S>) -> Self {
        let links = Arc::new(Links::new(make));
        service.follow_with(&links);
        Self {
            service: service.clone(),
            links,
            policy: AttemptPolicy::default(),
            tokens: Arc::new(RetryBudget::default().open()),
            retry: Arc::new(Retry { copy: Box::new(|_| None), is_safe: Box::new(|_| false) }),
            classify: Arc::new(|answer| match answer {
                Ok(_) => Outcome::Succeeded,
                Err(_) => Outcome::Failed,
            }),
            keep: Arc::new(|response, _| response),
        }
    }
}

impl<P, S: tower::Service<R>, R> Balanced<P, S, R> {
    /// Sets the limits of attempts. Default: three attempts of 10 s.
    #[must_use]
    pub fn attempt_policy(mut self, policy: AttemptPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets the budget for attempts at further instances, shared by all requests; `None` for no limit.
    /// Default: 20 % of the requests and ten per second.
    #[must_use]
    pub fn retry_budget(mut self, budget: impl Into<Option<RetryBudget>>) -> Self {
        self.tokens = Arc::new(budget.into().map_or_else(Tokens::unlimited, RetryBudget::open));
        self
    }

    /// Sends a copy of a request to another instance if the first one failed and `is_safe` returns true for
    /// the request. Safe means that executing the request twice does no harm. Copies of all other requests
    /// are sent only if a connection was [never opened](Outcome::Unsent). Default: no request is copied.
    #[must_use]
    pub fn retry_if(self, is_safe: impl Fn(&R) -> bool + Send + Sync + 'static) -> Self
    where
        R: Clone,
    {
        self.retry_with(|request| Some(request.clone()), is_safe)
    }

    /// Like [`retry_if`](Self::retry_if), for requests that are not `Clone`, or cannot always be copied:
    /// `copy` returns `None` for those.
    #[must_use]
    pub fn retry_with(
        mut self,
        copy: impl Fn(&R) -> Option<R> + Send + Sync + 'static,
        is_safe: impl Fn(&R) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.retry = Arc::new(Retry { copy: Box::new(copy), is_safe: Box::new(is_safe) });
        self
    }

    /// Sets the classifier of results. Default: a response is a success, an error a failure. For HTTP use
    /// [`Outcome::of_status`] and [`Outcome::of_error`].
    #[must_use]
    pub fn classify(
        mut self,
        classify: impl Fn(Result<&S::Response, &S::Error>) -> Outcome + Send + Sync + 'static,
    ) -> Self {
        self.classify = Arc::new(classify);
        self
    }
}

impl<P, S, R> tower::Service<R> for Balanced<P, S, R>
where
    P: Send + Sync + 'static,
    S: tower::Service<R, Response: Send, Error: Send, Future: Send> + Clone + Send + 'static,
    R: Send + 'static,
{
    type Response = S::Response;
    type Error = CallError<S::Error>;
    type Future = BoxFuture<'static, Result<S::Response, CallError<S::Error>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: R) -> Self::Future {
        self.clone().send(request).boxed()
    }
}

impl<P: Send + Sync + 'static> Service<P> {
    /// Returns a tower service that sends requests to the instances chosen by [`pick`](Self::pick). It uses
    /// the view's policy, counts requests in flight, sets failing instances aside, and resends safe requests.
    /// `connect` opens the connection to an instance when a request first needs it. The connection is a tower
    /// service that is `Clone`.
    ///
    /// A client that connects on its own, such as reqwest's, can be returned unchanged. In that case use
    /// [`classify`](Balanced::classify) to specify which errors mean that no connection was opened.
    ///
    /// # Examples
    /// ```no_run
    /// use docent_discovery::{AttemptPolicy, Service};
    /// use std::time::Duration;
    /// use tower::ServiceExt;
    ///
    /// # async fn ask(authority: String, question: String) -> Result<String, std::io::Error> {
    /// #     Ok(format!("{question} {authority}"))
    /// # }
    /// # async fn example(orders: Service<()>) -> Result<(), Box<dyn std::error::Error>> {
    /// let orders = orders
    ///     .balanced(async |instance| {
    ///         let authority = instance.authority().ok_or("an instance without an address")?;
    ///         let connection = move |question: String| ask(authority.clone(), question);
    ///         Ok::<_, &str>(tower::service_fn(connection))
    ///     })
    ///     .attempt_policy(AttemptPolicy::default().timeout(Duration::from_secs(2)))
    ///     .retry_if(|question| question.starts_with("GET "));
    /// let answer = orders.oneshot("GET /1".to_owned()).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn balanced<S, R, M, F, E>(&self, connect: M) -> Balanced<P, S, R>
    where
        S: tower::Service<R> + Send + 'static,
        M: Fn(Arc<Instance<P>>) -> F + Send + Sync + 'static,
        F: Future<Output = Result<S, E>> + Send + 'static,
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        let make = move |instance| {
            let connection = connect(instance);
            async move { connection.await.map(Some).map_err(|error| Cause::from(error.into())) }.boxed()
        };
        Balanced::new(self, Arc::new(make))
    }
}

impl<P, S: tower::Service<R>, R> Clone for Balanced<P, S, R> {
    fn clone(&self) -> Self {
        Self {
            service: self.service.clone(),
            links: Arc::clone(&self.links),
            policy: self.policy,
            tokens: Arc::clone(&self.tokens),
            retry: Arc::clone(&self.retry),
            classify: Arc::clone(&self.classify),
            keep: Arc::clone(&self.keep),
        }
    }
}

impl<P, S: tower::Service<R>, R> fmt::Debug for Balanced<P, S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Balanced")
            .field("service", &self.service.name())
            .field("attempt_policy", &self.policy)
            .finish_non_exhaustive()
    }
}
