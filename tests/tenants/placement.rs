//! Where clients keep their own nodes, and what other clients may do to these nodes.

use crate::scene::{TENANTS, Tenant, Tree, administrator, at_root};
use docent::client::ParentKind;
use docent::node::{Acl, KeptNode, Permissions};
use docent::{Client, Config, ConnectionState, CreateMode, ErrorKind, Queue};
use docent_battery::{Backend, Proxy, TestServer, both_backends};
use docent_proto::OpCode;
use docent_tests::{SHORT_SESSION, connect, own_nodes_in, soon, until};

/// Returns the paths of the childless nodes that belong to the session of `client`.
async fn own_nodes_of(client: &Client, folder: &str) -> Vec<String> {
    let mut own = Vec::new();
    for name in client.children(folder).await.unwrap().names {
        let path = format!("{folder}/{name}");
        if client.exists(&path).await.unwrap().and_then(|stat| stat.owner) == client.session_id() {
            own.push(path);
        }
    }
    own
}

/// Returns the folders of client sessions in `base`.
async fn folders(client: &Client, base: &str) -> Vec<String> {
    let names = |folder: String| async move {
        client.children(&folder).await.map_or_else(|_| Vec::new(), |children| children.names)
    };
    let shared =
        names(format!("{base}/_docent")).await.into_iter().map(|name| format!("{base}/_docent/{name}"));
    let siblings = names(if base.is_empty() { "/".to_owned() } else { base.to_owned() }).await;
    let siblings = siblings.into_iter().filter(|name| name.starts_with("_docent-"));
    shared.chain(siblings.map(|name| format!("{base}/{name}"))).collect()
}

async fn permissions(client: &Client, path: &str) -> Vec<(String, Permissions)> {
    let list = client.acl(path).await.unwrap().entries;
    list.into_iter().map(|entry| (entry.scheme, entry.permissions)).collect()
}

/// Returns the requests after the first frames of a trace that write or concern permissions.
fn requests_since(proxy: &Proxy, before: usize) -> Vec<OpCode> {
    let trace = proxy.trace();
    let requests = trace[before..].iter().filter_map(|frame| frame.op.filter(|op| frame.is_request(*op)));
    // A put checks the capacity of the queue first. An earlier session is ended on separate links.
    let is_unrelated =
        |op: &OpCode| matches!(op, OpCode::Ping | OpCode::Exists | OpCode::Auth | OpCode::CloseSession);
    requests.filter(|op| !is_unrelated(op)).collect()
}

async fn put(client: &Client, home: &str) {
    let queue: Queue<u64> = Queue::new(client, &format!("{home}/jobs")).unwrap();
    soon(queue.put(&7)).await.unwrap();
}

