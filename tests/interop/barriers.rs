//! `Barrier` and `DistributedBarrier`, `DoubleBarrier` and `DistributedDoubleBarrier`.

use crate::curator::both;
use docent::Barrier;
use docent_battery::{Backend, Proxy};
use docent_proto::OpCode;
use docent_tests::double_barriers::enter_and_leave_together;
use docent_tests::soon;

const PATH: &str = "/barriers/work";

/// Waits until somebody was told whether the barrier is there, `before` that many frames.
async fn until_looked_at(proxy: &Proxy, before: usize) {
    soon(proxy.until(|trace| trace[before..].iter().any(|frame| frame.is_reply(OpCode::Exists)))).await;
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper and Curator: run `cargo xtask test`"]
async fn a_barrier_of_either_holds_the_other_up_until_either_removes_it() {
    let server = Backend::Real.start().await;
    let (client, curator) = both(&server).await;
    let (ours, theirs) =
        (Barrier::new(&client, PATH).unwrap(), curator.make(&format!("barrier {PATH}")).await);
    let waiter = curator.make(&format!("barrier {PATH}")).await;
    for theirs_removes in [false, true] {
        let remove = async || {
            if theirs_removes {
                theirs.done("remove").await;
            } else {
                soon(ours.remove()).await.unwrap();
            }
        };
        assert!(soon(ours.set()).await.unwrap());
        let before = server.front().trace().len();
        let waiting = waiter.tell("wait");
        until_looked_at(server.front(), before).await;
        assert!(!waiting.is_finished());
        remove().await;
        waiting.done().await;
        assert!(!soon(ours.is_set()).await.unwrap());

        theirs.done("set").await;
        assert!(!soon(ours.set()).await.unwrap(), "it is set already");
        let before = server.front().trace().len();
        let waiting = tokio::spawn({
            let ours = ours.clone();
            async move { ours.wait().await }
        });
        until_looked_at(server.front(), before).await;
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
    for ours_is_last in [false, true] {
        let (theirs, other) = (curator.make(&kind).await, curator.make(&kind).await);
        // Of two who leave at least one deletes its own node.
        enter_and_leave_together(&client, PATH, [&theirs, &other], ours_is_last, 4).await;
    }
}
