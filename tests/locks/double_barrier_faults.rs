//! A double barrier survives faults of its members' links, sessions, futures and clients.

use crate::{builder, connect};
use docent::{Client, CreateMode, DoubleBarrier, Error, ErrorKind};
use docent_battery::battery::abandon_at;
use docent_battery::{Backend, FrameKind, Proxy, Rule, TestServer, both_backends};
use docent_proto::OpCode;
use docent_tests::soon;
use futures_util::stream::{self, StreamExt};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// More polls than any operation needs.
const MOST_POLLS: usize = 100;

/// A member's order: the first waits, the second admits both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Arrival {
    First,
    Second,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    ResetBefore,
    ResetAfter,
    Expired,
}

/// Two members: ours, and another one whose link is intact.
struct Pair {
    path: String,
    client: Client,
    other: Client,
}

impl Pair {
    fn new(client: &Client, other: &Client) -> Self {
        static PAIRS: AtomicUsize = AtomicUsize::new(0);
        let path = format!("/barriers/{}", PAIRS.fetch_add(1, Ordering::Relaxed));
        Self { path, client: client.clone(), other: other.clone() }
    }

    fn of(&self, client: &Client) -> DoubleBarrier {
        DoubleBarrier::new(client, &self.path, 2).unwrap()
    }

    /// Names of the members and of `ready`.
    async fn names(&self) -> Vec<String> {
        self.other.children(&self.path).await.map(|children| children.names).unwrap_or_default()
    }

    async fn until_members(&self, count: usize) {
        let members = async || self.names().await.iter().filter(|name| *name != "ready").count();
        soon(async { while members().await != count {} }).await;
    }

    /// Lets both members enter and leave. Neither is admitted alone, and no node remains.
    async fn round(&self, arrival: Arrival) {
        let (client, other) = (self.of(&self.client), self.of(&self.other));
        let entered = async {
            match arrival {
                Arrival::First => tokio::join!(client.enter(), async {
                    self.until_members(1).await;
                    other.enter().await
                }),
                Arrival::Second => tokio::join!(
                    async {
                        self.until_members(1).await;
                        client.enter().await
                    },
                    other.enter()
                ),
            }
        };
        let (client, other) = soon(entered).await;
        let (client, other) = (client.unwrap(), other.unwrap());
        let names = self.names().await;
        assert!(names.len() <= 3, "a member was doubled: {names:?}");
        let (left, also) = soon(async { tokio::join!(client.leave(), other.leave()) }).await;
        left.and(also).unwrap();
        self.until_members(0).await;
    }
}

/// The requests of a round, each with its ordinal among requests of the same kind.
async fn requests(pair: &Pair, proxy: &Proxy, arrival: Arrival) -> Vec<(OpCode, usize)> {
    let before = proxy.trace().len();
    pair.round(arrival).await;
    let mut requests: Vec<(OpCode, usize)> = Vec::new();
    for frame in &proxy.trace()[before..] {
        if let (FrameKind::Request, Some(op)) = (frame.kind, frame.op.filter(|op| *op != OpCode::Ping)) {
            requests.push((op, 1 + requests.iter().filter(|(one, _)| *one == op).count()));
        }
    }
    requests
}

async fn behind_a_proxy(server: &TestServer) -> (Client, Proxy) {
    let proxy = server.proxy().await;
    (builder(server, proxy.connect_string()).connect().await.unwrap(), proxy)
}

/// Runs a round with a fault, and repeats it if the fault did not occur. The member that leaves last is
/// random in each round, so rounds differ in their number of requests.
async fn broken(server: &TestServer, other: &Client, arrival: Arrival, op: OpCode, nth: usize, fault: Fault) {
    let (client, proxy) = behind_a_proxy(server).await;
    let session = client.session_id().unwrap();
    let on = Rule::on(op).nth(nth);
    let rule = proxy.add(match fault {
        Fault::ResetBefore => on.reset_before(),
        Fault::ResetAfter => on.reset_after(),
        Fault::Expired => on.cut_after(),
    });
    let mut breaking = pin!(async {
        rule.fired().await;
        if fault == Fault::Expired {
            server.expire(session).await.unwrap();
            proxy.heal().await.unwrap();
        }
    });
    for _ in 0..20 {
        let pair = Pair::new(&client, other);
        let mut round = pin!(pair.round(arrival));
        tokio::select! {
            () = &mut round => {}
            () = &mut breaking => return round.await,
        }
        if rule.has_fired() {
            soon(breaking).await;
            return pair.round(arrival).await;
        }
    }
    panic!("{op:?} {nth} was never sent");
}

/// Checks for an error that is documented for a closed client.
fn is_closed(error: &Error) -> bool {
    error.kind() == ErrorKind::Closed
}

