use super::{Client, ViewLag};
use crate::task::call_hook;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;

/// Runner of a view's hooks: of the codec, filter or validation that the view's task calls. It calls them on
/// a thread for blocking code, so that a hook which takes long holds up its own view alone, and never the
/// session's heartbeat (decision 12).
///
/// # On drop
/// The view's [`ViewLag`] says from then on that the view has ended.
#[derive(Debug)]
pub struct Hooks {
    path: Arc<str>,
    /// `None` where hooks are called in place.
    runtime: Option<Handle>,
    lag: ViewLag,
}

/// Time after which a hook takes long: it is logged, and the view is stale.
pub(super) const LONG: Duration = Duration::from_secs(1);

impl Hooks {
    /// The hooks of a view of the node at `path`.
    pub fn new(client: &Client, path: &str) -> Self {
        let shared = client.shared();
        let runtime = (!shared.config.inline_hooks).then(|| shared.runtime.clone());
        Self { path: path.into(), runtime, lag: ViewLag::new(&shared.config.clock) }
    }

    /// Lag of the view, for its handles.
    pub fn lag(&self) -> ViewLag {
        self.lag.clone()
    }

    /// Calls `code`, which calls hooks, with the state of the view's task, and gives the state back; `None`
    /// when the runtime is shutting down, and the task is to end. What panics in `code` is logged, and leaves
    /// the state as it is by then.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the state goes with it.
    pub async fn run<S: Send + 'static>(
        &self,
        mut state: S,
        code: impl FnOnce(&mut S) + Send + 'static,
    ) -> Option<S> {
        let Some(runtime) = &self.runtime else {
            self.run_here(&mut state, code);
            return Some(state);
        };
        let path = Arc::clone(&self.path);
        self.lag.begin();
        let mut running = runtime.spawn_blocking(move || {
            let _ = call_hook("view", &path, || code(&mut state));
            state
        });
        let done = match tokio::time::timeout(LONG, &mut running).await {
            Ok(done) => done,
            Err(_) => {
                tracing::warn!(
                    path = &*self.path,
                    "a codec, filter or validation takes long: its view is stale until it is done"
                );
                running.await
            }
        };
        self.lag.end();
        done.ok()
    }

    /// Calls `code`, which calls no hook that takes long. What panics in it is logged.
    pub fn run_here<S>(&self, state: &mut S, code: impl FnOnce(&mut S)) {
        let _ = call_hook("view", &self.path, || code(state));
    }
}

impl Drop for Hooks {
    fn drop(&mut self) {
        self.lag.over();
    }
}
