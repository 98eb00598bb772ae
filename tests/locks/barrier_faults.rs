//! A barrier stands what happens to links, sessions and futures.

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

/// The requests of a client since then, each with how often it was there before.
fn requests(proxy: &Proxy, before: usize) -> Vec<(OpCode, usize)> {
    let mut asked: Vec<(OpCode, usize)> = Vec::new();
    for frame in &proxy.trace()[before..] {
        if let (FrameKind::Request, Some(op)) = (frame.kind, frame.op.filter(|op| *op != OpCode::Ping)) {
            asked.push((op, 1 + asked.iter().filter(|(one, _)| *one == op).count()));
        }
    }
    asked
}

/// Whether a reply that arms the watch came on a link later than that of the first `op`. The trace may have
/// further connects after it.
fn looked_again(trace: &[Traced], op: OpCode) -> bool {
    let asked = |frame: &&Traced| frame.kind == FrameKind::Request && frame.op == Some(op);
    let Some(broken) = trace.iter().find(asked).map(|frame| frame.link) else { return false };
    let arms = |frame: &Traced| frame.is_reply(OpCode::Exists) || frame.is_reply(OpCode::SetWatches);
    trace.iter().any(|frame| frame.link > broken && arms(frame))
}

both_backends! {
    async fn a_waiter_whose_link_breaks_at_any_request_or_whose_session_ends_waits_on(backend: Backend) {
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
                proxy.until(|trace| looked_again(trace, op)).await;
                assert!(!waiting.is_finished(), "{op:?} {fault}: it went on");
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
            assert!(!matches!(done, Ok(Some(_))), "it is set");
            soon(client.sync("/")).await.unwrap();
            if let Some(embedded) = server.as_embedded() {
                soon(async { while embedded.watch_count() > 0 { client.sync("/").await.unwrap(); } }).await;
            }
        }
        soon(barrier(&setter).remove()).await.unwrap();
        soon(barrier(&client).wait()).await.unwrap();
    }

    async fn it_is_set_once_and_removed_whichever_reply_is_lost(backend: Backend) {
        let server = backend.start().await;
        let (client, proxy) = behind_a_proxy(&server).await;
        let before = proxy.trace().len();
        assert!(soon(barrier(&client).set()).await.unwrap());
        soon(barrier(&client).remove()).await.unwrap();
        let asked = requests(&proxy, before);
        assert!(asked.len() >= 2, "{asked:?}");
        for (op, nth) in asked {
            for fault in ["lost", "before", "after"] {
                let (client, proxy) = behind_a_proxy(&server).await;
                let on = Rule::on(op).nth(nth);
                let broken = proxy.add(match fault {
                    "lost" => on.swallow_reply(),
                    "before" => on.reset_before(),
                    _ => on.reset_after(),
                });
                let both = async {
                    assert!(barrier(&client).set().await.unwrap(), "{op:?} {nth} {fault}: it was set by this");
                    assert!(barrier(&client).is_set().await.unwrap());
                    barrier(&client).remove().await.unwrap();
                };
                let mend = async {
                    broken.fired().await;
                    if fault == "lost" {
                        proxy.reset().await;
                    }
                    std::future::pending::<()>().await;
                };
                soon(async { tokio::select! { () = both => {} () = mend => {} } }).await;
                assert!(!soon(barrier(&client).is_set()).await.unwrap(), "{op:?} {nth} {fault}");
            }
        }
    }
}
