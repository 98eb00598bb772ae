//! Links that break, and a server that restarts.

use crate::family::{Family, Other};
use crate::for_clients;
use docent_battery::{Backend, TestServer};
use docent_tests::{SESSION, SHORT_SESSION};

/// Starts a client, and another whose links stay intact. The other is the C client: two tests that each hold
/// a JVM would wait forever for a second one.
async fn connect_both(family: Family, server: &TestServer) -> (Other<'_>, Other<'_>) {
    (Other::start(family, server).await, Other::start(Family::C, server).await)
}

for_clients! {
    [Kazoo, Java, C] async fn a_session_survives_a_new_link(family: Family, backend: Backend) {
        let server = backend.start().await;
        let other = Other::start(family, &server).await;
        let session = other.session().await;
        session.done("create ephemeral /mine x").await;
        let id = session.done("id").await;
        for _ in 0..3 {
            other.proxy().reset().await;
            session.done("until suspended").await;
            session.done("until connected").await;
            session.done("exists /mine").await;
        }
        assert_eq!(session.done("id").await, id);
    }

    [Java, C] async fn one_shot_watches_report_changes_during_a_disconnect(
        family: Family,
        backend: Backend
    ) {
        let server = backend.start().await;
        let (other, outside) = connect_both(family, &server).await;
        let (watching, acting) = (other.session().await, outside.session().await);
        for path in ["/changed", "/gone", "/parent", "/later"] {
            acting.done(&format!("create persistent {path} x")).await;
        }
        for watch in ["data /changed", "data /gone", "children /parent", "exists /made", "data /later"] {
            watching.done(&format!("watch {watch}")).await;
        }
        other.proxy().cut().await;
        for change in ["set /changed y -1", "delete /gone -1"] {
            acting.done(change).await;
        }
        acting.done("create persistent /parent/child x").await;
        acting.done("create persistent /made x").await;
        other.proxy().heal().await.unwrap();

        let mut events = Vec::new();
        for _ in 0..4 {
            events.extend(watching.done("event").await);
        }
        events.sort();
        assert_eq!(events, ["changed:/changed", "child:/parent", "created:/made", "deleted:/gone"]);
        // Watches that have not fired yet are set again on the new link.
        acting.done("set /later y -1").await;
        assert_eq!(watching.done("event").await, ["changed:/later"]);
    }

    [Java] async fn persistent_watches_survive_a_new_link(family: Family, backend: Backend) {
        let server = backend.start().await;
        let (other, outside) = connect_both(family, &server).await;
        let (watching, acting) = (other.session().await, outside.session().await);
        watching.done("watch persistent /a").await;
        watching.done("watch recursive /b").await;
        other.proxy().reset().await;
        watching.done("until suspended").await;
        watching.done("until connected").await;
        // Watches are set again after a reconnect, and earlier changes are not reported. This request shows
        // that they are set.
        watching.refused("exists /a").await;
        acting.done("create persistent /a x").await;
        acting.done("create persistent /b x").await;
        acting.done("create persistent /b/c x").await;
        for event in ["created:/a", "created:/b", "created:/b/c"] {
            assert_eq!(watching.done("event").await, [event]);
        }
    }

    [Kazoo, Java, C] async fn a_session_outlives_a_restart_of_the_server(family: Family, backend: Backend) {
        let server = backend.start_own().await;
        let other = Other::start(family, &server).await;
        // A restart of a real server may take longer than a short session timeout.
        let session = other.session_with(7 * SESSION).await;
        session.done("create ephemeral /mine x").await;
        let id = session.done("id").await;
        server.stop().await;
        session.done("until suspended").await;
        // A real server that has not completely started may accept a link and not answer. Kazoo would wait
        // for the answer until its session has expired.
        other.proxy().cut().await;
        server.start_again().await;
        other.proxy().heal().await.unwrap();
        session.done("until connected").await;
        assert_eq!(session.done("get /mine").await, ["x", "0"]);
        assert_eq!(session.done("set /mine y 0").await, ["1"]);
        assert_eq!(session.done("id").await, id);
    }

    [Kazoo, Java, C] async fn a_session_that_was_disconnected_for_too_long_expires(
        family: Family,
        backend: Backend
    ) {
        let server = backend.start().await;
        let (other, outside) = connect_both(family, &server).await;
        let (session, watching) = (other.session_with(SHORT_SESSION).await, outside.session().await);
        session.done("create ephemeral /mine x").await;
        watching.done("watch exists /mine").await;
        other.proxy().cut().await;
        assert_eq!(watching.done("event").await, ["deleted:/mine"]);
        other.proxy().heal().await.unwrap();
        session.done("until expired").await;
    }

    [Kazoo, Java, C] async fn a_crash_ends_the_session_after_its_timeout(family: Family, backend: Backend) {
        let server = backend.start().await;
        let (mut other, outside) = connect_both(family, &server).await;
        let watching = outside.session().await;
        other.session_with(SHORT_SESSION).await.done("create ephemeral /mine x").await;
        watching.done("watch exists /mine").await;
        other.kill();
        assert_eq!(watching.done("event").await, ["deleted:/mine"]);
    }
}
