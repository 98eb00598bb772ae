use super::World;
use super::past::SAMPLE;
use docent::inspect::Inspector;
use futures_util::StreamExt;
use std::sync::Weak;
use tokio::time::{MissedTickBehavior, interval};

/// Keeps the world up to date until it is dropped or the client is closed.
pub(crate) async fn follow(world: Weak<World>, inspector: Inspector, root: String) {
    let mut events = inspector.watch_below(&root);
    let mut samples = interval(SAMPLE);
    samples.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        tokio::select! {
            event = events.next() => {
                let Some(world) = world.upgrade() else { return };
                match event {
                    Some(Ok(event)) => world.apply(event),
                    Some(Err(error)) => world.fail(&error),
                    None => return,
                }
            }
            _ = samples.tick() => match world.upgrade() {
                Some(world) => world.sample(),
                None => return,
            },
        }
    }
}
