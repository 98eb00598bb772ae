//! Counters of the feature `metrics`. A path is never a label.

#[cfg(feature = "metrics")]
use docent_core::recipe::call_hook;

/// Calls the program's recorder of metrics, which is somebody else's code.
#[cfg(feature = "metrics")]
fn recorded(record: impl FnOnce()) {
    let _ = call_hook("recorder of metrics", "", record);
}

/// A value arrived and is good.
pub(crate) fn applied() {
    #[cfg(feature = "metrics")]
    recorded(|| metrics::counter!("docent_config_applied_total").increment(1));
}

/// A value arrived and is refused.
pub(crate) fn refused() {
    #[cfg(feature = "metrics")]
    recorded(|| metrics::counter!("docent_config_refused_total").increment(1));
}
