//! Leads an election in a process of its own, to be frozen:
//! `leader CONNECT-STRING NAMESPACE TIMEOUT-MS TICK-MS ELECTION`.
//!
//! Prints `held` once it leads; then, for each line it reads, what its leadership says: `held` or `lost`.

use docent::Election;
use docent_tests::contenders;
use std::error::Error;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (client, [election]) = contenders::in_process().await?;
    let leadership = Election::new(&client, &election)?.campaign().await?;
    Ok(contenders::answer(|| leadership.is_held()).await?)
}
