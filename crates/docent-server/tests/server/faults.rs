//! Faults that a test injects into a server: on one link, one reply, all new links, or the server's memory.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue fails")]

use crate::support::world::World;
use crate::support::{Peer, bounded, fresh};
use docent_proto::{Code, CreateMode, EventKind, Request};
use docent_server::{EndCause, Operation, Server, TransactionKind};
use std::num::NonZeroU32;
use std::time::Duration;
use tokio::time::{Instant, timeout};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test]
async fn links_are_listed_with_their_sessions_and_closed_one_by_one() {
    let server = Server::start().await.unwrap();
    let (mut one, mut other) = (Peer::open(&server).await, Peer::open(&server).await);
    let ids = [&one, &other].map(|peer| peer.session.session_id);
    assert_eq!(server.links().iter().map(docent_server::Link::session).collect::<Vec<_>>(), ids.map(Some));
    let link = server.link_of(ids[0]).unwrap();
    assert!(link.is_open() && link.peer().ip().is_loopback());
    link.close();
    assert!(one.is_closed().await);
    assert!(!link.is_open() && link.session().is_none() && server.link_of(ids[0]).is_none());
    other.create("/a", CreateMode::Persistent).await.expect("the other link is not affected");
    one.reattach(&server).await.delete("/a").await.expect("the session continues");
    assert!(server.link_of(17).is_none());
}

#[tokio::test(start_paused = true)]
async fn nothing_passes_a_frozen_link_until_it_heals() {
    let world = World::new(Server::builder()).await;
    let (mut peer, mut other) = (world.peer(40_000).await, world.peer(40_000).await);
    peer.exists("/a", true).await.unwrap_err();
    let link = world.server.link_of(peer.session.session_id).unwrap();
    link.freeze();
    peer.send(Request::SetData { path: "/a".into(), data: None, version: -1 }).await;
    other.create("/a", CreateMode::Persistent).await.expect("other clients are served");
    assert!(timeout(5 * SECOND, peer.frame()).await.is_err(), "a frame passed a frozen link");
    assert_eq!(world.server.node("/a").unwrap().stat.version, 0, "a request passed a frozen link");
    link.heal();
    let (header, _) = bounded(peer.reply()).await.unwrap();
    assert_eq!((header.xid, header.code), (2, Code::OK));
    assert_eq!(peer.event().await.kind, EventKind::Created, "the event arrives in order");
}

#[tokio::test(start_paused = true)]
async fn the_session_of_a_frozen_link_ends_in_its_time() {
    let world = World::new(Server::builder()).await;
    let mut peer = world.peer(4_000).await;
    let link = world.server.link_of(peer.session.session_id).unwrap();
    link.freeze();
    peer.send(Request::Ping).await;
    assert!(world.end_of(&peer).await <= 8_000);
    assert!(!link.is_open() && peer.is_closed().await);
}

#[tokio::test(start_paused = true)]
async fn a_delay_holds_for_both_ways_and_keeps_the_order() {
    let world = World::new(Server::builder()).await;
    let mut peer = world.peer(40_000).await;
    let link = world.server.link_of(peer.session.session_id).unwrap();
    link.delay(SECOND);
    let begun = Instant::now();
    let sent = [peer.send(Request::Ping).await, peer.send(Request::Sync { path: "/".into() }).await];
    for xid in sent {
        assert_eq!(peer.reply().await.unwrap().0.xid, xid);
    }
    let took = begun.elapsed();
    assert!(
        took >= 2 * SECOND && took < 2 * SECOND + SECOND / 100,
        "{took:?}: delays of pipelined requests must overlap"
    );
    // Data in transit when the link heals passes immediately.
    peer.send(Request::Ping).await;
    tokio::time::sleep(SECOND / 2).await;
    link.heal();
    let healed = Instant::now();
    peer.reply().await.unwrap();
    assert!(healed.elapsed() < SECOND / 100);
}

