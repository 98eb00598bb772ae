//! Behaviour that a test can rely on with either backend.

use docent_battery::{Backend, RawClient, TestServer, both_backends_in_real_time};
use docent_proto::{Acl, Code, Create, CreateMode, Request};
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(10);

fn create(server: &TestServer, name: &str, mode: CreateMode) -> Request {
    Request::Create(Create::new(server.path(name), "value".into(), Acl::open(), mode, 0))
}

fn exists(server: &TestServer, name: &str) -> Request {
    Request::Exists { path: server.path(name), watch: false }
}

both_backends_in_real_time! {
    async fn each_test_has_its_own_path(backend: Backend) {
        let (first, second) = (backend.start().await, backend.start().await);
        assert_ne!(first.root(), second.root());
        for server in [first, second] {
            let listing = Request::GetChildren { path: server.root().into(), watch: false };
            server.client().await.call(listing).await.unwrap();
        }
    }

    async fn a_session_of_any_proxy_can_be_ended(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.proxy().await;
        for address in [proxy.address(), server.front().address()] {
            let mut client = RawClient::open(address, TIMEOUT).await.unwrap();
            client.call(create(&server, "mine", CreateMode::Ephemeral)).await.unwrap();
            server.expire(client.session().session_id).await.unwrap();
            let reply = server.client().await.ask(exists(&server, "mine")).await.unwrap();
            assert_eq!(reply.header.code, Code::NO_NODE);
        }
    }

    async fn a_dedicated_server_keeps_nodes_and_sessions_across_a_restart(backend: Backend) {
        let server = backend.start_own().await;
        let mut client = server.client().await;
        client.call(create(&server, "kept", CreateMode::Ephemeral)).await.unwrap();
        server.stop().await;
        assert!(client.ask(exists(&server, "kept")).await.is_err());
        assert!(RawClient::open(server.address(), TIMEOUT).await.is_err());
        server.start_again().await;
        server.client().await.call(exists(&server, "kept")).await.unwrap();
    }

    #[should_panic(expected = "a test that stops its server must use start_own")]
    async fn a_server_that_may_be_shared_cannot_be_stopped(backend: Backend) {
        backend.start().await.stop().await;
    }
}
