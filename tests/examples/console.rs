//! The example with the live page, on the embedded server that it starts.

use crate::{PATIENCE, built};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::Command;
use tokio::time::timeout;

/// Beginning of each change that a page receives.
const PATCH: &str = "event: patch\n";

/// Returns the reply to a GET request, as soon as it satisfies `is_enough`.
async fn get(address: &str, path: &str, is_enough: impl Fn(&str) -> bool) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut reply = Vec::new();
    loop {
        let count = stream.read_buf(&mut reply).await.unwrap();
        let text = String::from_utf8_lossy(&reply);
        if is_enough(&text) {
            return text.into_owned();
        }
        assert_ne!(count, 0, "{path} ended:\n{text}");
    }
}

#[tokio::test]
async fn the_page_of_the_console_changes_while_the_world_is_busy() {
    let mut command = Command::new(built("console"));
    command.env_remove("RUST_LOG").stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut example = command.spawn().unwrap();
    let mut lines = BufReader::new(example.stdout.take().unwrap()).lines();
    let line = timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap().unwrap();
    let address = line.strip_prefix("open http://").and_then(|rest| rest.strip_suffix('/'));
    let address = address.unwrap_or_else(|| panic!("{line:?} has no address"));

    let page = timeout(PATIENCE, get(address, "/", |text| text.contains("</html>"))).await.unwrap();
    assert!(page.starts_with("HTTP/1.1 200 ") && page.contains("<h1>Overview</h1>"), "{page}");
    // The first patch has the whole page, and the others what has changed since.
    let has_changed = |text: &str| text.matches(PATCH).count() > 1 && text.contains("/shop/report");
    let events = timeout(PATIENCE, get(address, "/events?view=%2F", has_changed)).await.unwrap();
    assert!(events.starts_with("HTTP/1.1 200 "), "{events}");
    // The gateways apply new limits one after the other.
    let view = "/events?view=%2Fat%2Fshop%2Flimits";
    let is_rolled_out = |text: &str| {
        ["1 of 3", "2 of 3", "3 of 3"].iter().all(|count| text.contains(&format!("{count} run version")))
    };
    timeout(PATIENCE, get(address, view, is_rolled_out)).await.unwrap();

    kill(Pid::from_raw(example.id().unwrap().cast_signed()), Signal::SIGINT).unwrap();
    let status = timeout(PATIENCE, example.wait()).await.unwrap().unwrap();
    assert!(status.success(), "{status}");
}
