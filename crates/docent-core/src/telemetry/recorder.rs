//! Calls of the program's recorder of metrics, which is somebody else's code.

use crate::task::call_hook;
use std::cell::OnceCell;
use tokio::runtime::Handle;

thread_local! {
    /// Runtime that records for a thread which must not be held up.
    static RECORDER: OnceCell<Handle> = const { OnceCell::new() };
}

/// From now on a task of `runtime` records what this thread counts.
pub(crate) fn record_on(runtime: Handle) {
    // Once set it stays: a thread is told of one runtime.
    let _ = RECORDER.try_with(|recorder| recorder.set(runtime));
}

/// Calls the recorder.
pub(super) fn recorded(record: impl FnOnce() + Send + 'static) {
    let call = || {
        let _ = call_hook("recorder of metrics", "", record);
    };
    match RECORDER.try_with(|recorder| recorder.get().cloned()) {
        Ok(Some(runtime)) => drop(runtime.spawn(async move { call() })),
        _ => call(),
    }
}
