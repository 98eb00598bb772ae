//! The least of HTTP that a test needs.

use std::io;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};

/// Answers every request with this text until it is aborted, and returns its port.
pub(crate) async fn serve(services: &mut JoinSet<()>, text: &'static str) -> (u16, AbortHandle) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let serving = services.spawn(async move {
        while let Ok((mut link, _)) = listener.accept().await {
            // A request that is not answered is repeated.
            let _ = answer(&mut link, text).await;
        }
    });
    (port, serving)
}

async fn answer(link: &mut TcpStream, text: &str) -> io::Result<()> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        if link.read_buf(&mut request).await? == 0 {
            return Ok(());
        }
    }
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nConnection: close";
    let reply = format!("{head}\r\nContent-Length: {}\r\n\r\n{text}", text.len());
    link.write_all(reply.as_bytes()).await?;
    link.shutdown().await
}

/// Returns the body of the answer to a request, whatever its status.
pub(crate) async fn get(address: &str, path: &str) -> io::Result<String> {
    let mut link = TcpStream::connect(address).await?;
    // Version 1.0, so that the answer is in one piece.
    link.write_all(format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n").as_bytes()).await?;
    let mut reply = String::new();
    link.read_to_string(&mut reply).await?;
    let (_, body) = reply.split_once("\r\n\r\n").ok_or_else(|| io::Error::other("the reply has no body"))?;
    Ok(body.to_owned())
}
