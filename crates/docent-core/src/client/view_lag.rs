use super::hooks::LONG;
use crate::time::{Clock, Timestamp};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Time for which a view has lagged behind its cache, because one of its hooks is slow or its task has ended.
/// Cheap to clone.
#[derive(Debug, Clone)]
pub struct ViewLag {
    clock: Arc<dyn Clock>,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// Time at which the running hook began, or the task ended.
    since: Option<Timestamp>,
    has_ended: bool,
}

impl ViewLag {
    pub(super) fn new(clock: &Arc<dyn Clock>) -> Self {
        Self { clock: Arc::clone(clock), state: Arc::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that a hook begins.
    pub(super) fn begin(&self) {
        self.state().since = Some(self.clock.now());
    }

    /// Records that a hook has ended.
    pub(super) fn end(&self) {
        self.state().since = None;
    }

    /// Records that the view's task has ended.
    pub(super) fn ended(&self) {
        let mut state = self.state();
        state.has_ended = true;
        state.since.get_or_insert_with(|| self.clock.now());
    }

    /// Returns the time since the view fell behind; `None` if it is not behind, and in the first second of a
    /// hook.
    pub fn behind_for(&self) -> Option<Duration> {
        let State { since, has_ended } = *self.state();
        let behind = self.clock.now().since(since?);
        (has_ended || behind >= LONG).then_some(behind)
    }

    /// Returns true if the view is behind.
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
        lag.ended();
        assert_eq!(lag.behind_for(), Some(Duration::ZERO));
    }
}
