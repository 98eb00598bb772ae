//! Servers that authenticate clients with SASL.

use docent::node::{Acl, Permissions};
use docent::zookeeper_client::{Sasl, ZookeeperClient};
use docent::{CreateMode, ErrorKind};
use docent_battery::{Backend, ServerOptions};
use docent_tests::soon;

const USERS: &str =
    r#"Server { org.apache.zookeeper.server.auth.DigestLoginModule required user_me="right"; };"#;

#[tokio::test]
#[ignore = "needs a real ZooKeeper: run `cargo xtask test`"]
async fn a_password_authenticates_and_a_wrong_one_is_refused_immediately() {
    let folder = tempfile::tempdir().unwrap();
    let users = folder.path().join("users");
    std::fs::write(&users, USERS).unwrap();
    let options = ServerOptions::default()
        .property("java.security.auth.login.config", users.display().to_string())
        .property(
            "zookeeper.authProvider.sasl",
            "org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
        );
    let server = Backend::Real.start_own_with(options).await;
    let builder = |password: &str| {
        docent_tests::builder(&server, server.connect_string())
            .zookeeper_client(ZookeeperClient::new().sasl(Sasl::digest_md5("me", password)))
    };
    let client = soon(builder("right").connect()).await.unwrap();
    client.create("/a", "", CreateMode::Persistent).await.unwrap();
    assert_eq!(client.acl("/a").await.unwrap().entries, [Acl::new(Permissions::ALL, "sasl", "me")]);

    let error = soon(builder("wrong").connect()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AuthFailed);
    assert!(!format!("{error:?}").contains("wrong"), "{error:?}");
}

#[tokio::test]
async fn credentials_of_the_builder_are_sent_by_these_sessions_too() {
    let server = Backend::Embedded.start().await;
    let builder = |password: &str| {
        docent_tests::builder(&server, server.connect_string())
            .zookeeper_client(ZookeeperClient::new())
            .auth_digest("user", password)
            .allow_plaintext_auth()
    };
    let owner = soon(builder("right").connect()).await.unwrap();
    owner.create("/a", "", CreateMode::Persistent).await.unwrap();
    let digest = Acl::digest("user", "right", Permissions::ALL);
    assert_eq!(owner.acl("/a").await.unwrap().entries, [digest]);
    let wrong = soon(builder("wrong").connect()).await.unwrap();
    assert_eq!(wrong.get("/a").await.unwrap_err().kind(), ErrorKind::NoAuth);
    let refused = builder("right").auth("no-such-scheme", b"x".to_vec());
    assert_eq!(soon(refused.connect()).await.unwrap_err().kind(), ErrorKind::AuthFailed);
}
