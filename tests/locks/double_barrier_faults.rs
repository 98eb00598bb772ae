//! A double barrier stands what happens to links, sessions, futures and clients of its members.

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

/// More polls than any operation takes.
const MOST_POLLS: usize = 100;

/// Order of a member: the first waits; the second lets both in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comes {
    First,
    Second,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    ResetBefore,
    ResetAfter,
    Expired,
}

/// Two members: ours, and another whose link is sound.
struct Pair {
    path: String,
    ours: Client,
    other: Client,
}

impl Pair {
    fn new(ours: &Client, other: &Client) -> Self {
        static PAIRS: AtomicUsize = AtomicUsize::new(0);
        let path = format!("/barriers/{}", PAIRS.fetch_add(1, Ordering::Relaxed));
        Self { path, ours: ours.clone(), other: other.clone() }
    }

    fn of(&self, client: &Client) -> DoubleBarrier {
        DoubleBarrier::new(client, &self.path, 2).unwrap()
    }

    /// The names of members, and of `ready`.
    async fn names(&self) -> Vec<String> {
        self.other.children(&self.path).await.map(|children| children.names).unwrap_or_default()
    }

    async fn until_members(&self, count: usize) {
        let members = async || self.names().await.iter().filter(|name| *name != "ready").count();
        soon(async { while members().await != count {} }).await;
    }

    /// Both enter and leave: nobody is let in alone, and nothing is left.
    async fn round(&self, comes: Comes) {
        let (ours, other) = (self.of(&self.ours), self.of(&self.other));
        let entered = async {
            match comes {
                Comes::First => tokio::join!(ours.enter(), async {
                    self.until_members(1).await;
                    other.enter().await
                }),
                Comes::Second => tokio::join!(
                    async {
                        self.until_members(1).await;
                        ours.enter().await
                    },
                    other.enter()
                ),
            }
        };
        let (ours, other) = soon(entered).await;
        let (ours, other) = (ours.unwrap(), other.unwrap());
        let names = self.names().await;
        assert!(names.len() <= 3, "a member was doubled: {names:?}");
        let (left, also) = soon(async { tokio::join!(ours.leave(), other.leave()) }).await;
        left.and(also).unwrap();
        self.until_members(0).await;
    }
}

/// The requests of a round, each with how often it was there before.
async fn asked(pair: &Pair, proxy: &Proxy, comes: Comes) -> Vec<(OpCode, usize)> {
    let before = proxy.trace().len();
    pair.round(comes).await;
    let mut asked: Vec<(OpCode, usize)> = Vec::new();
    for frame in &proxy.trace()[before..] {
        if let (FrameKind::Request, Some(op)) = (frame.kind, frame.op.filter(|op| *op != OpCode::Ping)) {
            asked.push((op, 1 + asked.iter().filter(|(one, _)| *one == op).count()));
        }
    }
    asked
}

async fn behind_a_proxy(server: &TestServer) -> (Client, Proxy) {
    let proxy = server.proxy().await;
    (builder(server, proxy.connect_string()).connect().await.unwrap(), proxy)
}

/// Plays a round with a fault, and some more if it did not come: the member that leaves last is drawn in
/// each, so that one round has fewer requests than another.
async fn broken(server: &TestServer, other: &Client, comes: Comes, op: OpCode, nth: usize, fault: Fault) {
    let (ours, proxy) = behind_a_proxy(server).await;
    let session = ours.session_id().unwrap();
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
        let pair = Pair::new(&ours, other);
        let mut round = pin!(pair.round(comes));
        tokio::select! {
            () = &mut round => {}
            () = &mut breaking => return round.await,
        }
        if rule.has_fired() {
            soon(breaking).await;
            return pair.round(comes).await;
        }
    }
    panic!("{op:?} {nth} was never sent");
}

/// An error that is documented for a client that was closed.
fn is_closed(error: &Error) -> bool {
    error.kind() == ErrorKind::Closed
}

