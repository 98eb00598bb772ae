//! A process that reports the heap memory per object: `measured CONNECT-STRING THING COUNT`, where THING is
//! `client` or `viewed`.
//!
//! The process prints `made` when the objects exist. After it has read a line, it prints the bytes per
//! object.

use cap::Cap;
use docent::discovery::{Registry, Service};
use docent::{Client, Error};
use std::alloc::System;
use std::env;
use std::error::Error as StdError;
use tokio::io::{AsyncBufReadExt, BufReader};

#[global_allocator]
static HEAP: Cap<System> = Cap::new(System, usize::MAX);

/// Number of clients that are created first, because the first clients create what all clients share.
const FIRST: usize = 8;

// One thread, so a reply to a request shows that earlier messages were processed.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn StdError>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [server, thing, count] = &arguments[..] else { return Err("expected 3 arguments".into()) };
    let count = count.parse()?;
    let first = clients(server, FIRST).await?;
    let registry = Registry::new(&first[0], "/services")?;
    let before = HEAP.allocated();
    let (mut made, mut viewed) = (Vec::new(), None::<Service<String>>);
    match &**thing {
        "client" => made = clients(server, count).await?,
        "viewed" => viewed = Some(registry.typed_service("orders").await?),
        _ => return Err("unknown thing".into()),
    }
    println!("made");
    BufReader::new(tokio::io::stdin()).read_line(&mut String::new()).await?;
    first[0].exists("/").await?;
    println!("{}", (HEAP.allocated() - before) / count);
    drop((made, viewed));
    Ok(())
}

async fn clients(server: &str, count: usize) -> Result<Vec<Client>, Error> {
    let mut clients = Vec::with_capacity(count);
    for _ in 0..count {
        clients.push(Client::connect(server).await?);
    }
    Ok(clients)
}
