//! Services with many instances.

use crate::connect;
use crate::scene::{ORDERS, view};
use docent::discovery::{ServiceChange, ServiceChanges};
use docent::node::Transaction;
use docent::{Client, CreateMode, Service};
use docent_battery::{Backend, both_backends};
use docent_tests::while_progressing;
use futures_util::StreamExt;
use std::collections::BTreeMap;

const COUNT: usize = 2_000;

fn id(number: usize) -> String {
    format!("{number:04}")
}

fn json(number: usize, payload: &str) -> String {
    let id = id(number);
    format!(r#"{{"name":"orders","id":"{id}","address":"10.0.0.7","port":8080,"payload":"{payload}"}}"#)
}

/// Changes many nodes, with many changes in each transaction.
async fn change(
    client: &Client,
    numbers: impl IntoIterator<Item = usize>,
    add: impl Fn(Transaction, String, usize) -> Transaction,
) {
    let numbers: Vec<_> = numbers.into_iter().collect();
    for numbers in numbers.chunks(100) {
        let transaction = numbers.iter().fold(client.transaction(), |transaction, number| {
            add(transaction, format!("{ORDERS}/{}", id(*number)), *number)
        });
        transaction.commit().await.unwrap();
    }
}

/// Follows the changes until the reported instances meet `condition`.
async fn follow(
    view: &Service<String>,
    known: &mut BTreeMap<String, String>,
    changes: &mut ServiceChanges<String>,
    condition: impl Fn(&BTreeMap<String, String>) -> bool,
) {
    let count = std::cell::Cell::new(0);
    let follow = async {
        while !condition(known) {
            match changes.next().await.expect("the client is open").expect("the service can be listed") {
                ServiceChange::Added(instance) | ServiceChange::Updated(instance) => {
                    known.insert(instance.id.clone(), instance.payload.clone().unwrap());
                }
                ServiceChange::Removed(instance) => {
                    known.remove(&instance.id);
                }
                _ => {}
            }
            count.set(count.get() + 1);
        }
    };
    while_progressing(|| count.get(), follow).await;
    let shown: BTreeMap<_, _> = view
        .instances()
        .iter()
        .map(|instance| (instance.id.clone(), instance.payload.clone().unwrap()))
        .collect();
    assert!(*known == shown, "the stream reported {} instances, the view shows {}", known.len(), shown.len());
}

both_backends! {
    async fn two_thousand_instances_are_loaded_and_every_later_change_is_seen(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        client.create("/services", "", CreateMode::Persistent).await.unwrap();
        client.create(ORDERS, "", CreateMode::Persistent).await.unwrap();
        change(&client, 0..COUNT, |transaction, path, number| {
            transaction.create(&path, json(number, "first"), CreateMode::Persistent)
        }).await;
        let view = view(&other).await;
        assert_eq!(view.instances().len(), COUNT);
        let (mut changes, mut known) = (view.changes(), BTreeMap::new());
        follow(&view, &mut known, &mut changes, |known| known.len() == COUNT).await;
        // All instances change, a tenth leaves, some are new, and one returns.
        change(&client, 0..COUNT, |transaction, path, number| transaction.set(&path, json(number, "second"), None)).await;
        change(&client, (0..COUNT).step_by(10), |transaction, path, _| transaction.delete(&path, None)).await;
        change(&client, COUNT..COUNT + 50, |transaction, path, number| {
            transaction.create(&path, json(number, "second"), CreateMode::Persistent)
        }).await;
        change(&client, [0], |transaction, path, _| transaction.create(&path, json(0, "again"), CreateMode::Persistent)).await;
        let remaining = (0..COUNT).filter(|number| number % 10 != 0).chain(COUNT..COUNT + 50);
        let mut expected: BTreeMap<_, _> = remaining.map(|number| (id(number), "second".to_owned())).collect();
        expected.insert(id(0), "again".to_owned());
        follow(&view, &mut known, &mut changes, |known| *known == expected).await;
        // Single changes, in random order.
        for number in [1999, 7, 1001] {
            client.set(&format!("{ORDERS}/{}", id(number)), json(number, "last"), None).await.unwrap();
            follow(&view, &mut known, &mut changes, |known| known[&id(number)] == "last").await;
        }
    }
}
