use super::arguments::Arguments;
use super::condition::Condition;
use crate::app::App;
use crate::child::Signals;
use crate::exit::{Ending, Failure, Outcome};
use crate::verbs::inspect::readable;
use crate::verbs::kind_at::is_queue_folder;
use docent::inspect::{Inspector, Live};
use docent::recipe::{if_exists, is_own_name};
use docent::{Client, ConnectionState};
use futures_util::StreamExt;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Minimum time for connecting, and for the first report.
const FIRST: Duration = Duration::from_secs(2);

/// Waits until the recipe at the path has the state.
pub(crate) async fn run(app: &App, arguments: &Arguments) -> Outcome {
    let deadline = arguments.wait.map(|wait| Instant::now() + wait);
    let mut signals = Signals::listen()?;
    let client =
        app.connect_or_signal(&mut signals, None, arguments.wait.map(|wait| wait.max(FIRST))).await?;
    let met = app.labelled(&client, until_met(&client, arguments, deadline));
    let waited = signals.or(met).await.and_then(|waited| waited);
    crate::connect::close(&client).await;
    let live = waited?;
    if app.output.is_json() {
        app.output.json(&live)?;
    }
    Ok(Ending::Done)
}

/// Returns the first report that shows the state.
///
/// # Errors
/// `NotAcquired` at the deadline; `Unreachable` if no server is reachable then; `NoPermission`; `Other` if
/// the recipe at the path is of a kind that never has the state.
async fn until_met(
    client: &Client,
    arguments: &Arguments,
    deadline: Option<Instant>,
) -> Result<Live, Failure> {
    let Arguments { path, condition, .. } = arguments;
    let mut reports = Inspector::new(client).watch(path);
    // A wait of zero reads the state once.
    let first = Instant::now() + FIRST;
    let mut is_first = true;
    let mut is_current = false;
    loop {
        let next = match deadline {
            Some(deadline) if is_first => timeout_at(deadline.max(first), reports.next()).await,
            Some(deadline) => timeout_at(deadline, reports.next()).await,
            None => Ok(reports.next().await),
        };
        let live = match next {
            Ok(Some(live)) => live?,
            Ok(None) => return Err(Failure::other("the client was closed")),
            Err(_) if is_current => return Err(Failure::not_acquired(format!("{path} is not {condition}"))),
            Err(_) => {
                return Err(Failure::unreachable(format!("no server shows whether {path} is {condition}")));
            }
        };
        // What a server shows that has lost its quorum proves nothing.
        is_current = !live.is_stale && client.state().current() == ConnectionState::Connected;
        is_first = false;
        if !is_current {
            continue;
        }
        readable(path, &live.report.refused)?;
        match condition.is_met(&live.report) {
            Ok(true) => return Ok(live),
            Ok(false) => {}
            Err(_) if *condition == Condition::Empty && is_emptied_queue(client, path).await? => {
                return Ok(live);
            }
            Err(reason) => ensure_transient(client, &live, reason).await?,
        }
    }
}

/// Returns true for a queue of Docent's whose folders remain without items: its layout alone does not show
/// that it is a queue.
async fn is_emptied_queue(client: &Client, path: &str) -> Result<bool, Failure> {
    if !is_queue_folder(client, path).await? {
        return Ok(false);
    }
    let items = client.children(&format!("{}/items", path.trim_end_matches('/'))).await;
    Ok(if_exists(items)?.is_none_or(|items| items.names.iter().all(|name| is_own_name(name))))
}

/// Refuses a path whose recipe never has the state, with this `reason`. A report whose nodes were deleted
/// while they were read may show another kind for a moment; the next report then differs.
///
/// # Errors
/// `Other` with the reason, once two reads show the same kind and the same newest transaction.
async fn ensure_transient(client: &Client, live: &Live, reason: String) -> Result<(), Failure> {
    let (path, kind) = (&live.report.path, live.report.kind());
    let inspector = Inspector::builder(client).read_only().build();
    client.sync(path).await?;
    let mut seen = live.report.as_of_zxid;
    loop {
        let now = inspector.path(path).await?;
        if now.kind() != kind {
            return Ok(());
        }
        if now.as_of_zxid == seen {
            return Err(Failure::other(reason));
        }
        seen = now.as_of_zxid;
    }
}
