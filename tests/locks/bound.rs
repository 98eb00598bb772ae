//! Operations that are bound to a guard end when the guard is lost, not at their own deadline.

use docent::locks::MutexGuard;
use docent::{
    Client, ConnectionState, CreateMode, Error, ErrorKind, LostReason, MultiLock, Mutex, Released, RwLock,
};
use docent_battery::{Backend, Proxy, Rule, TestServer, both_backends};
use docent_proto::OpCode;
use docent_tests::bound::{WAITS, Waits, ends_with, patient, until_lost};
use docent_tests::{connect, soon};
use futures_util::future::{BoxFuture, FutureExt, join_all};

async fn lock(client: &Client, path: &str) -> MutexGuard {
    soon(Mutex::new(client, path).unwrap().acquire()).await.unwrap()
}

/// An operation that a holder awaits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Commit,
    CommitExactly,
    Verify,
    VerifyAll,
    Release,
    ReleaseAll,
    Downgrade,
}

impl Operation {
    const ALL: [Self; 7] = [
        Self::Commit,
        Self::CommitExactly,
        Self::Verify,
        Self::VerifyAll,
        Self::Release,
        Self::ReleaseAll,
        Self::Downgrade,
    ];

    /// True for an operation that writes the caller's data.
    fn writes(self) -> bool {
        matches!(self, Self::Commit | Self::CommitExactly)
    }

    /// True for an operation that gives the guard up.
    fn releases(self) -> bool {
        matches!(self, Self::Release | Self::ReleaseAll)
    }

    /// Acquires a guard for the operation and returns the operation.
    async fn prepare(self, client: &Client) -> BoxFuture<'static, Result<Released, Error>> {
        let guard = async || lock(client, "/bound").await;
        let all = async || {
            let more = ["/bound", "/more"].map(|path| Mutex::new(client, path).unwrap());
            soon(MultiLock::new(&more).unwrap().acquire()).await.unwrap()
        };
        let write = |guard: &MutexGuard| guard.transaction().create("/late", "", CreateMode::Persistent);
        match self {
            Self::Commit => {
                let guard = guard().await;
                async move { write(&guard).commit().await.map(|_| Released::Done) }.boxed()
            }
            Self::CommitExactly => {
                let guard = guard().await;
                // Creates the marker for the next exact write.
                soon(guard.transaction().check("/", None).commit_exactly()).await.unwrap();
                async move { write(&guard).commit_exactly().await.map(|_| Released::Done) }.boxed()
            }
            Self::Verify => {
                let guard = guard().await;
                async move { guard.verify().await.map(|()| Released::Done) }.boxed()
            }
            Self::VerifyAll => {
                let all = all().await;
                async move { all.verify().await.map(|()| Released::Done) }.boxed()
            }
            Self::Release => guard().await.release().boxed(),
            Self::ReleaseAll => all().await.release().boxed(),
            Self::Downgrade => {
                let lock = RwLock::new(client, "/bound").unwrap();
                let guard = soon(lock.write()).await.unwrap();
                async move { guard.downgrade().await.map(|_| Released::Done) }.boxed()
            }
        }
    }
}

/// Waits until `client` has a link and all earlier requests were answered.
async fn caught_up(client: &Client, proxy: &Proxy) {
    proxy.heal().await.unwrap();
    proxy.reset().await;
    soon(client.state().reached(ConnectionState::Connected)).await.unwrap();
    soon(client.sync("/")).await.unwrap();
}

async fn operation_ends_with_its_guard(server: &TestServer, operation: Operation, waits: Waits) {
    let (client, proxy) = patient(server).await;
    let other = connect(server).await;
    let operation_itself = operation.prepare(&client).await;
    // Another guard of the same session, with the same lease, shows when the lease ends.
    let witness = lock(&client, "/witness").await;
    waits.begin(&proxy).await;
    let ended = until_lost(&client, waits, witness.lost(), operation_itself).await;
    let case = format!("{operation:?} {waits:?}: {ended:?}");
    if operation.releases() {
        assert_eq!(ended.unwrap(), Released::Pending, "{case}");
    } else {
        ends_with_an_error(operation, waits, &ended.unwrap_err());
    }
    drop(witness);
    caught_up(&client, &proxy).await;
    if waits == Waits::Unsent {
        assert!(other.exists("/late").await.unwrap().is_none(), "{case}: the request was sent later");
    }
    // The guards leave nothing in the lines.
    for path in ["/more", "/witness"] {
        drop(lock(&other, path).await);
    }
    match operation {
        // A reader's node may have been created and still be waiting for its delete.
        Operation::Downgrade => drop(soon(RwLock::new(&other, "/bound").unwrap().write()).await.unwrap()),
        _ => drop(lock(&other, "/bound").await),
    }
    soon(client.close()).await;
}

