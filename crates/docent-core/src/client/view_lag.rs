use super::hooks::LONG;
use crate::time::{Clock, Timestamp};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Time for which a view has not shown what its cache has: because one of its hooks takes long, or because
/// its task has ended. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ViewLag {
    clock: Arc<dyn Clock>,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// When the hook began that is running, or the task ended.
    since: Option<Timestamp>,
    is_over: bool,
}

impl ViewLag {
    pub(super) fn new(clock: &Arc<dyn Clock>) -> Self {
        Self { clock: Arc::clone(clock), state: Arc::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A hook begins.
    pub(super) fn begin(&self) {
        self.state().since = Some(self.clock.now());
    }

    /// A hook has ended.
    pub(super) fn end(&self) {
        self.state().since = None;
    }

    /// The view's task has ended.
    pub(super) fn over(&self) {
        let mut state = self.state();
        state.is_over = true;
        state.since.get_or_insert_with(|| self.clock.now());
    }

    /// Time since the view fell behind; `None` when it has not, and in the first second of a hook.
    pub fn behind_for(&self) -> Option<Duration> {
        let State { since, is_over } = *self.state();
        let behind = self.clock.now().since(since?);
        (is_over || behind >= LONG).then_some(behind)
    }

    /// True when the view is behind.
    pub fn is_behind(&self) -> bool {
        self.behind_for().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TokioClock;

    #[tokio::test(start_paused = true)]
    async fn a_view_is_behind_while_a_hook_takes_long_and_once_its_task_has_ended() {
        let clock: Arc<dyn Clock> = Arc::new(TokioClock::new());
        let lag = ViewLag::new(&clock);
        lag.begin();
        assert!(!lag.is_behind());
        tokio::time::advance(LONG * 2).await;
        assert_eq!(lag.behind_for(), Some(LONG * 2));
        lag.end();
        assert!(!lag.is_behind());
        lag.over();
        assert_eq!(lag.behind_for(), Some(Duration::ZERO));
    }
}
