use anyhow::Result;
use docent::server::{Limits, Server};
use std::time::Duration;
use tokio::io::AsyncReadExt;

/// Serves with the ticks and timeouts of the real server it is compared with. Prints the address, and exits
/// when its input ends, at the latest when the process that started it exits.
pub(crate) async fn serve() -> Result<()> {
    // More sessions and links than the bench opens.
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
