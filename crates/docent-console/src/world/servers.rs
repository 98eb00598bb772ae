use super::World;
use docent::Client;
use docent::inspect::Vitals;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use std::sync::Weak;
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval};

/// Interval between two queries of a server.
const INTERVAL: Duration = Duration::from_secs(10);

/// Upper limit for each step of a query.
const PATIENCE: Duration = Duration::from_secs(2);

/// Queries all servers again and again until the world is dropped. Each answer is recorded when it arrives,
/// so a slow server delays no other.
pub(super) async fn query_servers(world: &Weak<World>, client: &Client) {
    let transport = docent::recipe::transport(client);
    let mut rounds = interval(INTERVAL);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        rounds.tick().await;
        let servers = client.servers();
        match world.upgrade() {
            Some(world) => world.keep_servers(&servers),
            None => return,
        }
        let queries = servers.iter().map(|server| Vitals::query(&*transport, server, PATIENCE));
        let mut answers: FuturesUnordered<_> = queries.collect();
        while let Some(vitals) = answers.next().await {
            match world.upgrade() {
                Some(world) => world.report_server(vitals),
                None => return,
            }
        }
    }
}
