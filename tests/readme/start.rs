use docent::{Client, Fence, Mutex, server::Server};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::start().await?; // or pass your own servers' connect string in the next line
    let client = Client::connect(server.connect_string()).await?;
    let mutex = Mutex::new(&client, "/locks/report")?;

    let guard = mutex.acquire().await?;
    guard.run(write_report(guard.fence())).await?; // stops as soon as the lock is lost
    guard.release().await?; // dropping the guard also releases the lock

    client.close().await;
    Ok(())
}

async fn write_report(fence: Fence) {
    println!("writing the report under fence {fence}");
}
