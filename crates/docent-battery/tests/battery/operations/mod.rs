//! Operations whose answers and events are the same on the embedded server and on a real one.

mod lifetimes;
mod queries;
mod super_user;
mod watches;
mod wire;

use docent_battery::{RawClient, RawError, TestServer};
use docent_proto::{
    Acl, Code, Create, CreateMode, EventKind, Permissions, Request, Response, WatchKind, WatchMode,
};
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(20);

/// A raw client with its own session, which bypasses all proxies.
struct Peer(RawClient);

impl Peer {
    async fn of(server: &TestServer) -> Self {
        Self(RawClient::open(server.address(), TIMEOUT).await.unwrap())
    }

    async fn call(&mut self, request: Request) -> Result<Response, Code> {
        match self.0.call(request).await {
            Ok(response) => Ok(response),
            Err(RawError::Refused(code)) => Err(code),
            Err(other) => panic!("{other}"),
        }
    }

    async fn create(&mut self, path: &str) {
        self.create_as(path, CreateMode::Persistent, Acl::open()).await;
    }

    async fn create_as(&mut self, path: &str, mode: CreateMode, acl: Vec<Acl>) {
        let create = Create::new(path.into(), "value".into(), acl, mode, 0);
        self.call(Request::Create(create)).await.unwrap();
    }

    async fn delete(&mut self, path: &str) {
        self.call(Request::Delete { path: path.into(), version: -1 }).await.unwrap();
    }

    async fn set(&mut self, path: &str) {
        let data = Some("new".into());
        self.call(Request::SetData { path: path.into(), data, version: -1 }).await.unwrap();
    }

    /// Sets a watch that fires once on a node that exists.
    async fn watch_data(&mut self, path: &str) {
        self.call(Request::GetData { path: path.into(), watch: true }).await.unwrap();
    }

    async fn watch_children(&mut self, path: &str) {
        self.call(Request::GetChildren { path: path.into(), watch: true }).await.unwrap();
    }

    async fn stay(&mut self, path: &str, mode: WatchMode) {
        let added = self.call(Request::AddWatch { path: path.into(), mode }).await;
        assert_eq!(added, Ok(Response::WatchAdded(Code::OK)));
    }

    async fn check(&mut self, path: &str, kind: WatchKind) -> Result<(), Code> {
        self.call(Request::CheckWatches { path: path.into(), kind }).await.map(drop)
    }

    async fn remove(&mut self, path: &str, kind: WatchKind) -> Result<(), Code> {
        self.call(Request::RemoveWatches { path: path.into(), kind }).await.map(drop)
    }

    async fn authenticate(&mut self, credentials: &'static str) {
        let auth = Request::Auth { scheme: "digest".into(), credentials: credentials.into() };
        self.call(auth).await.unwrap();
    }

    /// Returns the events of all earlier operations, in order.
    async fn drain_events(&mut self) -> Vec<(EventKind, String)> {
        self.call(Request::Sync { path: "/".into() }).await.unwrap();
        self.0.take_events().into_iter().map(|event| (event.kind, event.path)).collect()
    }

    /// Returns the paths and kinds of all events so far, sorted.
    async fn drain_sorted_events(&mut self) -> Vec<(String, i32)> {
        let drain_events = self.drain_events().await.into_iter();
        let mut sorted: Vec<_> = drain_events.map(|(kind, path)| (path, kind as i32)).collect();
        sorted.sort();
        sorted
    }
}

/// Returns an access control list that permits everyone everything but reading, and `user` everything.
fn secret(user: &str) -> Vec<Acl> {
    let all_but_read = Permissions(Permissions::ALL.0 & !Permissions::READ.0);
    vec![
        Acl { permissions: all_but_read, scheme: "world".into(), id: "anyone".into() },
        Acl { permissions: Permissions::ALL, scheme: "digest".into(), id: user.to_owned().into() },
    ]
}
