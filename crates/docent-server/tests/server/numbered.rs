//! The transaction in the header of an event.
#![allow(clippy::unwrap_used, reason = "a test that cannot continue fails")]

use crate::support::Peer;
use docent_proto::{CreateMode, MultiOp, Request, Watches};
use docent_server::Server;

/// Opens a client that watches two nodes, and a client that changes them.
async fn watched(server: &Server) -> (Peer, Peer) {
    let (mut watcher, mut writer) = (Peer::open(server).await, Peer::open(server).await);
    for path in ["/a", "/b"] {
        writer.create(path, CreateMode::Persistent).await.unwrap();
        watcher.get_data(path, true).await.unwrap();
    }
    (watcher, writer)
}

async fn change_both(writer: &mut Peer) -> i64 {
    let set = |path: &str| MultiOp::SetData { path: path.into(), data: None, version: -1 };
    writer.call(Request::Multi(vec![set("/a"), set("/b")])).await.unwrap();
    writer.last_zxid
}

#[tokio::test]
async fn the_events_of_one_transaction_have_its_number_as_in_3_9() {
    let server = Server::builder().zxid_in_events(true).start().await.unwrap();
    let (mut watcher, mut writer) = watched(&server).await;
    let zxid = change_both(&mut writer).await;
    let events = [watcher.numbered_event().await, watcher.numbered_event().await];
    assert_eq!(
        events.map(|(number, event)| (number, event.path)),
        [(zxid, "/a".into()), (zxid, "/b".into())]
    );
}

#[tokio::test]
async fn deletions_by_a_session_end_have_the_number_of_that_end() {
    let server = Server::builder().zxid_in_events(true).start().await.unwrap();
    let (mut leaving, mut watcher) = (Peer::open(&server).await, Peer::open(&server).await);
    leaving.create("/mine", CreateMode::Ephemeral).await.unwrap();
    watcher.get_data("/mine", true).await.unwrap();
    leaving.call(Request::CloseSession).await.unwrap();
    assert_eq!(watcher.numbered_event().await.0, leaving.last_zxid);
}

#[tokio::test]
async fn an_event_has_no_number_as_in_3_8_nor_when_a_rearmed_watch_reports_it() {
    let server = Server::start().await.unwrap();
    let (mut watcher, mut writer) = watched(&server).await;
    change_both(&mut writer).await;
    assert_eq!(watcher.numbered_event().await.0, -1);

    let server = Server::builder().zxid_in_events(true).start().await.unwrap();
    let (watcher, mut writer) = watched(&server).await;
    change_both(&mut writer).await;
    let mut again = watcher.reattach(&server).await;
    let watches = Watches { relative_zxid: watcher.last_zxid, data: vec!["/a".into()], ..Watches::default() };
    again.send(Request::SetWatches(watches)).await;
    assert_eq!(again.numbered_event().await.0, -1);
}
