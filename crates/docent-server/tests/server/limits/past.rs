//! Limits on the past that followers show, and on the journal.

use super::shown;
use crate::support::fresh;
use crate::support::warnings::Warnings;
use crate::support::world::World;
use docent_proto::{Code, CreateMode, MultiOp, Request, Response};
use docent_server::{Limits, Server};
use std::time::Duration;

#[tokio::test(start_paused = true)]
async fn the_past_over_the_limit_is_forgotten_oldest_first() {
    let warnings = Warnings::watch();
    let world = World::new(Server::builder().limits(Limits::default().past_bytes(50_000))).await;
    let (_follower, dial) = world.follower(|follower| follower.lag(Duration::from_secs(3_600))).await;
    // The second round runs after an empty restart, which discards the past.
    for _ in 0..2 {
        let (mut reader, mut writer) = (dial.peer(10_000).await, world.peer(10_000).await);
        writer.set_data("/", b"0").await.expect("the server continues");
        assert_eq!(shown(&mut reader).await, []);
        for n in 1..100_u8 {
            writer.set_data("/", &[n]).await.expect("the server continues");
        }
        let shown = shown(&mut reader).await;
        assert!(shown[0] > 80 && shown[0] < 99, "{shown:?}");
        warnings.assert_about("past_bytes", 50_000);
        world.server.restart_empty().await.expect("pipes are free");
    }
}

#[tokio::test(start_paused = true)]
async fn the_changes_of_the_past_count_with_it() {
    let warnings = Warnings::watch();
    let world = World::new(Server::builder().limits(Limits::default().past_bytes(50_000))).await;
    let (_follower, dial) = world.follower(|follower| follower.lag(Duration::from_secs(3_600))).await;
    let (mut reader, mut writer) = (dial.peer(10_000).await, world.peer(10_000).await);
    let in_one = |times, value: u8| {
        let set = |_| MultiOp::SetData { path: "/".into(), data: Some(vec![value].into()), version: -1 };
        Request::Multi((0..times).map(set).collect())
    };
    writer.call(in_one(100, 1)).await.expect("the multi succeeds");
    assert_eq!(shown(&mut reader).await, []);
    // If there is no room for the changes of a transaction, the tree before it is not shown either.
    writer.call(in_one(400, 2)).await.expect("the multi succeeds");
    assert_eq!(shown(&mut reader).await, [2]);
    warnings.assert_about("past_bytes", 50_000);
    // The room has been freed.
    let mut late = dial.attach(&reader.ticket()).await;
    for n in 1..100_u8 {
        writer.set_data("/", &[n]).await.expect("the server continues");
    }
    let shown = shown(&mut late).await;
    assert!(shown[0] > 80 && shown[0] < 99, "{shown:?}");
}

#[tokio::test(start_paused = true)]
async fn a_journal_over_the_limit_refuses_writes_and_sessions_but_no_end() {
    let warnings = Warnings::watch();
    let limits = Limits::default().journal_bytes(20_000);
    let world = World::new(Server::builder().limits(limits).journal(true)).await;
    let mut peer = world.peer(10_000).await;
    peer.create("/e", CreateMode::Ephemeral).await.expect("there is room in the journal");
    let mut result = Ok(Response::Empty);
    for _ in 0..100 {
        result = peer.set_data("/", &[0; 100]).await;
    }
    assert_eq!(result, Err(Code::QUOTA_EXCEEDED));
    warnings.assert_about("journal_bytes", 20_000);
    let mut next = world.link();
    assert!(!next.attach(&fresh(10_000)).await);
    peer.call(Request::CloseSession).await.expect("a session can close itself");
    assert_eq!(world.server.nodes().len(), 0);
}
