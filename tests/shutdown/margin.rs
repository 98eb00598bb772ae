//! Time that the work of a guard has to stop when a shutdown or close takes the guard away, in virtual time.

use docent::guard::Guard;
use docent::server::Server;
use docent::testkit::MemoryNet;
use docent::{Client, Election, Fence, Mutex, Queue};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Time between two checks of the guard by a working holder.
const STEP: Duration = Duration::from_millis(30);

/// Operation timeout of the clients. A close waits for guards for at most a quarter of it.
const OPERATION: Duration = Duration::from_secs(20);

#[derive(Debug, Clone, Copy)]
enum End {
    Shutdown,
    Close,
}

const ENDS: [End; 2] = [End::Shutdown, End::Close];

async fn clients() -> (Server, Client, Client) {
    let net = MemoryNet::new();
    let server = Server::builder().start_on(net.clone()).await.unwrap();
    let connect = || net.client(server.connect_string()).operation_timeout(OPERATION).connect();
    let (client, other) = (connect().await.unwrap(), connect().await.unwrap());
    (server, client, other)
}

async fn end(client: Client, end: End) {
    match end {
        End::Shutdown => drop(client.shutdown(Duration::from_secs(2)).await),
        End::Close => client.close().await,
    }
}

/// Works in steps until the guard is lost. Returns when the last step ended.
async fn work(guard: impl Guard) -> (Instant, Fence) {
    while guard.is_held() {
        sleep(STEP).await;
    }
    (Instant::now(), guard.fence().unwrap())
}

/// Ends the client of a holder that works in steps. The next holder must not start before the holder's last
/// step ended.
async fn ends_its_step<G: Guard + 'static, H: Guard>(
    how: End,
    client: Client,
    guard: G,
    next: impl Future<Output = H>,
) {
    let (working, ending) = (tokio::spawn(work(guard)), tokio::spawn(end(client, how)));
    let next = next.await;
    let began = Instant::now();
    let (ended, fence) = working.await.unwrap();
    assert!(ended <= began, "{how:?}: the next holder started {:?} before the step ended", ended - began);
    assert!(next.fence().unwrap() > fence);
    ending.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_holder_of_a_lost_lock_ends_its_step_before_the_next_one_begins() {
    for how in ENDS {
        let (_server, client, other) = clients().await;
        let guard = Mutex::new(&client, "/lock").unwrap().acquire().await.unwrap();
        let next = Mutex::new(&other, "/lock").unwrap();
        ends_its_step(how, client, guard, async { next.acquire().await.unwrap() }).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_loses_its_leadership_ends_its_step_before_the_next_one_leads() {
    for how in ENDS {
        let (_server, client, other) = clients().await;
        let guard = Election::new(&client, "/leader").unwrap().campaign().await.unwrap();
        let next = Election::new(&other, "/leader").unwrap();
        ends_its_step(how, client, guard, async { next.campaign().await.unwrap() }).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_consumer_that_loses_its_item_ends_its_step_before_the_next_one_gets_the_item() {
    for how in ENDS {
        let (_server, client, other) = clients().await;
        let jobs = Queue::<u64>::new(&client, "/jobs").unwrap();
        jobs.put(&1).await.unwrap();
        let guard = jobs.take().await.unwrap();
        let next = Queue::<u64>::new(&other, "/jobs").unwrap();
        ends_its_step(how, client, guard, async { next.take().await.unwrap() }).await;
    }
}

/// Returns the time that it takes to end a client whose guard is not dropped.
async fn close_time(how: End, operation: Duration) -> Duration {
    let net = MemoryNet::new();
    let server = Server::builder().start_on(net.clone()).await.unwrap();
    let client = net.client(server.connect_string()).operation_timeout(operation).connect().await.unwrap();
    let guard = Mutex::new(&client, "/lock").unwrap().acquire().await.unwrap();
    let began = Instant::now();
    end(client, how).await;
    assert!(!guard.is_held());
    began.elapsed()
}

#[tokio::test(start_paused = true)]
async fn a_guard_that_is_never_dropped_keeps_a_close_for_a_margin_at_most() {
    // The margin of a session of 20 s is a third of it.
    let took = close_time(End::Close, Duration::from_secs(60)).await;
    assert!((6_000..7_000).contains(&took.as_millis()), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_guard_that_is_never_dropped_leaves_a_close_the_time_to_end_the_session() {
    let took = close_time(End::Close, Duration::from_secs(8)).await;
    assert!(
        (1_900..2_200).contains(&took.as_millis()),
        "the close waits for a quarter of the operation timeout, not {took:?}"
    );
    let took = close_time(End::Shutdown, Duration::from_secs(60)).await;
    assert!(took < Duration::from_secs(2), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_guard_that_is_dropped_at_its_loss_costs_a_close_no_time() {
    let (_server, client, _other) = clients().await;
    let guard = Mutex::new(&client, "/lock").unwrap().acquire().await.unwrap();
    let holder = tokio::spawn(async move { drop((guard.lost().await, guard)) });
    let began = Instant::now();
    client.close().await;
    assert!(began.elapsed() < STEP, "{:?}", began.elapsed());
    holder.await.unwrap();
}
