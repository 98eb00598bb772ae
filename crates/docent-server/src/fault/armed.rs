use tokio::sync::watch;

/// Handle of a fault that waits for its request. The handle reports when the fault has happened.
///
/// # On drop
/// The fault stays armed.
#[derive(Debug, Clone)]
pub struct Armed {
    fired: watch::Receiver<bool>,
}

impl Armed {
    /// Creates the handle of a fault that sets `fired` when it happens.
    #[doc(hidden)]
    pub fn new(fired: &watch::Sender<bool>) -> Self {
        Self { fired: fired.subscribe() }
    }

    /// Returns whether the fault has happened.
    pub fn has_fired(&self) -> bool {
        *self.fired.borrow()
    }

    /// Waits until the fault has happened. If its server or proxy ends first, this method never returns.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn fired(&self) {
        if self.fired.clone().wait_for(|fired| *fired).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
