//! `docent wait`.

use crate::docent_command::{PATIENCE, Running, docent, end, run, servers};
use docent::client::ClientBuilder;
use docent::discovery::{Instance, Registry};
use docent::node::CreateMode;
use docent::{Client, Election, Mutex, Queue, Semaphore};
use docent_battery::{Backend, TestServer, both_backends_in_real_time};
use docent_proto::OpCode;
use rustix::process::Signal;
use std::time::Duration;
use tokio::time::timeout;

fn builder(connect: &str) -> ClientBuilder {
    Client::builder(connect).server_tick(Duration::from_millis(200))
}

/// Waits until a command that connects through the proxy has read the path.
async fn has_read(server: &TestServer) {
    let read = server.front().until(|trace| trace.iter().any(|one| one.is_reply(OpCode::GetChildren2)));
    timeout(PATIENCE, read).await.expect("the command must read the path");
}

both_backends_in_real_time! {
    async fn a_state_that_exists_ends_the_wait_immediately(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let client = builder(&connect).connect().await.unwrap();
        for words in [&["/none", "--for", "free"][..], &["/none", "--for", "empty"], &["/none", "--for", "instances=0"]] {
            assert_eq!(run(&connect, ["wait"].iter().chain(words)).await.ok().stdout, "");
        }
        let _permit = Semaphore::new(&client, "/limit", 2).unwrap().acquire().await.unwrap();
        let report = &run(&connect, ["wait", "/limit", "--for", "free", "-o", "json"]).await.ok().json()[0];
        assert_eq!((&report["kind"], &report["is_stale"]), (&"semaphore".into(), &false.into()), "{report}");
        client.close().await;
    }

    async fn a_state_that_is_not_reached_in_time_exits_with_75(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let client = builder(&connect).connect().await.unwrap();
        let _guard = Mutex::new(&client, "/lock").unwrap().acquire().await.unwrap();
        let _leader = Election::new(&client, "/election").unwrap().campaign().await.unwrap();
        Queue::<u32>::new(&client, "/jobs").unwrap().put(&1).await.unwrap();
        let registry = Registry::new(&client, "/services").unwrap();
        let _one = registry.register(Instance::new("orders", "10.0.0.7", 80)).await.unwrap();
        for (path, state) in [("/lock", "free"), ("/election", "free"), ("/jobs", "empty"), ("/services/orders", "instances=2")] {
            let ended = run(&connect, ["wait", path, "--for", state, "--wait", "0"]).await;
            assert_eq!((ended.code, ended.stderr), (75, format!("docent: {path} is not {state}\n")));
        }
        client.close().await;
    }

    async fn a_recipe_that_never_has_the_state_is_refused(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let client = builder(&connect).connect().await.unwrap();
        Queue::<u32>::new(&client, "/jobs").unwrap().put(&1).await.unwrap();
        client.create("/config/a", "x", CreateMode::Persistent).await.unwrap();
        for (path, state, kind) in [("/jobs", "free", "queue"), ("/config/a", "empty", "value"), ("/jobs", "instances=1", "queue")] {
            let ended = run(&connect, ["wait", path, "--for", state]).await;
            let text = format!("docent: {path} is of kind {kind}, which is never {state}\n");
            assert_eq!((ended.code, ended.stderr), (1, text));
        }
        let usage = run(&connect, ["wait", "/jobs", "--for", "held"]).await;
        assert!(usage.code == 2 && usage.stderr.contains("free, empty or instances=N"), "{usage:?}");
        client.close().await;
    }

    async fn each_state_is_seen_when_another_client_causes_it(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let client = builder(&connect).connect().await.unwrap();
        let guard = Mutex::new(&client, "/lock").unwrap().acquire().await.unwrap();
        let jobs = Queue::<u32>::new(&client, "/jobs").unwrap();
        jobs.put(&1).await.unwrap();
        let registry = Registry::new(&client, "/services").unwrap();
        let _one = registry.register(Instance::new("orders", "10.0.0.7", 80).id("one")).await.unwrap();
        let states = [("/lock", "free"), ("/jobs", "empty"), ("/services/orders", "instances=2")];
        let mut waits = Vec::new();
        for (path, state) in states {
            let mut command = docent(&connect, ["wait", path, "--for", state, "-v", "-v"]);
            waits.push(command.spawn().unwrap());
        }
        guard.release().await.unwrap();
        jobs.take().await.unwrap().ack().await.unwrap();
        let _two = registry.register(Instance::new("orders", "10.0.0.8", 80).id("two")).await.unwrap();
        for wait in waits {
            end(wait).await.ok();
        }
        client.close().await;
    }

    async fn a_wait_is_ended_by_a_signal(backend: Backend) {
        let server = backend.start().await;
        let connect = format!("{}{}", server.connect_string(), server.root());
        let client = builder(&servers(&server)).connect().await.unwrap();
        let _guard = Mutex::new(&client, "/lock").unwrap().acquire().await.unwrap();
        let wait = Running::start(&connect, ["wait", "/lock", "--for", "free"]);
        has_read(&server).await;
        assert_eq!(wait.stop(Signal::TERM).await, 143);
        client.close().await;
    }

    async fn a_wait_survives_a_lost_connection(backend: Backend) {
        let server = backend.start().await;
        let connect = format!("{}{}", server.connect_string(), server.root());
        let client = builder(&servers(&server)).connect().await.unwrap();
        let guard = Mutex::new(&client, "/lock").unwrap().acquire().await.unwrap();
        let mut wait = Running::start(&connect, ["wait", "/lock", "--for", "free", "-o", "json", "-v"]);
        let mut remarks = wait.remarks();
        has_read(&server).await;
        server.front().cut().await;
        remarks.until("connection lost").await;
        guard.release().await.unwrap();
        server.front().heal().await.unwrap();
        assert!(wait.line().await.contains("\"path\":\"/lock\""));
        assert_eq!(wait.end().await, 0);
        client.close().await;
    }
}

#[tokio::test]
async fn a_wait_without_servers_exits_with_69() {
    let ended = run("127.0.0.1:1", ["wait", "/lock", "--for", "free", "--wait", "300ms"]).await;
    assert_eq!(ended.code, 69, "{ended:?}");
}
