//! `Membership`, and `Party` and `ShallowParty`.

use crate::beside_kazoo;
use crate::client::{Kazoo, both, connect, expire};
use docent::Membership;
use docent::discovery::{Members, Peer};
use docent_battery::Backend;
use docent_battery::peer::PeerRecipe;
use docent_tests::{soon, until};

const PATH: &str = "/cluster/web";

/// Id of a member that a `Party` counts.
const ID: &str = "host-7__party__";

/// Waits until the members' ids have these suffixes, and their data is as given.
async fn until_members(members: &Members, wanted: &[(&str, &str)]) {
    let is = |peer: &Peer, wanted: &(&str, &str)| peer.id.ends_with(wanted.0) && peer.data == wanted.1;
    until(async || {
        let now = members.current();
        now.len() == wanted.len() && wanted.iter().all(|wanted| now.iter().any(|peer| is(peer, wanted)))
    })
    .await;
}

/// Waits until kazoo lists these members.
async fn until_peer_lists(peer: &PeerRecipe<'_>, wanted: &[&str]) {
    until(async || peer.done("members").await == wanted).await;
}

beside_kazoo! {
    async fn members_and_a_party_see_each_other_join_and_leave(backend: Backend) {
        let server = backend.start().await;
        let (client, kazoo) = both(&server).await;
        let group = Membership::new(&client, PATH).unwrap();
        let members = soon(group.members()).await.unwrap();
        let peer = kazoo.make(&format!("party {PATH} theirs")).await;
        peer.done("join").await;
        until_members(&members, &[("__party__", "theirs")]).await;
        // Kazoo counts nodes with `__party__` in their names, and lists their data.
        let me = soon(group.join(ID, "ours")).await.unwrap();
        until_peer_lists(&peer, &["ours", "theirs"]).await;
        assert_eq!(peer.done("count").await, ["2"]);
        until_members(&members, &[("__party__", "theirs"), (ID, "ours")]).await;
        me.set_data("welcome");
        until_peer_lists(&peer, &["theirs", "welcome"]).await;
        peer.done("leave").await;
        until_members(&members, &[(ID, "welcome")]).await;
        soon(me.leave()).await.unwrap();
        until_peer_lists(&peer, &[]).await;

        // A member without that word is visible to Docent only.
        let _me = soon(group.join("host-7", "ours")).await.unwrap();
        assert_eq!(peer.done("count").await, ["0"]);
    }

    async fn members_and_a_shallow_party_see_each_other_join_and_leave(backend: Backend) {
        let server = backend.start().await;
        let (client, kazoo) = both(&server).await;
        let group = Membership::new(&client, PATH).unwrap();
        let members = soon(group.members()).await.unwrap();
        let peer = kazoo.make(&format!("shallow-party {PATH} theirs")).await;
        peer.done("join").await;
        until_members(&members, &[("-theirs", "theirs")]).await;
        // Kazoo takes the part of the name after the first dash.
        let me = soon(group.join("1-host-7", "data")).await.unwrap();
        until_peer_lists(&peer, &["host-7", "theirs"]).await;
        peer.done("leave").await;
        until_members(&members, &[("-host-7", "data")]).await;
        soon(me.leave()).await.unwrap();
        until_peer_lists(&peer, &[]).await;
    }

    async fn a_member_of_either_whose_session_ends_is_removed_and_docents_member_returns(backend: Backend) {
        let server = backend.start().await;
        let (client, kazoo) = both(&server).await;
        let group = Membership::new(&client, PATH).unwrap();
        let members = soon(group.members()).await.unwrap();
        kazoo.make(&format!("party {PATH} theirs")).await.done("join").await;
        until_members(&members, &[("__party__", "theirs")]).await;
        kazoo.expire().await;
        until_members(&members, &[]).await;

        let kazoo = Kazoo::start(&server).await;
        let onlooker = kazoo.make(&format!("party {PATH} onlooker")).await;
        let me = soon(group.join(ID, "ours")).await.unwrap();
        until_peer_lists(&onlooker, &["ours"]).await;
        let other = connect(&server).await;
        let before = soon(other.exists(me.path())).await.unwrap().unwrap();
        expire(&server, &client).await;
        until(async || {
            let now = other.exists(me.path()).await.unwrap();
            now.is_some_and(|now| now.owner != before.owner)
        })
        .await;
        until_peer_lists(&onlooker, &["ours"]).await;
    }
}
