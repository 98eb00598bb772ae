use super::series::{Measured, add_times};
use super::worker::{client, close};
use crate::recipes::order::{Answer, Order};
use crate::recipes::populated::{SERVICE, instance};
use anyhow::{Context, Result, ensure};
use docent::Client;
use docent::discovery::{Registry, Service, ServiceChange, ServiceChanges};
use futures_util::StreamExt;
use std::time::Instant;

/// Opens a view of a service with `instances`, `samples` times, each time in a new session. Measures the time
/// from the call until all instances are shown.
pub(super) async fn view(order: &Order) -> Result<Answer> {
    let (mut times, measured) = (Vec::new(), Measured::start());
    while times.len() < order.count("samples") {
        let client = client(order).await?;
        let registry = Registry::new(&client, &order.path)?;
        let called = Instant::now();
        let service: Service<String> = registry.typed_service(SERVICE).await?;
        times.push(called.elapsed());
        let (shown, wanted) = (service.instances().len(), order.count("instances"));
        ensure!(shown == wanted, "the view shows {shown} of {wanted} instances");
        drop(service);
        client.close().await;
    }
    let mut answer = measured.stop(times.len() as u64).await;
    add_times(&mut answer, "", &times);
    Ok(answer)
}

/// Changes the payload of an instance. Measures the time from the call until a view in another session shows
/// the change.
pub(super) async fn change(order: &Order) -> Result<Answer> {
    let (viewer, registrar) = (client(order).await?, client(order).await?);
    let registry = Registry::new(&registrar, &order.path)?;
    let registration = registry.register(instance("0")).await?;
    let mut scene = Scene::open(&viewer, order).await?;
    let id = registration.id();

    let (mut times, measured) = (Vec::new(), Measured::start());
    for sample in 1..=order.count("samples") {
        let payload = sample.to_string();
        let called = Instant::now();
        let seen = scene.until(|change| match change {
            ServiceChange::Updated(instance) => {
                instance.id == id && instance.payload.as_ref() == Some(&payload)
            }
            _ => false,
        });
        let changed = instance(&payload).id(&id);
        let (seen, updated) = tokio::join!(seen, registration.update(changed));
        updated?;
        times.push(seen? - called);
    }
    let mut answer = measured.stop(times.len() as u64).await;
    add_times(&mut answer, "", &times);
    close(vec![viewer, registrar]).await;
    Ok(answer)
}

/// Registers and deregisters an instance. Measures the times from the calls until a view in another session
/// shows the change.
pub(super) async fn join(order: &Order) -> Result<Answer> {
    let (viewer, registrar) = (client(order).await?, client(order).await?);
    let registry = Registry::new(&registrar, &order.path)?;
    let mut scene = Scene::open(&viewer, order).await?;

    let (mut joins, mut leaves, measured) = (Vec::new(), Vec::new(), Measured::start());
    while joins.len() < order.count("samples") {
        let joining = instance("0");
        let id = joining.id.clone();
        let called = Instant::now();
        let is_removal = |change: &_| matches!(change, ServiceChange::Added(added) if added.id == id);
        let (seen, registered) = tokio::join!(scene.until(is_removal), registry.register(joining));
        joins.push(seen? - called);

        let (registered, called) = (registered?, Instant::now());
        let is_removal = |change: &_| matches!(change, ServiceChange::Removed(instance) if instance.id == id);
        let (seen, deregistered) = tokio::join!(scene.until(is_removal), registered.deregister());
        deregistered?;
        leaves.push(seen? - called);
    }
    let mut answer = measured.stop(joins.len() as u64).await;
    add_times(&mut answer, "", &joins);
    add_times(&mut answer, "leave_", &leaves);
    close(vec![viewer, registrar]).await;
    Ok(answer)
}

/// A view that is followed.
struct Scene(ServiceChanges<String>);

impl Scene {
    /// Opens a view, and waits until it has reported all existing instances.
    async fn open(viewer: &Client, order: &Order) -> Result<Self> {
        let service: Service<String> = Registry::new(viewer, &order.path)?.typed_service(SERVICE).await?;
        let mut scene = Self(service.changes());
        tokio::time::sleep(order.millis("settle")).await;
        for _ in 0..service.instances().len() {
            scene.until(|change| matches!(change, ServiceChange::Added(_))).await?;
        }
        Ok(scene)
    }

    /// Waits for a change, and returns when it was reported.
    async fn until(&mut self, is_removal: impl Fn(&ServiceChange<String>) -> bool) -> Result<Instant> {
        loop {
            let change = self.0.next().await.context("the view has ended")??;
            if is_removal(&change) {
                return Ok(Instant::now());
            }
        }
    }
}
