//! Leads an election in a separate process, which tests freeze: `leader CONNECT-STRING NAMESPACE TIMEOUT-MS
//! TICK-MS ELECTION`.
//!
//! Prints `held` when it leads. For each line of its input it prints whether its leadership is `held` or
//! `lost`.

use docent::Election;
use docent_tests::contenders;
use std::error::Error;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (client, [election]) = contenders::in_process().await?;
    let leadership = Election::new(&client, &election)?.campaign().await?;
    Ok(contenders::answer(|| leadership.is_held()).await?)
}
