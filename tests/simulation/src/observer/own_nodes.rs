use docent_proto::{Acl, Create, CreateMode, Request};
use fastrand::Rng;

/// The persistent node of an observer, below which no other client writes.
pub(super) fn folder(number: u32) -> String {
    format!("/observer-{number}")
}

/// Nodes below the observer's node, each a child of the previous one.
const CHAIN: [&str; 4] = ["/a", "/a/b", "/a/b/c", "/a/b/c/d"];

/// Paths of nodes that may exist.
pub(super) fn paths(folder: &str) -> impl Iterator<Item = String> {
    let below =
        CHAIN.into_iter().chain(["/one", "/two", "/never"]).map(move |name| format!("{folder}{name}"));
    [folder.to_owned()].into_iter().chain(below)
}

pub(super) fn create(path: &str, mode: CreateMode) -> Request {
    Request::Create(Create::new(path.to_owned(), "".into(), Acl::open(), mode, 0))
}

/// A request that creates, sets or deletes one of the observer's nodes. It may fail.
pub(super) fn change(folder: &str, rng: &mut Rng) -> Request {
    let path = format!("{folder}{}", CHAIN[rng.usize(..CHAIN.len())]);
    let own = format!("{folder}/{}", ["one", "two"][rng.usize(..2)]);
    match rng.u8(..8) {
        0..=3 => create(&path, CreateMode::Persistent),
        4 => Request::SetData { path, data: None, version: -1 },
        5 => Request::Delete { path, version: -1 },
        6 => create(&own, CreateMode::Ephemeral),
        _ => Request::Delete { path: own, version: -1 },
    }
}
