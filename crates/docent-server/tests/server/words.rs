//! Four-letter words in an ensemble of several servers.

use crate::support::{Peer, four_letter_word};
use docent_proto::{CreateMode, Request};
use docent_server::{Limits, Server};

fn has_line(text: &str, line: &str) -> bool {
    text.lines().any(|other| other == line)
}

#[tokio::test]
async fn each_member_reports_its_mode_and_its_own_links() {
    let server = Server::start().await.unwrap();
    let follower = server.follower().start().await.unwrap();
    let (leader, other) = (server.connect_string(), follower.connect_string());
    let _peer = Peer::connect(other).await;
    for (address, mode, links) in [(leader, "leader", 1), (other, "follower", 2)] {
        let text = four_letter_word(address, "srvr").await;
        assert!(has_line(&text, &format!("Mode: {mode}")), "{text}");
        assert!(has_line(&text, &format!("Connections: {links}")), "{text}");
        let text = four_letter_word(address, "conf").await;
        assert!(has_line(&text, &format!("clientPort={}", address.rsplit(':').next().unwrap())), "{text}");
    }
    follower.stop().await;
    assert!(has_line(&four_letter_word(leader, "srvr").await, "Mode: standalone"));
}

#[tokio::test]
async fn a_server_without_a_quorum_reports_that() {
    let server = Server::start().await.unwrap();
    server.set_read_only(true);
    let text = four_letter_word(server.connect_string(), "srvr").await;
    assert!(has_line(&text, "READ-ONLY mode; serving only read-only clients"), "{text}");
    assert!(has_line(&text, "Mode: read-only"), "{text}");
    assert_eq!(four_letter_word(server.connect_string(), "isro").await, "ro");
}

#[tokio::test]
async fn requests_that_wait_for_the_leader_are_outstanding() {
    let server = Server::start().await.unwrap();
    let follower = server.follower().start().await.unwrap();
    let mut peer = Peer::connect(follower.connect_string()).await;
    follower.cut_off_holding();
    peer.send(Request::Create(crate::support::node("/a", CreateMode::Persistent))).await;
    peer.send(Request::Sync { path: "/".into() }).await;
    while !has_line(&four_letter_word(follower.connect_string(), "srvr").await, "Outstanding: 2") {}
    let text = four_letter_word(follower.connect_string(), "cons").await;
    assert!(text.contains("(queued=2,"), "{text}");
    assert!(has_line(&four_letter_word(server.connect_string(), "srvr").await, "Outstanding: 0"));
}

#[tokio::test]
async fn an_answer_ends_at_the_longest_reply() {
    let server = Server::builder().limits(Limits::default().reply_bytes(100)).start().await.unwrap();
    assert_eq!(four_letter_word(server.connect_string(), "ruok").await, "imok");
    let text = four_letter_word(server.connect_string(), "mntr").await;
    assert!(text.starts_with("zk_version\t3.8.0") && text.len() <= 100, "{text}");
}

#[tokio::test]
async fn words_that_are_not_allowed_are_not_executed() {
    let server = Server::builder().four_letter_words(["ruok"]).start().await.unwrap();
    assert_eq!(four_letter_word(server.connect_string(), "ruok").await, "imok");
    // `stmk` would wait for a mask, and `hash` has no answer.
    for word in ["wchp", "srst", "crst", "mntr", "stmk", "hash"] {
        let refusal = format!("{word} is not executed because it is not in the whitelist.\n");
        assert_eq!(four_letter_word(server.connect_string(), word).await, refusal);
    }
    // Eight words have been received, including the one that is always answered, and none reset the counters.
    assert!(has_line(&four_letter_word(server.connect_string(), "srvr").await, "Received: 8"));
    let server = Server::builder().four_letter_words(["*"]).start().await.unwrap();
    assert_eq!(four_letter_word(server.connect_string(), "isro").await, "rw");
}

#[tokio::test]
async fn watches_are_reported_in_order() {
    let server = Server::builder().seed(1).start().await.unwrap();
    let (mut one, mut other) = (Peer::open(&server).await, Peer::open(&server).await);
    let ids = [&one, &other].map(|peer| format!("{:#x}", peer.session.session_id));
    let [first, second] = &ids;
    for path in ["/c", "/a", "/b"] {
        let _ = one.exists(path, true).await;
    }
    let _ = other.exists("/b", true).await;
    other.call(Request::GetChildren { path: "/".into(), watch: true }).await.unwrap();
    let answer = |word| four_letter_word(server.connect_string(), word);
    assert_eq!(answer("wchs").await, "2 connections watching 3 paths\nTotal watches:4\n");
    let by_path = format!("/a\n\t{first}\n/b\n\t{first}\n\t{second}\n/c\n\t{first}\n\n");
    assert_eq!(answer("wchp").await, by_path);
    assert_eq!(answer("wchc").await, format!("{first}\n\t/a\n\t/b\n\t/c\n{second}\n\t/b\n\n"));
    one.create("/b", CreateMode::Persistent).await.unwrap();
    assert_eq!(answer("wchs").await, "1 connections watching 2 paths\nTotal watches:2\n");
}
