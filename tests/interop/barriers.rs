//! `Barrier` and `DistributedBarrier`, `DoubleBarrier` and `DistributedDoubleBarrier`.

use crate::curator::both;
use docent::Barrier;
use docent_battery::{Backend, Proxy};
use docent_proto::OpCode;
use docent_tests::double_barriers::enter_and_leave_together;
use docent_tests::soon;

const PATH: &str = "/barriers/work";

/// Waits until a client has checked whether the barrier exists, after the first `before` frames.
async fn until_checked(proxy: &Proxy, before: usize) {
    soon(proxy.until(|trace| trace[before..].iter().any(|frame| frame.is_reply(OpCode::Exists)))).await;
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper and Curator: run `cargo xtask test`"]
async fn a_barrier_of_either_blocks_the_other_until_either_removes_it() {
    let server = Backend::Real.start().await;
    let (client, curator) = both(&server).await;
    let (own, peer) = (Barrier::new(&client, PATH).unwrap(), curator.make(&format!("barrier {PATH}")).await);
    let waiter = curator.make(&format!("barrier {PATH}")).await;
    for peer_removes in [false, true] {
        let remove = async || {
            if peer_removes {
                peer.done("remove").await;
            } else {
                soon(own.remove()).await.unwrap();
            }
        };
        assert!(soon(own.set()).await.unwrap());
        let before = server.front().trace().len();
        let waiting = waiter.start("wait");
        until_checked(server.front(), before).await;
        assert!(!waiting.is_finished());
        remove().await;
        waiting.done().await;
        assert!(!soon(own.is_set()).await.unwrap());

        peer.done("set").await;
        assert!(!soon(own.set()).await.unwrap(), "the barrier is already set");
        let before = server.front().trace().len();
        let waiting = tokio::spawn({
            let own = own.clone();
            async move { own.wait().await }
        });
        until_checked(server.front(), before).await;
        assert!(!waiting.is_finished());
        remove().await;
        soon(waiting).await.unwrap().unwrap();
        waiter.done("wait").await;
    }
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper and Curator: run `cargo xtask test`"]
async fn members_of_both_enter_a_double_barrier_together_and_leave_it_together() {
    let server = Backend::Real.start().await;
    let (client, curator) = both(&server).await;
    let kind = format!("double-barrier {PATH} 3");
    for own_is_last in [false, true] {
        let (peer, other) = (curator.make(&kind).await, curator.make(&kind).await);
        // When two members leave, at least one of them deletes its own node.
        enter_and_leave_together(&client, PATH, [&peer, &other], own_is_last, 4).await;
    }
}