fn ends_with_an_error(operation: Operation, waits: Waits, error: &Error) {
    let case = format!("{operation:?} {waits:?}: {error}");
    assert!(!error.is_retryable(), "{case}");
    if waits == Waits::Unanswered && operation.writes() {
        // The write may have been applied, and the error says so.
        assert_eq!((error.kind(), error.may_have_applied()), (ErrorKind::OutcomeUnknown, true), "{case}");
        assert!(error.to_string().contains("the guard was lost"), "{case}");
    } else {
        let lost = ErrorKind::Lost(LostReason::LeaseExpired);
        assert_eq!((error.kind(), error.may_have_applied()), (lost, false), "{case}");
    }
}

both_backends! {
    async fn an_operation_bound_to_a_guard_ends_when_the_guard_is_lost(backend: Backend) {
        let cases = Operation::ALL.into_iter().flat_map(|operation| WAITS.map(|waits| (operation, waits)));
        // Each case runs in a separate tree.
        let run = async |(operation, waits)| {
            operation_ends_with_its_guard(&backend.start().await, operation, waits).await;
        };
        join_all(cases.map(run)).await;
    }

    async fn a_holder_that_waits_for_its_commit_learns_of_its_loss_before_the_next_holder(backend: Backend) {
        let server = backend.start().await;
        let (client, proxy) = patient(&server).await;
        let next = connect(&server).await;
        let guard = lock(&client, "/lock").await;
        let waiting = tokio::spawn(Mutex::new(&next, "/lock").unwrap().acquire());
        crate::order::until_waiting(&Mutex::new(&next, "/lock").unwrap(), 2).await;
        proxy.cut().await;
        let commit = guard.transaction().create("/late", "", CreateMode::Persistent).commit();
        let knows = tokio::select! {
            biased;
            done = soon(commit) => done.unwrap_err(),
            _ = waiting => panic!("the next client holds first"),
        };
        assert!(knows.is_lost() && !guard.is_held(), "{knows}");
    }

    async fn an_exact_write_that_waits_for_a_marker_ends_with_its_guard(backend: Backend) {
        let server = backend.start().await;
        let (client, proxy) = patient(&server).await;
        let guard = lock(&client, "/bound").await;
        proxy.cut().await;
        // The maximum number of markers per session is in use; all of them wait to be created.
        let other_clients: Vec<_> = (0..64).map(|n| {
            let client = client.clone();
            let path = format!("/other-{n}");
            tokio::spawn(async move { client.transaction().create(&path, "", CreateMode::Persistent).commit_exactly().await })
        }).collect();
        let write = guard.transaction().create("/late", "", CreateMode::Persistent).commit_exactly();
        let error = ends_with(&client, Waits::Unsent, guard.lost(), write).await;
        assert!(error.is_lost() && !error.may_have_applied(), "{error}");
        proxy.heal().await.unwrap();
        for other in other_clients {
            soon(other).await.unwrap().unwrap();
        }
        assert!(client.exists("/late").await.unwrap().is_none());
    }

    async fn an_exact_write_whose_outcome_is_being_checked_ends_with_its_guard(backend: Backend) {
        let server = backend.start().await;
        let (client, proxy) = patient(&server).await;
        let guard = lock(&client, "/bound").await;
        soon(guard.transaction().check("/", None).commit_exactly()).await.unwrap();
        let cut = proxy.add(Rule::on(OpCode::Multi).path(|path| path.ends_with("/late")).cut_after());
        let write = guard.transaction().create("/late", "", CreateMode::Persistent).commit_exactly();
        let lost = async {
            soon(cut.fired()).await;
            guard.lost().await
        };
        let error = ends_with(&client, Waits::Unsent, lost, write).await;
        assert_eq!((error.kind(), error.may_have_applied()), (ErrorKind::OutcomeUnknown, true), "{error}");
        assert!(error.to_string().contains("the guard was lost"), "{error}");
    }
}

mod process {
    use super::{Operation, lock};
    use docent::{Client, ErrorKind, LostReason};
    use docent_battery::{Backend, both_backends_in_real_time};
    use docent_proto::OpCode;
    use docent_tests::{SHORT_SESSION, Stalled, builder, connect, soon};

    both_backends_in_real_time! {
        async fn a_process_suspended_beyond_its_lease_does_not_send_its_commit(backend: Backend) {
            let server = backend.start().await;
            let other = connect(&server).await;
            for operation in [Operation::Commit, Operation::CommitExactly] {
                let proxy = server.proxy().await;
                let connecting = builder(&server, proxy.connect_string()).session_timeout(SHORT_SESSION);
                let prepare = async move |client: &Client| operation.prepare(client).await;
                let holder = Stalled::after(connecting, prepare, async |commit| commit.await).await;
                // When the next lock is acquired, the servers have ended the session.
                let next = lock(&other, "/bound").await;
                let before = proxy.trace().len();
                let error = holder.resume().await.unwrap_err();
                let lost = ErrorKind::Lost(LostReason::LeaseExpired);
                assert_eq!((error.kind(), error.may_have_applied()), (lost, false), "{operation:?}: {error}");
                assert!(!proxy.trace()[before..].iter().any(|frame| frame.is_request(OpCode::Multi)), "{operation:?}");
                soon(next.release()).await.unwrap();
            }
        }
    }
}
