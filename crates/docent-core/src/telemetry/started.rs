use std::time::Duration;

/// Start time of something whose duration is measured.
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

    /// Returns the time since the start; zero without the feature `metrics`.
    pub(super) fn elapsed(self) -> Duration {
        #[cfg(feature = "metrics")]
        return self.at.elapsed();
        #[cfg(not(feature = "metrics"))]
        Duration::ZERO
    }
}
