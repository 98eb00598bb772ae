//! A shutdown while no server can be reached.

use docent::recipe::KeptNode;
use docent::{Client, ConnectionState, CreateMode, Mutex};
use docent_battery::{Backend, both_backends};
use docent_tests::{SHORT_SESSION, builder, connect, soon, until};
use std::time::Duration;

both_backends! {
    async fn a_shutdown_in_an_outage_ends_by_its_deadline_and_names_all_that_stands(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        let (held, gone) = (Mutex::new(&client, "/held").unwrap(), Mutex::new(&client, "/gone").unwrap());
        let guard = soon(held.acquire()).await.unwrap();
        soon(soon(gone.acquire()).await.unwrap().release()).await.unwrap();
        client.create("/mine", "", CreateMode::Ephemeral).await.unwrap();
        proxy.cut().await;
        client.state().reached(ConnectionState::Suspended).await;
        let within = Duration::from_secs(2);
        let report = soon(client.shutdown(within)).await;
        assert!(report.took < within + Duration::from_secs(1), "{report}");
        let left: Vec<_> = report.left.iter().map(|node| (node.kind, node.path.as_str())).collect();
        let path = guard.path();
        assert_eq!(left, [("mutex", path.as_str()), ("node", "/mine")], "{report}");
        assert!(report.left.iter().all(|node| Some(node.session_id) == client.session_id()));
        let text = report.to_string();
        assert!(text.contains(&path) && text.contains("mutex") && report.session_timeout.is_some(), "{text}");
    }

    async fn nodes_of_a_session_that_was_given_up_are_named_too(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let client = builder(&server, proxy.connect_string()).session_timeout(SHORT_SESSION).connect().await.unwrap();
        client.create("/mine", "", CreateMode::Ephemeral).await.unwrap();
        let session = client.session_id();
        proxy.cut().await;
        soon(client.state().reached(ConnectionState::Lost)).await;
        let report = soon(client.shutdown(Duration::from_secs(1))).await;
        let left: Vec<_> = report.left.iter().map(|node| (node.path.as_str(), Some(node.session_id))).collect();
        assert_eq!(left, [("/mine", session)], "{report}");
        // The next session never came to a server.
        assert_eq!(report.session_timeout, Some(SHORT_SESSION));
    }

    async fn nodes_of_such_a_session_that_were_replaced_are_not_named(backend: Backend) {
        let server = backend.start().await;
        let (proxy, other) = (server.proxy().await, connect(&server).await);
        let client = builder(&server, proxy.connect_string()).session_timeout(SHORT_SESSION).connect().await.unwrap();
        // While a guard of it is there, the client does not end the session that it gave up.
        let guard = soon(Mutex::new(&client, "/lock").unwrap().acquire()).await.unwrap();
        let node = KeptNode::new(&client, "/kept", "1").unwrap();
        soon(node.present()).await.unwrap();
        until(async || other.children("/_docent/markers").await.is_ok_and(|markers| !markers.names.is_empty())).await;
        let session = client.session_id().unwrap();
        proxy.cut().await;
        let _alive = soon(server.front().sessions().keep_alive(session, server.address())).await.unwrap();
        soon(client.state().reached(ConnectionState::Lost)).await;
        proxy.heal().await.unwrap();
        until(async || other.get("/kept").await.unwrap().stat.owner == client.session_id()).await;
        let report = soon(client.shutdown(Duration::from_secs(3))).await;
        let left: Vec<_> = report.left.iter().map(|node| (&node.path, node.session_id)).collect();
        assert_eq!(left, [(&guard.path(), session)], "{report}");
        other.sync("/").await.unwrap();
        assert_eq!(other.exists("/kept").await.unwrap(), None);
    }

    async fn a_shutdown_waits_for_servers_that_come_back_in_time(backend: Backend) {
        let server = backend.start().await;
        let (other, proxy) = (connect(&server).await, server.proxy().await);
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        client.create("/mine", "", CreateMode::Ephemeral).await.unwrap();
        proxy.cut().await;
        client.state().reached(ConnectionState::Suspended).await;
        let shutdown = tokio::spawn(client.shutdown(Duration::from_secs(20)));
        proxy.heal().await.unwrap();
        let report = soon(shutdown).await.unwrap();
        assert!(report.is_clean(), "{report}");
        other.sync("/").await.unwrap();
        assert_eq!(other.exists("/mine").await.unwrap(), None);
    }

    async fn a_client_that_never_connected_leaves_nothing(_backend: Backend) {
        let client = Client::builder("127.0.0.1:1").build().unwrap();
        let _guard = tokio::spawn(Mutex::new(&client, "/lock").unwrap().acquire());
        let report = soon(client.shutdown(Duration::from_millis(500))).await;
        assert!(report.is_clean() && report.took < Duration::from_secs(2), "{report}");
    }
}
