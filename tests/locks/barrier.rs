//! A gate that blocks all arriving clients until it is removed.

use crate::connect;
use docent::locks::BarrierError;
use docent::{Barrier, Client, Error, ErrorKind};
use docent_battery::{Backend, both_backends};
use docent_proto::OpCode;
use docent_tests::soon;
use futures_util::future::{join_all, try_join_all};
use std::time::Duration;
use tokio::task::JoinHandle;

fn barrier(client: &Client) -> Barrier {
    Barrier::new(client, "/barriers/start").unwrap()
}

/// Starts to wait and returns once the watch is set.
async fn waiting(server: &docent_battery::TestServer, client: &Client) -> JoinHandle<Result<(), Error>> {
    let checks = || server.front().trace().iter().filter(|frame| frame.is_reply(OpCode::Exists)).count();
    let before = checks();
    let barrier = barrier(client);
    let task = tokio::spawn(async move { barrier.wait().await });
    soon(async {
        while checks() == before {
            docent_tests::pause().await;
        }
    })
    .await;
    task
}

both_backends! {
    async fn a_barrier_that_is_not_set_blocks_no_caller(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        assert!(!soon(barrier(&client).is_set()).await.unwrap());
        soon(barrier(&client).wait()).await.unwrap();
        soon(barrier(&client).remove()).await.unwrap();
    }

    async fn all_waiters_resume_when_a_barrier_is_removed(backend: Backend) {
        let server = backend.start().await;
        let setter = connect(&server).await;
        assert!(soon(barrier(&setter).set()).await.unwrap());
        assert!(!soon(barrier(&setter).set()).await.unwrap(), "the barrier was set already");
        assert!(soon(barrier(&setter).is_set()).await.unwrap());
        let clients = join_all((0..5).map(|_| connect(&server))).await;
        let mut waiters = Vec::new();
        for client in &clients {
            waiters.push(waiting(&server, client).await);
        }
        assert!(waiters.iter().all(|waiter| !waiter.is_finished()));
        soon(barrier(&setter).remove()).await.unwrap();
        for waited in soon(try_join_all(waiters)).await.unwrap() {
            waited.unwrap();
        }
    }

    async fn waiters_resume_even_if_the_barrier_is_set_again_immediately(backend: Backend) {
        let server = backend.start().await;
        let (setter, client) = (connect(&server).await, connect(&server).await);
        soon(barrier(&setter).set()).await.unwrap();
        let waiter = waiting(&server, &client).await;
        let ops = setter.transaction().delete("/barriers/start", None);
        let ops = ops.create("/barriers/start", "", docent::CreateMode::Persistent);
        soon(ops.commit()).await.unwrap();
        soon(waiter).await.unwrap().unwrap();
        assert!(soon(barrier(&setter).is_set()).await.unwrap());
    }

    async fn a_waiter_waits_through_a_new_session_and_a_restart_of_the_server(backend: Backend) {
        let server = backend.start_own().await;
        let (setter, client) = (connect(&server).await, connect(&server).await);
        soon(barrier(&setter).set()).await.unwrap();
        let waiter = waiting(&server, &client).await;
        server.expire(client.session_id().unwrap()).await.unwrap();
        server.stop().await;
        server.start_again().await;
        assert!(soon(barrier(&setter).is_set()).await.unwrap(), "the barrier outlives sessions and servers");
        assert!(!waiter.is_finished());
        soon(barrier(&setter).remove()).await.unwrap();
        soon(waiter).await.unwrap().unwrap();
    }

    async fn a_timeout_bounds_the_wait_and_a_close_ends_it(backend: Backend) {
        let server = backend.start().await;
        let (setter, client) = (connect(&server).await, connect(&server).await);
        soon(barrier(&setter).set()).await.unwrap();
        let late = soon(barrier(&client).wait_timeout(Duration::from_millis(100))).await;
        assert!(matches!(late, Err(BarrierError::TimedOut { .. })));
        let waiter = waiting(&server, &client).await;
        soon(client.close()).await;
        let Err(error) = soon(waiter).await.unwrap() else { panic!("the waiter passed the barrier") };
        assert_eq!(error.kind(), ErrorKind::Closed);
    }

    async fn the_node_has_curators_format_and_a_bad_path_is_refused(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        soon(barrier(&client).set()).await.unwrap();
        let node = soon(client.get("/barriers/start")).await.unwrap();
        assert_eq!((node.stat.owner, node.data.as_ref()), (None, client.identity().as_bytes()));
        for (path, rule) in [("start", "must start with '/'"), ("/", "must not be the root")] {
            let error = Barrier::new(&client, path).unwrap_err();
            assert!(error.to_string().contains(rule), "{error}");
        }
    }
}