both_backends! {
    async fn markers_are_at_the_root_if_it_is_open_and_otherwise_in_the_tenants_folder(backend: Backend) {
        for (tree, bases) in [
            (Tree::Open, ["", ""]),
            (Tree::Closed, ["/svc-a", "/config"]),
            (Tree::Abandoned, ["", ""]),
        ] {
            let server = backend.start().await;
            tree.lay_out(&server).await;
            for (tenant, base) in [Tenant::A, Tenant::Operator].into_iter().zip(bases) {
                let client = tenant.connect(&server).await;
                put(&client, tenant.home()).await;
                let folders = folders(&client, base).await;
                let mut own = Vec::new();
                for folder in &folders {
                    // Folders of other tenants may not be listed.
                    if client.children(folder).await.is_ok() {
                        own.extend(own_nodes_of(&client, folder).await);
                    }
                }
                assert_eq!(own.len(), 1, "{tree:?} {tenant:?}: {folders:?}");
                let shared = format!("{base}/_docent/");
                assert_eq!(own[0].starts_with(&shared), tree != Tree::Abandoned, "{own:?}");
                soon(client.close()).await;
            }
        }
    }

    async fn the_shared_folder_grants_no_more_than_its_parent(backend: Backend) {
        let server = backend.start().await;
        Tree::Closed.lay_out(&server).await;
        let client = Tenant::A.connect(&server).await;
        put(&client, "/svc-a").await;
        let most = Permissions::READ | Permissions::CREATE | Permissions::DELETE;
        assert_eq!(permissions(&client, "/svc-a/_docent").await, [("digest".to_owned(), most)]);
        let own = folders(&client, "/svc-a").await;
        let all = [("digest".to_owned(), Permissions::ALL)];
        assert_eq!(permissions(&client, &own[0]).await, all);
        let marker = own_nodes_of(&client, &own[0]).await;
        assert_eq!(permissions(&client, &marker[0]).await, all);
        // No other tenant can even read the nodes.
        let stranger = Tenant::B.connect(&server).await;
        for path in ["/svc-a/_docent", &own[0], &marker[0]] {
            assert_eq!(stranger.get(path).await.unwrap_err().kind(), ErrorKind::NoAuth, "{path}");
        }
        // The two clients that the folder admits share its existing own-node folder.
        let (owner, operator) = (Tenant::A.connect(&server).await, Tenant::Operator.connect(&server).await);
        for client in [&operator, &owner] {
            soon(Config::<u32>::new(client, "/config/limit").unwrap().publish(&1)).await.unwrap();
        }
        assert_eq!(folders(&owner, "/config").await.len(), 2);
    }

    async fn a_hostile_tenant_can_neither_delete_nor_replace_markers_of_other_tenants(backend: Backend) {
        for was_first in [false, true] {
            let server = backend.start().await;
            let hostile = Tenant::B.connect(&server).await;
            if was_first {
                // The hostile client creates the place and admits other clients, which is all it can do.
                hostile.create("/_docent", "", CreateMode::Persistent).await.unwrap();
                hostile.set_acl("/_docent", [Acl::open_unsafe()], None).await.unwrap();
            }
            let client = Tenant::A.connect(&server).await;
            put(&client, "/svc-a").await;
            let folder = folders(&client, "").await.remove(0);
            let marker = own_nodes_of(&client, &folder).await.remove(0);
            for (path, kind) in [(&marker, ErrorKind::NoAuth), (&folder, ErrorKind::NotEmpty)] {
                assert_eq!(hostile.delete(path, None).await.unwrap_err().kind(), kind, "{path}");
            }
            let another = format!("{folder}/another");
            let refused = [
                hostile.set(&marker, "", None).await.map(drop),
                hostile.create(&another, "", CreateMode::Persistent).await.map(drop),
                hostile.set_acl(&marker, [Acl::open_unsafe()], None).await.map(drop),
                hostile.set_acl(&folder, [Acl::open_unsafe()], None).await.map(drop),
            ];
            assert!(refused.iter().all(|refused| refused.as_ref().is_err_and(|error| error.kind() == ErrorKind::NoAuth)));
            put(&client, "/svc-a").await;
        }
    }

    async fn a_folder_that_a_hostile_tenant_closed_is_skipped(backend: Backend) {
        let server = backend.start().await;
        let hostile = Tenant::B.connect(&server).await;
        hostile.create("/_docent", "", CreateMode::Persistent).await.unwrap();
        hostile.set_acl("/_docent", [Acl::creator_all()], None).await.unwrap();
        for tenant in [Tenant::A, Tenant::Anyone] {
            let client = tenant.connect(&server).await;
            // This also holds for nodes at the root, which have no other parent.
            soon(client.create("/at-root", "", CreateMode::Ephemeral)).await.unwrap();
            soon(client.ensure_absent("/at-root")).await.unwrap();
            assert_eq!(soon(own_nodes_in(&hostile, "")).await, [""; 0]);
            soon(client.close()).await;
        }
        until(async || !at_root(&server).await.iter().any(|name| name.starts_with("_docent-"))).await;
    }

    async fn acl_functions_by_path_are_not_called_for_the_clients_own_nodes(backend: Backend) {
        let server = backend.start().await;
        let unknown_user = || vec![Acl::digest("nobody", "word", Permissions::ALL)];
        let client = Tenant::A.builder(&server).acl_for(move |path| {
            assert!(!path.contains("_docent"), "{path}");
            (path == "/theirs").then(unknown_user)
        });
        let client = soon(client.connect()).await.unwrap();
        soon(client.create("/theirs", "", CreateMode::Ephemeral)).await.unwrap();
        put(&client, "/svc-a").await;
        // Even with a default list that excludes the client, the client can use its own nodes.
        let locked_out = soon(Tenant::B.builder(&server).acl([Acl::read_all()]).connect()).await.unwrap();
        soon(locked_out.create("/read-only", "", CreateMode::Ephemeral)).await.unwrap();
        soon(locked_out.ensure_absent("/read-only")).await.unwrap();
    }

    async fn an_error_names_the_folder_the_permission_and_what_to_grant(backend: Backend) {
        let server = backend.start().await;
        Tree::Closed.lay_out(&server).await;
        let admin = soon(administrator(&server).connect()).await.unwrap();
        // The client may change this node, and may create no node.
        admin.create("/leaf", "", CreateMode::Persistent).await.unwrap();
        admin.create("/leaf/value", "1", CreateMode::Persistent).await.unwrap();
        let change = Acl::new(Permissions::READ | Permissions::WRITE, "world", "anyone");
        admin.set_acl("/leaf/value", [change], None).await.unwrap();
        admin.set_acl("/leaf", [Acl::read_all()], None).await.unwrap();
        let client = Tenant::B.connect(&server).await;
        let error = soon(client.create_or_set("/leaf/value", "2", CreateMode::Persistent)).await.unwrap_err();
        assert_eq!((error.kind(), error.path()), (ErrorKind::NoAuth, Some("/leaf")), "{error}");
        for part in ["needs CREATE here, or on a folder above", "creates \"/_docent\" with READ and CREATE for everyone"] {
            assert!(error.to_string().contains(part), "{error}");
        }
        assert!(!error.may_have_applied() && !error.is_retryable());
        let config = Config::<u32>::builder(&client, "/leaf/value").history(0).build().unwrap();
        soon(config.publish(&2)).await.unwrap_err();
        assert_eq!(client.get("/leaf/value").await.unwrap().data, "1");
        let kept = KeptNode::new(&client, "/leaf/kept", "").unwrap();
        let error = soon(kept.present()).await.unwrap_err();
        assert_eq!((error.kind(), error.path()), (ErrorKind::NoAuth, Some("/leaf")), "{error}");
        drop(kept);
        let error = soon(client.check_clock(SHORT_SESSION)).await.unwrap_err();
        assert_eq!((error.kind(), error.path()), (ErrorKind::NoAuth, Some("/")), "{error}");

        // The fix that the error suggests works.
        admin.create("/_docent", "", CreateMode::Persistent).await.unwrap();
        let everyone = Acl::new(Permissions::READ | Permissions::CREATE, "world", "anyone");
        admin.set_acl("/_docent", [everyone], None).await.unwrap();
        soon(client.create_or_set("/leaf/value", "2", CreateMode::Persistent)).await.unwrap();
        soon(client.check_clock(std::time::Duration::from_millis(1))).await.unwrap();
        assert_eq!(client.get("/leaf/value").await.unwrap().data, "2");
        soon(client.close()).await;
        soon(admin.delete("/_docent", None)).await.unwrap_or_else(|error| assert_eq!(error.kind(), ErrorKind::NotEmpty));
    }

    async fn a_new_session_reuses_the_marker_folder_of_the_previous_one(backend: Backend) {
        let server = backend.start().await;
        Tree::Closed.lay_out(&server).await;
        let (proxy, other) = (server.proxy().await, Tenant::A.connect(&server).await);
        put(&other, "/svc-a").await;
        let client = soon(Tenant::A.through(&server, proxy.connect_string()).connect()).await.unwrap();
        put(&client, "/svc-a").await;
        let before = client.state().current().generation;
        soon(server.expire(client.session_id().unwrap())).await.unwrap();
        soon(client.state().wait_for(|state| state.state == ConnectionState::Connected && state.generation > before)).await;
        let before = proxy.trace().len();
        put(&client, "/svc-a").await;
        assert_eq!(requests_since(&proxy, before), [OpCode::CreateContainer, OpCode::Create2, OpCode::Multi]);
    }

    async fn a_put_is_one_request_once_the_session_has_its_marker_folder(backend: Backend) {
        for tree in [Tree::Open, Tree::Closed] {
            let server = backend.start().await;
            tree.lay_out(&server).await;
            let proxy = server.proxy().await;
            let client = soon(Tenant::A.through(&server, proxy.connect_string()).connect()).await.unwrap();
            put(&client, "/svc-a").await;
            let before = proxy.trace().len();
            put(&client, "/svc-a").await;
            assert_eq!(requests_since(&proxy, before), [OpCode::Multi]);
            soon(client.ensure_path("/config/a")).await.unwrap();
            let before = proxy.trace().len();
            // A node beside existing nodes needs no other place.
            soon(client.create("/config/near", "", CreateMode::Ephemeral)).await.unwrap();
            assert_eq!(requests_since(&proxy, before), [OpCode::Multi]);
            soon(client.close()).await;
        }
    }

    async fn a_kept_node_is_taken_over_by_the_next_session_in_a_tree_with_a_closed_root(backend: Backend) {
        let server = backend.start().await;
        Tree::Closed.lay_out(&server).await;
        let (proxy, other) = (server.proxy().await, Tenant::A.connect(&server).await);
        let client = Tenant::A.through(&server, proxy.connect_string()).session_timeout(SHORT_SESSION);
        let client = soon(client.connect()).await.unwrap();
        let node = KeptNode::new(&client, "/svc-a/kept", "1").unwrap();
        soon(node.present()).await.unwrap();
        until(async || own_nodes_in(&other, "/svc-a").await.len() == 2).await;
        let old = client.session_id().unwrap();
        proxy.cut().await;
        // The servers keep the session, so only its witness shows that its node may be replaced.
        let _alive = soon(server.front().sessions().keep_alive(old, server.address())).await.unwrap();
        soon(client.state().reached(ConnectionState::Lost)).await;
        proxy.heal().await.unwrap();
        until(async || {
            let owner = other.get("/svc-a/kept").await.unwrap().stat.owner;
            owner.is_some() && owner != Some(old)
        })
        .await;
    }

    async fn without_containers_clients_share_one_folder_and_leave_none_behind(backend: Backend) {
        let server = backend.start().await;
        for tenant in TENANTS {
            let client = tenant.builder(&server).parents(ParentKind::Persistent);
            let client = soon(client.connect()).await.unwrap();
            put(&client, tenant.home()).await;
            let own = own_nodes_of(&client, "/_docent").await;
            assert_eq!(own.len(), 1, "{tenant:?}");
            soon(client.close()).await;
        }
        let client = connect(&server).await;
        assert_eq!(client.children("/_docent").await.unwrap().names, [""; 0]);
        assert!(!at_root(&server).await.iter().any(|name| name.starts_with("_docent-")));
    }

    async fn a_tree_with_the_clients_marker_folder_is_deleted_only_if_there_is_another_one(backend: Backend) {
        let server = backend.start().await;
        Tree::Closed.lay_out(&server).await;
        let client = Tenant::A.connect(&server).await;
        put(&client, "/svc-a").await;
        let error = soon(client.delete_all("/svc-a")).await.unwrap_err();
        let error = error.to_string();
        assert!(error.contains("needs CREATE here") && error.contains("\"/\""), "{error}");
        // Everything below the folder can be deleted, and the place stays.
        soon(client.delete_all("/svc-a/jobs")).await.unwrap();
        assert_eq!(client.children("/svc-a").await.unwrap().names, ["_docent"]);
        // A place that another client left behind can be deleted as well, when it is empty.
        soon(client.close()).await;
        let admin = soon(administrator(&server).connect()).await.unwrap();
        admin.set_acl("/", [Acl::open_unsafe()], None).await.unwrap();
        let client = Tenant::A.connect(&server).await;
        soon(client.delete_all("/svc-a")).await.unwrap();
        assert_eq!(client.exists("/svc-a").await.unwrap(), None);
    }
}

/// Checks the closed tree, whose layout must not depend on the client that reads it.
#[tokio::test(start_paused = true)]
async fn tenants_may_write_only_to_their_homes() {
    let server: TestServer = Backend::Memory.start().await;
    Tree::Closed.lay_out(&server).await;
    for tenant in TENANTS {
        let client = tenant.connect(&server).await;
        let refused = client.create("/elsewhere", "", CreateMode::Persistent).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::NoAuth, "{tenant:?}");
        client.create(&format!("{}/mine", tenant.home()), "", CreateMode::Persistent).await.unwrap();
    }
}
