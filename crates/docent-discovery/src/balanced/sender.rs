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

/// Copier of requests: of some, none can be made.
type Copy<R> = Box<dyn Fn(&R) -> Option<R> + Send + Sync>;

/// Rule by which a request is sent again.
pub(super) struct Retry<R> {
    /// Copy of a request, where one can be made.
    pub(super) copy: Copy<R>,
    /// True for a request that may be done twice.
    pub(super) is_safe: Box<dyn Fn(&R) -> bool + Send + Sync>,
}

/// Classifier of the ends of attempts.
type Classify<S, R> = Arc<
    dyn Fn(Result<&<S as tower::Service<R>>::Response, &<S as tower::Service<R>>::Error>) -> Outcome
        + Send
        + Sync,
>;

/// Hook that keeps a pick in flight for as long as a response lasts.
type Keep<P, S, R> = Arc<
    dyn Fn(<S as tower::Service<R>>::Response, Picked<P>) -> <S as tower::Service<R>>::Response + Send + Sync,
>;

/// Tower service that sends each request to an instance by [`Service::pick`], over a connection that it keeps
/// for it, and learns from how that went. Made by [`Service::balanced`].
///
/// # Expected flow
/// Make one for each service that is called, clone it where it is needed, and send requests: `P` is the
/// payload of instances, `S` the tower service that is a connection, `R` the request.
///
/// # Guarantees
/// - Each attempt is in flight at its instance until its response has begun, says to the view whether the
///   instance [succeeded](Picked::succeeded) or [failed](Picked::failed), and ends in time
///   ([`AttemptPolicy`]).
/// - A request that no connection has taken yet is sent to another instance. One that an instance may have
///   done is sent to another only if it is safe by [`retry_if`](Self::retry_if).
/// - Attempts at further instances are bounded for all requests together ([`RetryBudget`]).
/// - There is at most one connection for each instance, made by the request that needs it first, anew when it
///   broke or the instance changed. It is dropped when the instance leaves the view; requests under way keep
///   a clone until they are done.
/// - At an instance it waits for `poll_ready` of a clone of the connection: a limit of concurrency around `S`
///   bounds requests to each instance. Its own `poll_ready` is always ready.
///
/// # On drop
/// A response future that is dropped says nothing of the instance, and ends its attempt; the request may have
/// been sent. With the last clone the connections are dropped.
///
/// It goes on with the instances it knows when ZooKeeper is away or the client was closed. Cheap to clone;
/// clones share their connections, and settings that are changed after that are of one clone alone.
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
    /// Limits of attempts. Default: three attempts of 10 s.
    #[must_use]
    pub fn attempt_policy(mut self, policy: AttemptPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Budget of the attempts at further instances, for all requests together; `None` for no limit. Default:
    /// 20 % of the requests and ten a second.
    #[must_use]
    pub fn retry_budget(mut self, budget: impl Into<Option<RetryBudget>>) -> Self {
        self.tokens = Arc::new(budget.into().map_or_else(Tokens::unlimited, RetryBudget::open));
        self
    }

    /// Sends a copy of a request to another instance when the first failed, if `is_safe` is true for it: it
    /// does no harm when it is done twice. Copies of all others are sent when a connection was
    /// [never made](Outcome::Unsent). Default: none is copied.
    #[must_use]
    pub fn retry_if(self, is_safe: impl Fn(&R) -> bool + Send + Sync + 'static) -> Self
    where
        R: Clone,
    {
        self.retry_with(|request| Some(request.clone()), is_safe)
    }

    /// As [`retry_if`](Self::retry_if), for requests that are not `Clone`, or not always: `None` for one that
    /// cannot be copied.
    #[must_use]
    pub fn retry_with(
        mut self,
        copy: impl Fn(&R) -> Option<R> + Send + Sync + 'static,
        is_safe: impl Fn(&R) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.retry = Arc::new(Retry { copy: Box::new(copy), is_safe: Box::new(is_safe) });
        self
    }

    /// Classifier of the ends of attempts. Default: a response is a success, an error a failure. For HTTP
    /// take [`Outcome::of_status`] and [`Outcome::of_error`].
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
    /// A tower service that sends requests to the instances by [`pick`](Self::pick), and learns: it has the
    /// view's policy, counts what is in flight, sets aside who fails, and sends again what is safe. `connect`
    /// makes the connection to an instance, when a request first needs it: a tower service that is `Clone`.
    ///
    /// A client that connects by itself, such as reqwest's, can be returned as it is; then say by
    /// [`classify`](Balanced::classify) which errors mean that no connection was made.
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
            let made = connect(instance);
            async move { made.await.map(Some).map_err(|error| Cause::from(error.into())) }.boxed()
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
