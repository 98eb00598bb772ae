//! `Election` of both, each told of the other.

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
    let ours = Election::builder(client, PATH).id("ours").layout(layout);
    ours.neighbours("__lock__").build().unwrap()
}

/// Waits until so many stand.
async fn until_standing(election: &Election, count: usize) {
    until(async || election.candidates().await.unwrap().len() >= count).await;
}

fn leads(leader: &Option<Leader>, id: &str) -> bool {
    leader.as_ref().is_some_and(|leader| leader.id == id)
}

beside_kazoo! {
    async fn candidates_of_both_stand_in_one_line_and_all_see_the_same_leader(backend: Backend) {
        for (layout, marker) in MARKERS {
            let server = backend.start().await;
            let (client, kazoo) = both(&server).await;
            let ours = election(&client, layout);
            let theirs = kazoo.make(&format!("election {PATH} theirs {marker}")).await;
            let other = kazoo.make(&format!("election {PATH} onlooker {marker}")).await;
            let mut leaders = ours.observe();
            assert_eq!(soon(leaders.next()).await.unwrap().unwrap(), None);

            let leadership = soon(ours.campaign()).await.unwrap();
            theirs.done("stand").await;
            kazoo.until_it_waits_for(&leadership.path()).await;
            theirs.refused("leads").await;
            assert_eq!(other.done("contenders").await, ["ours", "theirs"]);
            assert!(leads(&soon(ours.leader()).await.unwrap(), "ours"));
            let first = leadership.fence();
            soon(leadership.resign()).await.unwrap();
            theirs.done("lead").await;

            let campaign = tokio::spawn(ours.campaign());
            until_standing(&ours, 2).await;
            assert_eq!(other.done("contenders").await, ["theirs", "ours"]);
            let leader = soon(ours.leader()).await.unwrap();
            assert!(leads(&leader, "theirs"), "{leader:?}");
            let leader = leader.unwrap();
            assert!(leader.fence > first && Some(leader.session_id) != client.session_id());
            soon(async { while !leads(&leaders.next().await.unwrap().unwrap(), "theirs") {} }).await;
            assert!(!campaign.is_finished());
            theirs.done("resign").await;
            let leadership = soon(campaign).await.unwrap().unwrap();
            assert!(leadership.fence() > leader.fence);
            assert_eq!(other.done("contenders").await, ["ours"]);
            soon(async { while !leads(&leaders.next().await.unwrap().unwrap(), "ours") {} }).await;
        }
    }

    async fn either_leads_when_the_session_of_the_other_ends(backend: Backend) {
        let server = backend.start().await;
        let (client, kazoo) = both(&server).await;
        let ours = election(&client, LeaderLatch);
        let theirs = kazoo.make(&format!("election {PATH} theirs latch-")).await;
        theirs.done("stand").await;
        theirs.done("lead").await;
        let campaign = tokio::spawn(ours.campaign());
        until_standing(&ours, 2).await;
        kazoo.expire().await;
        let leadership = soon(campaign).await.unwrap().unwrap();

        let kazoo = Kazoo::start(&server).await;
        let theirs = kazoo.make(&format!("election {PATH} heirs latch-")).await;
        theirs.done("stand").await;
        kazoo.until_it_waits_for(&leadership.path()).await;
        theirs.refused("leads").await;
        expire(&server, &client).await;
        theirs.done("lead").await;
        assert_eq!(soon(leadership.lost()).await, LostReason::SessionExpired);
        let seen = soon(election(&connect(&server).await, LeaderLatch).leader()).await.unwrap();
        assert!(leads(&seen, "heirs"), "{seen:?}");
    }
}
