//! Results of the check of many guards' nodes, against a server with scripted answers.

use crate::secrets::Printed;
use docent::locks::MutexGuard;
use docent::{Client, LostReason, Mutex};
use docent_proto::{Code, MultiOp, MultiResult, Request, Response, Stat};
use docent_tests::fake::{FakeLink, FakeServer, SESSION, body, reply};
use docent_tests::{soon, tick};
use futures_util::future::join_all;
use std::collections::HashSet;
use std::sync::{Arc, Mutex as Lock};

const GUARDS: usize = 5;

/// A heartbeat is due after a sixth of the session timeout, and a lease ends after two thirds. This leaves a
/// busy machine enough time.
const TIMEOUT_MS: i32 = 4_800;

/// The paths of each check in order of arrival, from the first check of all guards on.
type Checks = Arc<Lock<Vec<Vec<String>>>>;

/// Grants every lock immediately and sends no unsolicited frames. The first heartbeats, which record the
/// beginnings of holds, succeed. For checks, `verdict` returns the result for one path, or for the whole
/// request.
async fn serve(
    mut link: FakeLink,
    checks: Checks,
    mut verdict: impl FnMut(&[String]) -> Result<Option<(usize, Code)>, Code>,
) {
    let (mut zxid, mut created) = (0, HashSet::new());
    while let Ok(asked) = link.request().await {
        zxid += 1;
        let stat = Stat { czxid: zxid, ephemeral_owner: SESSION, ..Stat::default() };
        let answer = match asked.request {
            Request::Create(create) => {
                let path = format!("{}0000000000", create.path);
                created.insert(path.clone());
                Ok(Response::Created { path, stat: Some(stat) })
            }
            Request::GetChildren2 { path, .. } => {
                let names = created.iter().filter_map(|node| node.strip_prefix(&format!("{path}/")));
                Ok(Response::Children { names: names.map(str::to_owned).collect(), stat: Some(stat) })
            }
            Request::Exists { .. } => Ok(Response::Stat(stat)),
            Request::GetData { .. } => Ok(Response::Data { data: None, stat }),
            Request::Multi(ops) if ops.iter().any(|op| matches!(op, MultiOp::SetData { .. })) => {
                let result = |op: &MultiOp| match op {
                    MultiOp::SetData { version: 0, .. } => MultiResult::Set(stat.into()),
                    MultiOp::Check { version: -1, .. } => MultiResult::Checked,
                    op => panic!("{op:?} is not a heartbeat"),
                };
                Ok(Response::Multi(ops.iter().map(result).collect()))
            }
            Request::Multi(ops) => {
                let paths: Vec<_> = ops.iter().map(|op| op.path().to_owned()).collect();
                assert!(
                    ops.iter().all(|op| matches!(op, MultiOp::Check { version: -1, .. })) && !ops.is_empty()
                );
                let mut checks = checks.lock().unwrap();
                // On a busy machine, the first heartbeat may be due before all locks are acquired.
                let failed = if checks.is_empty() && paths.len() < GUARDS {
                    Ok(None)
                } else {
                    checks.push(paths.clone());
                    verdict(&paths)
                };
                failed.map(|failed| Response::Multi(results(paths.len(), failed)))
            }
            _ => Ok(Response::Empty),
        };
        match answer {
            Ok(response) => link.send(&reply(asked.xid, zxid, 0, &body(&response))).await,
            Err(code) => link.send(&reply(asked.xid, zxid, code.0, &[])).await,
        }
    }
}

/// Returns the results that a server sends for a multi. If one operation fails, those before it succeed, and
/// those behind it are not executed.
fn results(count: usize, failed: Option<(usize, Code)>) -> Vec<MultiResult> {
    let Some((at, code)) = failed else { return vec![MultiResult::Checked; count] };
    let code_of = |index: usize| match index.cmp(&at) {
        std::cmp::Ordering::Less => Code::OK,
        std::cmp::Ordering::Equal => code,
        std::cmp::Ordering::Greater => Code::RUNTIME_INCONSISTENCY,
    };
    (0..count).map(|index| MultiResult::Failed(code_of(index))).collect()
}

async fn guards(server: &FakeServer) -> (Client, Vec<MutexGuard>) {
    let client = server.client_builder().server_tick(tick()).connect().await.unwrap();
    let acquire = (0..GUARDS).map(|n| Mutex::new(&client, &format!("/lock-{n}")).unwrap().acquire());
    let guards = join_all(acquire).await.into_iter().map(Result::unwrap).collect();
    (client, guards)
}

