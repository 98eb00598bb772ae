//! An instance of the service `orders` in a multithreaded process, which tests stop: `instance CONNECT-STRING
//! NAMESPACE TIMEOUT-MS TICK-MS ACT THREAD`.
//!
//! THREAD is `shared` or `dedicated`, the thread on which the client runs. The process prints `ready` when
//! the instance is registered and has been updated once. At the first line of its input it performs ACT,
//! which is `deregister` or `update`, prints `done`, and exits.

use docent::{Instance, Registry};
use docent_tests::contenders;
use std::error::Error;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::time::timeout;

/// Longer than a write takes. An update waits until the node of another process is deleted.
const UPDATE: Duration = Duration::from_millis(200);

fn orders(payload: &str) -> Instance<String> {
    Instance::new("orders", "10.0.0.7", 8080).id("one").payload(payload.to_owned())
}

#[tokio::main(worker_threads = 4)]
async fn main() -> Result<(), Box<dyn Error>> {
    let (builder, [act, thread]) = contenders::builder_in_process()?;
    let builder = match thread.as_str() {
        "shared" => builder,
        "dedicated" => builder.dedicated_thread(),
        thread => return Err(format!("unknown thread {thread:?}").into()),
    };
    let client = builder.connect().await?;
    let registration = Registry::new(&client, "/services")?.register(orders("old")).await?;
    registration.update(orders("old 1")).await?;
    println!("ready");
    if BufReader::new(tokio::io::stdin()).lines().next_line().await?.is_some() {
        match act.as_str() {
            "deregister" => drop(registration.deregister().await?),
            "update" => drop(timeout(UPDATE, registration.update(orders("late"))).await),
            act => return Err(format!("unknown act {act:?}").into()),
        }
        println!("done");
    }
    // Exits without closing the client, because a close would end unfinished work.
    std::process::exit(0)
}
