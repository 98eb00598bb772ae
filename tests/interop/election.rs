//! `Election`, and `LeaderLatch` and `LeaderSelector`.

use crate::curator::both;
use docent::Election;
use docent::election::ElectionLayout;
use docent_battery::Backend;
use docent_tests::{soon, until};
use futures_util::StreamExt;

const PATH: &str = "/election/scheduler";

/// Waits until there are `count` candidates.
async fn until_candidates(election: &Election, count: usize) {
    until(async || election.candidates().await.unwrap().len() >= count).await;
}

/// Docent's candidate leads, then Curator's, then Docent's. All clients report the same leader.
async fn one_leads_at_a_time(layout: ElectionLayout, kind: &str) {
    let server = Backend::Real.start().await;
    let (client, curator) = both(&server).await;
    let own = Election::builder(&client, PATH).id("ours").layout(layout).build().unwrap();
    let peer = curator.make(&format!("{kind} {PATH} theirs")).await;
    let mut leaders = own.observe();
    assert_eq!(soon(own.leader()).await.unwrap(), None);
    assert_eq!(soon(leaders.next()).await.unwrap().unwrap(), None);

    let leadership = soon(own.campaign()).await.unwrap();
    peer.done("stand").await;
    until_candidates(&own, 2).await;
    let leading = peer.start("lead");
    let other = curator.make(&format!("{kind} {PATH} onlooker")).await;
    assert_eq!(other.done("candidates").await, ["ours-leads", "theirs-waits"]);
    assert_eq!(other.done("leader").await, ["ours"]);
    assert_eq!(soon(own.leader()).await.unwrap().unwrap().id, "ours");
    assert!(!leading.is_finished());
    let first = leadership.fence();
    soon(leadership.resign()).await.unwrap();
    leading.done().await;

    let campaign = tokio::spawn(own.campaign());
    until_candidates(&own, 2).await;
    assert_eq!(other.done("candidates").await, ["theirs-leads", "ours-waits"]);
    let leader = soon(own.leader()).await.unwrap().unwrap();
    assert!(leader.id == "theirs" && leader.fence > first);
    assert_ne!(Some(leader.session_id), client.session_id());
    soon(async {
        while leaders.next().await.unwrap().unwrap().is_none_or(|leader| leader.id != "theirs") {}
    })
    .await;
    peer.done("leads").await;
    assert!(!campaign.is_finished());
    peer.done("resign").await;
    let leadership = soon(campaign).await.unwrap().unwrap();
    assert!(leadership.fence() > leader.fence);
    assert_eq!(other.done("leader").await, ["ours"]);
    soon(async { while leaders.next().await.unwrap().unwrap().is_none_or(|leader| leader.id != "ours") {} })
        .await;
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper and Curator: run `cargo xtask test`"]
async fn candidates_share_one_line_with_leader_latches_and_all_see_the_same_leader() {
    one_leads_at_a_time(ElectionLayout::LeaderLatch, "latch").await;
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper and Curator: run `cargo xtask test`"]
async fn candidates_share_one_line_with_leader_selectors_and_all_see_the_same_leader() {
    one_leads_at_a_time(ElectionLayout::LeaderSelector, "selector").await;
}
