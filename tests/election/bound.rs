//! Operations bound to a leadership end when the leadership is lost.

use crate::candidate::election;
use docent::{CreateMode, Mutex, Released};
use docent_battery::{Backend, TestServer, both_backends};
use docent_tests::bound::{WAITS, Waits, ends_with, patient, until_lost};
use docent_tests::soon;
use futures_util::future::{FutureExt, join_all};

/// Operation that a leader waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Commit,
    Proclaim,
    Verify,
    Resign,
}

const OPERATIONS: [Operation; 4] =
    [Operation::Commit, Operation::Proclaim, Operation::Verify, Operation::Resign];

async fn operation_ends_with_its_term(server: &TestServer, operation: Operation, waits: Waits) {
    let (client, proxy) = patient(server).await;
    let leadership = soon(election(&client).campaign()).await.unwrap();
    // Creates the marker that later exact writes use.
    soon(leadership.proclaim("first")).await.unwrap();
    // A guard of the same session has the same lease, and reports its end.
    let witness = soon(Mutex::new(&client, "/witness").unwrap().acquire()).await.unwrap();
    waits.begin(&proxy).await;
    let run = match operation {
        Operation::Commit => {
            let transaction = leadership.transaction().create("/late", "", CreateMode::Persistent);
            transaction.commit().map(|done| done.map(drop)).boxed()
        }
        Operation::Proclaim => leadership.proclaim("late").boxed(),
        Operation::Verify => leadership.verify().boxed(),
        Operation::Resign => {
            let resigned = until_lost(&client, waits, witness.lost(), leadership.resign()).await;
            assert_eq!(resigned.unwrap(), Released::Pending, "{waits:?}");
            return;
        }
    };
    let error = ends_with(&client, waits, witness.lost(), run).await;
    let case = format!("{operation:?} {waits:?}: {error}");
    let may_be_applied = waits == Waits::Unanswered && operation != Operation::Verify;
    assert_eq!((error.is_lost(), error.may_have_applied()), (!may_be_applied, may_be_applied), "{case}");
}

both_backends! {
    async fn an_operation_bound_to_a_leadership_ends_when_that_is_lost(backend: Backend) {
        let cases = OPERATIONS.into_iter().flat_map(|operation| WAITS.map(|waits| (operation, waits)));
        // Each case has its own server.
        let run = async |(operation, waits)| {
            operation_ends_with_its_term(&backend.start().await, operation, waits).await;
        };
        join_all(cases.map(run)).await;
    }
}
