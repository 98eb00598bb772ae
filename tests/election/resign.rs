//! Terms that the leader ends on its own.

use crate::candidate::{election, until_candidates};
use docent::{LostReason, Mutex};
use docent_battery::{Backend, both_backends};
use docent_tests::{connect, soon};
use futures_util::FutureExt;

both_backends! {
    async fn a_leader_that_resigns_notifies_its_tasks_and_leaves_no_node(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let election = election(&client);
        for resigns in [true, false] {
            let leadership = soon(election.campaign()).await.unwrap();
            assert!(election.is_leader());
            let token = leadership.token();
            if resigns {
                soon(leadership.resign()).await.unwrap();
                assert_eq!(soon(election.candidates()).await.unwrap(), [], "the call returned before the delete was applied");
            } else {
                drop(leadership);
            }
            assert!(token.is_cancelled() && !election.is_leader());
            until_candidates(&election, 0).await;
        }
    }

    async fn a_revoked_leader_is_notified_and_leads_until_it_resigns(backend: Backend) {
        let server = backend.start().await;
        let (client, operator) = (connect(&server).await, connect(&server).await);
        let election = election(&client);
        let leadership = soon(election.campaign()).await.unwrap();
        assert!(leadership.revoked().now_or_never().is_none());
        // Sets the data that `docent revoke` sets.
        operator.set(&leadership.path(), "__REVOKE__", None).await.unwrap();
        soon(leadership.revoked()).await;
        assert!(leadership.is_held() && soon(leadership.verify()).await.is_ok());
        soon(leadership.resign()).await.unwrap();
    }

    async fn one_candidate_may_campaign_more_than_once_and_leads_term_after_term(backend: Backend) {
        let server = backend.start().await;
        let election = election(&connect(&server).await);
        let first = soon(election.campaign()).await.unwrap();
        let second = tokio::spawn(election.clone().campaign());
        until_candidates(&election, 2).await;
        assert!(!second.is_finished());
        let fence = first.fence();
        soon(first.resign()).await.unwrap();
        let second = soon(second).await.unwrap().unwrap();
        assert!(second.fence() > fence && election.is_leader());
    }

    async fn a_token_that_is_cancelled_by_its_user_ends_neither_leadership_nor_lock(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let leadership = soon(election(&client).campaign()).await.unwrap();
        let guard = soon(Mutex::new(&client, "/lock").unwrap().acquire()).await.unwrap();
        drop(leadership.token().drop_guard());
        drop(guard.token().drop_guard());
        assert!(!leadership.token().is_cancelled() && !guard.token().is_cancelled());
        assert_eq!(soon(leadership.run(async { 7 })).await, Ok(7));
        assert_eq!(soon(guard.run(async { 7 })).await, Ok(7));
        assert!(guard.lost().now_or_never().is_none() && leadership.lost().now_or_never().is_none());
    }

    async fn the_release_of_a_lock_does_not_cancel_its_token(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let guard = soon(Mutex::new(&client, "/lock").unwrap().acquire()).await.unwrap();
        let (token, transaction) = (guard.token(), guard.transaction().check("/", None));
        soon(guard.release()).await.unwrap();
        assert!(!token.is_cancelled());
        let error = soon(transaction.commit()).await.unwrap_err();
        assert_eq!(error.kind(), docent::ErrorKind::Lost(LostReason::Released));
    }
}

#[tokio::test]
async fn a_leadership_dropped_outside_a_runtime_resigns_and_does_not_panic() {
    let server = Backend::Embedded.start().await;
    let client = connect(&server).await;
    let election = election(&client);
    let leadership = soon(election.campaign()).await.unwrap();
    std::thread::spawn(move || drop(leadership)).join().unwrap();
    until_candidates(&election, 0).await;
}
