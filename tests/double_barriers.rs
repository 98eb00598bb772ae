//! A `DoubleBarrier` beside members of other libraries.

use crate::peer::Theirs;
use crate::{soon, until};
use docent::locks::Entered;
use docent::{Client, DoubleBarrier, Error};
use tokio::task::JoinHandle;

/// Waits until the number of nodes below the barrier is as `wanted`.
pub async fn until_nodes(client: &Client, path: &str, wanted: impl Fn(usize) -> bool) {
    until(async || wanted(client.children(path).await.map_or(0, |children| children.names.len()))).await;
}

/// Enters in a task of its own.
pub fn enter(barrier: &DoubleBarrier) -> JoinHandle<Result<Entered, Error>> {
    let barrier = barrier.clone();
    tokio::spawn(async move { barrier.enter().await })
}

/// Lets a member of ours and two of theirs enter the barrier at `path` and leave it again, ours before the
/// last one or as the last one. Fewer nodes than `all_in` show that one of theirs has begun to leave.
///
/// # Panics
/// When one of them does not wait for the last one.
pub async fn enter_and_leave_together(
    client: &Client,
    path: &str,
    members: [&Theirs<'_>; 2],
    ours_is_last: bool,
    all_in: usize,
) {
    let ours = DoubleBarrier::new(client, path, 3).expect("three is a size");
    let [theirs, other] = members;
    let their_enter = theirs.tell("enter");
    until_nodes(client, path, |count| count == 1).await;
    let (other_enter, our_enter) = if ours_is_last {
        let other_enter = other.tell("enter");
        until_nodes(client, path, |count| count == 2).await;
        assert!(!their_enter.is_finished() && !other_enter.is_finished());
        (other_enter, enter(&ours))
    } else {
        let our_enter = enter(&ours);
        until_nodes(client, path, |count| count == 2).await;
        assert!(!their_enter.is_finished() && !our_enter.is_finished());
        (other.tell("enter"), our_enter)
    };
    their_enter.done().await;
    other_enter.done().await;
    let entered = soon(our_enter).await.expect("the task ends").expect("all are there");

    // Three members, and a node that says that they are in.
    until_nodes(client, path, |count| count == 4).await;
    let their_leave = theirs.tell("leave");
    let (other_leave, our_leave) = if ours_is_last {
        let other_leave = other.tell("leave");
        until_nodes(client, path, |count| count < all_in).await;
        assert!(!their_leave.is_finished() && !other_leave.is_finished());
        (other_leave, tokio::spawn(entered.leave()))
    } else {
        let our_leave = tokio::spawn(entered.leave());
        until_nodes(client, path, |count| count < all_in).await;
        assert!(!their_leave.is_finished() && !our_leave.is_finished());
        (other.tell("leave"), our_leave)
    };
    their_leave.done().await;
    other_leave.done().await;
    soon(our_leave).await.expect("the task ends").expect("all leave");
    until_nodes(client, path, |count| count == 0).await;
}
