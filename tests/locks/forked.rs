//! Forks after its client was used, as a server with worker processes does: `forked CONNECT-STRING
//! NAMESPACE`.
//!
//! Each of the two processes acquires a lock and prints the path of its node.

use docent::{Client, Mutex};
use fork::{Fork, fork, waitpid};
use std::error::Error;
use std::{env, io, process};
use tokio::runtime::{Builder, Runtime};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [connect_string, namespace] = &arguments[..] else {
        return Err("the arguments CONNECT-STRING NAMESPACE are required".into());
    };
    // The generator of ids has been used now. No other thread may exist, because a fork would not copy it.
    runtime()?.block_on(print_node(connect_string, namespace, "before"))?;
    match fork()? {
        Fork::Child => {
            runtime()?.block_on(print_node(connect_string, namespace, "worker"))?;
            process::exit(0);
        }
        Fork::Parent(child) => {
            runtime()?.block_on(print_node(connect_string, namespace, "worker"))?;
            waitpid(child)?;
        }
    }
    Ok(())
}

fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

async fn print_node(connect_string: &str, namespace: &str, process: &str) -> Result<(), Box<dyn Error>> {
    let client = Client::builder(connect_string).namespace(namespace).connect().await?;
    let guard = Mutex::new(&client, "/forked")?.acquire().await?;
    println!("{process} {}", guard.path());
    guard.release().await?;
    client.close().await;
    Ok(())
}
