//! Publishers and counters under faults at each of their requests: links that break, replies that are lost,
//! sessions that end, futures that are dropped, and clients that are closed.

use crate::limits::{Limits, json, limits};
use crate::support::{PATH, config};
use docent::config::{CounterError, PublishError, Revision, SharedCount, SubscribeError};
use docent::{Client, Counter};
use docent_battery::battery::{BREAKS, Break, Fault, RoundRequest, poll_times};
use docent_battery::{Backend, Proxy, TestServer, both_backends};
use docent_proto::OpCode;
use docent_tests::{PATIENCE, SESSION, own_nodes, soon, tick};
use futures_util::stream::{self, StreamExt};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};

/// Operation of the publisher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    PublishFirst,
    Publish,
    PublishIf,
    Update,
    Rollback,
    Delete,
    Count,
    CountFirst,
    SetShared,
}

const ACTIONS: [Action; 9] = [
    Action::PublishFirst,
    Action::Publish,
    Action::PublishIf,
    Action::Update,
    Action::Rollback,
    Action::Delete,
    Action::Count,
    Action::CountFirst,
    Action::SetShared,
];

/// Number of concurrent cases, most of which wait for a link.
const AT_ONCE: usize = 16;

const COUNT: &str = "/counters/count";

/// A case on its own path.
struct Case<'a> {
    server: &'a TestServer,
    action: Action,
    /// A client with an undisturbed link.
    observer: Client,
    proxy: Proxy,
    client: Client,
}

impl<'a> Case<'a> {
    async fn new(server: &'a TestServer, action: Action) -> Self {
        static CASES: AtomicU64 = AtomicU64::new(1);
        let namespace = server.path(&format!("case-{}", CASES.fetch_add(1, Ordering::Relaxed)));
        let proxy = server.proxy().await;
        let observer = connect(server, &namespace, server.connect_string()).await;
        let client = connect(server, &namespace, proxy.connect_string()).await;
        let case = Self { server, action, observer, proxy, client };
        case.prepare().await;
        case
    }

    /// Publishes the initial values.
    async fn prepare(&self) {
        let values: &[u32] = match self.action {
            Action::PublishFirst | Action::Count | Action::CountFirst | Action::SetShared => &[],
            Action::Publish | Action::PublishIf | Action::Update => &[1],
            Action::Rollback | Action::Delete => &[5, 1],
        };
        let config = config(&self.observer);
        for value in values {
            soon(config.publish(&limits(*value))).await.unwrap();
        }
        match self.action {
            Action::Count => soon(Counter::<i64>::new(&self.observer, COUNT).unwrap().set(10)).await.unwrap(),
            Action::SetShared => {
                soon(SharedCount::new(&self.observer, COUNT, 10).unwrap().get()).await.unwrap();
            }
            _ => {}
        }
    }

    /// Performs the action once. Returns the reported revision, if there is one.
    async fn act(&self) -> Result<Option<Revision>, PublishError> {
        let config = config(&self.client);
        let two = limits(2);
        let counted = |result: Result<_, CounterError>| match result {
            Ok(_) => Ok(None),
            Err(CounterError::Core(error)) => Err(PublishError::Core(error)),
            Err(error) => panic!("{error}"),
        };
        match self.action {
            Action::PublishFirst | Action::Publish => {
                config.publish(&two).await.map(|value| value.revision())
            }
            Action::PublishIf => {
                let seen = config.get().await.map_err(|error| match error {
                    SubscribeError::Core(error) => PublishError::Core(error),
                    other => panic!("{other}"),
                })?;
                config.publish_if(&two, &seen.unwrap()).await.map(|value| value.revision())
            }
            Action::Update => {
                let next = |now: Option<Limits>| Some(limits(now?.per_second + 1));
                config.update(next).await.map(|value| value.unwrap().revision())
            }
            Action::Rollback => {
                let first = config.history().await?[0].revision;
                config.rollback(&first).await.map(|value| value.revision())
            }
            Action::Delete => config.delete().await.map(|_| None),
            Action::Count | Action::CountFirst => {
                counted(Counter::<i64>::new(&self.client, COUNT)?.add(2).await.map(drop))
            }
            Action::SetShared => {
                SharedCount::new(&self.client, COUNT, 0)?.set(12).await.map(|value| value.revision())
            }
        }
    }

