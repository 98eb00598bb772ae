//! Nodes of all kinds, and invalid requests.

use crate::family::{Family, Other};
use crate::for_clients;
use docent_battery::Backend;
use docent_battery::peer::PeerRecipe;

/// Sends an invalid request and checks its error.
async fn mistaken(session: &PeerRecipe<'_>, what: &str, error: &str) {
    assert_eq!(session.start(what).failed().await, error, "{what}");
}

for_clients! {
    [Kazoo, Java, C] async fn nodes_are_created_read_changed_and_deleted(family: Family, backend: Backend) {
        let server = backend.start().await;
        let other = Other::start(family, &server).await;
        let session = other.session().await;

        assert_eq!(session.done("create persistent /a one").await, ["/a"]);
        assert_eq!(session.done("create persistent /a/empty ").await, ["/a/empty"]);
        assert_eq!(session.done("create sequential /a/line- first").await, ["/a/line-0000000001"]);
        assert_eq!(session.done("create sequential /a/line- second").await, ["/a/line-0000000002"]);
        assert_eq!(session.done("create ephemeral-sequential /a/ x").await, ["/a/0000000003"]);
        let names = ["0000000003", "empty", "line-0000000001", "line-0000000002"];
        assert_eq!(session.done("children /a").await, names);

        assert_eq!(session.done("get /a").await, ["one", "0"]);
        assert_eq!(session.done("set /a two 0").await, ["1"]);
        assert_eq!(session.done("set /a three -1").await, ["2"]);
        assert_eq!(session.done("get /a").await, ["three", "2"]);
        assert_eq!(session.done("get /a/empty").await, ["", "0"]);
        session.done("exists /a/line-0000000001").await;
        session.refused("exists /b").await;

        for name in names {
            session.done(&format!("delete /a/{name} 0")).await;
        }
        session.done("delete /a 2").await;
        session.refused("exists /a").await;
        session.done("sync").await;
        session.done("close").await;
    }

    [Kazoo, Java, C] async fn errors_are_distinguished(family: Family, backend: Backend) {
        let server = backend.start().await;
        let other = Other::start(family, &server).await;
        let session = other.session().await;
        session.done("create persistent /a x").await;
        session.done("create persistent /a/b x").await;
        session.done("create ephemeral /mine x").await;

        mistaken(&session, "create persistent /a x", "nodeexists").await;
        mistaken(&session, "create persistent /nowhere/a x", "nonode").await;
        mistaken(&session, "create persistent /mine/child x", "nochildrenforephemerals").await;
        mistaken(&session, "get /nowhere", "nonode").await;
        mistaken(&session, "children /nowhere", "nonode").await;
        mistaken(&session, "set /a x 7", "badversion").await;
        mistaken(&session, "set /nowhere x -1", "nonode").await;
        mistaken(&session, "delete /a -1", "notempty").await;
        mistaken(&session, "delete /a/b 7", "badversion").await;
        mistaken(&session, "delete /nowhere -1", "nonode").await;
        mistaken(&session, "set-acl /a r unheard-of x", "invalidacl").await;
    }

    [Kazoo, Java, C] async fn ephemeral_nodes_are_deleted_with_their_session(family: Family, backend: Backend) {
        let server = backend.start().await;
        let other = Other::start(family, &server).await;
        let (watching, closed, expired) =
            (other.session().await, other.session().await, other.session().await);
        closed.done("create ephemeral /closed x").await;
        expired.done("create ephemeral /expired x").await;
        watching.done("create ephemeral /stays x").await;

        watching.done("watch exists /closed").await;
        closed.done("close").await;
        assert_eq!(watching.done("event").await, ["deleted:/closed"]);
        watching.done("watch exists /expired").await;
        other.expire(&expired).await;
        assert_eq!(watching.done("event").await, ["deleted:/expired"]);
        expired.done("until expired").await;
        assert_eq!(watching.done("children /").await, ["stays"]);
    }

    [Kazoo, Java, C] async fn a_megabyte_and_thousands_of_children_pass(family: Family, backend: Backend) {
        const BYTES: usize = 1_000_000;
        const CHILDREN: usize = 5_000;
        let server = backend.start().await;
        let other = Other::start(family, &server).await;
        let session = other.session().await;
        session.done(&format!("create persistent /big {}", "x".repeat(BYTES))).await;
        assert_eq!(session.done("length /big").await, [BYTES.to_string()]);
        session.done("create persistent /many ").await;
        session.done(&format!("fill /many {CHILDREN}")).await;
        let names = session.done("children /many").await;
        assert!(names.len() == CHILDREN && names[CHILDREN - 1] == "child-04999", "{}", names.len());
        // On a shared server the node would disturb other tests.
        session.done("delete /big 0").await;
    }

    [Java] async fn own_ephemeral_nodes_and_descendants_are_listed(family: Family, backend: Backend) {
        let server = backend.start().await;
        let other = Other::start(family, &server).await;
        let (session, stranger) = (other.session().await, other.session().await);
        for path in ["/a", "/a/b", "/a/b/c", "/ab"] {
            session.done(&format!("create persistent {path} x")).await;
        }
        session.done("create ephemeral /a/mine x").await;
        session.done("create ephemeral /ab/mine x").await;
        stranger.done("create ephemeral /a/theirs x").await;

        assert_eq!(session.done("count-all /a").await, ["4"]);
        assert_eq!(session.done("count-all /a/b/c").await, ["0"]);
        mistaken(&session, "count-all /nowhere", "nonode").await;
        // The client does not add or remove its root in these paths.
        let paths = |names: &[&str]| names.iter().map(|name| server.path(name)).collect::<Vec<_>>();
        let ephemerals = |path: &str| format!("ephemerals {}", server.path(path));
        assert_eq!(session.done(&ephemerals("a")).await, paths(&["a/mine", "ab/mine"]));
        assert_eq!(session.done(&ephemerals("a/m")).await, paths(&["a/mine"]));
        assert_eq!(stranger.done("ephemerals /").await, paths(&["a/theirs"]));
        assert_eq!(stranger.done("ephemerals /nowhere").await, [""; 0]);
    }

    [Java, C] async fn container_nodes_are_created(family: Family, backend: Backend) {
        let server = backend.start().await;
        let other = Other::start(family, &server).await;
        let session = other.session().await;
        assert_eq!(session.done("create container /box x").await, ["/box"]);
        session.done("create persistent /box/item x").await;
        assert_eq!(session.done("children /box").await, ["item"]);
        session.done("watch exists /box").await;
        session.done("delete /box/item -1").await;
        assert_eq!(session.done("event").await, ["deleted:/box"]);
    }
}
