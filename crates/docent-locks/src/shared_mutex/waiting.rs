use super::cohort::{Cohort, wake};
use super::local_line::{Departure, Step};
use super::turn::Turn;
use crate::AcquireError;
use crate::acquire::{Progress, try_line, wait_in};
use docent_core::planted;
use docent_core::recipe::{Hold, Line};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::runtime::{self, Handle};
use tokio::time::Instant;
use tracing::Span;

/// Draw of a ticket. Several tasks may poll it, one after another.
pub(super) struct Draw {
    acquiring: BoxFuture<'static, Result<Hold, AcquireError>>,
    /// Runtime to which the draw's timers belong. If that runtime is no longer driven, the timers never fire.
    runtime: Option<runtime::Id>,
    /// Progress that shows the ticket to each of the tasks.
    progress: Progress,
}

/// Wait of a task for its turn.
///
/// # On drop
/// The task leaves. A turn that it was given passes to the next task, and so does its draw of a ticket. A
/// next task on another runtime starts a new draw.
pub(super) struct Waiting {
    pub(super) cohort: Arc<Cohort>,
    pub(super) line: Line,
    /// Number of the task, which has arrived.
    pub(super) id: u64,
    /// Time at which the task arrived.
    pub(super) since: Instant,
    /// Progress that shows the ticket being drawn.
    pub(super) progress: Progress,
    /// Whether the task gives up instead of waiting for other contenders.
    pub(super) tries: bool,
    /// Whether the task has left the line.
    pub(super) done: bool,
}

impl Waiting {
    fn draw(&self) -> Draw {
        let (line, progress) = (self.line.clone(), Progress::recorded());
        let acquiring = match self.tries {
            true => try_line(line, progress.clone()).boxed(),
            // Each waiting task logs for itself.
            false => {
                let progress = progress.clone();
                async move { wait_in(&line, &progress).await }.boxed()
            }
        };
        Draw { acquiring, runtime: runtime_id(), progress }
    }
}

fn runtime_id() -> Option<runtime::Id> {
    Handle::try_current().ok().map(|runtime| runtime.id())
}

impl Future for Waiting {
    type Output = Result<Turn, AcquireError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut draw = loop {
            let step = self.cohort.after_losses(|tasks| tasks.poll(self.id, self.tries, cx.waker()));
            match step {
                Step::Turn(turn) if turn.is_held() || planted!(TurnAfterLoss) => {
                    self.done = true;
                    Span::current().record("docent.fence", tracing::field::display(turn.fence()));
                    return Poll::Ready(Ok(turn));
                }
                // The turn was lost before the task took it, because its ticket was lost.
                Step::Turn(lost) => {
                    drop(lost);
                    self.cohort.lock().wait_again(self.id, self.since);
                }
                Step::Draw => break self.draw(),
                Step::Poll(draw) if draw.runtime == runtime_id() => break draw,
                // A task of another runtime started this draw, so it is dropped. Its place in the line is
                // lost.
                Step::Poll(draw) => {
                    drop(draw);
                    break self.draw();
                }
                // Another task arrived at the moment at which the ticket was lost.
                Step::Wait if self.tries => return Poll::Ready(Err(AcquireError::busy(self.line.path()))),
                Step::Wait => return Poll::Pending,
            }
        };
        match draw.acquiring.as_mut().poll(cx) {
            Poll::Pending => {
                // The draw may be one that another task started.
                self.progress.share(&draw.progress);
                self.cohort.lock().put_back(draw);
                Poll::Pending
            }
            Poll::Ready(Ok(hold)) => {
                self.done = true;
                Poll::Ready(Ok(self.cohort.begin(self.id, hold)))
            }
            Poll::Ready(Err(error)) => {
                self.done = true;
                let next = self.cohort.lock().failed(self.id);
                wake(next);
                Poll::Ready(Err(error))
            }
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        let Departure { turn, draw, next } = self.cohort.lock().leave(self.id);
        drop(draw);
        wake(next);
        if planted!(TurnForgottenOnCancel) {
            turn.into_iter().for_each(std::mem::forget);
            return;
        }
        // Dropping the turn starts the next one.
        drop(turn);
    }
}
