//! A job that one of many machines does once an hour: `cargo run --example timed_lease`.

use docent::Client;
use docent::locks::TimedLease;
use docent::server::Server;
use std::time::Duration;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let server = Server::start().await?;
    let client = Client::connect(server.connect_string()).await?;
    let hour = Duration::from_secs(3600);

    for machine in ["host-1", "host-2"] {
        let report = TimedLease::new(&client, "/jobs/report", hour)?.identity(machine);
        match report.try_obtain().await? {
            Some(obtained) => println!("{machine} writes the report, {:?} remaining", obtained.remaining()),
            None => println!("{machine} skips the report: another machine has the lease"),
        }
    }

    client.close().await;
    Ok(())
}
