//! A real ZooKeeper that several test binaries share. Prints its address, and runs until its standard input
//! ends.

use docent_battery::RealServer;
use std::error::Error;
use std::io;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = RealServer::start().await?;
    println!("{}", server.connect_string());
    io::copy(&mut io::stdin(), &mut io::sink())?;
    Ok(())
}