    /// Returns how often the action was applied according to the servers' state.
    async fn applied(&self, returned: Option<Revision>) -> Result<usize, String> {
        let path = match self.action {
            Action::Count | Action::CountFirst | Action::SetShared => COUNT,
            _ => PATH,
        };
        soon(self.observer.sync(path)).await.map_err(|error| error.to_string())?;
        let node = soon(self.observer.get(path)).await;
        let node = match node {
            Ok(node) => Some(node),
            Err(error) if error.kind() == docent::ErrorKind::NoNode => None,
            Err(error) => return Err(error.to_string()),
        };
        if self.action == Action::Delete {
            return Ok(usize::from(node.is_none()));
        }
        let first = matches!(self.action, Action::PublishFirst | Action::CountFirst);
        let Some(node) = node else { return if first { Ok(0) } else { Err("the node was deleted".into()) } };
        let (before, data): (i32, Vec<u8>) = match self.action {
            Action::PublishFirst => (-1, json(2).into()),
            Action::Publish | Action::PublishIf | Action::Update => (0, json(2).into()),
            Action::Rollback => (1, json(5).into()),
            Action::Count => (0, 12_i64.to_be_bytes().into()),
            Action::CountFirst => (-1, 2_i64.to_be_bytes().into()),
            Action::SetShared => (0, 12_i32.to_be_bytes().into()),
            Action::Delete => unreachable!(),
        };
        let times = usize::try_from(node.stat.version - before).unwrap();
        if times == 1 && node.data != data {
            return Err(format!("there is {:?}", node.data));
        }
        let stat = (node.stat.czxid, node.stat.mzxid, node.stat.version, node.stat.modified);
        let returned =
            returned.map(|returned| (returned.czxid, returned.mzxid, returned.version, returned.modified));
        if returned.is_some_and(|returned| returned != stat) {
            return Err(format!("the action reported {returned:?}, but the node has {stat:?}"));
        }
        let kept = match self.observer.children(&format!("{PATH}/_history")).await {
            Ok(children) => children.names.len(),
            Err(_) => 0,
        };
        let wanted = match self.action {
            Action::Publish | Action::PublishIf | Action::Update => times,
            Action::Rollback => 1 + times,
            _ => kept,
        };
        if kept == wanted {
            Ok(times)
        } else {
            Err(format!("the history has {kept} values, expected {wanted}"))
        }
    }

    /// Closes the clients, and checks that no marker of the exact writes is left.
    async fn close(self) -> Result<(), String> {
        soon(self.client.close()).await;
        let own = self.observer.session_id();
        for marker in soon(own_nodes(&self.observer)).await {
            let stat = soon(self.observer.exists(&marker)).await;
            if stat.is_ok_and(|stat| stat.is_some_and(|stat| stat.owner != own)) {
                return Err(format!("marker {marker} is left"));
            }
        }
        soon(self.observer.close()).await;
        Ok(())
    }
}

async fn connect(server: &TestServer, namespace: &str, connect_string: String) -> Client {
    let settings = server.client_builder(connect_string).namespace(namespace).session_timeout(SESSION);
    settings.server_tick(tick()).operation_timeout(PATIENCE).connect().await.unwrap()
}

/// Returns the requests of an action without a fault.
async fn requests(server: &TestServer, action: Action) -> Vec<RoundRequest> {
    let case = Case::new(server, action).await;
    let before = case.proxy.trace().len();
    let returned = soon(case.act()).await.unwrap();
    assert_eq!(case.applied(returned).await, Ok(1), "{action:?}");
    let requests = RoundRequest::all(&case.proxy.trace()[before..]);
    case.close().await.unwrap();
    requests
}

/// Breaks the link at a request of an action.
async fn broken(
    server: &TestServer,
    action: Action,
    asked: RoundRequest,
    fault: Fault,
) -> Result<(), String> {
    let case = Case::new(server, action).await;
    let session = case.client.session_id().unwrap();
    let link = Break::at(asked, fault, case.server, &case.proxy, session);
    let (result, broke) = soon(async { tokio::join!(case.act(), link.done()) }).await;
    broke?;
    match result {
        Ok(returned) => match case.applied(returned).await? {
            1 => {}
            times => return Err(format!("the action was applied {times} times")),
        },
        Err(error) if fault == Fault::Expired && asked.op == OpCode::Multi && error.may_have_applied() => {
            let times = case.applied(None).await?;
            if times > 1 {
                return Err(format!(
                    "the action was applied {times} times, but its outcome was reported as unknown"
                ));
            }
        }
        Err(error) => return Err(format!("the action failed: {error}")),
    }
    case.close().await
}

