use super::World;
use super::past::SAMPLE;
use super::servers::query_servers;
use docent::inspect::Inspector;
use docent::{Client, ConnectionState};
use futures_util::StreamExt;
use std::sync::Weak;
use tokio::time::{MissedTickBehavior, interval};

/// Keeps the world up to date until it is dropped or the client is closed.
pub(crate) async fn follow(world: Weak<World>, client: Client, inspector: Inspector, root: String) {
    tokio::select! {
        () = follow_tree(&world, &client, &inspector, &root) => {}
        () = query_servers(&world, &client) => {}
    }
}

async fn follow_tree(world: &Weak<World>, client: &Client, inspector: &Inspector, root: &str) {
    let mut state = client.state();
    if let Some(world) = world.upgrade() {
        world.set_read_only(state.current().state == ConnectionState::ReadOnly);
    }
    let mut events = inspector.watch_below(root);
    let mut samples = interval(SAMPLE);
    samples.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        tokio::select! {
            event = events.next() => {
                let Some(world) = world.upgrade() else { return };
                match event {
                    Some(Ok(event)) => world.apply(event),
                    Some(Err(error)) => world.fail(&error),
                    None => return world.close(),
                }
            }
            changed = state.changed() => {
                let (Some(world), Some(now)) = (world.upgrade(), changed) else { return close(world) };
                world.set_read_only(now.state == ConnectionState::ReadOnly);
            }
            _ = samples.tick() => match world.upgrade() {
                Some(world) => world.sample(),
                None => return,
            },
        }
    }
}

fn close(world: &Weak<World>) {
    if let Some(world) = world.upgrade() {
        world.close();
    }
}
