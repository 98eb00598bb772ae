use super::{bare, config, discovery, election, locks, memory, queues};
use crate::recipes::order::{Answer, Order};
use anyhow::{Result, bail};
use docent::Client;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// Long enough that no session expires while the machine is busy.
const SESSION_TIMEOUT: Duration = Duration::from_secs(30);

/// Carries out orders, one at a time, until the standard input ends.
pub(crate) async fn run() -> Result<()> {
    let mut lines = lines();
    println!("ready");
    while let Some(line) = lines.recv().await {
        match answer(&line).await {
            Ok(answer) => println!("{answer}"),
            Err(error) => println!("error {}", format!("{error:#}").replace('\n', " ")),
        }
    }
    Ok(())
}

/// Returns the lines of the standard input. The process exits when the input ends, even in the middle of an
/// order.
fn lines() -> UnboundedReceiver<String> {
    let (sender, lines) = unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
        std::process::exit(0);
    });
    lines
}

async fn answer(line: &str) -> Result<Answer> {
    let order = Order::parse(line)?;
    match order.name.as_str() {
        "mutex" => locks::mutex(&order).await,
        "shared" => locks::shared(&order).await,
        "read-write" => locks::read_write(&order).await,
        "line" => locks::line(&order).await,
        "election" => election::resign(&order).await,
        "queue" => queues::queue(&order).await,
        "queue-burst" => queues::burst(&order).await,
        "simple-queue" => queues::simple(&order).await,
        "view" => discovery::view(&order).await,
        "change" => discovery::change(&order).await,
        "join" => discovery::join(&order).await,
        "publish" => config::publish(&order).await,
        name => match name.split_once('-') {
            Some(("memory", kind)) => memory::of(kind, &order).await,
            Some(("bare", kind)) => bare::of(kind, &order).await,
            _ => bail!("unknown workload {name}"),
        },
    }
}

/// Opens a session, as a service would open it.
pub(super) async fn client(order: &Order) -> Result<Client> {
    let builder = Client::builder(&order.connect).session_timeout(SESSION_TIMEOUT);
    let builder = if order.number("persistent") > 0 { builder.persistent_watches() } else { builder };
    Ok(builder.connect().await?)
}

/// Opens `count` sessions.
pub(super) async fn clients(order: &Order, count: usize) -> Result<Vec<Client>> {
    let mut clients = Vec::with_capacity(count);
    for _ in 0..count {
        clients.push(client(order).await?);
    }
    Ok(clients)
}

/// Closes sessions.
pub(super) async fn close(clients: Vec<Client>) {
    for client in clients {
        client.close().await;
    }
}
