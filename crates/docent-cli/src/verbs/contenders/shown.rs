use super::found::Found;
use crate::app::App;
use crate::exit::Failure;
use docent::Client;
use docent::node::Stat;

/// Folders of nodes below the path of a recipe: the path itself, those of a semaphore's permits and turns,
/// and those of the claims of Docent's and kazoo's queues.
const FOLDERS: [&str; 5] = ["", "/leases", "/locks", "/claims", "/taken"];

/// Returns the node of a found contender.
pub(super) async fn node(client: &Client, path: &str, one: &Found) -> Result<(String, Stat), Failure> {
    for folder in FOLDERS {
        let path = format!("{}{folder}/{}", path.trim_end_matches('/'), one.name);
        if let Some(stat) = client.exists(&path).await? {
            return Ok((path, stat));
        }
    }
    Err(Failure::conflict(format!("{} left {path} meanwhile: nothing was done", one.name)))
}

/// Shows the owner of a node.
pub(super) fn show(app: &App, path: &str, one: &Found, stat: &Stat) {
    let state = if one.holds { "holds" } else { "waits" };
    let session = stat.owner.map_or_else(|| "none".to_owned(), |session| format!("{session:#x}"));
    app.output.remark(format!("{path}\n  {state}, owner {}, session {session}", one.owner));
}
