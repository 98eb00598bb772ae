//! Watches of all kinds.

use crate::family::{Family, Other};
use crate::for_clients;
use docent_battery::Backend;
use docent_battery::peer::PeerRecipe;

/// Checks the next events, in order.
async fn events(session: &PeerRecipe<'_>, expected: &[&str]) {
    for event in expected {
        assert_eq!(session.done("event").await, [*event]);
    }
}

/// Checks that no other event was pending: the next event belongs to a node that this function creates.
async fn nothing_else(watching: &PeerRecipe<'_>, acting: &PeerRecipe<'_>) {
    watching.done("watch exists /last").await;
    acting.done("create persistent /last x").await;
    events(watching, &["created:/last"]).await;
    acting.done("delete /last 0").await;
}

for_clients! {
    [Kazoo, Java, C] async fn a_watch_of_each_kind_fires_once(family: Family, backend: Backend) {
        let server = backend.start().await;
        let other = Other::start(family, &server).await;
        let (watching, acting) = (other.session().await, other.session().await);
        acting.done("create persistent /a x").await;

        watching.done("watch data /a").await;
        acting.done("set /a y -1").await;
        events(&watching, &["changed:/a"]).await;
        watching.done("watch children /a").await;
        acting.done("create persistent /a/b x").await;
        events(&watching, &["child:/a"]).await;
        watching.done("watch exists /c").await;
        acting.done("create persistent /c x").await;
        events(&watching, &["created:/c"]).await;
        watching.done("watch data /c").await;
        acting.done("delete /c -1").await;
        events(&watching, &["deleted:/c"]).await;
        watching.done("watch children /a/b").await;
        acting.done("delete /a/b -1").await;
        events(&watching, &["deleted:/a/b"]).await;

        acting.done("set /a z -1").await;
        acting.done("create persistent /a/b x").await;
        nothing_else(&watching, &acting).await;
    }

    [Kazoo] async fn its_watch_recipes_follow_a_node_over_a_lost_link(family: Family, backend: Backend) {
        let server = backend.start().await;
        let (other, outside) = (Other::start(family, &server).await, Other::start(family, &server).await);
        let (watching, acting) = (other.session().await, outside.session().await);
        acting.done("create persistent /a 0").await;
        watching.done("follow data /a").await;
        events(&watching, &["0"]).await;
        watching.done("follow children /a").await;
        events(&watching, &["children"]).await;
        for round in 1..=20 {
            acting.done(&format!("set /a {round} -1")).await;
            events(&watching, &[&round.to_string()]).await;
        }
        acting.done("create persistent /a/b x").await;
        events(&watching, &["children,b"]).await;

        other.proxy().cut().await;
        watching.done("until suspended").await;
        acting.done("set /a meanwhile -1").await;
        other.proxy().heal().await.unwrap();
        events(&watching, &["meanwhile"]).await;
        acting.done("delete /a/b -1").await;
        events(&watching, &["children"]).await;
        acting.done("delete /a -1").await;
        events(&watching, &["gone"]).await;
    }

    [Java, C] async fn a_watch_that_was_removed_is_silent(family: Family, backend: Backend) {
        let server = backend.start().await;
        let other = Other::start(family, &server).await;
        let (watching, acting) = (other.session().await, other.session().await);
        acting.done("create persistent /a x").await;

        for kind in ["data", "children"] {
            let none = watching.start(&format!("unwatch {kind} /a")).failed().await;
            assert_eq!(none, "nowatcher");
            watching.done(&format!("watch {kind} /a")).await;
            watching.done(&format!("unwatch {kind} /a")).await;
        }
        acting.done("set /a y -1").await;
        acting.done("create persistent /a/b x").await;
        nothing_else(&watching, &acting).await;

        // The watch of the other kind stays.
        watching.done("watch data /a").await;
        watching.done("watch children /a").await;
        watching.done("unwatch data /a").await;
        acting.done("set /a z -1").await;
        acting.done("delete /a/b -1").await;
        events(&watching, &["child:/a"]).await;
        nothing_else(&watching, &acting).await;
    }

    [Java] async fn a_persistent_watch_reports_each_change_until_it_is_removed(
        family: Family,
        backend: Backend
    ) {
        let server = backend.start().await;
        let other = Other::start(family, &server).await;
        let (watching, acting) = (other.session().await, other.session().await);
        watching.done("watch persistent /a").await;
        for _ in 0..2 {
            acting.done("create persistent /a x").await;
            acting.done("set /a y -1").await;
            acting.done("create persistent /a/b x").await;
            acting.done("set /a/b y -1").await;
            acting.done("delete /a/b -1").await;
            acting.done("delete /a -1").await;
            events(&watching, &["created:/a", "changed:/a", "child:/a", "child:/a", "deleted:/a"]).await;
        }
        watching.done("unwatch persistent /a").await;
        acting.done("create persistent /a x").await;
        nothing_else(&watching, &acting).await;
    }

    [Java] async fn a_recursive_watch_reports_a_whole_tree_until_it_is_removed(
        family: Family,
        backend: Backend
    ) {
        let server = backend.start().await;
        let other = Other::start(family, &server).await;
        let (watching, acting) = (other.session().await, other.session().await);
        watching.done("watch recursive /a").await;
        for _ in 0..2 {
            acting.done("create persistent /a x").await;
            acting.done("create persistent /a/b x").await;
            acting.done("create persistent /a/b/c x").await;
            acting.done("create persistent /ab x").await;
            acting.done("set /a/b/c y -1").await;
            for path in ["/a/b/c", "/a/b", "/a", "/ab"] {
                acting.done(&format!("delete {path} -1")).await;
            }
            events(&watching, &["created:/a", "created:/a/b", "created:/a/b/c", "changed:/a/b/c"]).await;
            events(&watching, &["deleted:/a/b/c", "deleted:/a/b", "deleted:/a"]).await;
        }
        watching.done("unwatch recursive /a").await;
        acting.done("create persistent /a x").await;
        nothing_else(&watching, &acting).await;
    }
}