/// Drops an action after `polls` polls, and performs it again. Returns true if the first had finished.
async fn dropped(server: &TestServer, action: Action, polls: usize) -> Result<bool, String> {
    let case = Case::new(server, action).await;
    let done = soon(async { poll_times(polls, pin!(case.act())).await }).await;
    // The servers answer this only after they have applied all earlier requests.
    soon(case.client.sync("/")).await.map_err(|error| error.to_string())?;
    let done = match done {
        Some(Ok(returned)) => case.applied(returned).await? == 1,
        Some(Err(error)) => return Err(format!("the action failed: {error}")),
        None => {
            let times = case.applied(None).await?;
            if times > 1 {
                return Err(format!("the dropped action was applied {times} times"));
            }
            if times == 0 {
                let returned =
                    soon(case.act()).await.map_err(|error| format!("the second action failed: {error}"))?;
                let times = case.applied(returned).await?;
                if times != 1 {
                    return Err(format!("both actions together were applied {times} times"));
                }
            }
            false
        }
    };
    case.close().await?;
    Ok(done)
}

/// Closes the client after `polls` polls of an action. Returns true if the action had finished.
async fn closed(server: &TestServer, action: Action, polls: usize) -> Result<bool, String> {
    let case = Case::new(server, action).await;
    let (is_done, result) = {
        let mut acting = Box::pin(case.act());
        match soon(async { poll_times(polls, acting.as_mut()).await }).await {
            Some(result) => (true, result),
            None => (false, soon(async { tokio::join!(acting, case.client.close()) }).await.0),
        }
    };
    let times = case.applied(result.as_ref().ok().copied().flatten()).await?;
    let fits = match &result {
        Ok(_) => times == 1,
        Err(error) if error.may_have_applied() => times <= 1,
        Err(_) => times == 0,
    };
    if !fits {
        return Err(format!("the action was applied {times} times, but returned {result:?}"));
    }
    case.close().await?;
    Ok(is_done)
}

/// Runs cases, several at a time, and fails with all failures.
async fn run<F: Future<Output = Result<(), String>>>(cases: impl IntoIterator<Item = (String, F)>) {
    let cases = cases
        .into_iter()
        .map(|(name, case)| async move { case.await.map_err(|failure| format!("{name}: {failure}")) });
    let results: Vec<_> = stream::iter(cases).buffer_unordered(AT_ONCE).collect().await;
    assert!(!results.is_empty());
    let failures: Vec<_> = results.into_iter().filter_map(Result::err).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Runs a case for each number of polls until the action finishes first.
async fn at_each_poll(mut case: impl AsyncFnMut(usize) -> Result<bool, String>) -> Result<(), String> {
    for polls in 0..100 {
        if case(polls).await.map_err(|failure| format!("after {polls} polls: {failure}"))? {
            return Ok(());
        }
    }
    Err("the action did not finish within 100 polls".into())
}

both_backends! {
    async fn a_link_that_breaks_at_any_request_never_doubles_or_hides_a_publish(backend: Backend) {
        let server = backend.start().await;
        let mut cases = Vec::new();
        for action in ACTIONS {
            let requests = requests(&server, action).await;
            assert!(requests.iter().any(|asked| asked.op == OpCode::Multi), "{requests:?}");
            for request in requests {
                for fault in BREAKS {
                    let name = format!("{action:?}, {request:?}, {fault:?}");
                    cases.push((name, broken(&server, action, request, fault)));
                }
            }
        }
        run(cases).await;
    }

    async fn an_action_dropped_at_any_poll_is_applied_once_or_not_at_all(backend: Backend) {
        let server = backend.start().await;
        let at = |action| at_each_poll({ let server = &server; async move |polls| dropped(server, action, polls).await });
        run(ACTIONS.map(|action| (format!("{action:?}"), at(action)))).await;
    }

    async fn a_client_closed_at_any_poll_ends_every_action_with_the_truth(backend: Backend) {
        let server = backend.start().await;
        let at = |action| at_each_poll({ let server = &server; async move |polls| closed(server, action, polls).await });
        run(ACTIONS.map(|action| (format!("{action:?}"), at(action)))).await;
    }
}
