//! Servers that grant a shorter session timeout than an earlier server did.

use crate::granted_less::{LONG, SHORT, loses_its_guard_in_time};
use docent::locks::AcquireError;
use docent::zookeeper_client::ZookeeperClient;
use docent::{CreateMode, ErrorKind, Mutex};
use docent_battery::{Backend, both_backends_in_real_time};
use std::time::Duration;

#[tokio::test]
async fn a_minimum_timeout_of_zero_is_refused() {
    let options = ZookeeperClient::new().least_timeout(Duration::ZERO);
    let error = docent::Client::builder("localhost").zookeeper_client(options).build().unwrap_err();
    assert!(error.to_string().contains("minimum session timeout 0"), "{error}");
}

both_backends_in_real_time! {
    async fn guards_are_refused_unless_the_minimum_timeout_is_known(backend: Backend) {
        let server = backend.start().await;
        let settings = docent_tests::builder(&server, server.connect_string()).accept_short_lease();
        let client = settings.zookeeper_client(ZookeeperClient::new()).connect().await.unwrap();
        let refused = Mutex::new(&client, "/lock").unwrap().acquire().await.unwrap_err();
        let AcquireError::Core(refused) = refused else { panic!("{refused}") };
        assert_eq!(refused.kind(), ErrorKind::ShortLease, "{refused}");
        assert!(refused.to_string().contains("least_timeout"), "{refused}");
        client.create("/plain", "", CreateMode::Persistent).await.unwrap();
    }

    async fn a_session_that_may_be_granted_a_shorter_timeout_later_loses_its_guards_in_time(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let client = docent_tests::builder(&server, proxy.connect_string())
            .session_timeout(LONG)
            .zookeeper_client(ZookeeperClient::new().least_timeout(SHORT));
        let client = client.connect().await.unwrap();
        loses_its_guard_in_time(&client, &proxy, &server).await;
    }
}
