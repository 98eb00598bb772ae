use anyhow::{Context, Result, ensure};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// The event stream of an open page.
#[derive(Debug)]
pub(super) struct Page {
    stream: BufReader<TcpStream>,
    line: String,
}

impl Page {
    /// Opens the event stream of a page at `address`. `view` is the encoded path of the page.
    pub(super) async fn open(address: &str, view: &str) -> Result<Self> {
        let mut stream = TcpStream::connect(address).await?;
        let request = format!(
            "GET /events?view={view} HTTP/1.1\r\nHost: {address}\r\nAccept: text/event-stream\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await?;
        let mut page = Self { stream: BufReader::new(stream), line: String::new() };
        let status = page.line().await?;
        ensure!(status.starts_with("HTTP/1.1 200"), "the console answered {status}");
        Ok(page)
    }

    /// Returns the next patch, as JSON.
    pub(super) async fn patch(&mut self) -> Result<&str> {
        while !self.line().await?.starts_with("data:") {}
        Ok(&self.line)
    }

    async fn line(&mut self) -> Result<&str> {
        self.line.clear();
        let read = self.stream.read_line(&mut self.line).await.context("cannot read the events")?;
        ensure!(read > 0, "the console has closed an event stream");
        Ok(&self.line)
    }
}
