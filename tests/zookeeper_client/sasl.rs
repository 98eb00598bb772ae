//! Credentials and SASL.

use docent::CreateMode;
use docent::ErrorKind;
use docent::client::Sasl;
use docent::node::{Acl, Permissions};
use docent::zookeeper_client::ZookeeperClient;
use docent_battery::Backend;
use docent_tests::soon;

#[tokio::test]
async fn sasl_of_the_builder_is_refused() {
    let server = Backend::Embedded.start().await;
    let builder = docent_tests::builder(&server, server.connect_string());
    let sasl = builder.zookeeper_client(ZookeeperClient::new()).sasl(Sasl::digest_md5("me", "right"));
    let error = sasl.build().unwrap_err();
    assert!(error.to_string().contains("sasl must not be set"), "{error}");
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