#[tokio::test(start_paused = true)]
async fn a_throttle_holds_for_both_ways() {
    let world = World::new(Server::builder()).await;
    let mut peer = world.peer(40_000).await;
    peer.create("/a", CreateMode::Persistent).await.unwrap();
    let link = world.server.link_of(peer.session.session_id).unwrap();
    link.throttle(NonZeroU32::new(10_000).unwrap());
    let near = |took: Duration| took > 4 * SECOND && took < 6 * SECOND;
    let begun = Instant::now();
    peer.set_data("/a", &[7; 50_000]).await.unwrap();
    assert!(near(begun.elapsed()), "{:?}", begun.elapsed());
    let begun = Instant::now();
    peer.get_data("/a", false).await.unwrap();
    assert!(near(begun.elapsed()), "{:?}", begun.elapsed());
    link.heal();
    let begun = Instant::now();
    peer.get_data("/a", false).await.unwrap();
    assert!(begun.elapsed() < SECOND / 100);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_disconnects_behind_a_delay_has_its_last_requests_applied() {
    let world = World::new(Server::builder()).await;
    let mut peer = world.peer(40_000).await;
    let link = world.server.link_of(peer.session.session_id).unwrap();
    link.delay(SECOND);
    peer.send(Request::Create(crate::support::node("/last", CreateMode::Persistent))).await;
    drop(peer);
    tokio::time::sleep(2 * SECOND).await;
    assert_eq!(world.server.nodes(), ["/last"]);
    assert!(!link.is_open());
}

#[tokio::test]
async fn links_with_faults_do_not_delay_a_stop() {
    let server = Server::start().await.unwrap();
    let peers = [Peer::open(&server).await, Peer::open(&server).await, Peer::open(&server).await];
    let links = peers.each_ref().map(|peer| server.link_of(peer.session.session_id).unwrap());
    links[0].freeze();
    links[1].delay(Duration::MAX);
    links[2].throttle(NonZeroU32::MIN);
    for mut peer in peers {
        peer.send(Request::Ping).await;
    }
    bounded(server.restart()).await.unwrap();
    bounded(server.stop()).await;
    assert!(links.iter().all(|link| !link.is_open()));
    links[0].heal();
}

#[tokio::test]
async fn the_reply_to_the_nth_request_of_a_kind_is_dropped_and_the_request_applied() {
    let server = Server::start().await.unwrap();
    let (mut peer, mut other) = (Peer::open(&server).await, Peer::open(&server).await);
    let lost = server.swallow_reply(Operation::Create, "/a", 2);
    peer.create("/a", CreateMode::Persistent).await.unwrap();
    peer.create("/b", CreateMode::Persistent).await.expect("a create of another node is answered");
    peer.set_data("/a", b"x").await.expect("a request of another kind is answered");
    assert!(!lost.has_fired());
    other.send(Request::Create(crate::support::node("/a/b", CreateMode::Persistent))).await;
    bounded(lost.fired()).await;
    assert!(lost.has_fired() && server.node("/a/b").is_some());
    let sync = other.send(Request::Sync { path: "/".into() }).await;
    assert_eq!(other.reply().await.unwrap().0.xid, sync, "the link continues without the reply");
    other.create("/a/c", CreateMode::Persistent).await.expect("the fault happens only once");
}

#[tokio::test]
async fn a_link_is_closed_in_place_of_a_reply_after_the_earlier_replies() {
    let server = Server::start().await.unwrap();
    let (mut peer, mut other) = (Peer::open(&server).await, Peer::open(&server).await);
    other.exists("/a", true).await.unwrap_err();
    let lost = server.break_after(Operation::Any, "/a", 0);
    let sync = peer.send(Request::Sync { path: "/".into() }).await;
    peer.send(Request::Create(crate::support::node("/a", CreateMode::Persistent))).await;
    peer.send(Request::Create(crate::support::node("/b", CreateMode::Persistent))).await;
    assert_eq!(peer.reply().await.unwrap().0.xid, sync);
    assert!(peer.frame().await.is_none());
    assert!(lost.has_fired());
    assert_eq!(server.nodes(), ["/a"], "only the request before the break is applied");
    assert_eq!(other.event().await.kind, EventKind::Created);
    peer.reattach(&server).await.delete("/a").await.expect("the session continues");
}

#[tokio::test]
async fn of_two_faults_at_one_request_the_first_happens_and_the_other_waits() {
    let server = Server::start().await.unwrap();
    let mut peer = Peer::open(&server).await;
    let (first, second) =
        (server.swallow_reply(Operation::Read, "/", 1), server.break_after(Operation::Any, "/", 1));
    peer.send(Request::GetData { path: "/".into(), watch: false }).await;
    bounded(first.fired()).await;
    assert!(!second.has_fired());
    peer.send(Request::GetData { path: "/".into(), watch: false }).await;
    assert!(peer.is_closed().await && second.has_fired());
}

#[tokio::test(start_paused = true)]
async fn refused_links_are_closed_while_present_ones_stay_and_sessions_expire() {
    let world = World::new(Server::builder()).await;
    let (mut present, mut leaving) = (world.peer(40_000).await, world.peer(4_000).await);
    let (_follower, dial) = world.follower(|builder| builder).await;
    world.server.refuse_links(true);
    for mut refused in [world.link(), dial.link()] {
        assert!(!refused.attach(&fresh(4_000)).await);
    }
    present.call(Request::Ping).await.unwrap();
    world.server.link_of(leaving.session.session_id).unwrap().close();
    assert!(leaving.is_closed().await);
    assert!(world.end_of(&leaving).await <= 8_000, "the session expires because its client cannot reconnect");
    world.server.refuse_links(false);
    world.peer(4_000).await;
    dial.peer(4_000).await;
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_denied_lives_on_with_a_full_timeout_and_is_denied_once() {
    let world = World::new(Server::builder()).await;
    let (mut denied, mut other) = (world.peer(4_000).await, world.peer(40_000).await);
    denied.create("/mine", CreateMode::Ephemeral).await.unwrap();
    let ticket = denied.ticket();
    assert!(world.server.deny_session(ticket.session_id));
    assert!(denied.is_closed().await);
    let mut link = world.link();
    assert!(link.attach(&ticket).await, "the reply must be an expired session, not a refusal");
    assert_eq!(link.session.session_id, 0);
    other.get_data("/mine", false).await.expect("the session continues");
    let mut again = world.link();
    assert!(again.attach(&ticket).await);
    assert_eq!(again.session.session_id, ticket.session_id);
    assert!(!world.server.deny_session(17));
}

#[tokio::test]
async fn a_restart_without_state_is_a_new_server_to_clients() {
    let server = Server::builder().journal(true).start().await.unwrap();
    let mut peer = Peer::open(&server).await;
    peer.create("/a", CreateMode::Persistent).await.unwrap();
    peer.create("/a/mine", CreateMode::Ephemeral).await.unwrap();
    peer.set_data("/", b"root").await.unwrap();
    let (ticket, count) = (peer.ticket(), server.journal().len());
    server.restart_empty().await.unwrap();
    assert!(peer.is_closed().await);
    assert!(server.nodes().is_empty() && server.sessions().is_empty());
    let root = server.node("/").unwrap();
    assert_eq!((root.stat.version, root.stat.czxid, root.stat.num_children), (0, 0, 1));
    let mut gone = Peer::raw(&server).await;
    assert!(gone.attach(&ticket).await, "the reply must be an expired session, not a refusal");
    assert_eq!(gone.session.session_id, 0);
    let mut next = Peer::open(&server).await;
    assert!(next.session.session_id > ticket.session_id);
    next.create("/a", CreateMode::Persistent).await.unwrap();
    assert!(next.last_zxid > ticket.last_zxid_seen);
    let journal = server.journal_after(count);
    let is_lost = |kind| matches!(kind, TransactionKind::SessionEnded { cause: EndCause::Lost, .. });
    assert!(is_lost(journal[0].kind), "{:?}", journal[0]);
    let gone: Vec<&str> = journal
        .iter()
        .filter(|entry| entry.kind == TransactionKind::Deleted)
        .map(|entry| &*entry.path)
        .collect();
    assert_eq!(gone, ["/a/mine", "/a"]);
}

#[tokio::test(start_paused = true)]
async fn a_follower_that_lags_shows_nothing_of_a_state_that_was_lost() {
    let world = World::new(Server::builder()).await;
    let (_follower, dial) = world.follower(|builder| builder.lag(1_000 * SECOND)).await;
    let mut peer = world.peer(40_000).await;
    peer.create("/a", CreateMode::Persistent).await.unwrap();
    peer.create("/b", CreateMode::Persistent).await.unwrap();
    world.server.restart_empty().await.unwrap();
    let mut peer = dial.peer(40_000).await;
    assert_eq!(peer.exists("/a", false).await, Err(Code::NO_NODE));
}
