use crate::takeover;
use docent_core::Error;
use docent_core::recipe::Hold;
use futures_util::future::join;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use tracing::Span;

/// State that all handles of one term of leadership share.
#[derive(Debug, Clone)]
pub(crate) struct Share {
    pub(crate) hold: Arc<Hold>,
    /// Cancelled when work under it must stop.
    pub(crate) told: CancellationToken,
    /// True when the term is written into the election's own node.
    recorded: bool,
    span: Span,
}

/// One period of leadership, which ends with this.
///
/// # On drop
/// The leadership is given up, also when others share it.
#[derive(Debug)]
pub(crate) struct Term(Share);

impl Share {
    /// Span of the term.
    pub(crate) fn span(&self) -> &Span {
        &self.span
    }
}

impl Term {
    pub(crate) fn new(hold: Arc<Hold>, recorded: bool, span: Span) -> Self {
        let told = hold.token();
        Self(Share { hold, told, recorded, span })
    }

    /// Another `Term` that ends the same term.
    pub(crate) fn of(share: Share) -> Self {
        Self(share)
    }

    pub(crate) fn share(&self) -> &Share {
        &self.0
    }

    /// Ends it, in a way that the next leader can tell from a loss, and waits until the node is gone.
    pub(crate) async fn resign(self) -> Result<(), Error> {
        let hold = &self.0.hold;
        if !self.0.recorded || !hold.is_held() {
            return hold.give_up().await;
        }
        // Both are submitted at once, in this order.
        let cleared = Box::pin(takeover::clear(hold));
        join(cleared, async { hold.give_up().await }).await.1
    }
}

impl Drop for Term {
    fn drop(&mut self) {
        drop(self.0.hold.give_up());
    }
}
