//! `Barrier` and `DistributedBarrier`, `DoubleBarrier` and `DistributedDoubleBarrier`.

use crate::curator::both;
use docent::locks::Entered;
use docent::{Barrier, Client, DoubleBarrier, Error};
use docent_battery::{Backend, Proxy};
use docent_proto::OpCode;
use docent_tests::{soon, until};
use tokio::task::JoinHandle;

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

/// Waits until the number of nodes below the barrier is as `wanted`.
async fn until_nodes(client: &Client, wanted: impl Fn(usize) -> bool) {
    until(async || wanted(client.children(PATH).await.map_or(0, |children| children.names.len()))).await;
}

fn enter(barrier: &DoubleBarrier) -> JoinHandle<Result<Entered, Error>> {
    let barrier = barrier.clone();
    tokio::spawn(async move { barrier.enter().await })
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper and Curator: run `cargo xtask test`"]
async fn members_of_both_enter_a_double_barrier_together_and_leave_it_together() {
    let server = Backend::Real.start().await;
    let (client, curator) = both(&server).await;
    let ours = DoubleBarrier::new(&client, PATH, 3).unwrap();
    let kind = format!("double-barrier {PATH} 3");
    for ours_is_last in [false, true] {
        let (theirs, other) = (curator.make(&kind).await, curator.make(&kind).await);
        let their_enter = theirs.tell("enter");
        until_nodes(&client, |count| count == 1).await;
        let (other_enter, our_enter) = if ours_is_last {
            let other_enter = other.tell("enter");
            until_nodes(&client, |count| count == 2).await;
            assert!(!their_enter.is_finished() && !other_enter.is_finished());
            (other_enter, enter(&ours))
        } else {
            let our_enter = enter(&ours);
            until_nodes(&client, |count| count == 2).await;
            assert!(!their_enter.is_finished() && !our_enter.is_finished());
            (other.tell("enter"), our_enter)
        };
        their_enter.done().await;
        other_enter.done().await;
        let entered = soon(our_enter).await.unwrap().unwrap();

        // Three members and a node that says that they are in. Of two who leave at least one deletes its own.
        until_nodes(&client, |count| count == 4).await;
        let their_leave = theirs.tell("leave");
        let (other_leave, our_leave) = if ours_is_last {
            let other_leave = other.tell("leave");
            until_nodes(&client, |count| count < 4).await;
            assert!(!their_leave.is_finished() && !other_leave.is_finished());
            (other_leave, tokio::spawn(entered.leave()))
        } else {
            let our_leave = tokio::spawn(entered.leave());
            until_nodes(&client, |count| count < 4).await;
            assert!(!their_leave.is_finished() && !our_leave.is_finished());
            (other.tell("leave"), our_leave)
        };
        their_leave.done().await;
        other_leave.done().await;
        soon(our_leave).await.unwrap().unwrap();
        until_nodes(&client, |count| count == 0).await;
    }
}
