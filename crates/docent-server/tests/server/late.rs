//! A follower that is cut off and holds its clients' requests: what happens to the requests once the follower
//! has rejoined.

use crate::support::Peer;
use crate::support::world::{Dial, World};
use docent_proto::{Code, CreateMode, EventKind, Request, Response, WatchEvent};
use docent_server::{Follower, Server};
use std::time::Duration;
use tokio::time::sleep;

const TIMEOUT_MS: i32 = 4_000;

async fn world() -> (World, Follower, Dial) {
    let (min, max) = (Duration::from_secs(1), Duration::from_secs(20));
    let builder = Server::builder().tick(Duration::from_millis(100)).session_timeouts(min, max);
    let world = World::new(builder).await;
    let (follower, dial) = world
        .follower(|follower| {
            follower.relay_interval(Duration::from_millis(500)).sync_limit(Duration::from_secs(8))
        })
        .await;
    (world, follower, dial)
}

fn create(path: &str) -> Request {
    Request::Create(crate::support::node(path, CreateMode::Persistent))
}

/// Sends a request to the leader and waits until the follower holds it.
async fn leave(follower: &Follower, peer: &mut Peer, request: Request) {
    let held = follower.held_count();
    peer.send(request).await;
    until_held(follower, held + 1).await;
}

/// Asks the follower for the session on a new link, gets no answer, and drops that link.
async fn move_to_follower(follower: &Follower, dial: &Dial, peer: &Peer) {
    let held = follower.held_count();
    let mut link = dial.link();
    let ticket = peer.ticket();
    tokio::select! {
        answered = link.attach(&ticket) => panic!("a follower that is cut off answered {answered}"),
        () = until_held(follower, held + 1) => {}
    }
}

