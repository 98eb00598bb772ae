//! `Election` of Docent and kazoo, each configured to recognize the other.

use crate::beside_kazoo;
use crate::client::{Kazoo, both, connect, expire};
use docent::Election;
use docent::LostReason;
use docent::election::ElectionLayout::{LeaderLatch, LeaderSelector};
use docent::election::{ElectionLayout, Leader};
use docent_battery::Backend;
use docent_tests::{soon, until};
use futures_util::StreamExt;

const PATH: &str = "/election/scheduler";
const MARKERS: [(ElectionLayout, &str); 2] = [(LeaderLatch, "latch-"), (LeaderSelector, "lock-")];

fn election(client: &docent::Client, layout: ElectionLayout) -> Election {
    let own = Election::builder(client, PATH).id("ours").layout(layout);
    own.neighbours("__lock__").build().unwrap()
}

/// Waits until there are `count` candidates.
async fn until_candidates(election: &Election, count: usize) {
    until(async || election.candidates().await.unwrap().len() >= count).await;
}

fn leads(leader: &Option<Leader>, id: &str) -> bool {
    leader.as_ref().is_some_and(|leader| leader.id == id)
}

beside_kazoo! {
    async fn candidates_of_both_share_one_line_and_all_see_the_same_leader(backend: Backend) {
        for (layout, marker) in MARKERS {
            let server = backend.start().await;
            let (client, kazoo) = both(&server).await;
            let own = election(&client, layout);
            let peer = kazoo.make(&format!("election {PATH} theirs {marker}")).await;
            let other = kazoo.make(&format!("election {PATH} onlooker {marker}")).await;
            let mut leaders = own.observe();
            assert_eq!(soon(leaders.next()).await.unwrap().unwrap(), None);

            let leadership = soon(own.campaign()).await.unwrap();
            peer.done("stand").await;
            kazoo.until_it_waits_for(&leadership.path()).await;
            peer.refused("leads").await;
            assert_eq!(other.done("contenders").await, ["ours", "theirs"]);
            assert!(leads(&soon(own.leader()).await.unwrap(), "ours"));
            let first = leadership.fence();
            soon(leadership.resign()).await.unwrap();
            peer.done("lead").await;

            let campaign = tokio::spawn(own.campaign());
            until_candidates(&own, 2).await;
            assert_eq!(other.done("contenders").await, ["theirs", "ours"]);
            let leader = soon(own.leader()).await.unwrap();
            assert!(leads(&leader, "theirs"), "{leader:?}");
            let leader = leader.unwrap();
            assert!(leader.fence > first && Some(leader.session_id) != client.session_id());
            soon(async { while !leads(&leaders.next().await.unwrap().unwrap(), "theirs") {} }).await;
            assert!(!campaign.is_finished());
            peer.done("resign").await;
            let leadership = soon(campaign).await.unwrap().unwrap();
            assert!(leadership.fence() > leader.fence);
            assert_eq!(other.done("contenders").await, ["ours"]);
            soon(async { while !leads(&leaders.next().await.unwrap().unwrap(), "ours") {} }).await;
        }
    }

    async fn either_leads_when_the_session_of_the_other_ends(backend: Backend) {
        let server = backend.start().await;
        let (client, kazoo) = both(&server).await;
        let own = election(&client, LeaderLatch);
        let peer = kazoo.make(&format!("election {PATH} theirs latch-")).await;
        peer.done("stand").await;
        peer.done("lead").await;
        let campaign = tokio::spawn(own.campaign());
        until_candidates(&own, 2).await;
        kazoo.expire().await;
        let leadership = soon(campaign).await.unwrap().unwrap();

        let kazoo = Kazoo::start(&server).await;
        let peer = kazoo.make(&format!("election {PATH} heirs latch-")).await;
        peer.done("stand").await;
        kazoo.until_it_waits_for(&leadership.path()).await;
        peer.refused("leads").await;
        expire(&server, &client).await;
        peer.done("lead").await;
        assert_eq!(soon(leadership.lost()).await, LostReason::SessionExpired);
        let seen = soon(election(&connect(&server).await, LeaderLatch).leader()).await.unwrap();
        assert!(leads(&seen, "heirs"), "{seen:?}");
    }
}
