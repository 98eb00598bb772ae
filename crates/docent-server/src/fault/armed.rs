use tokio::sync::watch;

/// Handle of a fault that waits for its request, which tells when it has happened.
///
/// # On drop
/// The fault waits on.
#[derive(Debug, Clone)]
pub struct Armed {
    fired: watch::Receiver<bool>,
}

impl Armed {
    /// Handle of a fault that sets `fired` when it happens.
    #[doc(hidden)]
    pub fn new(fired: &watch::Sender<bool>) -> Self {
        Self { fired: fired.subscribe() }
    }

    /// True once it has happened.
    pub fn has_fired(&self) -> bool {
        *self.fired.borrow()
    }

    /// Waits until it has happened. Waits for ever when its server or proxy ends before that.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn fired(&self) {
        if self.fired.clone().wait_for(|fired| *fired).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
