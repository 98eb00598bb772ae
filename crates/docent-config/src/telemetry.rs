//! Counters of the feature `metrics`. A path is never a label.

/// A value arrived and is good.
pub(crate) fn applied() {
    #[cfg(feature = "metrics")]
    metrics::counter!("docent_config_applied_total").increment(1);
}

/// A value arrived and is refused.
pub(crate) fn refused() {
    #[cfg(feature = "metrics")]
    metrics::counter!("docent_config_refused_total").increment(1);
}