async fn until_held(follower: &Follower, count: usize) {
    crate::support::bounded(async {
        while follower.held_count() < count {
            sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_held_write_is_applied_after_its_link_closed_and_a_read_did_not_find_it() {
    let (world, follower, dial) = world().await;
    let (mut writer, mut other) = (dial.peer(TIMEOUT_MS).await, world.peer(20_000).await);
    assert_eq!(other.exists("/late", true).await, Err(Code::NO_NODE));
    follower.cut_off_holding();
    leave(&follower, &mut writer, create("/late")).await;
    drop(writer);
    other.call(Request::Sync { path: "/".into() }).await.unwrap();
    assert_eq!(other.exists("/late", true).await, Err(Code::NO_NODE));
    follower.rejoin();
    assert_eq!(other.event().await, WatchEvent { kind: EventKind::Created, path: "/late".into() });
    assert_eq!(follower.held_count(), 0);
}

#[tokio::test(start_paused = true)]
async fn held_writes_of_all_links_are_applied_in_order_of_arrival() {
    let (world, follower, dial) = world().await;
    let (mut one, mut two) = (dial.peer(TIMEOUT_MS).await, dial.peer(TIMEOUT_MS).await);
    one.create("/line", CreateMode::Persistent).await.unwrap();
    follower.cut_off_holding();
    let ticket = |path| Request::Create(crate::support::node(path, CreateMode::PersistentSequential));
    leave(&follower, &mut one, ticket("/line/one-")).await;
    leave(&follower, &mut two, ticket("/line/two-")).await;
    one.send(Request::Exists { path: "/".into(), watch: false }).await;
    leave(&follower, &mut one, ticket("/line/one-")).await;
    follower.rejoin();
    let mut line: Vec<_> = world.server.nodes().into_iter().filter(|path| path.len() > 5).collect();
    line.sort_by_key(|path| path[10..].to_owned());
    assert_eq!(line, ["/line/one-0000000000", "/line/two-0000000001", "/line/one-0000000002"]);
    assert!(one.is_closed().await && two.is_closed().await);
}

#[tokio::test(start_paused = true)]
async fn a_held_write_of_a_session_that_moved_is_refused() {
    let (world, follower, dial) = world().await;
    let mut writer = dial.peer(TIMEOUT_MS).await;
    follower.cut_off_holding();
    leave(&follower, &mut writer, create("/late")).await;
    let mut moved = world.dial.attach(&writer.ticket()).await;
    let zxid = world.server.zxid();
    follower.rejoin();
    assert_eq!(moved.exists("/late", false).await, Err(Code::NO_NODE));
    assert_eq!(world.server.zxid(), zxid + 1, "a refused write uses up a number");
    moved.create("/mine", CreateMode::Ephemeral).await.expect("the session continues on its new link");
}

#[tokio::test(start_paused = true)]
async fn a_held_write_of_a_session_that_moved_is_applied_if_the_session_had_reconnected_to_the_follower() {
    let (world, follower, dial) = world().await;
    let mut writer = dial.peer(TIMEOUT_MS).await;
    follower.cut_off_holding();
    leave(&follower, &mut writer, create("/late")).await;
    move_to_follower(&follower, &dial, &writer).await;
    let mut moved = world.dial.attach(&writer.ticket()).await;
    moved.call(Request::Sync { path: "/".into() }).await.unwrap();
    assert_eq!(moved.exists("/late", true).await, Err(Code::NO_NODE));
    follower.rejoin();
    assert_eq!(moved.event().await, WatchEvent { kind: EventKind::Created, path: "/late".into() });
}

#[tokio::test(start_paused = true)]
async fn a_session_that_a_follower_took_late_loses_the_link_it_moved_to_with_its_next_request() {
    let (world, follower, dial) = world().await;
    let writer = dial.peer(TIMEOUT_MS).await;
    follower.cut_off_holding();
    move_to_follower(&follower, &dial, &writer).await;
    let mut moved = world.dial.attach(&writer.ticket()).await;
    follower.rejoin();
    moved.send(create("/refused")).await;
    assert!(moved.is_closed().await);
    let mut again = world.dial.attach(&moved.ticket()).await;
    assert_eq!(again.exists("/refused", false).await, Err(Code::NO_NODE));
    again.create("/mine", CreateMode::Ephemeral).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_link_of_a_follower_that_another_one_took_the_session_of_reads_on_until_it_writes() {
    let (world, follower, dial) = world().await;
    let (_second, second) = world.follower(|builder| builder).await;
    let writer = dial.peer(TIMEOUT_MS).await;
    follower.cut_off_holding();
    move_to_follower(&follower, &dial, &writer).await;
    let mut moved = second.attach(&writer.ticket()).await;
    follower.rejoin();
    moved.exists("/", false).await.unwrap();
    moved.call(Request::Ping).await.unwrap();
    moved.send(Request::Multi(Vec::new())).await;
    assert!(moved.reply().await.is_some(), "an empty multi is not checked against the session's owner");
    moved.send(Request::Sync { path: "/".into() }).await;
    assert!(moved.is_closed().await);
}

#[tokio::test(start_paused = true)]
async fn a_held_write_of_a_session_that_ended_is_not_applied() {
    let (world, follower, dial) = world().await;
    let mut writer = dial.peer(TIMEOUT_MS).await;
    follower.cut_off_holding();
    leave(&follower, &mut writer, create("/late")).await;
    move_to_follower(&follower, &dial, &writer).await;
    assert!(world.server.expire(writer.session.session_id));
    follower.rejoin();
    assert!(world.server.nodes().is_empty());
    assert_eq!(world.server.session_count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_held_end_of_a_session_is_applied_even_after_the_session_moved() {
    let (world, follower, dial) = world().await;
    let mut closing = dial.peer(TIMEOUT_MS).await;
    follower.cut_off_holding();
    leave(&follower, &mut closing, Request::CloseSession).await;
    let mut moved = world.dial.attach(&closing.ticket()).await;
    follower.rejoin();
    assert!(moved.is_closed().await);
    assert_eq!(world.server.session_count(), 0);
}

#[tokio::test(start_paused = true)]
async fn held_writes_are_lost_when_the_follower_gives_up() {
    let (world, follower, dial) = world().await;
    let mut writer = dial.peer(20_000).await;
    follower.cut_off_holding();
    leave(&follower, &mut writer, create("/late")).await;
    assert!(writer.is_closed().await);
    assert_eq!(follower.held_count(), 0);
    follower.rejoin();
    assert!(world.server.nodes().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_held_write_has_the_identities_of_its_link_at_the_time_of_sending() {
    let (world, follower, dial) = world().await;
    let mut writer = dial.peer(TIMEOUT_MS).await;
    let auth = Request::Auth { scheme: "digest".into(), credentials: b"u:p".to_vec().into() };
    writer.call(auth).await.unwrap();
    let acl = docent_proto::Acl {
        permissions: docent_proto::Permissions::ALL,
        scheme: "auth".into(),
        id: String::new().into(),
    };
    let mut guarded = crate::support::node("/guarded", CreateMode::Persistent);
    guarded.acl = vec![acl].into();
    writer.call(Request::Create(guarded)).await.unwrap();
    follower.cut_off_holding();
    leave(&follower, &mut writer, Request::Delete { path: "/guarded".into(), version: -1 }).await;
    drop(writer);
    follower.rejoin();
    assert!(world.server.nodes().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_follower_that_holds_relays_its_live_sessions_late() {
    let (world, follower, dial) = world().await;
    let mut peer = dial.peer(TIMEOUT_MS).await;
    world.at(900).await;
    follower.cut_off_holding();
    world.at(2_900).await;
    peer.call(Request::Ping).await.unwrap();
    follower.rejoin();
    let ended = world.end_of(&peer).await;
    assert!((7_000..7_200).contains(&ended), "relayed at 3 s, the session ended at {ended} ms");
}

#[tokio::test(start_paused = true)]
async fn a_follower_that_holds_shows_the_tree_of_the_moment_it_was_cut_off() {
    let (world, follower, dial) = world().await;
    let (mut reader, mut writer) = (dial.peer(20_000).await, world.peer(20_000).await);
    follower.cut_off_holding();
    writer.create("/news", CreateMode::Persistent).await.unwrap();
    assert_eq!(reader.exists("/news", false).await, Err(Code::NO_NODE));
    follower.rejoin();
    let mut back = dial.attach(&reader.ticket()).await;
    assert!(matches!(back.exists("/news", false).await, Ok(Response::Stat(_))));
}
