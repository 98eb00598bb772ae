//! `Semaphore` of Docent and kazoo. Their nodes differ, so neither counts the other's permits, but both use
//! the same node for the limit.

use crate::beside_kazoo;
use crate::client::both;
use docent::Semaphore;
use docent_battery::Backend;
use docent_tests::soon;

beside_kazoo! {
    async fn kazoos_semaphore_counts_docents_folders_as_leases(backend: Backend) {
        let server = backend.start().await;
        let (client, kazoo) = both(&server).await;
        let own = Semaphore::new(&client, "/limits/exports", 2).unwrap();
        let _permits = soon(own.acquire_many(2)).await.unwrap();
        kazoo.make("semaphore /limits/exports 2").await.refused("try").await;
        // Both store the limit in the same place, and a different limit is an error for either.
        let error = kazoo.make("semaphore /limits/exports 3").await.start("try").failed().await;
        assert!(error.contains("Inconsistent max leases: 2, expected: 3"), "{error}");
    }
}
