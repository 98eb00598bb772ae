//! Standard streams that cannot be written to, or that no process reads.

use crate::process::{PATIENCE, send};
use crate::run::{Run, command, run};
use docent::Client;
use docent::server::Server;
use docent_testkit::{Port, eventually};
use rustix::io::ioctl_fionbio;
use rustix::process::Signal;
use std::fs::File;
use std::io::Write;
use std::process::Stdio;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Standard errors that cannot be written to: a full disk, and a pipe whose reading end is closed.
fn unwritable() -> [Stdio; 2] {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    [File::options().write(true).open("/dev/full").unwrap().into(), writer.into()]
}

#[tokio::test]
async fn a_standard_error_that_cannot_be_written_to_changes_no_exit_code() {
    let server = Server::start().await.unwrap();
    let connect = server.connect_string();
    assert_eq!(run(connect, ["queue", "put", "/q", "item"]).await.code, 0);
    let missing = ["--", "no-such-program"];
    for (words, code) in [
        (["lock", "/a"].iter().chain(&missing), 127),
        (["lock", "/a"].iter().chain(&["--", "/"]), 126),
        (["-v", "lock", "/a"].iter().chain(&["--", "false"]), 1),
        (["elect", "/e"].iter().chain(&missing), 127),
        (["queue", "take", "/q", "--follow"].iter().chain(&missing), 126),
    ] {
        for stderr in unwritable() {
            let mut docent = command(connect, words.clone());
            let ended = docent.stdout(Stdio::null()).stderr(stderr).status();
            let ended = timeout(PATIENCE, ended).await.expect("the run must end in time").unwrap();
            assert_eq!(ended.code(), Some(code), "{words:?}");
        }
    }
}

/// Returns the writing end of a full pipe, and the reading end that is never read.
fn full() -> (Stdio, std::io::PipeReader) {
    let (reader, mut writer) = std::io::pipe().unwrap();
    ioctl_fionbio(&writer, true).unwrap();
    while writer.write(&[b'x'; 4096]).is_ok() {}
    ioctl_fionbio(&writer, false).unwrap();
    (writer.into(), reader)
}

#[tokio::test]
async fn a_blocked_standard_error_delays_nothing() {
    let server = Server::start().await.unwrap();
    let connect = server.connect_string();
    assert_eq!(run(connect, ["queue", "put", "/q", "one", "two"]).await.code, 0);
    // A shell reports each `sleep` that was ended by a signal.
    let script = "exec 2>&-; trap 'exit 7' TERM; echo ready; while :; do sleep 0.02; done";
    let (stderr, _reader) = full();
    let mut log = Run::of(command(connect, ["-v", "lock", "/a", "--", "sh", "-c", script]).stderr(stderr));
    let (stderr, _reader) = full();
    let words = ["queue", "take", "/q", "--follow", "--", "sh", "-c", "echo ready; exit 1"];
    let mut remarks = Run::of(command(connect, words).stderr(stderr));
    assert_eq!(log.line().await, "ready");
    log.signal(Signal::TERM);
    assert_eq!(log.end().await.code, 7);
    // The first report appears in between.
    assert_eq!((remarks.line().await, remarks.line().await), ("ready".to_owned(), "ready".to_owned()));
    remarks.signal(Signal::TERM);
    assert_eq!(remarks.end().await.code, 128 + 15);
}

/// Sends an oversized frame, and waits until the server closes the connection, which it logs.
async fn refused(connect: &str) {
    let mut link = TcpStream::connect(connect).await.unwrap();
    link.write_all(&i32::MAX.to_be_bytes()).await.unwrap();
    let mut read = Vec::new();
    timeout(PATIENCE, link.read_to_end(&mut read))
        .await
        .expect("the server must close the connection")
        .unwrap();
    assert!(read.is_empty());
}

#[tokio::test]
async fn a_development_server_serves_even_if_its_log_cannot_be_written() {
    let (stalled, _reader) = full();
    let [no_space, closed] = unwritable();
    for stderr in [stalled, no_space, closed] {
        let mut server = Run::of(command("", ["-vv", "dev", "--port", "0"]).stderr(stderr));
        let connect = server.line().await;
        for _ in 0..10 {
            refused(&connect).await;
        }
        let client = Client::connect(&connect).await.unwrap();
        client.create("/a", "", docent::CreateMode::Persistent).await.unwrap();
        client.close().await;
        server.signal(Signal::TERM);
        assert_eq!(server.end().await.code, 0);
    }
}

#[tokio::test]
async fn a_development_server_serves_and_ends_while_its_first_line_is_not_read() {
    let (stdout, _reader) = full();
    let port = Port::claim().unwrap();
    let (number, connect) = (port.address().port().to_string(), port.connect_string());
    let mut dev = command("", ["dev", "--port", &number]).stdout(stdout).spawn().unwrap();
    let listens = async || TcpStream::connect(&connect).await.is_ok();
    eventually(PATIENCE, listens, |listens| *listens).await.unwrap();
    Client::connect(&connect).await.unwrap().close().await;
    send(dev.id().unwrap().try_into().unwrap(), Signal::TERM);
    let ended = timeout(PATIENCE, dev.wait()).await.expect("it ends").unwrap();
    assert_eq!(ended.code(), Some(0));
}
