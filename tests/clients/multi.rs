//! Transactions.

use crate::family::{Family, Other};
use crate::for_clients;
use docent_battery::Backend;

for_clients! {
    [Kazoo, Java, C] async fn a_multi_is_applied_completely_or_not_at_all(family: Family, backend: Backend) {
        let server = backend.start().await;
        let other = Other::start(family, &server).await;
        let session = other.session().await;
        session.done("create persistent /a x").await;

        let results =
            session.done("multi check:/a:0 create:/a/b:x set:/a:y:0 delete:/a/b:0 create:/c:x").await;
        assert_eq!(results[..], ["check", "created=/a/b", "set=1", "delete", "created=/c"]);
        assert_eq!(session.done("get /a").await, ["y", "1"]);
        assert_eq!(session.done("children /").await, ["a", "c"]);

        let results = session.done("multi create:/d:x set:/a:z:1 check:/c:7 delete:/c:-1").await;
        assert_eq!(results[..], ["rolledback", "rolledback", "badversion", "runtimeinconsistency"]);
        let results = session.done("multi delete:/nowhere:-1 create:/d:x").await;
        assert_eq!(results[..], ["nonode", "runtimeinconsistency"]);
        assert_eq!(session.done("get /a").await, ["y", "1"]);
        assert_eq!(session.done("children /").await, ["a", "c"]);
    }
}
