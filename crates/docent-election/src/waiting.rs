//! The log message about a candidate that waits for long.

use docent_core::recipe::{Hold, Line};
use docent_core::{ClientIdentity, Error, Participant};
use std::convert::Infallible;
use std::future::pending;
use std::time::Duration;
use tokio::time::sleep;

/// Time that a candidate waits before it logs for whom.
const QUIET: Duration = Duration::from_secs(10);

/// Resolves with the hold of a candidate. If `elected` takes longer than 10 seconds, logs who is ahead.
pub(crate) async fn explained(
    line: &Line,
    elected: impl Future<Output = Result<Hold, Error>>,
) -> Result<Hold, Error> {
    let explain = async {
        sleep(QUIET).await;
        if let Ok(Some(first)) = line.first().await {
            log(line, &first);
        }
        pending::<Infallible>().await
    };
    tokio::select! {
        biased;
        hold = elected => hold,
        never = Box::pin(explain) => match never {},
    }
}

fn log(line: &Line, first: &Participant) {
    let (client, path, node) = (line.client().label(), line.full_path(), &first.name);
    let (owner, session_id) = (first.owner_text(), format!("{:#x}", first.session_id));
    let held_seconds = first.held_for().map(|held| held.as_secs());
    if is_of_earlier_process(line, first) {
        // Event: For 10 seconds the candidate has waited for a node of an earlier process on the same host
        // with the same label. If that process was killed, there is no leader until the servers expire its
        // session, which takes up to one session timeout.
        // Action: End processes in order, with `client.shutdown(…)`, so that the next leader does not wait.
        tracing::warn!(
            target: "docent::election",
            %client,
            %path,
            node,
            owner,
            session_id,
            held_seconds,
            "waiting for the node of an earlier process; if that process was killed, its session has to expire first"
        );
    } else {
        // Event: For 10 seconds the candidate has waited for the first candidate in line, which leads until
        // it resigns or its session expires. Logged once for each place in line.
        // Action: If there is no leader, look for the process in `owner`. If it was killed, the election
        // continues when its session expires, which takes up to one session timeout.
        tracing::info!(
            target: "docent::election",
            %client,
            %path,
            node,
            owner,
            session_id,
            held_seconds,
            "waiting to be elected; the first candidate leads until it resigns or its session expires"
        );
    }
}

/// Returns true if `first` may belong to an earlier run of this process.
fn is_of_earlier_process(line: &Line, first: &Participant) -> bool {
    let (Some(own), Some(other)) = (ClientIdentity::parse(line.client().identity()), first.client()) else {
        return false;
    };
    own.label().is_some()
        && own.label() == other.label()
        && own.host() == other.host()
        && own.pid() != other.pid()
}
