//! One logical operation, with a deadline that covers queueing, retries and the wait for a link.

#![expect(
    clippy::manual_async_fn,
    reason = "an `async fn` keeps its arguments twice, and with many calls in flight their size counts"
)]

use super::Shared;
use crate::cleanup::{Marker, Near, NoOwnNode};
use crate::error::{Error, ErrorKind};
use crate::guard::SessionGeneration;
use crate::session::lookup::{Resolution, resolve};
use crate::session::{Cause, Outcome, SessionEnd};
use crate::time::{Backoff, after, seconds};
use docent_proto::{Code, Request, Response};
use std::sync::Arc;
use tokio::time::Instant;

/// Builds the request for an attempt. There is usually only one attempt, and its request is moved into the
/// session without a copy.
pub(crate) type RequestFn<'a> = dyn Fn() -> Request + Send + Sync + 'a;

/// Kinds of requests, by how an unknown outcome is handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Idempotency {
    /// The request changes nothing, or applying it twice is the same as applying it once: it is sent again.
    Idempotent,
    /// Applying the request twice could double its effect: the caller is informed.
    Once,
}

/// The attempts of one logical operation.
pub(crate) struct Attempts<'a> {
    shared: &'a Shared,
    /// Number of the only generation in which the operation may run; `None` for any.
    bound: Option<u64>,
    operation: &'static str,
    path: &'a str,
    idempotency: Idempotency,
    pub(crate) deadline: Instant,
    backoff: Option<Box<Backoff>>,
    /// Number of the generation that has ended since the last attempt.
    ended: u64,
    attempt: u32,
    /// True once an earlier attempt is unanswered and may be applied at any time (decision 11).
    may_apply_late: bool,
}

/// Reason why a request has no answer, and whether it may have reached a server.
struct Unanswered {
    sent: bool,
    cause: Cause,
}

impl<'a> Attempts<'a> {
    pub(crate) fn new(
        shared: &'a Shared,
        operation: &'static str,
        path: &'a str,
        idempotency: Idempotency,
        deadline: Instant,
    ) -> Self {
        Self {
            shared,
            bound: None,
            operation,
            path,
            idempotency,
            deadline,
            backoff: None,
            ended: 0,
            attempt: 1,
            may_apply_late: false,
        }
    }

    /// Returns the same attempts, bound to run in the generation `bound` or not at all; `None` for any.
    pub(crate) fn bound_to(self, bound: Option<u64>) -> Self {
        Self { bound, ..self }
    }

    /// Returns the generation for the next attempt.
    pub(crate) async fn generation(&self) -> Result<Arc<SessionGeneration>, Error> {
        let shared = self.shared;
        let generation = shared.generation();
        if self.bound.is_some_and(|bound| bound != generation.number || bound <= self.ended) {
            return Err(self.error(ErrorKind::SessionChanged).maybe_applied(self.may_apply_late));
        }
        if generation.number > self.ended {
            return Ok(generation);
        }
        // Boxed because this case is rare, which keeps the future of every call small.
        let next = Box::pin(tokio::time::timeout_at(self.deadline, shared.next_generation(self.ended)));
        match next.await {
            Ok(Ok(generation)) => Ok(generation),
            Ok(Err(error)) => Err(self.error(error.kind()).maybe_applied(self.may_apply_late)),
            Err(_) => Err(self.timeout()),
        }
    }

    /// Takes a marker for an exact write of `generation` near some nodes. Returns `None` if the caller is to
    /// try again; the pause before the next attempt has then passed.
    pub(crate) async fn marker(
        &mut self,
        generation: &Arc<SessionGeneration>,
        near: Near<'_>,
    ) -> Result<Option<Marker>, Error> {
        match Marker::take(self.shared, generation, near, self.deadline).await {
            Ok(marker) => Ok(Some(marker)),
            Err(NoOwnNode::Refused(error)) => Err(error.of_own_node(self.operation)),
            Err(NoOwnNode::Cause(cause)) => self.retry(generation, false, cause).await.map(|()| None),
        }
    }

