//! Four-letter words where there is more than one server.

mod support;

use docent_proto::{CreateMode, Request};
use docent_server::{Limits, Server};
use support::{Peer, ask};

fn has_line(text: &str, line: &str) -> bool {
    text.lines().any(|other| other == line)
}

#[tokio::test]
async fn each_member_tells_its_mode_and_its_own_links() {
    let server = Server::start().await.unwrap();
    let follower = server.follower().start().await.unwrap();
    let (leader, other) = (server.connect_string(), follower.connect_string());
    let _peer = Peer::connect(other).await;
    for (address, mode, links) in [(leader, "leader", 1), (other, "follower", 2)] {
        let text = ask(address, "srvr").await;
        assert!(has_line(&text, &format!("Mode: {mode}")), "{text}");
        assert!(has_line(&text, &format!("Connections: {links}")), "{text}");
        let text = ask(address, "conf").await;
        assert!(has_line(&text, &format!("clientPort={}", address.rsplit(':').next().unwrap())), "{text}");
    }
    follower.stop().await;
    assert!(has_line(&ask(leader, "srvr").await, "Mode: standalone"));
}

#[tokio::test]
async fn a_server_without_a_quorum_says_so() {
    let server = Server::start().await.unwrap();
    server.set_read_only(true);
    let text = ask(server.connect_string(), "srvr").await;
    assert!(has_line(&text, "READ-ONLY mode; serving only read-only clients"), "{text}");
    assert!(has_line(&text, "Mode: read-only"), "{text}");
    assert_eq!(ask(server.connect_string(), "isro").await, "ro");
}

#[tokio::test]
async fn requests_that_wait_for_the_leader_are_outstanding() {
    let server = Server::start().await.unwrap();
    let follower = server.follower().start().await.unwrap();
    let mut peer = Peer::connect(follower.connect_string()).await;
    follower.cut_off_holding();
    peer.send(Request::Create(support::node("/a", CreateMode::Persistent))).await;
    peer.send(Request::Sync { path: "/".into() }).await;
    while !has_line(&ask(follower.connect_string(), "srvr").await, "Outstanding: 2") {}
    let text = ask(follower.connect_string(), "cons").await;
    assert!(text.contains("(queued=2,"), "{text}");
    assert!(has_line(&ask(server.connect_string(), "srvr").await, "Outstanding: 0"));
}

#[tokio::test]
async fn an_answer_ends_at_the_longest_reply() {
    let server = Server::builder().limits(Limits::default().reply_bytes(100)).start().await.unwrap();
    assert_eq!(ask(server.connect_string(), "ruok").await, "imok");
    let text = ask(server.connect_string(), "mntr").await;
    assert!(text.starts_with("zk_version\t3.8.0") && text.len() <= 100, "{text}");
}
