//! Servers are told who the client is.

use docent::zookeeper_client::{Sasl, ZookeeperClient};
use docent::{CreateMode, ErrorKind};
use docent_testkit::{Backend, ServerOptions};
use docent_tests::soon;
use std::time::Duration;

const USERS: &str =
    r#"Server { org.apache.zookeeper.server.auth.DigestLoginModule required user_me="right"; };"#;

#[tokio::test]
#[ignore = "needs a real ZooKeeper: run `cargo xtask test`"]
async fn a_password_lets_in_and_a_wrong_one_is_named_as_the_reason() {
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

    let refused = builder("wrong").operation_timeout(Duration::from_secs(3));
    let error = soon(refused.connect()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    let reason = std::error::Error::source(&error).unwrap().to_string();
    assert!(reason.contains("authentication failed"), "{reason}");
    assert!(!format!("{error:?}").contains("wrong"), "{error:?}");
}
