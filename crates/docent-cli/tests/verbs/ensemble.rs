//! `docent ensemble`.

use crate::docent_command::{run, servers};
use docent::Client;
use docent::node::CreateMode;
use docent::server::Server;
use docent_battery::{Backend, both_backends_in_real_time};
use serde_json::Value;
use std::net::SocketAddr;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

both_backends_in_real_time! {
    async fn vital_figures_are_in_one_table(backend: Backend) {
        let server = backend.start().await;
        let client = Client::connect(servers(&server)).await.unwrap();
        client.create("/a", "", CreateMode::Persistent).await.unwrap();
        let vitals = &run(&servers(&server), ["ensemble", "-o", "json"]).await.ok().json()[0];
        assert_eq!((&vitals["state"], &vitals["mode"]), (&"serving".into(), &"standalone".into()), "{vitals}");
        assert!(vitals["zxid"].as_str().unwrap().starts_with("0x"), "{vitals}");
        assert!(vitals["connections"].as_u64().unwrap() >= 1 && vitals["znodes"].as_u64().unwrap() >= 2, "{vitals}");
        assert!(vitals["outstanding"].is_u64() && vitals["latency_avg_ms"].is_number(), "{vitals}");
        let table = run(&servers(&server), ["ensemble"]).await.ok().stdout;
        let row: Vec<_> = table.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!(row[..3], [&*server.address().to_string(), "serving", "standalone"], "{table}");
        client.close().await;
    }
}

#[tokio::test]
async fn servers_that_are_down_or_refuse_the_words_are_shown_as_such() {
    let serving = Server::builder().four_letter_words(["srvr"]).start().await.unwrap();
    let silent = answering("srvr is not executed because it is not in the whitelist.\n").await;
    let foreign = answering("HTTP/1.1 400 Bad Request\r\n\r\n").await;
    let quorum = answering("This ZooKeeper instance is not currently serving requests\n").await;
    let connect = format!("{},{silent},{foreign},{quorum},127.0.0.1:1", serving.connect_string());
    let all = run(&connect, ["ensemble", "-o", "json"]).await.ok().json();
    let states: Vec<_> = all.iter().map(|one| one["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["serving", "words_off", "foreign", "no_quorum", "down"], "{all:?}");
    assert_eq!((&all[0]["watches"], &all[4]["mode"]), (&Value::Null, &Value::Null));
    let table = run(&connect, ["ensemble"]).await.ok().stdout;
    for named in ["mntr is disabled", "srvr is disabled", "HTTP/1.1 400", "no quorum", "refused"] {
        assert!(table.contains(named), "{named}: {table}");
    }
    let down = run("127.0.0.1:1", ["ensemble"]).await;
    assert!(down.code == 69 && down.stdout.contains("down"), "{down:?}");
}

/// Starts a server that answers each connection with this text.
async fn answering(text: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            // The client may have closed the connection already.
            let _ = stream.write_all(text.as_bytes()).await;
        }
    });
    address
}