/// Waits for that many checks.
async fn until(checks: &Checks, count: usize) -> Vec<Vec<String>> {
    soon(async {
        while checks.lock().unwrap().len() < count {
            docent_tests::pause().await;
        }
    })
    .await;
    checks.lock().unwrap().clone()
}

/// Waits for the check of all guards, and for the immediate check of the guards behind the third, which
/// failed.
async fn third_fails(server: &FakeServer, checks: &Checks) -> (Client, Vec<MutexGuard>, String) {
    let (client, guards) = guards(server).await;
    let seen = until(checks, 2).await;
    // A regular heartbeat would name all other guards again.
    assert_eq!(seen[1], seen[0][3..], "the unread checks must be repeated immediately");
    (client, guards, seen[0][2].clone())
}

#[tokio::test(start_paused = true)]
async fn a_node_that_a_heartbeat_finds_deleted_loses_only_its_guard_and_the_rest_is_checked_immediately() {
    let (server, checks) = (FakeServer::start().await, Checks::default());
    let seen = Arc::clone(&checks);
    let play = async {
        let link = server.attached(TIMEOUT_MS).await;
        serve(link, seen, |paths| Ok((paths.len() == GUARDS).then_some((2, Code::NO_NODE)))).await;
    };
    let test = async {
        let (_client, guards, third) = third_fails(&server, &checks).await;
        let seen = until(&checks, 4).await;
        assert!(
            seen[2..].iter().all(|paths| paths.len() == GUARDS - 1 && !paths.contains(&third)),
            "{seen:?}"
        );
        for guard in &guards {
            assert_eq!(guard.is_held(), guard.path() != third);
        }
        let lost = guards.iter().find(|guard| guard.path() == third).unwrap();
        assert_eq!(soon(lost.lost()).await, LostReason::NodeDeleted);
    };
    tokio::select! { () = play => panic!("the client closed the link"), () = test => {} }
}

#[tokio::test(start_paused = true)]
async fn a_node_that_may_not_be_checked_remains_held_is_reported_once_and_skipped() {
    let (printed, _logging) = Printed::from_here_on();
    let (server, checks) = (FakeServer::start().await, Checks::default());
    let (seen, refused) = (Arc::clone(&checks), Lock::new(None));
    let play = async {
        let link = server.attached(TIMEOUT_MS).await;
        serve(link, seen, |paths| {
            let mut refused = refused.lock().unwrap();
            let refused = refused.get_or_insert_with(|| paths[2].clone());
            Ok(paths.iter().position(|path| path == refused).map(|index| (index, Code::NO_AUTH)))
        })
        .await;
    };
    let test = async {
        let (_client, mut guards, third) = third_fails(&server, &checks).await;
        let seen = until(&checks, 3).await;
        assert!(seen[2].len() == GUARDS - 1 && !seen[2].contains(&third), "{seen:?}");
        // If it is the only guard, it is checked nevertheless, because a refusal also renews the lease.
        guards.retain(|guard| guard.path() == third);
        let count = until(&checks, 4).await.len();
        let seen = until(&checks, count + 2).await;
        assert!(seen[count..].iter().all(|paths| *paths == [third.clone()]), "{seen:?}");
        assert!(guards[0].is_held());
        let lines = printed.lines_with("permission READ on the guard's node is missing");
        assert!(lines.len() == 1 && lines[0].contains("ERROR") && lines[0].contains(&third), "{lines:#?}");
    };
    tokio::select! { () = play => panic!("the client closed the link"), () = test => {} }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_throttles_heartbeats_is_not_hammered_and_proves_nothing() {
    let (server, checks) = (FakeServer::start().await, Checks::default());
    let seen = Arc::clone(&checks);
    let play = async {
        let link = server.attached(TIMEOUT_MS).await;
        serve(link, seen, |_| Err(Code::THROTTLED)).await;
    };
    let test = async {
        let (_client, guards) = guards(&server).await;
        assert_eq!(soon(guards[0].lost()).await, LostReason::LeaseExpired);
        // Checks are sent from a sixth to two thirds of the timeout, a twenty-fourth of the timeout apart.
        let count = checks.lock().unwrap().len();
        assert!((2..=13).contains(&count), "{count} checks");
    };
    tokio::select! { () = play => panic!("the client closed the link"), () = test => {} }
}