    /// Sends a `request` in `generation`. Returns the answer, or `None` if the caller is to send the request
    /// again.
    pub(crate) fn send(
        &mut self,
        generation: &SessionGeneration,
        request: &RequestFn<'_>,
    ) -> impl Future<Output = Result<Option<Result<Response, Code>>, Error>> + Send {
        async move {
            let seen = if self.idempotency == Idempotency::Once { generation.session.last_zxid() } else { 0 };
            let outcome = generation.session.submit_until(request(), self.deadline).await;
            let unanswered = match self.answer(generation, outcome) {
                // The refusal may be caused by an earlier attempt that was applied in the meantime, so it
                // counts as a lost reply.
                Ok(Err(_)) if self.may_apply_late => Unanswered { sent: true, cause: Cause::LinkLost },
                Ok(answer) => return Ok(Some(answer)),
                Err(unanswered) => unanswered,
            };
            // Boxed because this case is rare, which keeps the future of every call small.
            Box::pin(self.resolve_unanswered(generation, request(), seen, unanswered)).await
        }
    }

    /// Finds out the outcome of a request without an answer, if possible. Otherwise decides on another
    /// attempt.
    async fn resolve_unanswered(
        &mut self,
        generation: &SessionGeneration,
        request: Request,
        seen: i64,
        Unanswered { mut sent, mut cause }: Unanswered,
    ) -> Result<Option<Result<Response, Code>>, Error> {
        if planted!(BlindCreateRetry) && matches!(request, Request::Create(_)) {
            sent = false;
        }
        if sent && self.idempotency == Idempotency::Once && cause == Cause::LinkLost {
            let too_large = generation.session.too_large_for_servers(&request);
            match tokio::time::timeout_at(self.deadline, resolve(generation, &request, seen)).await {
                Ok(Ok(Resolution::Refused(code))) => return Ok(Some(Err(code))),
                Ok(Ok(Resolution::Repeatable)) => {
                    self.may_apply_late = true;
                    sent = false;
                }
                Ok(Ok(Resolution::Unknown)) | Err(_) => cause = too_large.unwrap_or(cause),
                Ok(Err(ended)) => cause = ended,
            }
        }
        self.retry(generation, sent, cause).await?;
        Ok(None)
    }

    /// Returns the answer of an `outcome`, or `None` if the caller is to send the request again. The pause
    /// before the next attempt has then passed.
    pub(crate) async fn next(
        &mut self,
        generation: &SessionGeneration,
        outcome: Outcome,
    ) -> Result<Option<Result<Response, Code>>, Error> {
        match self.answer(generation, outcome) {
            Ok(answer) => Ok(Some(answer)),
            Err(Unanswered { sent, cause }) => {
                Box::pin(self.retry(generation, sent, cause)).await?;
                Ok(None)
            }
        }
    }

    fn answer(
        &self,
        generation: &SessionGeneration,
        outcome: Outcome,
    ) -> Result<Result<Response, Code>, Unanswered> {
        let sent = matches!(outcome, Outcome::Unknown(_));
        let reply = outcome.answer().map_err(|cause| Unanswered { sent, cause })?;
        // Event: A server replied to a request of an operation, also if the reply is a refusal.
        tracing::trace!(
            target: "docent::request",
            client = %self.shared.label,
            operation = self.operation,
            path = %self.shared.namespace.join(self.path),
            generation = generation.number,
            attempt = self.attempt,
            zxid = reply.zxid,
            "reply received"
        );
        Ok(reply.result)
    }

    pub(crate) async fn retry(
        &mut self,
        generation: &SessionGeneration,
        sent: bool,
        cause: Cause,
    ) -> Result<(), Error> {
        // An attempt that may be applied late does not prevent the next one, because only one of them can be
        // applied. But if there is no next attempt, the error must say that the outcome is unknown.
        let ends = !matches!(cause, Cause::LinkLost | Cause::QueueFull);
        let unknown = (sent || (self.may_apply_late && ends)) && self.idempotency == Idempotency::Once;
        match cause {
            Cause::Ended(SessionEnd::Closed) => {
                return Err(self.error(self.shared.closed()).maybe_applied(unknown));
            }
            // The request is within this client's limit, but servers closed the link on it.
            Cause::TooLarge { size, limit } if size <= limit => {
                let error = Error::too_large(self.operation, size, limit).at(self.path);
                return Err(error.maybe_applied(unknown));
            }
            _ if unknown => return Err(self.unknown()),
            Cause::Deadline => return Err(self.timeout()),
            Cause::TooLarge { size, limit } => {
                return Err(Error::too_large(self.operation, size, limit).at(self.path));
            }
            Cause::TooManyEphemerals { bytes, limit } => {
                return Err(Error::too_many_ephemerals(self.operation, bytes, limit).at(self.path));
            }
            // Waiting would not help: the next attempt is half a minute away, and only a person can fix the
            // credentials.
            Cause::Ended(SessionEnd::AuthFailed) => return Err(self.error(ErrorKind::AuthFailed)),
            Cause::Ended(_) => self.ended = generation.number,
            Cause::LinkLost | Cause::QueueFull => {}
        }
        self.pause(cause).await
    }

