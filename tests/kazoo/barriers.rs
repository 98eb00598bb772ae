//! `Barrier` and `DoubleBarrier` of both, which have the same nodes as they are.

use crate::beside_kazoo;
use crate::client::{Kazoo, both, connect, expire};
use docent::{Barrier, DoubleBarrier};
use docent_battery::{Backend, Rule, TestServer};
use docent_proto::OpCode;
use docent_tests::double_barriers::{enter, enter_and_leave_together, until_nodes};
use docent_tests::peer::Theirs;
use docent_tests::{builder, soon, until};

const PATH: &str = "/barriers/work";

/// Waits until ours was told whether a node is there, `before` that many frames: what it does while it waits.
async fn until_ours_looked(server: &TestServer, before: usize) {
    let looked =
        server.front().until(|trace| trace[before..].iter().any(|frame| frame.is_reply(OpCode::Exists)));
    soon(looked).await;
}

/// A member of kazoo's at a barrier for so many.
async fn member<'a>(kazoo: &'a Kazoo<'_>, members: u32) -> Theirs<'a> {
    kazoo.make(&format!("double-barrier {PATH} {members} theirs")).await
}

beside_kazoo! {
    async fn a_barrier_of_either_holds_the_other_up_until_either_removes_it(backend: Backend) {
        let server = backend.start().await;
        let (client, kazoo) = both(&server).await;
        let ours = Barrier::new(&client, PATH).unwrap();
        let theirs = kazoo.make(&format!("barrier {PATH}")).await;
        for theirs_removes in [false, true] {
            let remove = async || {
                if theirs_removes {
                    theirs.done("remove").await;
                } else {
                    soon(ours.remove()).await.unwrap();
                }
            };
            let waiter = Kazoo::start(&server).await;
            let waits = waiter.make(&format!("barrier {PATH}")).await;
            assert!(soon(ours.set()).await.unwrap());
            let waiting = waits.tell("wait");
            waiter.until_it_looked_at(PATH).await;
            assert!(!waiting.is_finished());
            remove().await;
            waiting.done().await;
            assert!(!soon(ours.is_set()).await.unwrap());
            theirs.refused("remove").await;

            theirs.done("set").await;
            assert!(!soon(ours.set()).await.unwrap(), "it is set already");
            let before = server.front().trace().len();
            let waiting = tokio::spawn({
                let ours = ours.clone();
                async move { ours.wait().await }
            });
            until_ours_looked(&server, before).await;
            assert!(!waiting.is_finished());
            remove().await;
            soon(waiting).await.unwrap().unwrap();
            waits.done("wait").await;
        }
    }

    async fn members_of_both_enter_a_double_barrier_together_and_leave_it_together(backend: Backend) {
        let server = backend.start().await;
        let (client, kazoo) = both(&server).await;
        for ours_is_last in [false, true] {
            let (theirs, other) = (member(&kazoo, 3).await, member(&kazoo, 3).await);
            // The first of theirs to leave deletes the node that says that they are in.
            enter_and_leave_together(&client, PATH, [&theirs, &other], ours_is_last, 3).await;
        }
    }

    async fn a_member_of_kazoos_that_enters_and_leaves_at_once_leaves_nobody_waiting(backend: Backend) {
        // Each draws the order of their names, by which they leave.
        const ROUNDS: usize = 5;
        let server = backend.start().await;
        let (client, kazoo) = both(&server).await;
        let (ours, ready) = (DoubleBarrier::new(&client, PATH, 2).unwrap(), format!("{PATH}/ready"));
        let aside = server.proxy().await;
        let other = builder(&server, aside.connect_string()).connect().await.unwrap();
        for _ in 0..ROUNDS {
            let theirs = member(&kazoo, 2).await;
            let before = server.front().trace().len();
            let our_enter = enter(&ours);
            until_ours_looked(&server, before).await;
            let read = server.front().add(Rule::on(OpCode::GetData).path(|path| path.ends_with("/ready")).hold());
            let (their_enter, their_leave) = (theirs.tell("enter"), theirs.tell("leave"));
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

    async fn a_member_of_either_whose_session_ends_does_not_count_and_holds_nobody_up(backend: Backend) {
        let server = backend.start().await;
        let (client, kazoo) = both(&server).await;
        let ours = DoubleBarrier::new(&client, PATH, 2).unwrap();
        let theirs = member(&kazoo, 2).await;
        theirs.tell("enter");
        // Before that it would become a member again.
        kazoo.until_it_listed(PATH).await;
        kazoo.expire().await;
        until_nodes(&client, PATH, |count| count == 0).await;

        // The order of their names is drawn, and with it who would remove `ready`.
        for _ in 0..4 {
            let our_enter = enter(&ours);
            let second = Kazoo::start(&server).await;
            let theirs = member(&second, 2).await;
            theirs.done("enter").await;
            let entered = soon(our_enter).await.unwrap().unwrap();
            let before = server.front().trace().len();
            let our_leave = tokio::spawn(entered.leave());
            until_ours_looked(&server, before).await;
            second.expire().await;
            soon(our_leave).await.unwrap().unwrap();
            until_nodes(&client, PATH, |count| count == 0).await;
        }

        let other = connect(&server).await;
        let third = Kazoo::start(&server).await;
        let theirs = member(&third, 2).await;
        let our_enter = enter(&ours);
        theirs.done("enter").await;
        let entered = soon(our_enter).await.unwrap().unwrap();
        let their_leave = theirs.tell("leave");
        until_nodes(&other, PATH, |count| count < 3).await;
        expire(&server, &client).await;
        their_leave.done().await;
        drop(entered);
        until_nodes(&other, PATH, |count| count == 0).await;
    }
}
