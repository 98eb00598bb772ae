use crate::client::Client;
use crate::error::{Error, ErrorKind};
use crate::guard::{HoldState, LostReason};
use crate::operation::Idempotency;
use crate::session::Lane;
use docent_proto::{Code, MultiOp, MultiResult, Request, Response};

/// Asks a quorum whether it is held.
pub(crate) async fn verify(client: &Client, path: &str, held: &HoldState) -> Result<(), Error> {
    let mut attempts = client.attempts("verify", path, Idempotency::Idempotent);
    loop {
        held.check().map_err(|reason| attempts.error(ErrorKind::Lost(reason)))?;
        let check = MultiOp::Check { path: held.path().to_owned(), version: -1 };
        let request = Request::Multi(vec![check]);
        let outcome = held.generation.session.submit(request, Lane::Call).by(attempts.deadline).await;
        return match attempts.next(&held.generation, outcome).await? {
            None => continue,
            Some(Ok(Response::Multi(results))) => match results.first() {
                Some(MultiResult::Failed(Code::NO_NODE)) => {
                    let reason = held.mark_lost(LostReason::NodeDeleted);
                    Err(attempts.error(ErrorKind::Lost(reason)))
                }
                Some(MultiResult::Failed(code)) => Err(Error::from_code(*code, "verify").at(path)),
                // The check saw a node at the path. Whether a claim's is still the same takes a look at it
                // (decision 8).
                _ => match tokio::time::timeout_at(attempts.deadline, held.look()).await {
                    Err(_) => Err(attempts.timeout()),
                    Ok(Ok(())) => held.check().map_err(|reason| attempts.error(ErrorKind::Lost(reason))),
                    Ok(Err(Ok(reason))) => Err(attempts.error(ErrorKind::Lost(reason))),
                    Ok(Err(Err(cause))) => {
                        attempts.retry(&held.generation, false, cause).await?;
                        continue;
                    }
                },
            },
            Some(Ok(_)) => Err(attempts.error(ErrorKind::Server(0))),
            Some(Err(code)) => Err(Error::from_code(code, "verify").at(path)),
        };
    }
}
