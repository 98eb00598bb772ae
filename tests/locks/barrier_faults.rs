//! A barrier survives faults of links, sessions and futures.

use crate::{builder, connect};
use docent::{Barrier, Client};
use docent_battery::battery::abandon_at;
use docent_battery::{Backend, FrameKind, Proxy, Rule, TestServer, Traced, both_backends};
use docent_proto::OpCode;
use docent_tests::soon;

const PATH: &str = "/barriers/start";

fn barrier(client: &Client) -> Barrier {
    Barrier::new(client, PATH).unwrap()
}

async fn behind_a_proxy(server: &TestServer) -> (Client, Proxy) {
    let proxy = server.proxy().await;
    (builder(server, proxy.connect_string()).connect().await.unwrap(), proxy)
}

/// The client's requests since `before`, each with its ordinal among requests of the same kind.
fn requests(proxy: &Proxy, before: usize) -> Vec<(OpCode, usize)> {
    let mut requests: Vec<(OpCode, usize)> = Vec::new();
    for frame in &proxy.trace()[before..] {
        if let (FrameKind::Request, Some(op)) = (frame.kind, frame.op.filter(|op| *op != OpCode::Ping)) {
            requests.push((op, 1 + requests.iter().filter(|(one, _)| *one == op).count()));
        }
    }
    requests
}

/// True if the reply that arms the watch came on a later link than the first `op`. The trace may contain
/// further connects after that reply.
fn sent_again(trace: &[Traced], op: OpCode) -> bool {
    let is_request = |frame: &&Traced| frame.kind == FrameKind::Request && frame.op == Some(op);
    let Some(broken) = trace.iter().find(is_request).map(|frame| frame.link) else { return false };
    let arms = |frame: &Traced| frame.is_reply(OpCode::Exists) || frame.is_reply(OpCode::SetWatches);
    trace.iter().any(|frame| frame.link > broken && arms(frame))
}

both_backends! {
    async fn a_waiter_whose_link_breaks_at_any_request_or_whose_session_ends_keeps_waiting(backend: Backend) {
        let server = backend.start().await;
        let setter = connect(&server).await;
        for op in [OpCode::Sync, OpCode::Exists] {
            for fault in ["lost", "before", "after", "expired"] {
                assert!(soon(barrier(&setter).set()).await.unwrap());
                let (client, proxy) = behind_a_proxy(&server).await;
                let on = Rule::on(op).path(|path| path.ends_with(PATH));
                let broken = proxy.add(match fault {
                    "lost" => on.swallow_reply(),
                    "before" => on.reset_before(),
                    "after" => on.reset_after(),
                    _ => on.cut_after(),
                });
                let waiting = tokio::spawn(async move { barrier(&client).wait().await.map(|()| client) });
                soon(broken.fired()).await;
                match fault {
                    "lost" => proxy.reset().await,
                    "expired" => {
                        let session = proxy.sessions().ids().pop().unwrap();
                        server.expire(session).await.unwrap();
                        proxy.heal().await.unwrap();
                    }
                    _ => {}
                }
                proxy.until(|trace| sent_again(trace, op)).await;
                assert!(!waiting.is_finished(), "{op:?} {fault}: passed the barrier");
                soon(barrier(&setter).remove()).await.unwrap();
                drop(soon(waiting).await.unwrap().unwrap_or_else(|error| panic!("{op:?} {fault}: {error}")));
            }
        }
    }

    async fn a_wait_dropped_at_any_poll_leaves_no_watch(backend: Backend) {
        let server = backend.start().await;
        let (setter, client) = (connect(&server).await, connect(&server).await);
        assert!(soon(barrier(&setter).set()).await.unwrap());
        for polls in 0..8 {
            let barrier = barrier(&client);
            let dropped = abandon_at(polls, barrier.wait());
            let done = tokio::time::timeout(std::time::Duration::from_millis(100), dropped).await;
            assert!(!matches!(done, Ok(Some(_))), "the barrier is set");
            soon(client.sync("/")).await.unwrap();
            if let Some(embedded) = server.as_embedded() {
                soon(async { while embedded.watch_count() > 0 { client.sync("/").await.unwrap(); } }).await;
            }
        }
        soon(barrier(&setter).remove()).await.unwrap();
        soon(barrier(&client).wait()).await.unwrap();
    }

    async fn a_barrier_is_set_once_and_removed_whichever_reply_is_lost(backend: Backend) {
        let server = backend.start().await;
        let (client, proxy) = behind_a_proxy(&server).await;
        let before = proxy.trace().len();
        assert!(soon(barrier(&client).set()).await.unwrap());
        soon(barrier(&client).remove()).await.unwrap();
        let requests = requests(&proxy, before);
        assert!(requests.len() >= 2, "{requests:?}");
        for (op, nth) in requests {
            for fault in ["lost", "before", "after"] {
                let (client, proxy) = behind_a_proxy(&server).await;
                let on = Rule::on(op).nth(nth);
                let broken = proxy.add(match fault {
                    "lost" => on.swallow_reply(),
                    "before" => on.reset_before(),
                    _ => on.reset_after(),
                });
                let both = async {
                    assert!(barrier(&client).set().await.unwrap(), "{op:?} {nth} {fault}: not set by this");
                    assert!(barrier(&client).is_set().await.unwrap());
                    barrier(&client).remove().await.unwrap();
                };
                let recover = async {
                    broken.fired().await;
                    if fault == "lost" {
                        proxy.reset().await;
                    }
                    std::future::pending::<()>().await;
                };
                soon(async { tokio::select! { () = both => {} () = recover => {} } }).await;
                assert!(!soon(barrier(&client).is_set()).await.unwrap(), "{op:?} {nth} {fault}");
            }
        }
    }
}
