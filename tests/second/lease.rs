//! Servers that grant less than one did before.

use docent::zookeeper_client::ZookeeperClient;
use docent::{LostReason, Mutex};
use docent_testkit::{Backend, FrameKind, both_backends};
use docent_tests::{connect, soon, within};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_secs(4);

#[tokio::test]
async fn a_least_timeout_of_nothing_is_refused() {
    let options = ZookeeperClient::new().least_timeout(Duration::ZERO);
    let error = docent::Client::builder("localhost").zookeeper_client(options).build().unwrap_err();
    assert!(error.to_string().contains("least session timeout 0"), "{error}");
}

both_backends! {
    async fn a_session_that_may_be_granted_less_later_loses_its_guards_in_time(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let client = docent_tests::builder(&server, proxy.connect_string())
            .session_timeout(LONG)
            .zookeeper_client(ZookeeperClient::new().least_timeout(SHORT));
        let client = client.connect().await.unwrap();
        let guard = soon(Mutex::new(&client, "/lock").unwrap().acquire()).await.unwrap();
        let next = connect(&server).await;
        let next = Mutex::new(&next, "/lock").unwrap();
        let acquire = async { (next.acquire().await.unwrap(), guard.is_held()) };
        let lose = async {
            crate::order::until_waiting(&next, 2).await;
            proxy.set_longest_timeout(Some(SHORT));
            let before = proxy.trace().len();
            proxy.reset().await;
            // It is attached again, and has no chance to renew its lease.
            proxy.until(|trace| trace[before..].iter().filter(|frame| frame.kind == FrameKind::Connect).count() >= 2).await;
            proxy.blackhole();
            assert_eq!(guard.lost().await, LostReason::LeaseExpired);
        };
        let ((_granted, is_held), ()) = within(LONG / 2, async { tokio::join!(biased; acquire, lose) }).await;
        assert!(!is_held, "it says that it holds when the next one does");
    }
}