both_backends! {
    async fn a_link_that_breaks_or_a_session_that_ends_at_any_request_holds_nobody_up(backend: Backend) {
        let server = backend.start().await;
        let other = connect(&server).await;
        // The folder of markers is there from now on: no round makes it.
        other.create("/first", "", CreateMode::Ephemeral).await.unwrap();
        let (ours, proxy) = behind_a_proxy(&server).await;
        let mut cases = Vec::new();
        for comes in [Comes::First, Comes::Second] {
            for (op, nth) in asked(&Pair::new(&ours, &other), &proxy, comes).await {
                for fault in [Fault::ResetBefore, Fault::ResetAfter, Fault::Expired] {
                    cases.push((comes, op, nth, fault));
                }
            }
        }
        assert!(cases.len() > 40, "{cases:?}");
        let (server, other) = (&server, &other);
        stream::iter(cases)
            .for_each_concurrent(8, async |(comes, op, nth, fault)| {
                let case = broken(server, other, comes, op, nth, fault);
                let done = tokio::time::timeout(docent_tests::PATIENCE, case).await;
                done.unwrap_or_else(|_| panic!("{comes:?}, {op:?} {nth}, {fault:?}: it is stuck"));
            })
            .await;
    }

    async fn an_enter_dropped_at_any_poll_leaves_no_member(backend: Backend) {
        let server = backend.start().await;
        let (ours, other) = (connect(&server).await, connect(&server).await);
        // Alone it waits for good at some poll.
        for polls in 0..8 {
            let pair = Pair::new(&ours, &other);
            let barrier = pair.of(&ours);
            let dropped = abandon_at(polls, barrier.enter());
            let done = tokio::time::timeout(Duration::from_millis(100), dropped).await;
            assert!(!matches!(done, Ok(Some(_))), "it was let in alone");
            pair.until_members(0).await;
            pair.round(Comes::Second).await;
        }
        for polls in 0..MOST_POLLS {
            let pair = Pair::new(&ours, &other);
            let barrier = pair.of(&other);
            let waiting = tokio::spawn(async move { barrier.enter().await });
            pair.until_members(1).await;
            let entered = soon(abandon_at(polls, pair.of(&ours).enter())).await;
            let done = entered.is_some();
            let entered = match entered {
                Some(entered) => entered.unwrap(),
                None => {
                    pair.until_members(1).await;
                    // The other member waits, or was let in by then.
                    soon(pair.of(&ours).enter()).await.unwrap()
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
        panic!("it was not let in after {MOST_POLLS} polls");
    }

    async fn a_leave_dropped_at_any_poll_leaves_and_holds_nobody_up(backend: Backend) {
        let server = backend.start().await;
        let (ours, other) = (connect(&server).await, connect(&server).await);
        for polls in 0..MOST_POLLS {
            let pair = Pair::new(&ours, &other);
            let (one, two) = (pair.of(&ours), pair.of(&other));
            let (one, two) = soon(async { tokio::join!(one.enter(), two.enter()) }).await;
            let leaving = tokio::spawn(two.unwrap().leave());
            let left = soon(abandon_at(polls, one.unwrap().leave())).await;
            soon(leaving).await.unwrap().unwrap();
            pair.until_members(0).await;
            // The next round is as any other, whatever is left of this one.
            pair.round(Comes::First).await;
            if let Some(left) = left {
                return left.unwrap();
            }
        }
        panic!("it had not left after {MOST_POLLS} polls");
    }

    async fn a_client_closed_at_any_poll_ends_enter_and_leave_and_its_member(backend: Backend) {
        let server = backend.start().await;
        let other = connect(&server).await;
        for polls in 0..MOST_POLLS {
            let ours = connect(&server).await;
            let pair = Pair::new(&ours, &other);
            let barrier = pair.of(&other);
            let waiting = tokio::spawn(async move { barrier.enter().await });
            pair.until_members(1).await;
            let barrier = pair.of(&ours);
            let (done, entered) = closed_at(polls, &ours, barrier.enter()).await;
            if let Err(error) = &entered {
                assert!(is_closed(error), "{polls} polls: {error}");
            }
            pair.until_members(1).await;
            // The other member waits, or was let in by then.
            let comes = connect(&server).await;
            let entered = soon(pair.of(&comes).enter()).await.unwrap();
            let also = soon(waiting).await.unwrap().unwrap();

            let (left, also) = soon(async {
                tokio::join!(closed_at(polls, &comes, entered.leave()), also.leave())
            })
            .await;
            also.unwrap();
            assert!(left.1.as_ref().err().is_none_or(|error: &Error| error.kind() == ErrorKind::Closed), "{left:?}");
            pair.until_members(0).await;
            if done && left.0 {
                return;
            }
        }
        panic!("it was not done after {MOST_POLLS} polls");
    }
}

/// Closes the client after so many polls of `future`; true when that was done by then.
async fn closed_at<F: Future>(polls: usize, client: &Client, future: F) -> (bool, F::Output) {
    let mut future = pin!(future);
    if let Some(output) = soon(abandon_at(polls, future.as_mut())).await {
        soon(client.close()).await;
        return (true, output);
    }
    (false, soon(async { tokio::join!(future, client.close()) }).await.0)
}
