//! Real servers that require authentication: by SASL, or from every client.

use crate::recipes::RECIPES;
use docent::client::{Client, ClientBuilder};
use docent_battery::{RealServer, ServerOptions};
use docent_tests::{PATIENCE, SESSION, soon, tick};
use futures_util::future::join_all;

/// Returns the settings of a client of `server`.
fn builder(server: &RealServer) -> ClientBuilder {
    Client::builder(server.address().to_string())
        .session_timeout(SESSION)
        .server_tick(tick())
        .operation_timeout(PATIENCE)
}

/// Uses all recipes as one tenant below its own folder, while a session of each earlier tenant stays open.
async fn all_recipes(builder: ClientBuilder, home: &str, what: &str) -> Client {
    let client = soon(builder.clone().connect()).await.unwrap();
    soon(client.ensure_path(&format!("{home}/first"))).await.unwrap();
    let each = RECIPES.iter().map(|recipe| {
        let builder = builder.clone();
        async move {
            let client = soon(builder.connect()).await.unwrap();
            let done = soon((recipe.run)(&client, home)).await;
            done.unwrap_or_else(|error| panic!("{what}, {}: {error}", recipe.name));
            soon(client.close()).await;
        }
    });
    join_all(each).await;
    client
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper: run `cargo xtask test`"]
async fn tenants_share_a_tree_on_servers_that_require_authentication() {
    let options = ServerOptions::default()
        .property("zookeeper.enforce.auth.enabled", "true")
        .property("zookeeper.enforce.auth.schemes", "digest");
    let server = RealServer::start_with(options).await.unwrap();
    let tenant = |name: &str| builder(&server).auth_digest(name, "word").allow_plaintext_auth();
    let a = all_recipes(tenant("a"), "/svc-a", "a").await;
    let b = all_recipes(tenant("b"), "/svc-b", "b").await;
    for client in [a, b] {
        soon(client.close()).await;
    }
}

/// Gives each tenant a separate folder with all permissions, and closes the root.
async fn close_root(server: &RealServer) {
    use docent::CreateMode;
    use docent::node::{Acl, Permissions};
    let admin = builder(server).auth_digest("administrator", "word").allow_plaintext_auth();
    let admin = soon(admin.acl([Acl::open_unsafe()]).connect()).await.unwrap();
    let homes = [
        ("/svc-me", Acl::new(Permissions::ALL, "sasl", "me")),
        ("/svc-you", Acl::new(Permissions::ALL, "sasl", "you")),
        ("/svc-a", Acl::digest("a", "word", Permissions::ALL)),
        ("/open", Acl::open_unsafe()),
    ];
    for (home, list) in homes {
        admin.create(home, "", CreateMode::Persistent).await.unwrap();
        admin.set_acl(home, [list], None).await.unwrap();
    }
    let root = [Acl::read_all(), Acl::digest("administrator", "word", Permissions::ALL)];
    admin.set_acl("/", root, None).await.unwrap();
    soon(admin.close()).await;
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper: run `cargo xtask test`"]
async fn tenants_with_sasl_share_a_tree_with_other_tenants_in_any_order() {
    use docent::client::Sasl;
    use docent::{CreateMode, ErrorKind};
    for (sasl_first, closed) in [(true, false), (false, false), (true, true), (false, true)] {
        let options = ServerOptions::default().sasl_user("me", "right").sasl_user("you", "right");
        let server = RealServer::start_with(options).await.unwrap();
        let sasl = |name: &str| builder(&server).sasl(Sasl::digest_md5(name, "right"));
        let mut tenants = vec![
            (sasl("me"), "/svc-me"),
            (sasl("you"), "/svc-you"),
            (builder(&server).auth_digest("a", "word").allow_plaintext_auth(), "/svc-a"),
            (builder(&server), "/open"),
        ];
        if !sasl_first {
            tenants.reverse();
        }
        if closed {
            close_root(&server).await;
        }
        let mut clients = Vec::new();
        for (tenant, home) in tenants {
            clients.push(all_recipes(tenant, home, home).await);
        }
        for client in clients {
            if closed {
                let error = client.create("/elsewhere", "", CreateMode::Persistent).await.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::NoAuth, "the root is closed");
            }
            soon(client.close()).await;
        }
    }
}
