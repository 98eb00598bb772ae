//! Processes whose memory was copied, by a fork or from a snapshot of their machine. Their tickets have
//! different names, and no process takes another session's node for its own.

use crate::{builder, connect};
use docent::{CreateMode, Mutex, RwLock, Semaphore};
use docent_battery::{Backend, Proxy, Rule, both_backends_in_real_time};
use docent_proto::OpCode;
use docent_tests::{soon, until};
use std::process::Stdio;
use tokio::process::Command;

/// Path of the held create of a ticket in `folder`, without its number.
async fn held_create(proxy: &Proxy, folder: &'static str) -> String {
    let is_in = move |path: &str| path.contains(&format!("{folder}/_c_"));
    let held = proxy.add(Rule::on(OpCode::Create2).path(is_in).hold());
    soon(held.fired()).await;
    let trace = proxy.trace();
    let sent = trace.iter().rev().find_map(|frame| frame.path.clone().filter(|path| path.contains("/_c_")));
    sent.unwrap()
}

both_backends_in_real_time! {
    async fn a_ticket_of_another_process_with_the_same_id_is_neither_taken_nor_deleted(backend: Backend) {
        let server = backend.start().await;
        let (proxy, other) = (server.proxy().await, connect(&server).await);
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        let mutex = Mutex::new(&client, "/lock").unwrap();
        soon(soon(mutex.acquire()).await.unwrap().release()).await.unwrap();
        let acquired = tokio::spawn(mutex.acquire());
        let name = held_create(&proxy, "/lock").await;
        let name = name.strip_prefix(server.root()).unwrap();
        // A copy of the process, with the same ids, would create this node. It has the lock.
        let foreign = soon(other.create(name, "", CreateMode::EphemeralSequential)).await.unwrap();
        proxy.cut().await;
        proxy.heal().await.unwrap();
        // The client did not find its own ticket and drew another one.
        until(async || other.children("/lock").await.unwrap().names.len() == 2).await;
        soon(client.sync("/")).await.unwrap();
        assert!(!acquired.is_finished(), "the ticket is not first");
        assert!(other.exists(&foreign.path).await.unwrap().is_some(), "the other client must keep its node");
        other.delete(&foreign.path, None).await.unwrap();
        soon(soon(acquired).await.unwrap().unwrap().release()).await.unwrap();
    }

    async fn a_cancelled_call_leaves_the_ticket_of_another_process_with_the_same_id_alone(backend: Backend) {
        let server = backend.start().await;
        let (proxy, other) = (server.proxy().await, connect(&server).await);
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        let lock = RwLock::new(&client, "/rw").unwrap();
        let permits = Semaphore::new(&client, "/permits", 8).unwrap();
        soon(soon(lock.write()).await.unwrap().release()).await.unwrap();
        soon(soon(permits.acquire_many(2)).await.unwrap().release()).await.unwrap();
        let write = {
            let lock = lock.clone();
            tokio::spawn(async move { lock.write().await.map(drop) })
        };
        let name = held_create(&proxy, "/rw").await;
        let foreign = name.strip_prefix(server.root()).unwrap();
        let foreign = soon(other.create(foreign, "", CreateMode::EphemeralSequential)).await.unwrap();
        write.abort();
        proxy.cut().await;
        proxy.heal().await.unwrap();
        soon(client.sync("/")).await.unwrap();
        // By now the cleanup of the cancelled call has listed the line.
        let third = soon(lock.participants());
        assert_eq!(third.await.unwrap().len(), 1);
        soon(client.close()).await;
        assert!(other.exists(&foreign.path).await.unwrap().is_some());
    }

    async fn workers_forked_from_one_process_have_distinct_ids(backend: Backend) {
        let server = backend.start().await;
        let mut forked = Command::new(env!("CARGO_BIN_EXE_forked"));
        forked.args([&server.connect_string(), server.root()]).stdin(Stdio::null()).kill_on_drop(true);
        let output = soon(forked.output()).await.unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let mut ids: Vec<_> = text.lines().map(|line| line.split("-lock-").next().unwrap().rsplit('/').next().unwrap()).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 3, "{text}{}", String::from_utf8_lossy(&output.stderr));
    }
}
