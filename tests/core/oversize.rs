//! A reply above the client's limit is an error of the call that asked for it.

use docent::node::Transaction;
use docent::{Client, CreateMode, ErrorKind};
use docent_battery::{Backend, both_backends};
use docent_tests::{builder, soon};
use futures_util::StreamExt;

const LIMIT: usize = 16 * 1024;

/// A client that takes less than there is at `/large`, and below `/many`.
async fn client() -> (docent_battery::TestServer, Client) {
    let server = Backend::Embedded.start().await;
    let client = builder(&server, server.connect_string()).max_reply(LIMIT).connect().await.unwrap();
    client.create("/large", vec![7; LIMIT * 2], CreateMode::Persistent).await.unwrap();
    client.create("/many", "", CreateMode::Persistent).await.unwrap();
    for number in 0..100 {
        let path = format!("/many/{number:0>200}");
        client.create(&path, "", CreateMode::Persistent).await.unwrap();
    }
    (server, client)
}

#[tokio::test]
async fn a_reply_above_the_limit_fails_its_call_and_the_link_lives() {
    let (_server, client) = client().await;
    let writes = client.set("/many", "x", None);
    let (large, many, written) =
        soon(async { tokio::join!(client.get("/large"), client.children("/many"), writes) }).await;
    written.unwrap();
    for error in [large.unwrap_err(), many.unwrap_err()] {
        assert_eq!(error.kind(), ErrorKind::TooLarge, "{error:?}");
        assert!(!error.may_have_applied());
        assert!(error.to_string().contains(&LIMIT.to_string()), "{error}");
    }
    assert_eq!(client.state().current().suspensions, 0);
}

#[tokio::test]
async fn streams_of_what_is_above_the_limit_say_so_and_go_on_once_it_is_not() {
    let (_server, client) = client().await;
    let mut data = client.watch_data("/large").unwrap();
    let mut children = client.watch_children("/many").unwrap();
    assert_eq!(soon(data.next()).await.unwrap().unwrap_err().kind(), ErrorKind::TooLarge);
    assert_eq!(soon(children.next()).await.unwrap().unwrap_err().kind(), ErrorKind::TooLarge);
    client.set("/large", "small", None).await.unwrap();
    let shown = soon(data.next()).await.unwrap().unwrap().unwrap();
    assert_eq!(&shown.data[..], b"small");
    assert_eq!(client.state().current().suspensions, 0);
}

both_backends! {
    /// The servers' `jute.maxbuffer` bounds requests, not answers.
    async fn a_listing_above_what_servers_take_is_read_and_followed(backend: Backend) {
        const TAKEN: usize = 0xf_ffff;
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        client.create("/many", "", CreateMode::Persistent).await.unwrap();
        for hundred in 0..70 {
            let create = |all: Transaction, number| {
                all.create(&format!("/many/{hundred}-{number:0>200}"), "", CreateMode::Persistent)
            };
            (0..100).fold(client.transaction(), create).commit().await.unwrap();
        }
        let names = soon(client.children("/many")).await.unwrap().names;
        assert!(names.iter().map(String::len).sum::<usize>() > TAKEN);
        let mut listings = client.watch_children("/many").unwrap();
        assert_eq!(soon(listings.next()).await.unwrap().unwrap().unwrap().names.len(), 7_000);
        proxy.reset().await;
        client.create("/many/one-more", "", CreateMode::Persistent).await.unwrap();
        assert_eq!(soon(listings.next()).await.unwrap().unwrap().unwrap().names.len(), 7_001);
        assert_eq!(client.state().current().suspensions, 1);
    }
}
