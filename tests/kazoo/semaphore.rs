//! `Semaphore` of both, whose nodes are not the same: neither counts what the other lets in. They share the
//! limit.

use crate::beside_kazoo;
use crate::client::both;
use docent::Semaphore;
use docent_battery::Backend;
use docent_tests::soon;

beside_kazoo! {
    async fn kazoos_semaphore_takes_our_folders_for_leases(backend: Backend) {
        let server = backend.start().await;
        let (client, kazoo) = both(&server).await;
        let ours = Semaphore::new(&client, "/limits/exports", 2).unwrap();
        let _permits = soon(ours.acquire_many(2)).await.unwrap();
        kazoo.make("semaphore /limits/exports 2").await.refused("try").await;
        // The limit is kept in the same place, and a different one is an error for either.
        let error = kazoo.make("semaphore /limits/exports 3").await.tell("try").failed().await;
        assert!(error.contains("Inconsistent max leases: 2, expected: 3"), "{error}");
    }
}
