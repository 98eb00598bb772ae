use super::link::{Cause, LinkState};
use super::{Balanced, CallError, Outcome};
use crate::balance::Picked;
use docent_core::recipe::after;
use std::io;
use std::sync::Arc;
use tokio::time::{Instant, timeout_at};

/// Result of a request to a balanced service.
pub(super) type CallResult<S, R> =
    Result<<S as tower::Service<R>>::Response, CallError<<S as tower::Service<R>>::Error>>;

/// End of an attempt.
enum Attempt<S: tower::Service<R>, R> {
    /// The instance is skipped, and nothing was sent.
    Skipped(R),
    /// The result, and the request if it may be sent to another instance.
    Finished(CallResult<S, R>, Option<R>),
}

impl<P, S, R> Balanced<P, S, R>
where
    P: Send + Sync + 'static,
    S: tower::Service<R, Response: Send, Error: Send, Future: Send> + Clone + Send + 'static,
    R: Send + 'static,
{
    /// Sends a request to one instance after the other, until one handled it or it must not be sent again.
    pub(super) async fn send(self, mut request: R) -> CallResult<S, R> {
        let mut tried = Vec::new();
        // The first attempt needs no token.
        let (mut attempts, mut last, mut is_paid) = (0, None, true);
        self.tokens.count();
        while let Some(picked) = self.pick(&tried).await {
            // Pay only if there is another instance, and once for each attempt.
            if !is_paid && !self.may_try_again() {
                break;
            }
            is_paid = true;
            tried.push(Arc::clone(picked.key()));
            request = match self.attempt(picked, request).await {
                Attempt::Skipped(request) => request,
                Attempt::Finished(result, again) => {
                    attempts += 1;
                    is_paid = false;
                    match again.filter(|_| attempts < self.policy.limit) {
                        Some(again) => {
                            last = Some(result);
                            again
                        }
                        None => return result,
                    }
                }
            };
        }
        last.unwrap_or_else(|| Err(CallError::NoInstance { service: self.service.name().to_owned() }))
    }

    /// Takes a token for another attempt.
    fn may_try_again(&self) -> bool {
        let may = self.tokens.take();
        if !may {
            // Event: A request failed and was not sent to another instance, because the retry budget is used
            // up.
            // Action: If this persists, check why the instances of the service fail.
            // Without client: the call belongs to the application.
            tracing::debug!(
                target: "docent::discovery",
                service = self.service.name(),
                "retry budget exhausted; returning the error of the last attempt"
            );
        }
        may
    }

    /// Picks an instance that was not tried yet. Waits for the first instance if the policy says so.
    async fn pick(&self, tried: &[Arc<str>]) -> Option<Picked<P>> {
        let until = after(Instant::now(), self.policy.wait);
        loop {
            let picked = self.pick_now(tried);
            if picked.is_some() || !tried.is_empty() || self.policy.wait.is_zero() {
                return picked;
            }
            let available = self.service.until_some(|key| !self.links.skips(key));
            timeout_at(until, available).await.ok().flatten()?;
        }
    }

    fn pick_now(&self, tried: &[Arc<str>]) -> Option<Picked<P>> {
        match tried.is_empty() && !self.links.skips_any() {
            true => self.service.pick().ok(),
            false => self.service.pick_unless(|key| tried.contains(key) || self.links.skips(key)),
        }
    }

    async fn attempt(&self, picked: Picked<P>, request: R) -> Attempt<S, R> {
        let deadline = after(Instant::now(), self.policy.timeout);
        let unsent = |picked: Picked<P>, error, request| {
            picked.failed();
            Attempt::Finished(Err(error), Some(request))
        };
        let ready = timeout_at(deadline, self.links.ready(&self.service, &picked)).await;
        let (link, mut service) = match ready {
            Ok((link, LinkState::Ready(service))) => (link, service),
            Ok((_, LinkState::Skipped)) => return Attempt::Skipped(request),
            Ok((_, LinkState::NotConnected(cause))) => {
                let error = self.unreachable(&picked, cause);
                return unsent(picked, error, request);
            }
            Ok((link, LinkState::Refused(error))) => {
                self.links.forget(picked.key(), &link);
                let error = self.failed(&picked, error, true);
                return unsent(picked, error, request);
            }
            Err(_) => {
                let error = self.unreachable(&picked, Arc::new(io::Error::from(io::ErrorKind::TimedOut)));
                return unsent(picked, error, request);
            }
        };
        let copy = (self.retry.copy)(&request);
        let answer = timeout_at(deadline, service.call(request)).await;
        let outcome = match &answer {
            Ok(answer) => (self.classify)(answer.as_ref()),
            Err(_) => Outcome::Failed,
        };
        if outcome != Outcome::Succeeded && !matches!(answer, Ok(Ok(_))) {
            self.links.forget(picked.key(), &link);
        }
        let result = match answer {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => Err(self.failed(&picked, error, outcome == Outcome::Unsent)),
            Err(_) => Err(self.timed_out(&picked)),
        };
        self.report_outcome(picked, outcome, result, copy)
    }

    /// Reports the outcome of an attempt to the view.
    fn report_outcome(
        &self,
        picked: Picked<P>,
        outcome: Outcome,
        result: CallResult<S, R>,
        copy: Option<R>,
    ) -> Attempt<S, R> {
        if outcome == Outcome::Succeeded {
            let result = result.map(|response| (self.keep)(response, picked.mark_succeeded()));
            return Attempt::Finished(result, None);
        }
        // Event: A request to an instance failed, or the instance did not answer in time.
        // Without client: the call belongs to the application.
        tracing::debug!(target: "docent::discovery", service = %picked.name, instance = %picked.id, ?outcome, "an instance failed a request");
        picked.failed();
        let again = copy.filter(|copy| outcome == Outcome::Unsent || (self.retry.is_safe)(copy));
        Attempt::Finished(result, again)
    }

    fn unreachable(&self, picked: &Picked<P>, cause: Cause) -> CallError<S::Error> {
        CallError::Unreachable { service: self.service.name().to_owned(), id: picked.id.clone(), cause }
    }

    fn failed(&self, picked: &Picked<P>, error: S::Error, unsent: bool) -> CallError<S::Error> {
        CallError::Failed { service: self.service.name().to_owned(), id: picked.id.clone(), error, unsent }
    }

    fn timed_out(&self, picked: &Picked<P>) -> CallError<S::Error> {
        let (service, timeout) = (self.service.name().to_owned(), self.policy.timeout);
        CallError::TimedOut { service, id: picked.id.clone(), timeout }
    }
}
