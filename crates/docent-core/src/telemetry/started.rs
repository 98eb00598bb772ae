use std::time::Duration;

/// Start time of something that is timed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Started {
    #[cfg(feature = "metrics")]
    at: std::time::Instant,
}

impl Started {
    pub(crate) fn now() -> Self {
        Self {
            #[cfg(feature = "metrics")]
            at: std::time::Instant::now(),
        }
    }

    /// Time since then; zero without the feature `metrics`.
    pub(super) fn elapsed(self) -> Duration {
        #[cfg(feature = "metrics")]
        return self.at.elapsed();
        #[cfg(not(feature = "metrics"))]
        Duration::ZERO
    }
}
