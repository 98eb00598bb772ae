//! A client with the settings of its environment, which a test controls by lines of text.
//!
//! Its runtime has one thread. Each answer ends with whether the Kerberos library is still being called.

use docent::{Client, CreateMode, Options};
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;
use std::{fs, io};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::time::sleep;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let mut client = None;
    while let Ok(Some(line)) = lines.next_line().await {
        let answer = match line.split_once(' ').unwrap_or((&line, "")) {
            ("connect", _) => match connect().await {
                Ok(connected) => client.insert(connected).who_am_i().await.map_or_else(
                    |error| error.to_string(),
                    |identities| {
                        identities.iter().map(|one| format!("{}:{} ", one.scheme, one.name)).collect()
                    },
                ),
                Err(error) => format!("{:?}: {error}", error.kind()),
            },
            ("abandon", _) => abandon().await,
            ("create", path) => create(client.as_ref().expect("a client"), path).await,
            ("why", _) => format!("{:?}", client.as_ref().expect("a client").health().last_error),
            ("close", _) => {
                client.take().expect("a client").close().await;
                "closed".to_owned()
            }
            other => panic!("{other:?}"),
        };
        println!("{answer}; in a call: {}", is_called().expect("the list of threads"));
    }
}

async fn connect() -> Result<Client, docent::Error> {
    Options::from_env()?.builder()?.connect().await
}

/// Drops the future of a connect while the Kerberos library is called.
async fn abandon() -> String {
    let mut connecting = pin!(connect());
    loop {
        let polled = poll_fn(|cx| Poll::Ready(connecting.as_mut().poll(cx))).await;
        if polled.is_ready() {
            return format!("connected or failed before it was abandoned: {:?}", polled.map(Result::err));
        }
        if is_called().expect("the list of threads") {
            return "abandoned".to_owned();
        }
        sleep(Duration::from_millis(1)).await;
    }
}

async fn create(client: &Client, path: &str) -> String {
    let created = client.create(path, "", CreateMode::Persistent).await.map(|_| ());
    let entries = client.acl(path).await.map(|acl| acl.entries);
    let owners =
        entries.map(|all| all.iter().map(|one| format!("{}:{}", one.scheme, one.id)).collect::<Vec<_>>());
    let generation = client.state().current().generation;
    format!("{created:?} {owners:?} in generation {generation}")
}

/// Returns true if one of the threads on which the Kerberos library is called exists.
fn is_called() -> io::Result<bool> {
    for thread in fs::read_dir("/proc/self/task")? {
        // A thread may end meanwhile.
        let name = fs::read_to_string(thread?.path().join("comm")).unwrap_or_default();
        if name.trim_end() == "docent-kerberos" {
            return Ok(true);
        }
    }
    Ok(false)
}
