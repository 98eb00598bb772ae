//! A process that is stalled while its instance's node is deleted and another process registers the instance.

use docent::Client;
use docent::discovery::{Instance, Registry};
use docent_battery::{Backend, TestServer, both_backends};
use docent_tests::{Stalled, builder, connect, soon};

const SERVICE: &str = "orders";
const FOLDER: &str = "/services";
const NODE: &str = "/services/orders/one";

fn instance(payload: &str) -> Instance<String> {
    Instance::new(SERVICE, "10.0.0.7", 8080).id("one").payload(payload.to_owned())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Update,
    Deregister,
    Drop,
}

/// A process that stands still once its instance is registered, and updated so many times.
async fn stalled(server: &TestServer, updates: u32, act: Act) -> Stalled<()> {
    let register = async move |client: &Client| {
        let registry = Registry::new(client, FOLDER).unwrap();
        let registration = registry.register(instance("old")).await.unwrap();
        for update in 0..updates {
            registration.update(instance(&format!("old {update}"))).await.unwrap();
        }
        registration
    };
    let connecting = builder(server, server.connect_string());
    Stalled::after(connecting, register, async move |registration| match act {
        Act::Update => {
            // It waits for the node of the other process to go.
            let update = registration.update(instance("late"));
            let _ = tokio::time::timeout(std::time::Duration::from_millis(300), update).await;
        }
        Act::Deregister => soon(registration.deregister()).await.unwrap(),
        Act::Drop => drop(registration),
    })
    .await
}

both_backends! {
    async fn a_stalled_process_leaves_the_instance_of_the_next_one_alone(backend: Backend) {
        let server = backend.start().await;
        for updates in [0, 1, 2] {
            for act in [Act::Deregister, Act::Drop, Act::Update] {
                let case = format!("{updates} {act:?}");
                let other = connect(&server).await;
                let process = stalled(&server, updates, act).await;
                other.delete(NODE, None).await.unwrap();
                let registry = Registry::new(&other, FOLDER).unwrap();
                let registration = soon(registry.register(instance("new"))).await.unwrap();
                for _ in 0..updates {
                    soon(registration.update(instance("newer"))).await.unwrap();
                }
                let before = other.get(NODE).await.unwrap();
                process.resume().await;
                let after = other.get(NODE).await.unwrap();
                assert_eq!((after.stat, after.data), (before.stat, before.data), "{case}");
                soon(other.close()).await;
            }
        }
    }
}
