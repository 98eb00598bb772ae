use crate::client::{Client, while_held};
use crate::error::{Error, ErrorKind};
use crate::guard::{HoldState, LostReason};
use crate::operation::{Attempts, Idempotency};
use crate::session::Lane;
use docent_proto::{Code, MultiResult, Request, Response};
use std::slice;
use std::sync::Arc;

/// Checks through a quorum that the node is held.
pub(super) fn verify(
    client: &Client,
    path: &str,
    held: &Arc<HoldState>,
) -> impl Future<Output = Result<(), Error>> + Send {
    // Boxed because callers await it in their own futures.
    Box::pin(async move {
        let mut attempts = client.attempts("verify", path, Idempotency::Idempotent);
        match while_held(slice::from_ref(held), check_node(&mut attempts, held)).await {
            Ok(answer) => answer,
            Err(reason) => Err(attempts.error(ErrorKind::Lost(reason))),
        }
    })
}

async fn check_node(attempts: &mut Attempts<'_>, held: &HoldState) -> Result<(), Error> {
    loop {
        held.check().map_err(|reason| attempts.error(ErrorKind::Lost(reason)))?;
        let request = Request::Multi(held.node.checks().collect());
        let outcome = held.generation.session.submit(request, Lane::Call).by(attempts.deadline).await;
        return match attempts.next(&held.generation, outcome).await? {
            None => continue,
            Some(Ok(Response::Multi(results))) => match MultiResult::first_failure(&results) {
                None => held.check().map_err(|reason| attempts.error(ErrorKind::Lost(reason))),
                Some((_, Code::NO_NODE | Code::BAD_VERSION)) => {
                    let reason = held.mark_lost(LostReason::NodeDeleted);
                    Err(attempts.error(ErrorKind::Lost(reason)))
                }
                Some((_, code)) => Err(attempts.code(code)),
            },
            Some(Ok(_)) => Err(attempts.error(ErrorKind::Server(0))),
            Some(Err(code)) => Err(attempts.code(code)),
        };
    }
}