    async fn pause(&mut self, cause: Cause) -> Result<(), Error> {
        let policy = &self.shared.config.retry;
        let Some(pause) = self.backoff.get_or_insert_with(|| Box::new(policy.start())).next() else {
            return Err(self.given_up(cause));
        };
        self.attempt += 1;
        self.shared.instruments.retry(self.operation);
        // Event: An operation got no answer, for the reason in the field `cause`. The client sends it again
        // after the time in `pause_seconds`, unless the operation's timeout is reached first.
        tracing::debug!(
            target: "docent::request",
            client = %self.shared.label,
            operation = self.operation,
            path = %self.shared.namespace.join(self.path),
            attempt = self.attempt,
            ?cause,
            pause_seconds = seconds(pause),
            "retrying the operation"
        );
        if after(Instant::now(), pause) >= self.deadline {
            return Err(self.given_up(cause));
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => Ok(()),
            () = self.shared.closing.cancelled() => {
                Err(self.error(self.shared.closed()).maybe_applied(self.may_apply_late))
            }
        }
    }

    fn given_up(&self, cause: Cause) -> Error {
        match cause {
            Cause::QueueFull if !self.may_apply_late => self.error(ErrorKind::Overloaded),
            _ => self.timeout(),
        }
    }

    pub(crate) fn code(&self, code: Code) -> Error {
        Error::from_code(code, self.operation).at(self.path)
    }

    pub(crate) fn error(&self, kind: ErrorKind) -> Error {
        Error::new(kind, self.operation).at(self.path)
    }

    pub(crate) fn timeout(&self) -> Error {
        if self.may_apply_late {
            return self.unknown();
        }
        self.with_source(self.error(ErrorKind::Timeout))
    }

    pub(crate) fn unknown(&self) -> Error {
        self.with_source(self.error(ErrorKind::OutcomeUnknown))
    }

    /// Adds the reason why there is no link, if there is none.
    fn with_source(&self, error: Error) -> Error {
        match self.shared.ensemble.link_status.no_link() {
            Some(source) => error.caused_by(source),
            None => error,
        }
    }
}

/// Returns the error of an answer that does not fit its request. The codec decodes each answer as the type
/// that its request expects.
pub(crate) fn unexpected(operation: &'static str, response: &Response) -> Error {
    Error::new(ErrorKind::Server(0), operation).because(format!("unexpected answer {response:?}"))
}

/// Names the method that a caller called in the error that the method returns.
///
/// A method of a recipe sends requests such as `create` and `children`, whose errors name these requests. The
/// caller knows only the method: `put "/queues/jobs": permission denied`.
///
/// # Examples
/// ```no_run
/// # use docent_core::recipe::InOperation;
/// # use docent_core::{Client, Error};
/// # async fn example(client: &Client) -> Result<(), Error> {
/// let names = client.children("/workers").await.in_operation("workers")?.names;
/// # let _ = names;
/// # Ok(()) }
/// ```
pub trait InOperation {
    /// Returns the same value. If it is an error of the core crate, or contains one, that error names
    /// `operation`.
    #[must_use]
    fn in_operation(self, operation: &'static str) -> Self;
}

impl InOperation for Error {
    fn in_operation(self, operation: &'static str) -> Self {
        self.of_operation(operation)
    }
}

impl<T, E: InOperation> InOperation for Result<T, E> {
    fn in_operation(self, operation: &'static str) -> Self {
        self.map_err(|error| error.in_operation(operation))
    }
}
