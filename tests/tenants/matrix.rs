//! Every recipe for every tenant, in every order of the tenants.

use crate::recipes::RECIPES;
use crate::scene::{TENANTS, TREES, Tenant, Tree, at_root};
use docent::Queue;
use docent_battery::{Backend, TestServer, both_backends};
use docent_tests::{connect, soon, until};
use futures_util::future::join_all;

/// Returns all orders of the tenants.
fn orders() -> Vec<Vec<Tenant>> {
    let mut orders = vec![Vec::new()];
    for tenant in TENANTS {
        orders = orders
            .into_iter()
            .flat_map(|order| {
                (0..=order.len()).map(move |at| {
                    let mut order = order.clone();
                    order.insert(at, tenant);
                    order
                })
            })
            .collect();
    }
    orders
}

/// Puts and takes an item as each of `tenants`, which stay connected.
async fn exchange(server: &TestServer, tenants: &[Tenant], what: &str) {
    let mut connected = Vec::new();
    for tenant in tenants {
        let client = tenant.connect(server).await;
        let queue: Queue<u64> = Queue::new(&client, &format!("{}/jobs", tenant.home())).unwrap();
        let put = soon(queue.put(&7)).await;
        put.unwrap_or_else(|error| panic!("{what}, {tenant:?} of {tenants:?}: {error}"));
        soon(soon(queue.take()).await.unwrap().ack()).await.unwrap();
        connected.push(client);
    }
    for client in connected {
        soon(client.close()).await;
    }
}

both_backends! {
    async fn every_recipe_works_for_every_tenant_in_any_order(backend: Backend) {
        for tree in TREES {
            for first in 0..TENANTS.len() {
                let server = backend.start().await;
                tree.lay_out(&server).await;
                let mut order = TENANTS;
                order.rotate_left(first);
                // A session of each tenant stays open, so nodes created for the first tenant stay as well.
                let mut clients = Vec::new();
                for tenant in order {
                    let client = tenant.connect(&server).await;
                    soon(client.ensure_path(&format!("{}/first", tenant.home()))).await.unwrap();
                    clients.push(client);
                    let server = &server;
                    let each = RECIPES.iter().map(|recipe| async move {
                        let client = tenant.connect(server).await;
                        let done = soon((recipe.run)(&client, tenant.home())).await;
                        done.unwrap_or_else(|error| panic!("{tree:?}, {order:?}, {tenant:?}, {}: {error}", recipe.name));
                        soon(client.close()).await;
                    });
                    join_all(each).await;
                }
            }
        }
    }

    async fn the_order_in_which_tenants_connect_does_not_matter(backend: Backend) {
        for tree in TREES {
            for order in orders() {
                let server = backend.start().await;
                tree.lay_out(&server).await;
                exchange(&server, &order, &format!("{tree:?}")).await;
            }
        }
    }

    async fn a_folder_that_another_tenant_re_created_changes_nothing(backend: Backend) {
        for tree in [Tree::Open, Tree::Closed] {
            let server = backend.start().await;
            tree.lay_out(&server).await;
            let mut order = TENANTS;
            for _ in TENANTS {
                exchange(&server, &order, &format!("{tree:?}")).await;
                // All clients have closed, so the servers delete the containers.
                let client = connect(&server).await;
                for folder in [""].into_iter().chain(TENANTS.map(Tenant::home)) {
                    until(async || client.exists(&format!("{folder}/_docent")).await.unwrap().is_none()).await;
                }
                soon(client.close()).await;
                order.rotate_left(1);
            }
            let remaining = at_root(&server).await;
            assert!(!remaining.iter().any(|name| name.starts_with("_docent")), "{remaining:?}");
        }
    }
}
