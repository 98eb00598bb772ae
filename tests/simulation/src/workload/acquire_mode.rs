use super::ClientCtx;
use super::abandon::abandon_at;
use super::record::Record;
use docent::ErrorKind;
use docent::locks::{AcquireError, Owner};
use docent_checker::Ending;
use fastrand::Rng;
use std::future::Future;
use std::ops::ControlFlow;
use std::time::Duration;
use tokio::time::timeout;

/// How something is acquired.
#[derive(Debug)]
pub(super) enum AcquireMode {
    Wait,
    Try,
    /// Waits for at most this time.
    Timed(Duration),
    /// The future is dropped at this poll.
    Polls(u32),
    /// The future is dropped after this time.
    Abandoned(Duration),
    /// Two futures of one owner acquire at the same time.
    Twice,
}

impl AcquireMode {
    pub(super) fn draw(ctx: &ClientCtx, rng: &mut Rng) -> Self {
        match rng.u8(..20) {
            0..=7 => Self::Wait,
            8..=10 => Self::Try,
            11..=13 => Self::Timed(ctx.setting.span(rng)),
            14..=16 => Self::Polls(rng.u32(1..10)),
            17 | 18 => Self::Abandoned(ctx.setting.span(rng)),
            _ => Self::Twice,
        }
    }

    /// Like [`draw`](Self::draw), but no owner acquires twice.
    pub(super) fn draw_single(ctx: &ClientCtx, rng: &mut Rng) -> Self {
        match Self::draw(ctx, rng) {
            Self::Twice => Self::Wait,
            mode => mode,
        }
    }

    pub(super) fn patience(&self) -> Option<Duration> {
        match self {
            Self::Try => Some(Duration::ZERO),
            Self::Timed(limit) => Some(*limit),
            _ => None,
        }
    }

    /// Acquires in this way with one of the three methods, all called for `owner`. Returns `None` if the
    /// future was dropped.
    pub(super) async fn acquire<G, W, T, L>(
        &self,
        owner: &Owner,
        wait: impl Fn() -> W,
        attempt: impl Fn() -> T,
        limited: impl Fn(Duration) -> L,
    ) -> Option<Result<G, AcquireError>>
    where
        W: Future<Output = Result<G, AcquireError>>,
        T: Future<Output = Result<G, AcquireError>>,
        L: Future<Output = Result<G, AcquireError>>,
    {
        let wait = || owner.clone().within(async { wait().await });
        match self {
            Self::Wait => Some(wait().await),
            Self::Try => Some(owner.clone().within(async { attempt().await }).await),
            Self::Timed(limit) => Some(owner.clone().within(async { limited(*limit).await }).await),
            Self::Polls(polls) => abandon_at(*polls, wait()).await,
            Self::Abandoned(after) => timeout(*after, wait()).await.ok(),
            Self::Twice => {
                tokio::select! {
                    biased;
                    first = wait() => Some(first),
                    second = wait() => Some(second),
                }
            }
        }
    }
}

pub(super) fn ending(error: &AcquireError) -> Ending {
    match error {
        AcquireError::Busy(_) => Ending::Busy,
        AcquireError::TimedOut(_) => Ending::TimedOut,
        AcquireError::Core(error) => Ending::Failed(format!("{:?}", error.kind())),
        other => Ending::Failed(format!("{other:?}")),
    }
}

fn is_closed(error: &AcquireError) -> bool {
    matches!(error, AcquireError::Core(error) if error.kind() == ErrorKind::Closed)
}

/// Records the outcome of an acquire that was not granted. Breaks if the client is closed.
pub(super) fn settle<G>(
    record: &Record,
    acquired: Option<Result<G, AcquireError>>,
) -> ControlFlow<(), Option<G>> {
    match acquired {
        Some(Ok(guard)) => return ControlFlow::Continue(Some(guard)),
        None => record.ended(Ending::Cancelled),
        Some(Err(error)) => {
            record.ended(ending(&error));
            if is_closed(&error) {
                return ControlFlow::Break(());
            }
        }
    }
    ControlFlow::Continue(None)
}
