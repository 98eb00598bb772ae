use super::{Peer, secret};
use docent_battery::{Backend, ServerOptions, both_backends_in_real_time};
use docent_proto::{Acl, ClientInfo, Code, CreateMode, EventKind, Permissions, Request, Response, WatchMode};

/// The digest of `super:secret`.
const DIGEST: &str = "super:lK75jTNcA+U9vtVEw5vB51mj/w4=";

fn options() -> ServerOptions {
    ServerOptions::default().super_digest(DIGEST)
}

async fn list(peer: &mut Peer, path: &str) -> Result<Vec<Acl>, Code> {
    match peer.call(Request::GetAcl { path: path.into() }).await? {
        Response::Acl { acl, .. } => Ok(acl),
        other => panic!("{other:?}"),
    }
}

both_backends_in_real_time! {
    async fn the_super_user_may_do_everything(backend: Backend) {
        let server = backend.start_own_with(options()).await;
        let (mut owner, mut other) = (Peer::of(&server).await, Peer::of(&server).await);
        let mut user = Peer::of(&server).await;
        user.authenticate("super:secret").await;
        other.authenticate("super:guess").await;
        let [node, child] = ["a", "a/b"].map(|name| server.path(name));
        let nobody = vec![Acl { permissions: Permissions::ALL, scheme: "digest".into(), id: "nobody:x".into() }];
        for peer in [&mut user, &mut other] {
            peer.stay(server.root(), WatchMode::PersistentRecursive).await;
        }
        owner.create_as(&node, CreateMode::Persistent, nobody.clone()).await;
        let read = Request::GetData { path: node.clone(), watch: false };
        for peer in [&mut owner, &mut other] {
            assert_eq!(peer.call(read.clone()).await.map(drop), Err(Code::NO_AUTH));
        }
        user.call(read).await.unwrap();
        user.create(&child).await;
        user.set(&node).await;
        assert_eq!(list(&mut user, &node).await, Ok(nobody), "the list contains everything");
        user.call(Request::SetAcl { path: node.clone(), acl: secret("u:x"), version: -1 }).await.unwrap();
        user.delete(&child).await;
        let event = |kind, path: &String| (kind, path.clone());
        let all = [
            event(EventKind::Created, &node),
            event(EventKind::Created, &child),
            event(EventKind::DataChanged, &node),
            event(EventKind::Deleted, &child),
        ];
        assert_eq!(user.drain_events().await, all);
        assert_eq!(other.drain_events().await, [all[1].clone(), all[3].clone()]);
        // Lists that are invalid for every client stay invalid for the super user.
        for acl in [Vec::new(), vec![Acl { permissions: Permissions::ALL, scheme: "super".into(), id: "".into() }]] {
            let set = Request::SetAcl { path: node.clone(), acl, version: -1 };
            assert_eq!(user.call(set).await, Err(Code::INVALID_ACL));
        }
        let delete = Request::Delete { path: "/zookeeper/quota".into(), version: -1 };
        assert_eq!(user.call(delete).await, Err(Code::BAD_ARGUMENTS));
    }

    async fn the_super_user_has_two_identities(backend: Backend) {
        let server = backend.start_own_with(options()).await;
        let mut user = Peer::of(&server).await;
        user.authenticate("super:secret").await;
        let Ok(Response::Clients(mut clients)) = user.call(Request::WhoAmI).await else { panic!() };
        clients.sort_by_key(|client| client.scheme.clone());
        let identity = |scheme: &str, user: &str| ClientInfo { scheme: scheme.into(), user: user.into() };
        assert_eq!(clients, [identity("digest", "super"), identity("ip", "127.0.0.1"), identity("super", "")]);
        // In a list, `auth` stands for the digest alone.
        let auth = vec![Acl { permissions: Permissions::ALL, scheme: "auth".into(), id: "".into() }];
        user.create_as(&server.path("a"), CreateMode::Persistent, auth).await;
        let digest = Acl { permissions: Permissions::ALL, scheme: "digest".into(), id: DIGEST.into() };
        assert_eq!(list(&mut user, &server.path("a")).await, Ok(vec![digest]));
    }

    async fn without_a_digest_there_is_no_super_user(backend: Backend) {
        let server = backend.start().await;
        let (mut owner, mut user) = (Peer::of(&server).await, Peer::of(&server).await);
        user.authenticate("super:secret").await;
        owner.create_as(&server.path("a"), CreateMode::Persistent, secret("u:x")).await;
        let read = Request::GetData { path: server.path("a"), watch: false };
        assert_eq!(user.call(read).await.map(drop), Err(Code::NO_AUTH));
    }
}
