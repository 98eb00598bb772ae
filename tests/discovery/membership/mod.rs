//! Groups: their members, and the readers that are notified of them.

mod join;
mod lists;
mod own;

use docent::discovery::{MemberChange, MemberChanges};
use docent::{Client, Members, Membership};
use docent_tests::soon;
use futures_util::StreamExt;

pub(crate) const GROUP: &str = "/cluster/hosts";

pub(crate) fn group(client: &Client) -> Membership {
    Membership::new(client, GROUP).unwrap()
}

/// Returns the next change, abbreviated.
pub(super) async fn next(changes: &mut MemberChanges) -> String {
    loop {
        match soon(changes.next()).await.expect("the client is open") {
            Ok(MemberChange::Joined(peer)) => {
                return format!("+{}={}", peer.id, String::from_utf8_lossy(&peer.data));
            }
            Ok(MemberChange::Updated(peer)) => {
                return format!("{}={}", peer.id, String::from_utf8_lossy(&peer.data));
            }
            Ok(MemberChange::Left(peer)) => return format!("-{}", peer.id),
            Ok(MemberChange::Unreadable(_, error)) | Err(error) => return format!("!{error}"),
            _ => {}
        }
    }
}

pub(super) fn ids(members: &Members) -> String {
    members.current().iter().map(|peer| peer.id.to_string()).collect::<Vec<_>>().join(" ")
}

pub(super) async fn until(members: &Members, wanted: &str) {
    soon(async {
        while ids(members) != wanted {
            docent_tests::pause().await;
        }
    })
    .await;
}

/// Waits until a member's node belongs to the current session of its client.
pub(super) async fn until_present(client: &Client, other: &Client, path: &str) {
    soon(async {
        loop {
            let stat = other.exists(path).await.unwrap();
            if stat.is_some_and(|stat| stat.owner == client.session_id()) {
                return;
            }
            docent_tests::pause().await;
        }
    })
    .await;
}
