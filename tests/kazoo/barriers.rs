//! `Barrier` and `DoubleBarrier` of Docent and kazoo, whose node layouts are the same without any setting.

use crate::beside_kazoo;
use crate::client::{Kazoo, both, connect, expire};
use docent::{Barrier, DoubleBarrier};
use docent_battery::peer::PeerRecipe;
use docent_battery::{Backend, Rule, TestServer};
use docent_proto::OpCode;
use docent_tests::double_barriers::{enter, enter_and_leave_together, until_nodes};
use docent_tests::{builder, soon, until};

const PATH: &str = "/barriers/work";

/// Waits until Docent's client has checked whether a node exists, after the first `before` frames. The client
/// does this before it waits.
async fn until_own_check(server: &TestServer, before: usize) {
    let checked =
        server.front().until(|trace| trace[before..].iter().any(|frame| frame.is_reply(OpCode::Exists)));
    soon(checked).await;
}

/// Creates a kazoo member of a double barrier for `members` members.
async fn member<'a>(kazoo: &'a Kazoo<'_>, members: u32) -> PeerRecipe<'a> {
    kazoo.make(&format!("double-barrier {PATH} {members} theirs")).await
}

beside_kazoo! {
    async fn a_barrier_of_either_blocks_the_other_until_either_removes_it(backend: Backend) {
        let server = backend.start().await;
        let (client, kazoo) = both(&server).await;
        let own = Barrier::new(&client, PATH).unwrap();
        let peer = kazoo.make(&format!("barrier {PATH}")).await;
        for peer_removes in [false, true] {
            let remove = async || {
                if peer_removes {
                    peer.done("remove").await;
                } else {
                    soon(own.remove()).await.unwrap();
                }
            };
            let waiter = Kazoo::start(&server).await;
            let waits = waiter.make(&format!("barrier {PATH}")).await;
            assert!(soon(own.set()).await.unwrap());
            let waiting = waits.start("wait");
            waiter.until_it_checked(PATH).await;
            assert!(!waiting.is_finished());
            remove().await;
            waiting.done().await;
            assert!(!soon(own.is_set()).await.unwrap());
            peer.refused("remove").await;

            peer.done("set").await;
            assert!(!soon(own.set()).await.unwrap(), "the barrier is already set");
            let before = server.front().trace().len();
            let waiting = tokio::spawn({
                let own = own.clone();
                async move { own.wait().await }
            });
            until_own_check(&server, before).await;
            assert!(!waiting.is_finished());
            remove().await;
            soon(waiting).await.unwrap().unwrap();
            waits.done("wait").await;
        }
    }

    async fn members_of_both_enter_a_double_barrier_together_and_leave_it_together(backend: Backend) {
        let server = backend.start().await;
        let (client, kazoo) = both(&server).await;
        for own_is_last in [false, true] {
            let (peer, other) = (member(&kazoo, 3).await, member(&kazoo, 3).await);
            // The first kazoo member to leave deletes the `ready` node.
            enter_and_leave_together(&client, PATH, [&peer, &other], own_is_last, 3).await;
        }
    }

    async fn a_kazoo_member_that_enters_and_leaves_immediately_leaves_no_member_waiting(backend: Backend) {
        // Each round draws the order of the names, which is the order of leaving.
        const ROUNDS: usize = 5;
        let server = backend.start().await;
        let (client, kazoo) = both(&server).await;
        let (own, ready) = (DoubleBarrier::new(&client, PATH, 2).unwrap(), format!("{PATH}/ready"));
        let proxy = server.proxy().await;
        let other = builder(&server, proxy.connect_string()).connect().await.unwrap();
        for _ in 0..ROUNDS {
            let peer = member(&kazoo, 2).await;
            let before = server.front().trace().len();
            let our_enter = enter(&own);
            until_own_check(&server, before).await;
            let read = server.front().add(Rule::on(OpCode::GetData).path(|path| path.ends_with("/ready")).hold());
            let (their_enter, their_leave) = (peer.start("enter"), peer.start("leave"));
            soon(read.fired()).await;
            their_enter.done().await;
            until(async || other.exists(&ready).await.unwrap().is_none()).await;
            server.front().heal().await.unwrap();
            let entered = soon(our_enter).await.unwrap().unwrap();
            soon(entered.leave()).await.unwrap();
            their_leave.done().await;
            until_nodes(&client, PATH, |count| count == 0).await;
        }
    }

    async fn a_member_of_either_whose_session_ends_does_not_count_and_blocks_no_member(backend: Backend) {
        let server = backend.start().await;
        let (client, kazoo) = both(&server).await;
        let own = DoubleBarrier::new(&client, PATH, 2).unwrap();
        let peer = member(&kazoo, 2).await;
        peer.start("enter");
        // Before this listing the member would join again.
        kazoo.until_it_listed(PATH).await;
        kazoo.expire().await;
        until_nodes(&client, PATH, |count| count == 0).await;

        // Each round draws the order of the names, which determines the member that would delete `ready`.
        for _ in 0..4 {
            let our_enter = enter(&own);
            let second = Kazoo::start(&server).await;
            let peer = member(&second, 2).await;
            peer.done("enter").await;
            let entered = soon(our_enter).await.unwrap().unwrap();
            let before = server.front().trace().len();
            let our_leave = tokio::spawn(entered.leave());
            until_own_check(&server, before).await;
            second.expire().await;
            soon(our_leave).await.unwrap().unwrap();
            until_nodes(&client, PATH, |count| count == 0).await;
        }

        let other = connect(&server).await;
        let third = Kazoo::start(&server).await;
        let peer = member(&third, 2).await;
        let our_enter = enter(&own);
        peer.done("enter").await;
        let entered = soon(our_enter).await.unwrap().unwrap();
        let their_leave = peer.start("leave");
        until_nodes(&other, PATH, |count| count < 3).await;
        expire(&server, &client).await;
        their_leave.done().await;
        drop(entered);
        until_nodes(&other, PATH, |count| count == 0).await;
    }
}
