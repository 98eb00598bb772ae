use anyhow::Result;
use docent::server::{Limits, Server};
use std::time::Duration;
use tokio::io::AsyncReadExt;

/// Serves with the ticks and timeouts of the real server beside it. Prints the address, and ends with its
/// input: when the process that started it does, at the latest.
pub(crate) async fn serve() -> Result<()> {
    // One session and one link more than the bench opens at most.
    let limits = Limits::default().sessions(20_000).connections(20_000);
    let server = Server::builder()
        .tick(Duration::from_millis(200))
        .session_timeouts(Duration::from_millis(400), Duration::from_secs(60))
        .limits(limits)
        .start()
        .await?;
    println!("{}", server.local_addr());
    tokio::io::stdin().read_to_end(&mut Vec::new()).await?;
    Ok(())
}
