//! Clients of a follower: what the leader knows of them, and what they see while the follower is cut off.

use crate::support::world::{Dial, World};
use crate::support::{Peer, kept_port};
use docent_proto::{Code, CreateMode, EventKind, Request, Response, WatchEvent};
use docent_server::{Builder, Follower, FollowerBuilder, Server, StartError};
use std::time::Duration;
use tokio::time::timeout;

const TIMEOUT_MS: i32 = 4_000;

/// Short ticks, so that rounding to ticks does not hide the tested effect.
fn short_ticks() -> Builder {
    let (min, max) = (Duration::from_secs(1), Duration::from_secs(20));
    Server::builder().tick(Duration::from_millis(100)).session_timeouts(min, max).journal(true)
}

/// Relays every second, and stops serving five seconds after it was cut off.
fn slow(builder: FollowerBuilder<'_>) -> FollowerBuilder<'_> {
    builder.relay_interval(Duration::from_secs(1)).sync_limit(Duration::from_secs(5))
}

async fn world() -> (World, Follower, Dial) {
    let world = World::new(short_ticks()).await;
    let (follower, dial) = world.follower(slow).await;
    (world, follower, dial)
}

/// Returns whether nothing arrives for a while.
async fn is_silent(peer: &mut Peer) -> bool {
    timeout(Duration::from_secs(3), peer.frame()).await.is_err()
}

/// Range in which a session ends that the leader last received something from at `ms`.
fn end_from(ms: i64) -> std::ops::RangeInclusive<i64> {
    let end = ms + i64::from(TIMEOUT_MS) + 100;
    end..=end + 2
}

#[tokio::test(start_paused = true)]
async fn clients_of_leader_and_follower_see_the_same_tree_and_trigger_watches_of_each_other() {
    let (world, _follower, dial) = world().await;
    let (mut near, mut far) = (world.peer(TIMEOUT_MS).await, dial.peer(TIMEOUT_MS).await);
    assert_eq!(far.exists("/a", true).await, Err(Code::NO_NODE));
    near.create("/a", CreateMode::Persistent).await.unwrap();
    assert_eq!(far.event().await, WatchEvent { kind: EventKind::Created, path: "/a".into() });
    near.get_data("/a", true).await.unwrap();
    far.set_data("/a", b"far").await.unwrap();
    assert_eq!(near.event().await, WatchEvent { kind: EventKind::DataChanged, path: "/a".into() });
}

#[tokio::test(start_paused = true)]
async fn a_session_moves_between_leader_and_follower_and_closes_its_old_link() {
    let (world, follower, dial) = world().await;
    let mut first = world.peer(TIMEOUT_MS).await;
    first.create("/mine", CreateMode::Ephemeral).await.unwrap();
    let mut second = dial.attach(&first.ticket()).await;
    assert_eq!(second.session, first.session);
    assert!(first.is_closed().await);
    second.set_data("/mine", b"second").await.unwrap();
    let mut third = world.dial.attach(&second.ticket()).await;
    assert!(second.is_closed().await);
    third.delete("/mine").await.unwrap();
    assert_eq!(follower.connection_count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_ping_over_a_follower_counts_from_the_next_relay() {
    let (world, _follower, dial) = world().await;
    let mut peer = dial.peer(TIMEOUT_MS).await;
    world.at(1_500).await;
    peer.call(Request::Ping).await.unwrap();
    assert!(end_from(2_000).contains(&world.end_of(&peer).await));
}

#[tokio::test(start_paused = true)]
async fn a_ping_to_the_leader_counts_immediately() {
    let (world, _follower, _dial) = world().await;
    let mut peer = world.peer(TIMEOUT_MS).await;
    world.at(1_500).await;
    peer.call(Request::Ping).await.unwrap();
    assert!(end_from(1_500).contains(&world.end_of(&peer).await));
}

#[tokio::test(start_paused = true)]
async fn a_follower_relays_each_half_tick_by_default() {
    let world = World::new(Server::builder().tick(Duration::from_secs(3))).await;
    let (_follower, dial) = world.follower(|builder| builder).await;
    let mut peer = dial.peer(7_000).await;
    world.at(4_400).await;
    peer.call(Request::Ping).await.unwrap();
    // The relay at 4.5 s makes the session end with the tick from 9 to 12 s. A relay at 6 s would add another
    // tick.
    assert!((12_000..12_003).contains(&world.end_of(&peer).await));
    let mut peer = dial.peer(7_000).await;
    world.at(16_600).await;
    peer.call(Request::Ping).await.unwrap();
    // Counting from 16.6 s, the session would end at 24 s, but the relay is at 18 s.
    assert!((27_000..27_003).contains(&world.end_of(&peer).await));
}

#[tokio::test(start_paused = true)]
async fn an_acknowledged_write_over_a_follower_alone_does_not_touch_the_session() {
    let (world, follower, dial) = world().await;
    let mut peer = dial.peer(TIMEOUT_MS).await;
    world.at(1_900).await;
    peer.create("/mine", CreateMode::Ephemeral).await.unwrap();
    follower.cut_off();
    // The leader last learned of the session from the relay at 1 s, which reported that it was opened.
    assert!(end_from(1_000).contains(&world.end_of(&peer).await));
    assert!(world.server.nodes().is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_leader_learns_of_a_new_or_attached_session_immediately() {
    let world = World::new(short_ticks()).await;
    let (_follower, dial) =
        world.follower(|builder| builder.relay_interval(Duration::from_secs(3_600))).await;
    world.at(300).await;
    let (opened, peer) = (dial.peer(TIMEOUT_MS).await, dial.peer(TIMEOUT_MS).await);
    world.at(2_000).await;
    let attached = dial.attach(&peer.ticket()).await;
    assert!(end_from(300).contains(&world.end_of(&opened).await));
    assert!(end_from(2_000).contains(&world.end_of(&attached).await));
}

#[tokio::test(start_paused = true)]
async fn a_relay_carries_the_timeout_of_the_link_even_after_the_session_moved() {
    let (world, _follower, dial) = world().await;
    world.server.set_session_timeouts(Duration::from_secs(1), Duration::from_secs(2));
    let mut peer = dial.peer(TIMEOUT_MS).await;
    world.at(1_500).await;
    peer.call(Request::Ping).await.unwrap();
    let moved = world.dial.attach(&peer.ticket()).await;
    assert_eq!(moved.session.timeout_ms, 2_000);
    assert!(end_from(2_000).contains(&world.end_of(&moved).await));
}

#[tokio::test(start_paused = true)]
async fn a_follower_that_is_cut_off_answers_from_its_tree_while_the_leader_continues() {
    let (world, follower, dial) = world().await;
    let (mut holder, mut next) = (dial.peer(TIMEOUT_MS).await, world.peer(20_000).await);
    holder.create("/lock", CreateMode::Ephemeral).await.unwrap();
    holder.get_data("/lock", true).await.unwrap();
    next.exists("/lock", true).await.unwrap();
    follower.cut_off();
    let Ok(Response::Stat(seen)) = holder.exists("/lock", true).await else { panic!() };
    assert!(end_from(0).contains(&world.end_of(&holder).await));
    assert_eq!(next.event().await, WatchEvent { kind: EventKind::Deleted, path: "/lock".into() });
    next.create("/lock", CreateMode::Ephemeral).await.unwrap();
    let zxid = holder.last_zxid;
    holder.call(Request::Ping).await.unwrap();
    assert_eq!(holder.exists("/lock", false).await, Ok(Response::Stat(seen)));
    assert_eq!(seen.ephemeral_owner, holder.session.session_id);
    assert_eq!((holder.last_zxid, holder.events.len()), (zxid, 0));
    assert!(world.server.zxid() > zxid);
    assert_eq!(world.server.watch_count(), 0);
}

#[tokio::test(start_paused = true)]
async fn no_watch_on_a_follower_that_is_cut_off_fires() {
    let (world, follower, dial) = world().await;
    let (mut watcher, mut writer) = (dial.peer(20_000).await, world.peer(20_000).await);
    writer.create("/before", CreateMode::Persistent).await.unwrap();
    writer.create("/after", CreateMode::Persistent).await.unwrap();
    watcher.get_data("/before", true).await.unwrap();
    follower.cut_off();
    let known = world.server.session(watcher.session.session_id).unwrap();
    assert_eq!((known.attached, known.watches), (false, 0), "the leader still sends events to the session");
    watcher.get_data("/after", true).await.unwrap();
    for path in ["/before", "/after"] {
        writer.set_data(path, b"new").await.unwrap();
    }
    assert!(is_silent(&mut watcher).await);
    let Ok(Response::Data { data, .. }) = watcher.get_data("/after", false).await else { panic!() };
    assert_eq!(data.as_deref(), Some(&b""[..]));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_needs_the_leader_is_swallowed_and_blocks_only_its_own_link() {
    let (world, follower, dial) = world().await;
    let mut other = dial.peer(20_000).await;
    for request in [
        Request::Create(crate::support::node("/new", CreateMode::Persistent)),
        Request::Multi(Vec::new()),
        Request::Sync { path: "/".into() },
        Request::CloseSession,
    ] {
        let mut peer = dial.peer(20_000).await;
        follower.cut_off();
        peer.call(Request::Ping).await.unwrap();
        peer.send(request).await;
        peer.send(Request::Exists { path: "/".into(), watch: false }).await;
        peer.send(Request::Ping).await;
        assert!(is_silent(&mut peer).await);
        other.exists("/", false).await.unwrap();
        follower.rejoin();
        assert!(peer.is_closed().await);
        let mut back = dial.attach(&peer.ticket()).await;
        assert_eq!(back.exists("/new", false).await, Err(Code::NO_NODE));
        other = dial.attach(&other.ticket()).await;
    }
    assert_eq!(world.server.session_count(), 5, "a session was closed");
}

#[tokio::test(start_paused = true)]
async fn a_handshake_with_a_follower_that_is_cut_off_gets_no_answer() {
    let (world, follower, dial) = world().await;
    let mut old = dial.peer(20_000).await;
    follower.cut_off();
    let sessions = world.server.sessions();
    for request in [crate::support::fresh(4_000), old.ticket()] {
        let mut link = dial.link();
        assert!(timeout(Duration::from_secs(2), link.attach(&request)).await.is_err());
    }
    assert!(old.is_closed().await, "its session was requested on another link");
    assert!(world.server.time_ms() < 5_000, "the link was closed late, because the follower gave up");
    assert_eq!(world.server.sessions(), sessions);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_has_seen_more_than_a_cut_off_follower_is_rejected() {
    let (world, follower, dial) = world().await;
    let mut peer = world.peer(20_000).await;
    follower.cut_off();
    peer.create("/a", CreateMode::Persistent).await.unwrap();
    assert!(!dial.link().attach(&peer.ticket()).await);
    assert!(world.server.time_ms() < 5_000, "the link was closed late, because the follower gave up");
    peer.exists("/a", false).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_session_moves_from_a_cut_off_follower_without_its_knowledge() {
    let (world, follower, dial) = world().await;
    let mut old = dial.peer(TIMEOUT_MS).await;
    old.create("/mine", CreateMode::Ephemeral).await.unwrap();
    follower.cut_off();
    let mut moved = world.dial.attach(&old.ticket()).await;
    moved.delete("/mine").await.unwrap();
    old.exists("/mine", false).await.unwrap();
    world.at(3_000).await;
    moved.call(Request::Ping).await.unwrap();
    old.call(Request::Ping).await.unwrap();
    follower.rejoin();
    assert!(old.is_closed().await);
    assert!(end_from(3_000).contains(&world.end_of(&moved).await), "the old link extended the session");
}

#[tokio::test(start_paused = true)]
async fn a_follower_gives_up_at_the_sync_limit_and_serves_again_when_it_rejoins() {
    let (world, follower, dial) = world().await;
    let mut peer = dial.peer(20_000).await;
    world.at(700).await;
    follower.cut_off();
    world.at(3_000).await;
    follower.cut_off();
    world.at(5_690).await;
    peer.call(Request::Ping).await.unwrap();
    assert!(peer.is_closed().await);
    assert!((5_700..5_703).contains(&world.server.time_ms()), "{}", world.server.time_ms());
    assert!(!dial.link().attach(&peer.ticket()).await);
    world.peer(4_000).await.create("/news", CreateMode::Persistent).await.unwrap();
    follower.rejoin();
    let mut back = dial.attach(&peer.ticket()).await;
    back.exists("/news", false).await.unwrap();
    back.create("/mine", CreateMode::Ephemeral).await.unwrap();
    let now = world.server.time_ms().unsigned_abs();
    world.at(now + 19_000).await;
    back.call(Request::Ping).await.unwrap();
    world.at(now + 22_000).await;
    back.exists("/mine", false).await.expect("relays of the follower extend the session again");
}

#[tokio::test(start_paused = true)]
async fn a_sync_limit_is_five_ticks_by_default() {
    let world = World::new(Server::builder()).await;
    let (follower, dial) = world.follower(|builder| builder.relay_interval(Duration::from_secs(60))).await;
    let mut peer = dial.peer(20_000).await;
    world.at(10).await;
    follower.cut_off();
    world.at(10_000).await;
    peer.call(Request::Ping).await.unwrap();
    assert!(peer.is_closed().await);
    assert!((10_010..10_013).contains(&world.server.time_ms()));
}

#[tokio::test(start_paused = true)]
async fn a_rejoin_before_the_sync_limit_closes_the_links_and_a_second_cut_has_its_full_limit() {
    let (world, follower, dial) = world().await;
    let mut peer = dial.peer(20_000).await;
    follower.cut_off();
    world.at(4_000).await;
    follower.rejoin();
    assert!(peer.is_closed().await);
    let mut peer = dial.attach(&peer.ticket()).await;
    follower.rejoin();
    peer.call(Request::Ping).await.expect("a follower that is not cut off has nothing to rejoin");
    follower.cut_off();
    world.at(8_990).await;
    peer.call(Request::Ping).await.unwrap();
    assert!(peer.is_closed().await);
    assert!((9_000..9_003).contains(&world.server.time_ms()));
}

#[tokio::test(start_paused = true)]
async fn followers_are_cut_off_one_by_one() {
    let (world, follower, dial) = world().await;
    let (_second, second_dial) = world.follower(slow).await;
    let (mut cut, mut live) = (dial.peer(20_000).await, second_dial.peer(20_000).await);
    follower.cut_off();
    live.create("/a", CreateMode::Persistent).await.unwrap();
    assert_eq!(cut.exists("/a", false).await, Err(Code::NO_NODE));
    live.exists("/a", false).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_follower_grants_its_own_timeouts() {
    let (world, follower, dial) = world().await;
    let peer = world.peer(10_000).await;
    follower.set_session_timeouts(Duration::from_secs(1), Duration::from_millis(4_000));
    let moved = dial.attach(&peer.ticket()).await;
    assert_eq!(moved.session.timeout_ms, TIMEOUT_MS);
    assert!(end_from(0).contains(&world.end_of(&moved).await));
    let (_other, other_dial) = world
        .follower(|builder| builder.session_timeouts(Duration::from_secs(7), Duration::from_secs(8)))
        .await;
    assert_eq!(other_dial.peer(1).await.session.timeout_ms, 7_000);
}

#[tokio::test(start_paused = true)]
async fn an_outage_of_the_server_is_one_of_its_followers() {
    let (world, _follower, dial) = world().await;
    let mut peer = dial.peer(TIMEOUT_MS).await;
    world.server.stop_listening().await.unwrap();
    assert!(peer.is_closed().await);
    assert!(!dial.link().attach(&peer.ticket()).await);
    world.server.listen_again().await.unwrap();
    dial.attach(&peer.ticket()).await.exists("/", false).await.unwrap();
}

#[tokio::test]
async fn a_follower_listens_on_tcp_and_ends_when_it_is_stopped_dropped_or_its_server_stops() {
    let server = Server::start().await.unwrap();
    let (_kept, address) = kept_port();
    let follower = server.follower().bind(address).start().await.unwrap();
    let mut peer = Peer::connect(follower.connect_string()).await;
    follower.stop().await;
    assert!(peer.is_closed().await);
    let follower = server.follower().bind(address).start().await.unwrap();
    let mut peer = Peer::connect(follower.connect_string()).await;
    drop(follower);
    assert!(peer.is_closed().await);
    let follower = server.follower().start().await.unwrap();
    let mut peer = Peer::connect(follower.connect_string()).await;
    server.stop().await;
    assert!(peer.is_closed().await);
    assert!(tokio::net::TcpStream::connect(follower.connect_string()).await.is_err());
}

#[test]
fn a_follower_whose_runtime_was_dropped_leaves_no_links() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (near, far) = (runtime(), runtime());
    let server = near.block_on(Server::start()).unwrap();
    let (follower, peer) = far.block_on(async {
        let follower = server.follower().start().await.unwrap();
        let peer = Peer::connect(follower.connect_string()).await;
        (follower, peer)
    });
    assert_eq!((follower.connection_count(), server.connection_count()), (1, 1));
    drop(far);
    assert_eq!((follower.connection_count(), server.connection_count()), (0, 0));
    assert!(!server.session(peer.session.session_id).unwrap().attached);
    follower.cut_off();
    follower.rejoin();
}

#[tokio::test]
async fn a_remote_address_of_a_follower_has_to_be_permitted() {
    let server = Server::start().await.unwrap();
    let everywhere = "0.0.0.0:0".parse().unwrap();
    let refused = server.follower().bind(everywhere).start().await;
    assert!(matches!(refused, Err(StartError::NotLoopback(address)) if address == everywhere));
    server.follower().bind(everywhere).allow_remote().start().await.unwrap().stop().await;
}