both_backends! {
    async fn a_link_that_breaks_or_a_session_that_ends_at_any_request_blocks_no_member(backend: Backend) {
        let server = backend.start().await;
        let other = connect(&server).await;
        // Creates the folder of markers, so no round creates it.
        other.create("/first", "", CreateMode::Ephemeral).await.unwrap();
        let (client, proxy) = behind_a_proxy(&server).await;
        let mut cases = Vec::new();
        for arrival in [Arrival::First, Arrival::Second] {
            for (op, nth) in requests(&Pair::new(&client, &other), &proxy, arrival).await {
                for fault in [Fault::ResetBefore, Fault::ResetAfter, Fault::Expired] {
                    cases.push((arrival, op, nth, fault));
                }
            }
        }
        assert!(cases.len() > 40, "{cases:?}");
        let (server, other) = (&server, &other);
        stream::iter(cases)
            .for_each_concurrent(8, async |(arrival, op, nth, fault)| {
                let case = broken(server, other, arrival, op, nth, fault);
                let done = tokio::time::timeout(docent_tests::PATIENCE, case).await;
                done.unwrap_or_else(|_| panic!("{arrival:?}, {op:?} {nth}, {fault:?}: timed out"));
            })
            .await;
    }

    async fn an_enter_dropped_at_any_poll_leaves_no_member(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        // A single member blocks permanently at some poll.
        for polls in 0..8 {
            let pair = Pair::new(&client, &other);
            let barrier = pair.of(&client);
            let dropped = abandon_at(polls, barrier.enter());
            let done = tokio::time::timeout(Duration::from_millis(100), dropped).await;
            assert!(!matches!(done, Ok(Some(_))), "a member entered alone");
            pair.until_members(0).await;
            pair.round(Arrival::Second).await;
        }
        for polls in 0..MOST_POLLS {
            let pair = Pair::new(&client, &other);
            let barrier = pair.of(&other);
            let waiting = tokio::spawn(async move { barrier.enter().await });
            pair.until_members(1).await;
            let entered = soon(abandon_at(polls, pair.of(&client).enter())).await;
            let done = entered.is_some();
            let entered = match entered {
                Some(entered) => entered.unwrap(),
                None => {
                    pair.until_members(1).await;
                    // The other member waits, or was already admitted.
                    soon(pair.of(&client).enter()).await.unwrap()
                }
            };
            let other = soon(waiting).await.unwrap().unwrap();
            let (left, also) = soon(async { tokio::join!(entered.leave(), other.leave()) }).await;
            left.and(also).unwrap();
            pair.until_members(0).await;
            if done {
                return;
            }
        }
        panic!("had not entered after {MOST_POLLS} polls");
    }

    async fn a_leave_dropped_at_any_poll_completes_and_blocks_no_member(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        for polls in 0..MOST_POLLS {
            let pair = Pair::new(&client, &other);
            let (one, two) = (pair.of(&client), pair.of(&other));
            let (one, two) = soon(async { tokio::join!(one.enter(), two.enter()) }).await;
            let leaving = tokio::spawn(two.unwrap().leave());
            let left = soon(abandon_at(polls, one.unwrap().leave())).await;
            soon(leaving).await.unwrap().unwrap();
            pair.until_members(0).await;
            // Whatever this round left behind, the next round works normally.
            pair.round(Arrival::First).await;
            if let Some(left) = left {
                return left.unwrap();
            }
        }
        panic!("had not left after {MOST_POLLS} polls");
    }

    async fn a_client_closed_at_any_poll_ends_enter_and_leave_and_its_member(backend: Backend) {
        let server = backend.start().await;
        let other = connect(&server).await;
        for polls in 0..MOST_POLLS {
            let client = connect(&server).await;
            let pair = Pair::new(&client, &other);
            let barrier = pair.of(&other);
            let waiting = tokio::spawn(async move { barrier.enter().await });
            pair.until_members(1).await;
            let barrier = pair.of(&client);
            let (done, entered) = closed_at(polls, &client, barrier.enter()).await;
            if let Err(error) = &entered {
                assert!(is_closed(error), "{polls} polls: {error}");
            }
            pair.until_members(1).await;
            // The other member waits, or was already admitted.
            let newcomer = connect(&server).await;
            let entered = soon(pair.of(&newcomer).enter()).await.unwrap();
            let also = soon(waiting).await.unwrap().unwrap();

            let (left, also) = soon(async {
                tokio::join!(closed_at(polls, &newcomer, entered.leave()), also.leave())
            })
            .await;
            also.unwrap();
            assert!(left.1.as_ref().err().is_none_or(|error: &Error| error.kind() == ErrorKind::Closed), "{left:?}");
            pair.until_members(0).await;
            if done && left.0 {
                return;
            }
        }
        panic!("not done after {MOST_POLLS} polls");
    }
}

/// Closes the client after the given number of polls of `future`. Returns true if the future had completed by
/// then.
async fn closed_at<F: Future>(polls: usize, client: &Client, future: F) -> (bool, F::Output) {
    let mut future = pin!(future);
    if let Some(output) = soon(abandon_at(polls, future.as_mut())).await {
        soon(client.close()).await;
        return (true, output);
    }
    (false, soon(async { tokio::join!(future, client.close()) }).await.0)
}
