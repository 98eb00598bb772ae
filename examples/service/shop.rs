use anyhow::Context;
use clap::Args;
use docent::{Instance, Registry};
use docent_examples::{Process, Servers, until_input_ends};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// Long enough for the in-flight requests of a draining server.
const DRAIN: Duration = Duration::from_millis(500);

/// Payload of a shop's instance.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Meta {
    pub(crate) zone: String,
}

/// A shop, and the registry in which it registers.
#[derive(Debug, Args)]
pub(crate) struct Shop {
    #[command(flatten)]
    servers: Servers,
    /// Path of the registry.
    #[arg(long)]
    base: String,
    #[arg(long)]
    name: String,
}

/// Starts a shop in its own process, and waits until it is registered.
pub(crate) async fn open(servers: &Servers, base: &str, name: &str) -> anyhow::Result<Process> {
    let own = ["--base", base, "--name", name].map(str::to_owned);
    let arguments = [vec!["shop".to_owned()], servers.arguments().into(), own.into()].concat();
    let (sender, mut lines) = mpsc::channel::<anyhow::Result<String>>(1);
    let process = Process::start(arguments, sender)?;
    let line = lines.recv().await.with_context(|| format!("{name} did not start"))??;
    println!("  {line}");
    Ok(process)
}

/// A tiny HTTP server, registered under its name until its standard input ends. Then it drains.
pub(crate) async fn run(Shop { servers, base, name }: Shop) -> anyhow::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let serving = tokio::spawn(serve(listener, name.clone()));
    let client = servers.client().identity(&name).connect().await?;
    let instance = Instance::new("shop", address.ip().to_string(), address.port())
        .id(&name)
        .payload(Meta { zone: "eu".to_owned() });
    // Registers only after the server accepts requests.
    let registration = Registry::new(&client, &base)?.register(instance).await?;
    println!("{name} serves on {address}");

    until_input_ends().await;
    // Callers no longer pick this server; in-flight requests are completed.
    registration.drain(DRAIN).await?;
    client.close().await;
    serving.abort();
    Ok(())
}

async fn serve(listener: TcpListener, name: String) {
    while let Ok((link, _)) = listener.accept().await {
        // A caller that disconnects gets no answer.
        let _ = answer(link, &name).await;
    }
}

async fn answer(mut link: TcpStream, name: &str) -> std::io::Result<()> {
    // One read is enough for the only kind of request.
    let mut request = [0; 1024];
    if link.read(&mut request).await? == 0 {
        return Ok(());
    }
    let length = name.len();
    let response = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{name}");
    link.write_all(response.as_bytes()).await
}
