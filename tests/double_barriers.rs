//! A `DoubleBarrier` with members of other libraries.

use crate::{soon, until};
use docent::locks::Entered;
use docent::{Client, DoubleBarrier, Error};
use docent_battery::peer::PeerRecipe;
use tokio::task::JoinHandle;

/// Waits until the number of nodes below the barrier is as `wanted`.
pub async fn until_nodes(client: &Client, path: &str, wanted: impl Fn(usize) -> bool) {
    until(async || wanted(client.children(path).await.map_or(0, |children| children.names.len()))).await;
}

/// Enters the barrier in a separate task.
pub fn enter(barrier: &DoubleBarrier) -> JoinHandle<Result<Entered, Error>> {
    let barrier = barrier.clone();
    tokio::spawn(async move { barrier.enter().await })
}

/// Lets one Docent member and two members of another library enter the barrier at `path` and leave it again.
/// Docent's member enters and leaves second or last. If fewer than `all_in` nodes exist, one of the other
/// members has begun to leave.
///
/// # Panics
///
/// Panics if a member does not wait for the last one.
pub async fn enter_and_leave_together(
    client: &Client,
    path: &str,
    members: [&PeerRecipe<'_>; 2],
    docent_is_last: bool,
    all_in: usize,
) {
    let docent_member = DoubleBarrier::new(client, path, 3).expect("three is a valid size");
    let [first, other] = members;
    let first_enter = first.start("enter");
    until_nodes(client, path, |count| count == 1).await;
    let (other_enter, docent_enter) = if docent_is_last {
        let other_enter = other.start("enter");
        until_nodes(client, path, |count| count == 2).await;
        assert!(!first_enter.is_finished() && !other_enter.is_finished());
        (other_enter, enter(&docent_member))
    } else {
        let docent_enter = enter(&docent_member);
        until_nodes(client, path, |count| count == 2).await;
        assert!(!first_enter.is_finished() && !docent_enter.is_finished());
        (other.start("enter"), docent_enter)
    };
    first_enter.done().await;
    other_enter.done().await;
    let entered = soon(docent_enter).await.expect("the task ends").expect("all members have entered");

    // Three members, and the `ready` node.
    until_nodes(client, path, |count| count == 4).await;
    let first_leave = first.start("leave");
    let (other_leave, docent_leave) = if docent_is_last {
        let other_leave = other.start("leave");
        until_nodes(client, path, |count| count < all_in).await;
        assert!(!first_leave.is_finished() && !other_leave.is_finished());
        (other_leave, tokio::spawn(entered.leave()))
    } else {
        let docent_leave = tokio::spawn(entered.leave());
        until_nodes(client, path, |count| count < all_in).await;
        assert!(!first_leave.is_finished() && !docent_leave.is_finished());
        (other.start("leave"), docent_leave)
    };
    first_leave.done().await;
    other_leave.done().await;
    soon(docent_leave).await.expect("all members leave").expect("all leave");
    until_nodes(client, path, |count| count == 0).await;
}
