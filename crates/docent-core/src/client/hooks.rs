use super::hook_threads::{HookThreads, PATIENCE};
use super::{Client, ViewLag};
use crate::task::call_hook;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// Runner of a view's hooks, that is, of the codec, filter or validation that the view's task calls. It calls
/// them on a thread for blocking code, so that a slow hook delays only its own view, and never the session's
/// heartbeat (decision 12).
///
/// # On drop
/// The view's [`ViewLag`] reports from then on that the view has ended.
#[derive(Debug)]
pub struct Hooks {
    client: Arc<str>,
    path: Arc<str>,
    /// `None` if hooks are called in place.
    threads: Option<HookThreads>,
    lag: ViewLag,
}

/// Time after which a hook counts as slow: it is logged, and the view is stale.
pub(super) const LONG: Duration = Duration::from_secs(1);

impl Hooks {
    /// Creates the runner for the hooks of a view of the node at `path`.
    pub fn new(client: &Client, path: &str) -> Self {
        let shared = client.shared();
        let threads = (!shared.config.inline_hooks).then(|| HookThreads::of(&shared.runtime));
        Self {
            client: Arc::clone(&shared.label),
            path: shared.namespace.join(path).into(),
            threads,
            lag: ViewLag::new(&shared.config.clock),
        }
    }

    /// Returns the lag of the view, for its handles.
    pub fn lag(&self) -> ViewLag {
        self.lag.clone()
    }

    /// Calls `code`, which calls hooks, with the state of the view's task, and returns the state. Returns
    /// `None` if the runtime is shutting down and the task must end. A panic in `code` is logged, and leaves
    /// the state as it was at the panic.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the state is lost.
    pub async fn run<S: Send + 'static>(
        &self,
        mut state: S,
        code: impl FnOnce(&mut S) + Send + 'static,
    ) -> Option<S> {
        let Some(threads) = &self.threads else {
            self.run_inline(&mut state, code);
            return Some(state);
        };
        let (path, (sender, mut done)) = (Arc::clone(&self.path), oneshot::channel());
        self.lag.begin();
        threads.call(move || {
            let _ = call_hook("view", &path, || code(&mut state));
            let unwanted = sender.send(state);
            let _ = call_hook("drop", &path, || drop(unwanted));
        });
        let (mut waited, mut pause) = (Duration::ZERO, PATIENCE);
        let state = loop {
            match timeout(pause, &mut done).await {
                Ok(state) => break state,
                Err(_) => threads.help(),
            }
            waited += pause;
            if waited >= LONG && waited - pause < LONG {
                // Event: A codec, filter or validation of a cache or view has been running for a second. The
                // view shows old content until the call returns; other views and the session are not
                // affected.
                // Action: Find out why the application's codec, filter or validation for this path is slow or
                // blocked.
                tracing::warn!(
                    target: "docent::client",
                    client = %self.client,
                    path = %self.path,
                    "a codec, filter or validation is slow; the view stays stale until the call returns"
                );
            }
            pause = (pause * 2).min(LONG);
        };
        self.lag.end();
        state.ok()
    }

    /// Calls `code`, which calls no slow hooks. A panic in `code` is logged.
    pub fn run_inline<S>(&self, state: &mut S, code: impl FnOnce(&mut S)) {
        let _ = call_hook("view", &self.path, || code(state));
    }
}

impl Drop for Hooks {
    fn drop(&mut self) {
        self.lag.ended();
    }
}
