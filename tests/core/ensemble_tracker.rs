//! Clients that follow the ensemble's own list of servers.

use docent::Client;
use docent::client::ConnectionState;
use docent_battery::{Backend, Proxy, ServerOptions, TestServer, both_backends};
use docent_tests::{builder, pause, soon};

/// User and password of the administrator.
const SUPER: (&str, &str) = ("super", "test");
const SUPER_DIGEST: &str = "super:D/InIHSb7yEEbrWz8b9l71RjZJU=";

async fn started(backend: Backend) -> (TestServer, Client) {
    let server = backend.start_own_with(ServerOptions::default().super_digest(SUPER_DIGEST)).await;
    let admin = server.client_builder(server.connect_string()).auth_digest(SUPER.0, SUPER.1);
    let admin = soon(admin.allow_plaintext_auth().connect()).await.unwrap();
    (server, admin)
}

/// Publishes a list of servers, as a reconfiguration does.
async fn announce(admin: &Client, version: u64, clients: &[String]) {
    let servers = clients.iter().enumerate();
    let lines = servers.map(|(id, client)| format!("server.{id}=127.0.0.1:1:2:participant;{client}\n"));
    let config = lines.collect::<String>() + &format!("version={version:x}");
    admin.set("/zookeeper/config", config, None).await.unwrap();
}

async fn until_servers(client: &Client, expected: &[&Proxy]) {
    let expected: Vec<_> = expected.iter().map(|proxy| proxy.connect_string()).collect();
    soon(async {
        while client.servers().iter().map(ToString::to_string).collect::<Vec<_>>() != expected {
            pause().await;
        }
    })
    .await;
}

both_backends! {
    async fn a_client_moves_to_the_servers_that_the_ensemble_announces(backend: Backend) {
        let (server, admin) = started(backend).await;
        let second = server.proxy().await;
        let client = builder(&server, server.connect_string()).track_ensemble().connect().await.unwrap();
        announce(&admin, 0x1_0000_0001, &[second.connect_string()]).await;
        until_servers(&client, &[&second]).await;
        server.front().cut().await;
        soon(client.state().reached(ConnectionState::Connected)).await.unwrap();
        soon(client.get("/")).await.unwrap();
        assert_eq!(client.state().current().generation, 1, "the session survived");
        soon(client.close()).await;
    }

    async fn servers_that_cannot_be_reached_replace_none(backend: Backend) {
        let (server, admin) = started(backend).await;
        let second = server.proxy().await;
        let client = builder(&server, server.connect_string()).track_ensemble().connect().await.unwrap();
        let (front, nowhere) = (server.front().connect_string(), "127.0.0.1:1".to_owned());
        announce(&admin, 2, std::slice::from_ref(&nowhere)).await;
        announce(&admin, 3, &[nowhere.clone(), front.clone(), second.connect_string()]).await;
        until_servers(&client, &[server.front(), &second]).await;
        // An older list, as of a server that lags behind.
        announce(&admin, 1, std::slice::from_ref(&front)).await;
        announce(&admin, 4, &[nowhere]).await;
        announce(&admin, 5, &[second.connect_string(), front]).await;
        // The servers are the same, so the order stays.
        soon(client.get("/")).await.unwrap();
        until_servers(&client, &[server.front(), &second]).await;
    }

    async fn without_the_option_the_list_stays(backend: Backend) {
        let (server, admin) = started(backend).await;
        let second = server.proxy().await;
        let client = soon(builder(&server, server.connect_string()).connect()).await.unwrap();
        announce(&admin, 1, &[second.connect_string()]).await;
        soon(client.get("/")).await.unwrap();
        until_servers(&client, &[server.front()]).await;
    }
}
