//! Permissions: credentials, access control lists, and the errors for missing permissions.

use docent::client::{ClientBuilder, ProvedIdentity};
use docent::node::{Acl, Permissions};
use docent::recipe::KeptNode;
use docent::server::Dialect;
use docent::{Client, CreateMode, ErrorKind, Mutex};
use docent_battery::{Backend, Rule, TestServer, both_backends};
use docent_proto::OpCode;
use docent_tests::{builder, connect, own_nodes, soon};

fn authenticated(server: &TestServer, password: &str) -> ClientBuilder {
    builder(server, server.connect_string()).auth_digest("user", password).allow_plaintext_auth()
}

async fn schemes(client: &Client, path: &str) -> Vec<(String, Permissions)> {
    let acl = client.acl(path).await.unwrap();
    acl.entries.into_iter().map(|entry| (entry.scheme, entry.permissions)).collect()
}

fn identity(proved: &[ProvedIdentity]) -> Vec<(&str, &str)> {
    let mut all: Vec<_> = proved.iter().map(|proved| (&*proved.scheme, &*proved.name)).collect();
    all.sort_unstable();
    all
}

both_backends! {
    async fn a_client_learns_its_identities_at_the_servers(backend: Backend) {
        let server = backend.start().await;
        let stranger = connect(&server).await.who_am_i().await.unwrap();
        assert_eq!(identity(&stranger), [("ip", "127.0.0.1")]);
        let client = authenticated(&server, "right").connect().await.unwrap();
        let known = client.who_am_i().await.unwrap();
        assert_eq!(identity(&known), [("digest", "user"), ("ip", "127.0.0.1")]);
        assert!(!format!("{known:?}").contains("right"), "no password: {known:?}");
    }

    async fn with_credentials_nodes_and_parents_are_the_creators_alone(backend: Backend) {
        let server = backend.start().await;
        let client = authenticated(&server, "right").connect().await.unwrap();
        let stranger = connect(&server).await;
        client.create("/a/b/c", "x", CreateMode::Persistent).await.unwrap();
        client.transaction().create("/a/t", "", CreateMode::Persistent).commit().await.unwrap();
        client.transaction().create("/a/e", "", CreateMode::Persistent).commit_exactly().await.unwrap();
        let kept = KeptNode::new(&client, "/a/kept", "").unwrap();
        soon(kept.present()).await.unwrap();
        let guard = soon(Mutex::new(&client, "/a/lock").unwrap().acquire()).await.unwrap();
        let ticket = format!("/a/lock/{}", client.children("/a/lock").await.unwrap().names[0]);
        let own = own_nodes(&client).await;
        let folder = own[0].rsplit_once('/').unwrap().0;
        for path in ["/a", "/a/b", "/a/b/c", "/a/t", "/a/e", "/a/kept", "/a/lock", &ticket, folder, &own[0]] {
            assert_eq!(schemes(&client, path).await, [("digest".to_owned(), Permissions::ALL)], "{path}");
            let error = stranger.get(path).await.unwrap_err();
            assert_eq!((error.kind(), error.path()), (ErrorKind::NoAuth, Some(path)));
        }
        soon(guard.release()).await.unwrap();
    }

    async fn without_credentials_nodes_are_open(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        client.create("/a/b", "", CreateMode::Persistent).await.unwrap();
        assert_eq!(client.acl("/a").await.unwrap().entries, [Acl::open_unsafe()]);
        assert_eq!(client.acl("/a/b").await.unwrap().entries, [Acl::open_unsafe()]);
    }

    async fn a_wrong_password_is_refused_at_the_first_protected_node_with_the_missing_permission(backend: Backend) {
        let server = backend.start().await;
        let owner = authenticated(&server, "right").connect().await.unwrap();
        owner.create("/a/b", "", CreateMode::Persistent).await.unwrap();
        let wrong = soon(authenticated(&server, "wrong").connect()).await.unwrap();
        let create = CreateMode::Persistent;
        let errors = [
            (wrong.get("/a").await.unwrap_err(), "/a", "needs READ"),
            (wrong.children("/a").await.unwrap_err(), "/a", "needs READ"),
            (wrong.set("/a", "", None).await.unwrap_err(), "/a", "needs WRITE"),
            (wrong.delete("/a/b", None).await.unwrap_err(), "/a/b", "needs DELETE on the parent"),
            (wrong.acl("/a").await.unwrap_err(), "/a", "needs READ or ADMIN"),
            (wrong.set_acl("/a", [Acl::open_unsafe()], None).await.unwrap_err(), "/a", "needs ADMIN"),
            (wrong.create("/a/c", "", create).await.unwrap_err(), "/a/c", "needs CREATE on the parent"),
            // The error names the parent that could not be created.
            (wrong.create("/a/c/d/e", "", create).await.unwrap_err(), "/a/c", "needs CREATE on the parent"),
            (
                wrong.transaction().check("/", None).set("/a", "", None).commit().await.unwrap_err(),
                "/a", "needs WRITE",
            ),
        ];
        for (error, path, needed) in errors {
            assert_eq!((error.kind(), error.path()), (ErrorKind::NoAuth, Some(path)), "{error}");
            assert!(error.to_string().contains(needed), "{error}");
            assert!(!error.is_retryable() && !error.may_have_applied());
        }
        for path in ["/a", "/a/c/lock"] {
            let error = soon(Mutex::new(&wrong, path).unwrap().acquire()).await.unwrap_err();
            assert!(error.to_string().contains("needs CREATE"), "{error}");
        }
        // The client with the right credentials is not confused with the wrong one: it has its own link.
        owner.get("/a").await.unwrap();
    }

    async fn a_leaf_below_a_parent_that_may_not_be_changed_can_be_created(backend: Backend) {
        let server = backend.start().await;
        let owner = authenticated(&server, "right").connect().await.unwrap();
        let acl = [Acl::creator_all(), Acl::read_all()];
        owner.create("/closed/open", "", CreateMode::Persistent).await.unwrap();
        owner.set_acl("/closed", acl, None).await.unwrap();
        owner.set_acl("/closed/open", [Acl::open_unsafe()], None).await.unwrap();
        let other = connect(&server).await;
        other.create("/closed/open/a/b", "", CreateMode::Persistent).await.unwrap();
        let kept = KeptNode::new(&other, "/closed/open/c/d", "").unwrap();
        soon(kept.present()).await.unwrap();
        soon(Mutex::new(&other, "/closed/open/e/f").unwrap().acquire()).await.unwrap().release().await.unwrap();
    }

    async fn lists_can_be_chosen_for_all_nodes_and_by_path(backend: Backend) {
        let server = backend.start().await;
        let partner = Acl::digest("partner", "word", Permissions::READ | Permissions::CREATE);
        let client = authenticated(&server, "right")
            .acl([Acl::creator_all(), Acl::read_all()])
            .acl_for(move |path| path.starts_with("/shared").then(|| vec![Acl::creator_all(), partner.clone()]))
            .connect().await.unwrap();
        client.create("/public/a", "", CreateMode::Persistent).await.unwrap();
        client.create("/shared/a", "", CreateMode::Persistent).await.unwrap();
        let stranger = connect(&server).await;
        stranger.get("/public/a").await.unwrap();
        assert_eq!(stranger.set("/public/a", "", None).await.unwrap_err().kind(), ErrorKind::NoAuth);
        assert_eq!(stranger.get("/shared/a").await.unwrap_err().kind(), ErrorKind::NoAuth);
        let partner = builder(&server, server.connect_string())
            .auth_digest("partner", "word").allow_plaintext_auth().connect().await.unwrap();
        partner.get("/shared/a").await.unwrap();
        partner.create("/shared/b", "", CreateMode::Persistent).await.unwrap();
        assert_eq!(partner.set("/shared/a", "", None).await.unwrap_err().kind(), ErrorKind::NoAuth);
    }

    async fn a_list_is_read_and_set_by_its_own_version(backend: Backend) {
        let server = backend.start().await;
        let client = authenticated(&server, "right").connect().await.unwrap();
        client.create("/a", "", CreateMode::Persistent).await.unwrap();
        let before = client.acl("/a").await.unwrap();
        assert_eq!(before.entries, [Acl::digest("user", "right", Permissions::ALL)]);
        let stat = client.set_acl("/a", [Acl::creator_all(), Acl::read_all()], before.stat.aversion).await.unwrap();
        assert_eq!(stat.aversion, before.stat.aversion + 1);
        let error = client.set_acl("/a", [Acl::creator_all()], before.stat.aversion).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BadVersion);
        assert_eq!(client.acl("/a").await.unwrap().entries.len(), 2);
        let error = client.set_acl("/a", [], None).await.unwrap_err();
        assert_eq!((error.kind(), error.operation()), (ErrorKind::InvalidAcl, "set_acl"));
    }

    async fn credentials_precede_everything_else_on_every_link(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let client = builder(&server, proxy.connect_string())
            .auth_digest("user", "right").auth_digest("other", "word").allow_plaintext_auth().connect().await.unwrap();
        client.create("/a", "", CreateMode::Persistent).await.unwrap();
        assert_eq!(client.acl("/a").await.unwrap().entries.len(), 2, "both identities must have an entry");
        let _watch = client.watch_data("/a").unwrap();
        for _ in 0..3 {
            proxy.add(Rule::on(OpCode::GetData).reset_before());
            soon(client.get("/a")).await.unwrap();
        }
        let trace = proxy.trace();
        for link in 0..=trace.iter().map(|frame| frame.link).max().unwrap() {
            let requests = trace.iter().filter(|frame| frame.link == link && frame.op.is_some() && frame.event.is_none());
            let first: Vec<_> = requests.map(|frame| (frame.op.unwrap(), frame.code.is_some())).take(4).collect();
            let auth = |is_reply| (OpCode::Auth, is_reply);
            assert_eq!(first, [auth(false), auth(false), auth(true), auth(true)], "link {link}");
        }
    }

    async fn a_scheme_unknown_to_the_servers_is_refused_immediately(backend: Backend) {
        let server = backend.start().await;
        let unknown = builder(&server, server.connect_string()).auth("no-such-scheme", b"x".to_vec()).allow_plaintext_auth();
        let error = soon(unknown.connect()).await.unwrap_err();
        assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::AuthFailed, false));
    }
}

