//! A service in a separate process that is stopped with SIGTERM: `service CONNECT-STRING NAMESPACE TIMEOUT-MS
//! TICK-MS SECONDS`.
//!
//! The service prints `ready` when all of its work is running. After SIGTERM it shuts down within SECONDS and
//! prints a line for each node that it left behind.

use docent::discovery::{Instance, Membership, Registry};
use docent::{Client, Election, Error, Mutex, Queue};
use docent_tests::contenders;
use std::error::Error as StdError;
use std::future::pending;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

#[tokio::main]
async fn main() -> Result<(), Box<dyn StdError>> {
    let (client, [seconds]) = contenders::in_process().await?;
    let mut terminated = signal(SignalKind::terminate())?;
    let registry = Registry::builder(&client, "/services").drain(Duration::from_secs(2)).build()?;
    let _registration = registry.register(Instance::new("orders", "10.0.0.7", 8080).id("a")).await?;
    let _member = Membership::new(&client, "/members")?.join("a", "").await?;
    let _guard = Mutex::new(&client, "/lock")?.acquire().await?;
    let mut leads = lead(&client)?;
    leads.recv().await;
    let queue = Queue::<String>::new(&client, "/jobs")?;
    queue.put(&"job".to_owned()).await?;
    let _delivery = queue.take().await?;
    println!("ready");
    terminated.recv().await;
    let report = client.shutdown(Duration::from_secs(seconds.parse()?)).await;
    for node in &report.left {
        println!("left {} {}", node.kind, node.path);
    }
    println!("{report}");
    Ok(())
}

/// Leads in the background, and reports when it leads.
fn lead(client: &Client) -> Result<tokio::sync::mpsc::Receiver<()>, Error> {
    let (started, leads) = tokio::sync::mpsc::channel(1);
    let election = Election::new(client, "/election")?;
    tokio::spawn(async move {
        let work = |_leadership| {
            let started = started.clone();
            async move {
                let _ = started.send(()).await;
                pending::<Result<(), Error>>().await
            }
        };
        election.run(work).await
    });
    Ok(leads)
}
