use crate::takeover;
use docent_core::recipe::Hold;
use docent_core::{Error, Released};
use futures_util::future::join;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use tracing::Span;

/// State that all handles of one term of leadership share.
#[derive(Debug, Clone)]
pub(crate) struct Share {
    pub(crate) hold: Arc<Hold>,
    /// Token that is cancelled when the work of the term must stop.
    pub(crate) stop_token: CancellationToken,
    /// Whether the term is recorded in the election's own node.
    recorded: bool,
    span: Span,
}

/// One term of leadership, which ends with this value.
///
/// # On drop
/// The leadership is given up, even if other handles share it.
#[derive(Debug)]
pub(crate) struct Term(Share);

impl Share {
    /// Returns the span of the term.
    pub(crate) fn span(&self) -> &Span {
        &self.span
    }
}

impl Term {
    pub(crate) fn new(hold: Arc<Hold>, recorded: bool, span: Span) -> Self {
        let stop_token = hold.token();
        Self(Share { hold, stop_token, recorded, span })
    }

    /// Creates another `Term` that ends the same term.
    pub(crate) fn of(share: Share) -> Self {
        Self(share)
    }

    pub(crate) fn share(&self) -> &Share {
        &self.0
    }

    /// Resigns, recording that the term was not lost, and waits until the leader's node is deleted.
    pub(crate) async fn resign(self) -> Result<Released, Error> {
        let hold = &self.0.hold;
        if !self.0.recorded || !hold.is_held() {
            return hold.give_up().await;
        }
        // Both requests are submitted immediately, in this order.
        let cleared = Box::pin(takeover::clear(hold));
        join(cleared, async { hold.give_up().await }).await.1
    }
}

impl Drop for Term {
    fn drop(&mut self) {
        drop(self.0.hold.give_up());
    }
}