#[tokio::test]
async fn settings_that_are_not_safe_or_cannot_work_are_refused() {
    for (builder, rule) in [
        (Client::builder("a").auth_digest("user", "word"), "credentials need TLS, or allow_plaintext_auth()"),
        (Client::builder("a").auth("digest", b"user:word".to_vec()), "credentials need TLS"),
        (Client::builder("a").auth_digest("us:er", "word").allow_plaintext_auth(), "user \"us:er\" must"),
        (Client::builder("a").auth_digest("", "word").allow_plaintext_auth(), "user \"\" must"),
        (Client::builder("a").acl([]), "needs at least one entry"),
        (Client::builder("a").acl([Acl::creator_all()]), "needs credentials"),
    ] {
        let error = builder.build().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().contains(rule), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_without_who_am_i_costs_neither_session_nor_lock() {
    let server = Backend::Memory.start().await;
    let client = connect(&server).await;
    let guard = soon(Mutex::new(&client, "/lock").unwrap().acquire()).await.unwrap();
    server.as_embedded().unwrap().set_dialect(Dialect::ZooKeeper35);
    let session = client.session_id();
    let (refused, written) = tokio::join!(client.who_am_i(), client.set("/lock", "x", None));
    let error = refused.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("3.7"), "{error}");
    // The server closed the link with the refusal. The write has succeeded, or its outcome is unknown.
    assert!(written.map_or_else(|error| error.may_have_applied(), |_| true));
    client.get("/lock").await.unwrap();
    assert!(guard.is_held());
    assert_eq!(client.session_id(), session);
    guard.release().await.unwrap();
}
