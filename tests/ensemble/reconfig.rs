//! A client that follows an ensemble while servers leave it and come back.

use docent::Client;
use docent_battery::{RawClient, RealEnsemble, ServerOptions};
use docent_proto::{Code, Request, Response};
use docent_tests::{PATIENCE, pause, soon};
use std::time::Duration;

/// Codes of a reconfiguration that must wait.
const NO_QUORUM: Code = Code(-13);
const IN_PROGRESS: Code = Code(-14);

/// Returns the lines of the ensemble's configuration that name servers.
async fn members(admin: &mut RawClient) -> Vec<String> {
    let read = Request::GetData { path: "/zookeeper/config".to_owned(), watch: false };
    match admin.call(read).await.unwrap() {
        Response::Data { data: Some(data), .. } => {
            let text = String::from_utf8(data.to_vec()).unwrap();
            text.lines().filter(|line| line.starts_with("server.")).map(str::to_owned).collect()
        }
        other => panic!("{other:?}"),
    }
}

/// Reconfigures the ensemble, as soon as it can be: a server that has just joined may still be catching up.
async fn reconfigure(admin: &mut RawClient, joining: Option<String>, leaving: Option<&str>) {
    soon(async {
        loop {
            let leaving = leaving.map(str::to_owned);
            let request = Request::Reconfig { joining: joining.clone(), leaving, members: None, config: -1 };
            match admin.ask(request).await.unwrap().header.code {
                Code::OK => return,
                NO_QUORUM | IN_PROGRESS => pause().await,
                code => panic!("{code}"),
            }
        }
    })
    .await;
}

async fn until_servers(client: &Client, expected: usize) {
    soon(async {
        while client.servers().len() != expected {
            pause().await;
        }
    })
    .await;
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper: run `cargo xtask test`"]
async fn a_client_follows_an_ensemble_that_shrinks_and_grows() {
    let options = ServerOptions::default().tick(Duration::from_millis(500));
    let options = options.reconfig(true).property("zookeeper.skipACL", "yes");
    let ensemble = RealEnsemble::start_with(options).await.unwrap();
    let leader = ensemble.leader().await.unwrap();
    let mut admin = RawClient::open(ensemble.servers()[leader].address(), PATIENCE).await.unwrap();
    // The configuration files do not name the ports for clients.
    let complete: Vec<_> = members(&mut admin)
        .await
        .iter()
        .zip(ensemble.servers())
        .map(|(line, server)| {
            let peer = line.split(';').next().unwrap();
            format!("{peer};{}", server.address())
        })
        .collect();
    let first = ensemble.servers()[leader].connect_string();
    let client =
        Client::builder(&first).track_ensemble().operation_timeout(PATIENCE).connect().await.unwrap();
    reconfigure(&mut admin, Some(complete.join(",")), None).await;
    until_servers(&client, 3).await;
    let leaving = (0..3).find(|server| *server != leader).unwrap();
    reconfigure(&mut admin, None, Some(&(leaving + 1).to_string())).await;
    until_servers(&client, 2).await;
    let left = ensemble.servers()[leaving].address().to_string();
    assert!(client.servers().iter().all(|server| server.to_string() != left));
    reconfigure(&mut admin, Some(complete[leaving].clone()), None).await;
    until_servers(&client, 3).await;
    client.exists("/").await.unwrap();
    soon(client.close()).await;
}
